/**
 * Which of the model's tools this project's sessions declare.
 *
 * The engine works it out, from the configuration and from what the project holds, and leaves it in
 * the state folder: tools are registered before any engine runs, and must not change afterwards.
 */

import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** What is declared where the engine has left nothing, or nothing that can be read. */
export const DEFAULT_FACILITIES: readonly string[] = ["context", "search"];

const FOLDER = "switches";

/**
 * Tools of the session that is being reloaded or forked, for the instance that follows this one: its
 * prompts begin with the same definitions.
 */
const KEPT = Symbol.for("foredeck.facilities");
const kept = globalThis as { [KEPT]?: readonly string[] | undefined };

/** The facilities whose tools are declared. Reads a file or two, and never throws. */
export function declaredFacilities(stateDir: string, cwd: string): readonly string[] {
  const before = kept[KEPT];
  kept[KEPT] = undefined;
  return before ?? stored(stateDir, cwd) ?? DEFAULT_FACILITIES;
}

/** Declares the same tools in the next instance, unless that one serves a session of its own. */
export function keepFacilities(reason: string, facilities: readonly string[]): void {
  kept[KEPT] = reason === "reload" || reason === "fork" ? facilities : undefined;
}

function stored(stateDir: string, cwd: string): readonly string[] | undefined {
  try {
    const file = join(stateDir, FOLDER, `${projectKey(cwd)}.json`);
    const { facilities } = JSON.parse(readFileSync(file, "utf8"));
    return Array.isArray(facilities) ? facilities : undefined;
  } catch {
    return undefined;
  }
}

/** Names the project's file: by its main folder, whichever worktree or link leads there. */
export function projectKey(cwd: string): string {
  const root = realPath(projectRoot(resolve(cwd)));
  return createHash("sha256").update(root).digest("hex").slice(0, 32);
}

/** The main folder of the git repository that a folder is in, else the folder itself. */
function projectRoot(folder: string): string {
  for (let place = folder; ; place = dirname(place)) {
    const git = commonGitFolder(join(place, ".git"));
    if (git !== undefined) return basename(git) === ".git" ? dirname(git) : place;
    if (dirname(place) === place) return folder;
  }
}

/** The repository's own folder behind a `.git`: of a worktree that is a file, which names it. */
function commonGitFolder(git: string): string | undefined {
  const stats = statSync(git, { throwIfNoEntry: false });
  if (!stats) return undefined;
  if (stats.isDirectory()) return git;
  const named = lineOf(git).split("gitdir:")[1]?.trim();
  if (!named) return undefined;
  const own = resolve(dirname(git), named);
  const common = lineOf(join(own, "commondir"));
  return common ? resolve(own, common) : own;
}

function lineOf(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
