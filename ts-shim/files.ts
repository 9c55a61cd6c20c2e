/** Where foredeck keeps its state on this machine, and files there. */

import { appendFileSync, mkdirSync, openSync, renameSync, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { type Fields, recordOf } from "./context/messages.ts";

export type Env = Record<string, string | undefined>;

/** The state folder, absolute: what `FOREDECK_HOME` names, else where Python's `platformdirs` has it. */
export function stateDir(
  env: Env = process.env,
  platform: NodeJS.Platform = process.platform,
  home: string = homedir(),
): string {
  if (env.FOREDECK_HOME) return resolve(env.FOREDECK_HOME.replace(/^~(?=[\\/]|$)/, home));
  if (platform === "win32")
    return join(env.LOCALAPPDATA ?? join(home, "AppData", "Local"), "foredeck");
  const given = env.XDG_STATE_HOME ?? "";
  if (isAbsolute(given)) return join(given, "foredeck");
  if (platform === "darwin") return join(home, "Library", "Application Support", "foredeck");
  return join(home, ".local", "state", "foredeck");
}

/** Makes a folder for this user only. */
export function makePrivate(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** A log larger than this is renamed to `.1`; one older log is kept. */
const LOG_LIMIT_BYTES = 5 * 1024 * 1024;

/** The log file, to be given to a child process as its stderr, or null where none can be made. */
export function openLog(folder: string): number | null {
  try {
    const path = logPath(folder);
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (size > LOG_LIMIT_BYTES) renameSync(path, `${path}.1`);
    return openSync(path, "a", 0o600);
  } catch {
    return null;
  }
}

/** Writes one line to the log. Never throws: a full disk must not stop the agent. */
export function logLine(folder: string, text: string): void {
  const line = `${new Date().toISOString()} shim: ${text.replaceAll("\n", "\\n")}\n`;
  try {
    appendFileSync(logPath(folder), line, { mode: 0o600 });
  } catch {}
}

/** Where the log is. @throws Error where something else is there: a pipe would stop Pi */
function logPath(folder: string): string {
  const path = join(makePrivate(join(folder, "logs")), "engine.log");
  if (statSync(path, { throwIfNoEntry: false })?.isFile() === false)
    throw new Error(`${path} is not a regular file`);
  return path;
}

/** The object of JSON in a file; an empty one where that cannot be read. */
export async function readJson(path: string): Promise<Fields> {
  // A pipe would be waited for.
  const isFile = (await stat(path).catch(() => null))?.isFile();
  return isFile ? parsed(await readFile(path, "utf8").catch(() => "")) : {};
}

/** The object that a text is JSON of; an empty one where it is of none. */
export function parsed(text: string): Fields {
  try {
    return recordOf(JSON.parse(text));
  } catch {
    return {};
  }
}
