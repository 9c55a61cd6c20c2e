/** Remembers that setting up the engine failed, so that not every start tries again. */

import { rmSync, writeFileSync } from "node:fs";
import { readText } from "../files.ts";

/** A failure counts for a day. */
const REMEMBERED_MS = 24 * 60 * 60_000;

/** Why setting up the engine at `target` failed within the last day, or null. */
export async function readFailure(
  target: string,
  now: number = Date.now(),
): Promise<string | null> {
  try {
    const { time, text } = JSON.parse(await readText(markerOf(target)));
    const age = now - Number(time);
    return age >= 0 && age < REMEMBERED_MS && typeof text === "string" ? text : null;
  } catch {
    return null;
  }
}

/** Records a failure, or clears it with null. Never throws. */
export function rememberFailure(target: string, text: string | null): void {
  try {
    if (text === null) rmSync(markerOf(target), { force: true });
    else writeFileSync(markerOf(target), JSON.stringify({ time: Date.now(), text }));
  } catch {
    // Then the next start tries again.
  }
}

function markerOf(target: string): string {
  return `${target}.failed`;
}
