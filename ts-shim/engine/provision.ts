/**
 * Sets up the Python engine on first use, in `<state>/engines/<version>-<hash>/`.
 *
 * It is built in a temporary folder and renamed once it works, so that a half-built engine is never
 * found. A lock file keeps several Pi processes from building at once. A failure is remembered for a
 * day: being offline must not cost a minute at every start.
 */

import { mkdtempSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { build, builtCommand, relocate } from "./build.ts";
import { readFailure, rememberFailure } from "./failure.ts";
import { withLock } from "./lock.ts";
import { engineKey, PACKAGE_ROOT } from "./package.ts";
import type { EngineCommand } from "./process.ts";
import { run } from "./run.ts";
import { makePrivate } from "./state-dir.ts";

export interface ProvisionOptions {
  stateDir: string;
  signal: AbortSignal;
  log(text: string): void;
  /** The package to install from. */
  root?: string;
  /** Build although a failure is remembered: the user asked. */
  insist?: boolean;
  /** Check that an engine found still starts: the last one ended before it answered anything. */
  verify?: boolean;
  /** Called before a build starts. */
  onBuild?(): void;
}

/** The engine cannot be set up; the text is for the user. `known`: they have been told before. */
export class ProvisionError extends Error {
  readonly known: boolean;
  constructor(message: string, known = false) {
    super(message);
    this.known = known;
  }
}

/** Engines of other versions that no Pi has started for this long are removed. */
const UNUSED_MS = 30 * 24 * 60 * 60_000;
const BUILDING = ".building-";
const VERIFY_MS = 20_000;

/**
 * The engine for this package's sources, built if it is not there yet.
 * @throws ProvisionError
 */
export async function provision(options: ProvisionOptions): Promise<EngineCommand> {
  const root = options.root ?? PACKAGE_ROOT;
  const engines = makePrivate(join(options.stateDir, "engines"));
  const target = join(engines, await engineKey(root));
  const ready = await findBuilt(target);
  if (ready && (!options.verify || (await starts(ready)))) return ready;
  const failure = options.insist ? null : await readFailure(target);
  if (failure) throw new ProvisionError(failure, true);
  options.onBuild?.();
  return withLock(`${target}.lock`, options.signal, async () => {
    const meanwhile = ready ? null : await findBuilt(target);
    if (meanwhile) return meanwhile;
    await buildInto(root, engines, target, options);
    removeUnused(engines, target);
    const built = await findBuilt(target);
    if (!built) throw new ProvisionError(`the engine is not where it was built: ${target}`);
    return built;
  });
}

/** The engine in a folder, if one was set up there; marks it as used now. */
async function findBuilt(target: string): Promise<EngineCommand | null> {
  const command = await builtCommand(target);
  if (!command) return null;
  try {
    const now = new Date();
    utimesSync(target, now, now);
  } catch {
    // Only its age is lost.
  }
  return command;
}

async function starts(command: EngineCommand): Promise<boolean> {
  const args = [...command.args, "--help"];
  return (await run(command.file, args, { timeoutMs: VERIFY_MS, env: command.env })).code === 0;
}

async function buildInto(
  root: string,
  engines: string,
  target: string,
  options: ProvisionOptions,
): Promise<void> {
  const { signal, log } = options;
  const folder = mkdtempSync(join(engines, BUILDING));
  try {
    await build(root, folder, { signal, log });
    rmSync(target, { recursive: true, force: true });
    renameSync(folder, target);
    await relocate(target, folder);
    rememberFailure(target, null);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    // An abort says nothing about whether it would have worked.
    if (!signal.aborted) rememberFailure(target, text);
    throw new ProvisionError(text);
  } finally {
    // What an aborted installer had started may write for a moment longer.
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  }
}

function removeUnused(engines: string, current: string): void {
  for (const name of readdirSync(engines)) {
    const path = join(engines, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (path !== current && age > UNUSED_MS) rmSync(path, { recursive: true, force: true });
  }
}
