/** Finds the command that runs the engine, or has `python/setup_engine.py` set one up. */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Fields } from "../context/messages.ts";
import { type Env, makePrivate, parsed, readJson } from "../files.ts";
import type { Shim } from "../shim.ts";
import { type EngineCommand, run } from "./process.ts";

/** The command that the user names, or that of a checkout; null where there is none of these. */
export function locateInstalled(
  env: Env = process.env,
  root: string = PACKAGE_ROOT,
): EngineCommand | null {
  const { FOREDECK_ENGINE: words, FOREDECK_PYTHON: python } = env;
  if (words) {
    // A JSON array of strings or words between blanks: for tests and experiments.
    const [file = "", ...args] = words.startsWith("[") ? JSON.parse(words) : words.split(" ");
    return { file, args };
  }
  if (python) return engineWith(python);
  const isWindows = process.platform === "win32";
  const script = join(root, ".venv", isWindows ? "Scripts/foredeck.exe" : "bin/foredeck");
  return existsSync(script) ? { file: script, args: ["engine"] } : null;
}

export function engineWith(python: string): EngineCommand {
  // `-P` keeps the working directory off the import path: a cloned repository must not be able to put
  // a module of its own in foredeck's place.
  const code = "from foredeck.cli.main import main; raise SystemExit(main())";
  return { file: python, args: ["-P", "-c", code, "engine"] };
}

interface ProvisionOptions {
  signal: AbortSignal;
  /** The engine that is set up ended before it answered anything. */
  failedBefore: boolean;
  /** The user asked for it: try again what failed lately. */
  insist: boolean;
}

/** Gets what is being done, in a few words, and what is to be logged. */
type Host = Pick<Shim, "state" | "log" | "onSetUp">;

/** The engine cannot be set up; the text is for the user. `known`: they have read it before. */
export class ProvisionError extends Error {
  readonly known: boolean;
  constructor(message: string, known = false) {
    super(message);
    this.known = known;
  }
}

const SETUP_MS = 15 * 60_000;
/** Being offline must not cost a minute at every start. */
const REMEMBERED_MS = 24 * 60 * 60_000;

/** The engine for this package's sources, set up if it is not there yet. @throws ProvisionError */
export async function provision(
  options: ProvisionOptions,
  host: Host,
  root = PACKAGE_ROOT,
): Promise<EngineCommand> {
  // Outside the package: an update of that removes everything inside it that it did not bring.
  const target = join(makePrivate(join(host.state, "engines")), await engineKey(root));
  const ready = await readSetUp(target);
  if (ready && !options.failedBefore) return engineWith(ready);
  const failure = `${target}.failed`;
  const before = options.insist ? {} : await readJson(failure);
  const age = Date.now() - Number(before.time);
  if (age >= 0 && age < REMEMBERED_MS && typeof before.text === "string")
    throw new ProvisionError(before.text, true);
  const script = [join(root, "python", "setup_engine.py"), target];
  if (options.failedBefore) script.push("--check");
  const said = await setUp(script, options.signal, host);
  // An abort says nothing about whether it would have worked.
  if (options.signal.aborted) throw new ProvisionError("setting up was interrupted");
  if (typeof said.python === "string") {
    await rm(failure, { force: true });
    return engineWith(said.python);
  }
  const text = typeof said.error === "string" ? said.error : pythonAdvice(said.hasUv === true);
  // Where this fails, the next start tries again.
  await writeFile(failure, JSON.stringify({ time: Date.now(), text })).catch(() => {});
  throw new ProvisionError(text);
}

