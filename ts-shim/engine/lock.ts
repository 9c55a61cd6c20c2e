/** A lock file for one process at a time, which a dead process does not hold forever. */

import { rmSync, statSync, writeFileSync } from "node:fs";
import { readText } from "../files.ts";
import { pause } from "./wait.ts";

/** A lock this old is taken over even if its process id is in use: ids are reused. */
const STALE_MS = 15 * 60_000;
const RETRY_MS = 300;

/**
 * Runs `work` while holding the lock at `path`, waiting for it if need be.
 * @throws the signal's reason when aborted while waiting, and what `work` throws.
 */
export async function withLock<T>(
  path: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  while (!take(path)) {
    signal.throwIfAborted();
    if (await isStale(path)) rmSync(path, { force: true });
    else await pause(RETRY_MS);
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

function take(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function isStale(path: string): Promise<boolean> {
  const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  if (age > STALE_MS) return true;
  const pid = Number(await readText(path).catch(() => ""));
  // The owner creates the file before it writes its id: without an id the lock is not stale.
  return Number.isInteger(pid) && pid > 0 && !isAlive(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
