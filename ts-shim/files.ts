/**
 * Opening what is named, where it may be anything: a pipe without a writer would stop Pi, and a
 * device may never end. Nothing is read on Pi's main thread.
 */

import { closeSync, constants, fstatSync, openSync, statSync } from "node:fs";
import { open, stat } from "node:fs/promises";

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

/** The descriptor of a regular file that is written to at its end, made for this user if need be. */
export function openToAppend(path: string): number {
  const before = statSync(path, { throwIfNoEntry: false });
  if (before) check(path, before);
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

/** There is none on Windows, where nothing blocks so. */
const NONBLOCK = constants.O_NONBLOCK ?? 0;

function check(path: string, status: { isFile(): boolean }): void {
  if (!status.isFile()) throw new Error(`${path} is not a regular file`);
}
