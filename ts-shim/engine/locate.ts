/**
 * Finds the command that runs the engine, in this order:
 *
 * 1. `FOREDECK_ENGINE`, a JSON array of strings or words between blanks: for tests and experiments.
 * 2. `FOREDECK_PYTHON`, an interpreter that has foredeck.
 * 3. `.venv` of a checkout of this package.
 * 4. an engine that was set up earlier for exactly these sources (provision.ts).
 *
 * Otherwise it has to be set up, outside the package: an update of the package removes everything
 * inside it that it did not bring.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_ROOT } from "./package.ts";
import type { EngineCommand } from "./process.ts";
import { type RunOptions, run } from "./run.ts";

type Env = Record<string, string | undefined>;

/** The engine's command where no set-up is needed, else null. @throws with a sentence for the user. */
export async function locateInstalled(
  env: Env = process.env,
  root: string = PACKAGE_ROOT,
  signal?: AbortSignal,
): Promise<EngineCommand | null> {
  if (env.FOREDECK_ENGINE) return parseCommand(env.FOREDECK_ENGINE);
  if (env.FOREDECK_PYTHON) return fromInterpreter(env.FOREDECK_PYTHON, signal);
  const script =
    process.platform === "win32"
      ? join(root, ".venv", "Scripts", "foredeck.exe")
      : join(root, ".venv", "bin", "foredeck");
  return existsSync(script) ? { file: script, args: ["engine"] } : null;
}

async function fromInterpreter(python: string, signal?: AbortSignal): Promise<EngineCommand> {
  const { ok, output } = await hasForedeck(python, { timeoutMs: 20_000, signal });
  if (ok) return engineWith(python);
  const lastLine = output.trim().split("\n").at(-1) ?? "";
  throw new Error(`FOREDECK_PYTHON (${python}) cannot run foredeck: ${lastLine}`);
}

/**
 * Runs the engine with an interpreter. `-P` keeps the working directory off the import path: a
 * cloned repository must not be able to put a module of its own in foredeck's place.
 */
export function engineWith(python: string): EngineCommand {
  const code = "from foredeck.cli.main import main; raise SystemExit(main())";
  return { file: python, args: ["-P", "-c", code, "engine"] };
}

/** Whether an interpreter can import foredeck. */
export async function hasForedeck(
  python: string,
  options: RunOptions,
): Promise<{ ok: boolean; output: string }> {
  const { code, output } = await run(python, ["-P", "-c", "import foredeck.cli.main"], options);
  return { ok: code === 0, output };
}

function parseCommand(text: string): EngineCommand {
  const words: unknown = text.startsWith("[") ? JSON.parse(text) : text.split(" ");
  const [file = "", ...args] = words as string[];
  return { file, args };
}