/** What the set-up says at its end, under the first Python that can run it; `hasUv` where none can. */
async function setUp(script: string[], signal: AbortSignal, host: Host): Promise<Fields> {
  let end: Fields = {};
  const onLine = (line: string) => {
    const said = parsed(line);
    if (typeof said.progress === "string" && !signal.aborted) host.onSetUp(said.progress);
    if (said.python !== undefined || said.error !== undefined) end = said;
  };
  for (const [file = "", ...first] of runners()) {
    const usesUv = first[0] === "run";
    const args = [...first, "-I", ...script, ...(usesUv ? ["--uv", file] : [])];
    const ending = AbortSignal.any([signal, AbortSignal.timeout(SETUP_MS)]);
    // Not in the user's project, where uv would look for settings.
    const { code, output } = await run(file, args, { signal: ending, cwd: host.state, onLine });
    const words = [file, ...first].join(" ");
    if (code !== 0) host.log(`${words} ended with ${code}: ${output.slice(-4000)}`);
    if (signal.aborted || end.python !== undefined || end.error !== undefined) return end;
    if (usesUv && code !== null) end = { hasUv: true };
  }
  return end;
}

/** The words before the set-up's script, the best first. uv also fetches a Python where none fits. */
export function runners(
  platform: NodeJS.Platform = process.platform,
  home: string = homedir(),
): string[][] {
  const isWindows = platform === "win32";
  // Where uv's own installer puts it, which Pi's PATH may not have yet.
  const uvs = ["uv", join(home, ".local", "bin", isWindows ? "uv.exe" : "uv")];
  const pythons = isWindows
    ? [["py", "-3"], ["python"]]
    : [["python3"], ["python3.14"], ["python3.13"], ["python3.12"], ["python3.11"], ["python"]];
  // No newer one than the packages have wheels for.
  const run = ["run", "--quiet", "--no-project", "--python", ">=3.11,<3.15", "python"];
  return [...uvs.map((uv) => [uv, ...run]), ...pythons];
}

const UV_INSTALLER = "curl -LsSf https://astral.sh/uv/install.sh | sh";

/** How to get what is needed on this system; `hasUv`: uv is there, and could not fetch a Python. */
export function pythonAdvice(hasUv: boolean, platform: NodeJS.Platform = process.platform): string {
  const need = "foredeck needs Python 3.11 or newer";
  const then = "then type /foredeck setup";
  if (hasUv) return `${need}, and uv could not fetch one: run \`uv python install 3.13\`, ${then}.`;
  const command = platform === "win32" ? "winget install --id=astral-sh.uv -e" : UV_INSTALLER;
  return `${need}, or uv, which brings one: run \`${command}\`, ${then}.`;
}

/** The interpreter of an engine that was set up, which counts as used now; null where none was. */
async function readSetUp(target: string): Promise<string | null> {
  const marker = join(target, "engine.json");
  const { python } = await readJson(marker);
  if (typeof python !== "string") return null;
  const now = new Date();
  await utimes(marker, now, now).catch(() => {});
  return python;
}

/** The folder with package.json, ts-shim/ and python/. */
export const PACKAGE_ROOT = fileURLToPath(new URL("../..", import.meta.url));

export async function packageVersion(root: string = PACKAGE_ROOT): Promise<string> {
  return String((await readJson(join(root, "package.json"))).version);
}

/** The name of the engine that this package installs: its version, and a hash of its sources. */
export async function engineKey(root: string = PACKAGE_ROOT): Promise<string> {
  // An update in place (a git pull) keeps the version, and gets an engine of its own all the same.
  const fixed = ["pyproject.toml", "requirements.lock", "ts-shim/tools.json"];
  const paths = [...fixed, ...(await pythonSources(root))];
  // All at once: the engine's start waits for some hundreds of files.
  const files = await Promise.all(paths.map((path) => readFile(join(root, path))));
  const hash = createHash("sha256");
  for (const [at, bytes] of files.entries())
    hash.update(`${paths[at]}\0`).update(bytes).update("\0");
  return `${await packageVersion(root)}-${hash.digest("hex").slice(0, 12)}`;
}

async function pythonSources(root: string): Promise<string[]> {
  const entries = await readdir(join(root, "python"), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".pyc"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .sort();
}
