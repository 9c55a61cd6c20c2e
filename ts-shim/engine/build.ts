/** Builds a Python environment with foredeck in a folder: with uv, venv, or pip alone. */

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readText } from "../files.ts";
import type { EngineCommand } from "./process.ts";
import { engineWith, findPython, hasForedeck, pythonAdvice, venvPython } from "./python.ts";
import { type RunOptions, run } from "./run.ts";

const BUILD_TIMEOUT_MS = 10 * 60_000;
const PROBE_TIMEOUT_MS = 20_000;

export interface BuildOptions {
  signal: AbortSignal;
  log(text: string): void;
}

/** Where the interpreter's path is kept when there is no virtual environment. */
const INTERPRETER_FILE = "interpreter";

/** How to run the engine that was built in a folder; null where there is none. */
export async function builtCommand(folder: string): Promise<EngineCommand | null> {
  const python = venvPython(join(folder, "venv"));
  if (existsSync(python)) return engineWith(python);
  const file = join(folder, INTERPRETER_FILE);
  if (!existsSync(file)) return null;
  return engineWith(await readText(file), { PYTHONPATH: join(folder, "lib") });
}

/** Corrects the paths in the `foredeck` command of an engine that was moved here from `from`. */
export async function relocate(folder: string, from: string): Promise<void> {
  const command = join(folder, "venv", "bin", "foredeck");
  if (!existsSync(command)) return;
  writeFileSync(command, (await readText(command)).replaceAll(from, folder));
}

/**
 * Installs the package at `root` into `folder`.
 * @throws Error with a sentence for the user: what failed, or the command that helps.
 */
export async function build(root: string, folder: string, options: BuildOptions): Promise<void> {
  const { log, signal } = options;
  // Installers look for configuration from the working folder upwards: not in the user's project.
  const probe = { signal, cwd: folder, timeoutMs: PROBE_TIMEOUT_MS };
  const job: Job = { root, folder, log, options: { ...probe, timeoutMs: BUILD_TIMEOUT_MS } };
  if ((await run("uv", ["--version"], probe)).code === 0 && (await withUv(job))) return;
  signal.throwIfAborted();
  const python = await findPython(probe);
  if (!python) throw new Error(job.failure ?? pythonAdvice());
  if (await withVenv(job, python)) return;
  signal.throwIfAborted();
  if (!job.sawInstaller && (await withTarget(job, python))) return;
  throw new Error(job.failure ?? pythonAdvice());
}

interface Job {
  root: string;
  folder: string;
  log(text: string): void;
  options: RunOptions;
  /** What the last installer that got to work said. */
  failure?: string;
  /** An installer ran, so that another way of calling it would fail alike. */
  sawInstaller?: boolean;
}

async function withUv(job: Job): Promise<boolean> {
  const venv = join(job.folder, "venv");
  const made = await step(job, "uv", ["venv", "--quiet", "--clear", "--python", ">=3.11", venv]);
  if (!made) return false;
  const python = venvPython(venv);
  // uv caches what it builds from a folder by the age of pyproject.toml alone.
  const fresh = ["--refresh-package", "foredeck", "--compile-bytecode"];
  return install(job, "uv", ["pip", "install", "--quiet", "--python", python, ...fresh], python);
}

async function withVenv(job: Job, python: string): Promise<boolean> {
  const venv = join(job.folder, "venv");
  if (!(await step(job, python, ["-m", "venv", "--clear", venv]))) return false;
  const inside = venvPython(venv);
  return install(job, inside, ["-m", "pip", ...PIP_INSTALL], inside);
}

async function withTarget(job: Job, python: string): Promise<boolean> {
  const lib = join(job.folder, "lib");
  if ((await run(python, ["-m", "pip", "--version"], job.options)).code !== 0) return false;
  const args = ["-m", "pip", ...PIP_INSTALL, "--target", lib];
  if (!(await install(job, python, args, python, { PYTHONPATH: lib }))) return false;
  writeFileSync(join(job.folder, INTERPRETER_FILE), python);
  return true;
}

const PIP_INSTALL = ["install", "--quiet", "--disable-pip-version-check", "--no-input"];

/** Installs and proves that the result can be imported. */
async function install(
  job: Job,
  file: string,
  args: string[],
  python: string,
  env?: Record<string, string>,
): Promise<boolean> {
  job.sawInstaller = true;
  if (!(await step(job, file, [...args, job.root]))) return false;
  const { ok, output } = await hasForedeck(python, { ...job.options, env });
  if (!ok) job.failure = `foredeck was installed but does not start: ${lastLine(output)}`;
  return ok;
}

async function step(job: Job, file: string, args: string[]): Promise<boolean> {
  const { code, output } = await run(file, args, job.options);
  if (code === 0) return true;
  job.log(`${file} ${args.join(" ")} ended with ${code}: ${output.slice(-2000)}`);
  if (job.sawInstaller) job.failure = `foredeck could not be installed: ${lastLine(output)}`;
  return false;
}

function lastLine(output: string): string {
  return output.trim().split("\n").at(-1)?.trim() || "no output";
}
