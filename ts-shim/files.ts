/**
 * Where foredeck keeps its state on this machine, and files there.
 *
 * What is named may be anything: a pipe without a writer would stop Pi, and a device may never end.
 * So only regular files are opened, and none is read on Pi's main thread.
 */

import {
  appendFileSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  renameSync,
  statSync,
} from "node:fs";
import { open, stat } from "node:fs/promises";
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
    return openToAppend(path);
  } catch {
    return null;
  }
}

/** Writes one line to the log. Never throws: a full disk must not stop the agent. */
export function logLine(folder: string, text: string): void {
  let log: number | null = null;
  try {
    log = openToAppend(logPath(folder));
    const line = `${new Date().toISOString()} shim: ${text.replaceAll("\n", "\\n")}\n`;
    appendFileSync(log, line);
  } catch {
    // Nowhere to write to.
  } finally {
    if (log !== null) closeSync(log);
  }
}

function logPath(folder: string): string {
  return join(makePrivate(join(folder, "logs")), "engine.log");
}

/** Bytes; more than any file has that foredeck writes for its extension. */
const MOST_BYTES = 1024 * 1024;

/** The text of a regular file. @throws what the file system says, or that it is none, or too large */
export async function readText(path: string): Promise<string> {
  // Not opened to find out: that alone can change a device.
  check(path, await stat(path));
  const file = await open(path, constants.O_RDONLY | NONBLOCK);
  try {
    const status = await file.stat();
    check(path, status);
    if (status.size > MOST_BYTES) throw new Error(`${path} is larger than ${MOST_BYTES} bytes`);
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/** The object of JSON in a regular file; an empty one where that cannot be read. */
export async function readJson(path: string): Promise<Fields> {
  return parsed(await readText(path).catch(() => ""));
}

/** The object that a text is JSON of; an empty one where it is of none. */
export function parsed(text: string): Fields {
  try {
    return recordOf(JSON.parse(text));
  } catch {
    return {};
  }
}

/** The descriptor of a regular file that is written to at its end, made for this user if need be. */
function openToAppend(path: string): number {
  check(path, statSync(path, { throwIfNoEntry: false }));
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | NONBLOCK;
  const descriptor = openSync(path, flags, 0o600);
  try {
    check(path, fstatSync(descriptor));
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/** Windows has none. */
const NONBLOCK = constants.O_NONBLOCK ?? 0;

function check(path: string, status: { isFile(): boolean } | undefined): void {
  if (status?.isFile() === false) throw new Error(`${path} is not a regular file`);
}
