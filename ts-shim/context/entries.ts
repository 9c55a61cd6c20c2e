/** What Pi's session entries say: from which the newest messages came, and when the cache was warmed. */

import { type HostMessage, isRecord } from "./messages.ts";

/** The part of Pi's session manager that is used here. */
export interface EntrySource {
  getLeafEntry?(): unknown;
  getEntry?(id: string): unknown;
}

/** Entries beyond the messages that are looked for: Pi may leave some out of the list. */
const SLACK = 50;

/**
 * Entry ids for `list[start..]`, index-aligned, null where unknown.
 *
 * Walks back from the session's leaf, which costs as much as there are new messages.
 *
 * @param list the host's messages without system entries
 */
export function entryIds(
  source: EntrySource,
  list: readonly HostMessage[],
  start: number,
): (string | null)[] {
  const wanted = list.slice(start).reverse();
  const ids: (string | null)[] = wanted.map(() => null);
  if (wanted.length === 0) return ids;
  try {
    const found = new Map<string, string[]>();
    let count = 0;
    for (const entry of fromLeaf(source)) {
      const key = entryKey(entry);
      if (key === null) continue;
      found.set(key, [...(found.get(key) ?? []), String(entry.id)]);
      count += 1;
      if (count === wanted.length + SLACK) break;
    }
    // The newest first, as they were found: two messages can have the same key.
    wanted.forEach((message, index) => {
      ids[index] = found.get(messageKey(message))?.shift() ?? null;
    });
  } catch {
    // A Pi that keeps its entries in another way.
  }
  return ids.reverse();
}

/** The entries of the branch, from its leaf back. */
function* fromLeaf(source: EntrySource): Generator<Record<string, unknown>> {
  let entry = source.getLeafEntry?.();
  while (isRecord(entry)) {
    yield entry;
    entry = typeof entry.parentId === "string" ? source.getEntry?.(entry.parentId) : undefined;
  }
}

/** The key of the message that Pi makes of an entry, or null if it makes none that we count. */
function entryKey(entry: Record<string, unknown>): string | null {
  if (entry.type === "message" && isRecord(entry.message)) {
    return entry.message.role === "system" ? null : messageKey(entry.message as HostMessage);
  }
  const role = ROLE_OF_ENTRY[String(entry.type)];
  return role && typeof entry.timestamp === "string"
    ? `${role} ${new Date(entry.timestamp).getTime()}`
    : null;
}

const ROLE_OF_ENTRY: Record<string, string> = {
  custom_message: "custom",
  branch_summary: "branchSummary",
  compaction: "compactionSummary",
};

function messageKey(message: HostMessage): string {
  const call = typeof message.toolCallId === "string" ? ` ${message.toolCallId}` : "";
  return `${message.role} ${String(message.timestamp)}${call}`;
}

/**
 * The time of the newest warming request since the newest answer, in milliseconds since 1970, or
 * undefined. Pi keeps each as a usage entry; it uses the model that the request before it used.
 */
export function warmedAt(source: EntrySource): number | undefined {
  try {
    for (const entry of fromLeaf(source)) {
      if (isRecord(entry.message) && entry.message.role === "assistant") return undefined;
      if (entry.type === "usage" && entry.kind === "cache_warm") {
        return Date.parse(String(entry.timestamp)) || undefined;
      }
    }
  } catch {
    // As above: the cache then counts as not warmed.
  }
  return undefined;
}
