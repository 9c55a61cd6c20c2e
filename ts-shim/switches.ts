/**
 * Which of the model's tools the sessions in a folder declare.
 *
 * The engine works it out, from the configuration and from what the project holds, and leaves it in
 * the state folder: tools are registered before any engine runs, and must not change afterwards.
 */

import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readText } from "./files.ts";

/** What is declared where the engine has left nothing, or nothing that can be read. */
export const DEFAULT_FACILITIES: readonly string[] = ["context", "search"];

const FOLDER = "switches";

/**
 * Tools of the session that is being reloaded or forked, for the instance that follows this one: its
 * prompts begin with the same definitions.
 */
const KEPT = Symbol.for("foredeck.facilities");
const kept = globalThis as { [KEPT]?: readonly string[] | undefined };

/** The facilities whose tools are declared. Never rejects. */
export async function declaredFacilities(
  stateDir: string,
  cwd: string,
): Promise<readonly string[]> {
  const before = kept[KEPT];
  kept[KEPT] = undefined;
  return before ?? (await stored(stateDir, cwd)) ?? DEFAULT_FACILITIES;
}

/** Declares the same tools in the next instance, unless that one serves a session of its own. */
export function keepFacilities(reason: string, facilities: readonly string[]): void {
  kept[KEPT] = reason === "reload" || reason === "fork" ? facilities : undefined;
}

async function stored(stateDir: string, cwd: string): Promise<readonly string[] | undefined> {
  try {
    const file = join(stateDir, FOLDER, `${await folderKey(cwd)}.json`);
    const { facilities } = JSON.parse(await readText(file));
    return Array.isArray(facilities) ? facilities : undefined;
  } catch {
    return undefined;
  }
}

/** Names a folder's file, whichever link leads there. */
export async function folderKey(cwd: string): Promise<string> {
  const path = resolve(cwd);
  const real = await realpath(path).catch(() => path);
  return createHash("sha256").update(real).digest("hex").slice(0, 32);
}
