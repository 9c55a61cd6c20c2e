/**
 * Detects other extensions that change the conversation before foredeck sees it.
 *
 * That is allowed, and foredeck works on what they leave. But a user who wonders why the model
 * forgets things, or why the cache misses, should know that there are two.
 */

import { isDeepStrictEqual } from "node:util";
import type { ExtensionAPI, ToolInfo } from "@earendil-works/pi-coding-agent";
import type { EntrySource } from "./entries.ts";
import { type HostMessage, isSystem } from "./messages.ts";

/** What was done to a list, in numbers of messages. */
export interface Changes {
  added: number;
  left: number;
  changed: number;
}

/**
 * Compares a list with what Pi itself makes of the session.
 * @param list the host's messages without system entries
 * @returns null where they are the same, or Pi cannot tell
 */
export function foreignChanges(source: EntrySource, list: readonly HostMessage[]): Changes | null {
  const projection = source.buildSessionProjection?.();
  if (!projection) return null;
  const own = projection.entries.flatMap((entry) => entry.messages) as HostMessage[];
  const expected = group(own.filter((message) => !isSystem(message)));
  const changes = { added: 0, left: 0, changed: 0 };
  for (const message of list) {
    const original = expected.get(keyOf(message))?.shift();
    if (!original) changes.added += 1;
    else if (!isDeepStrictEqual(message.content, original.content)) changes.changed += 1;
  }
  for (const rest of expected.values()) changes.left += rest.length;
  return changes.added + changes.left + changes.changed > 0 ? changes : null;
}

/** The names of the tools that come with Pi. */
const PI_TOOLS = ["read", "bash", "edit", "write", "grep", "find", "ls"];

/** Says which of Pi's own tools, or of these among them, another extension has replaced; null for none. */
export function replacedTools(
  pi: Pick<ExtensionAPI, "getAllTools" | "getActiveTools">,
  among: readonly string[] = PI_TOOLS,
) {
  const active = new Set(pi.getActiveTools());
  const isReplaced = ({ name, sourceInfo }: ToolInfo) =>
    among.includes(name) && active.has(name) && !PI_SOURCES.has(sourceInfo?.source ?? "builtin");
  const names = pi.getAllTools().flatMap((tool) => (isReplaced(tool) ? [tool.name] : []));
  if (names.length === 0) return null;
  const list = names.join(", ");
  return `Another extension replaces Pi's own ${list}; foredeck keeps the results all the same.`;
}

/** Sources of Pi's own tools, and of those that a program embedding Pi supplies. */
const PI_SOURCES = new Set(["builtin", "sdk"]);

/** The warning for the user. */
export function describeChanges({ added, left, changed }: Changes): string {
  const parts = [
    [added, "added"],
    [left, "left out"],
    [changed, "changed"],
  ].flatMap(([count, what]) => (count ? [`${count} ${what}`] : []));
  return (
    `Another extension changes messages before foredeck sees them (${parts.join(", ")}). ` +
    "If the model forgets things or costs rise, use only one of the two."
  );
}

function keyOf(message: HostMessage): string {
  return `${message.role} ${String(message.timestamp)} ${String(message.toolCallId)}`;
}

function group(messages: readonly HostMessage[]): Map<string, HostMessage[]> {
  const groups = new Map<string, HostMessage[]>();
  for (const message of messages) {
    const same = groups.get(keyOf(message));
    if (same) same.push(message);
    else groups.set(keyOf(message), [message]);
  }
  return groups;
}
