/**
 * Refuses tool calls that are bound to fail, before they run. Decides here and at once, without the
 * engine: a guard that throws or hangs would block every tool.
 */

import { type Stats, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { TOOL_NAMES } from "./tools.ts";

/**
 * What the model sees in place of a folded argument: `<activate @12: 4120 chars folded>`, and in
 * older sessions `<activate @12: 4120 chars folded by foredeck>`, in those of 0.1 without `activate`.
 * Models imitate what they see.
 */
const FOLD_MARKER =
  /<(?:activate )?@\d+:[^<>\n]{0,200}folded by foredeck>|<activate "?@\d+[^<>\n]{0,60} chars folded>/;

/** Why this tool call must not run, written for the model; undefined when it may. Never throws. */
export function refusal(
  tool: string,
  input: Record<string, unknown>,
  cwd: () => string,
): string | undefined {
  try {
    const path = tool === "read" ? input.path : undefined;
    return (
      (typeof path === "string" ? specialFile(path, cwd()) : undefined) ??
      (TOOL_NAMES.has(tool) ? undefined : foldMarker(input))
    );
  } catch {
    return undefined;
  }
}

/** Registers the guards. */
export function registerGuards(pi: ExtensionAPI): void {
  pi.on("tool_call", (event, ctx) => {
    const reason = refusal(event.toolName, event.input as Record<string, unknown>, () => ctx.cwd);
    return reason ? { block: true, reason } : undefined;
  });
}

/** Pi's own read waits for ever on a FIFO without a writer. */
function specialFile(path: string, cwd: string): string | undefined {
  const stats = statSync(resolveLikePi(path, cwd), { throwIfNoEntry: false });
  const kind = stats && kindOf(stats);
  return kind
    ? `${path} is ${kind}, not a file: reading it could wait for ever. Use bash with a timeout if you need what it gives.`
    : undefined;
}

function kindOf(stats: Stats): string | undefined {
  if (stats.isFIFO()) return "a named pipe (FIFO)";
  if (stats.isSocket()) return "a socket";
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return "a device";
  return undefined;
}

const UNICODE_SPACES = /[\u00A0\u2000-\u200A\u202F\u205F\u3000]/g;

/** The path as Pi's file tools understand it: `@` in front, `~`, file URLs, odd spaces. */
function resolveLikePi(path: string, cwd: string): string {
  const plain = path.replace(UNICODE_SPACES, " ").replace(/^@/, "");
  if (plain === "~" || plain.startsWith("~/")) return join(homedir(), plain.slice(1));
  if (plain.startsWith("file://")) return fileURLToPath(plain);
  return isAbsolute(plain) ? plain : resolve(cwd, plain);
}

function foldMarker(input: Record<string, unknown>): string | undefined {
  let marker: string | undefined;
  // Visits every text in the arguments.
  JSON.stringify(input, (_key, value) => {
    if (typeof value === "string") marker ??= value.match(FOLD_MARKER)?.[0];
    return value;
  });
  return marker
    ? `The argument contains ${marker}, which only stands for text that is folded in this conversation. ` +
        "Write the real text in its place; activate shows it again."
    : undefined;
}
