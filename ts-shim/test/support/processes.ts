/** What a test has started is gone before the folder that it writes into is removed. */

import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { rmSync } from "node:fs";

/** Milliseconds that killed processes get to be gone: a zombie that nobody reaps never is. */
const GONE_MS = 5000;

/** Every process that this one has started, whoever's code did it. */
const started: ChildProcess[] = [];
subscribe("child_process", (message) => {
  started.push((message as { process: ChildProcess }).process);
});

/**
 * Removes a test's folder once everything that the test has started is gone.
 * @param others processes that those have started outside of their groups
 */
export async function removeFolder(folder: string, others: number[] = []): Promise<void> {
  const children = started.splice(0).filter(({ pid }) => pid !== undefined);
  // What a child has started is in its group where it leads one.
  const groups = children.map(({ pid }) => -(pid as number));
  for (const pid of [...others, ...groups]) signal(pid, "SIGKILL");
  for (const child of children) await ended(child);
  const deadline = Date.now() + GONE_MS;
  while ([...others, ...groups].some(isAlive) && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  rmSync(folder, { recursive: true, force: true });
}

/** Whether a process runs, or any of a group, by its negative id. */
export function isAlive(pid: number): boolean {
  return signal(pid, 0);
}

function ended(child: ChildProcess): Promise<unknown> | undefined {
  if (child.exitCode !== null || child.signalCode !== null) return undefined;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.ref();
  child.kill("SIGKILL");
  return exit;
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
