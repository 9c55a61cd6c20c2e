/** What Pi's session entries say: from which the newest messages came, and when the cache was warmed. */

import { type HostMessage, isRecord } from "./messages.ts";

/** The part of Pi's session manager that is used here. Older hosts lack some of it. */
export interface EntrySource {
  getLeafEntry?(): unknown;
  getEntry?(id: string): unknown;
  buildSessionProjection?(): { entries: { sourceEntry: unknown; messages: unknown[] }[] };
}

/** Beyond this many messages Pi's own projection of the whole session is cheaper than walking. */
const WALK_LIMIT = 200;
/** Entries without a message (model changes, labels) that a walk skips, at most. */
const WALK_SLACK = 200;
/** Entries to search for the one that a message came from: Pi may leave some out of the list. */
const LOOK_AHEAD = 50;

/**
 * Entry ids for `list[start..]`, index-aligned, null where unknown.
 *
 * Walks back from the session's leaf, which costs as much as there are new messages; Pi's
 * projection costs as much as the session is long, so only long tails use it.
 *
 * @param list the host's messages without system entries
 */
export function entryIds(
  source: EntrySource,
  list: readonly HostMessage[],
  start: number,
): (string | null)[] {
  const ids: (string | null)[] = new Array(list.length - start).fill(null);
  try {
    const walked = ids.length > WALK_LIMIT ? null : walkBack(source, ids.length);
    matchBackwards(walked ?? projectedEntries(source), list, start, ids);
  } catch {
    ids.fill(null);
  }
  return ids;
}

interface Candidate {
  id: string;
  key: string;
}

/** Pairs messages with entries, both from the newest back. */
function matchBackwards(
  candidates: readonly Candidate[],
  list: readonly HostMessage[],
  start: number,
  ids: (string | null)[],
): void {
  let next = 0;
  for (let index = list.length - 1; index >= start; index--) {
    const key = messageKey(list[index] as HostMessage);
    const end = Math.min(candidates.length, next + LOOK_AHEAD);
    for (let at = next; at < end; at++) {
      const candidate = candidates[at] as Candidate;
      if (candidate.key !== key) continue;
      ids[index - start] = candidate.id;
      next = at + 1;
      break;
    }
  }
}

/** Candidates from the leaf back, newest first; null where the order needs Pi's projection. */
function walkBack(source: EntrySource, wanted: number): Candidate[] | null {
  const found: Candidate[] = [];
  if (!source.getLeafEntry || !source.getEntry) return found;
  let entry = source.getLeafEntry();
  for (let seen = 0; isRecord(entry) && seen < wanted + WALK_SLACK; seen++) {
    const candidate = candidateOf(entry);
    if (candidate) found.push(candidate);
    if (found.length >= wanted + LOOK_AHEAD) break;
    // Pi puts a compaction's summary first in the list, before the older entries that it kept.
    if (entry.type === "compaction") return null;
    entry = typeof entry.parentId === "string" ? source.getEntry(entry.parentId) : undefined;
  }
  return found;
}

function projectedEntries(source: EntrySource): Candidate[] {
  const found: Candidate[] = [];
  for (const { sourceEntry, messages } of source.buildSessionProjection?.().entries ?? []) {
    const candidate =
      messages.length > 0 && isRecord(sourceEntry) ? candidateOf(sourceEntry) : null;
    if (candidate) found.push(candidate);
  }
  return found.reverse();
}

function candidateOf(entry: Record<string, unknown>): Candidate | null {
  const key = entryKey(entry);
  return key !== null && typeof entry.id === "string" ? { id: entry.id, key } : null;
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

/** Entries searched, at most: those since the model's newest answer. */
const WARMING_WALK = 500;

/**
 * The time of the newest warming request since the newest answer, in milliseconds since 1970, or
 * undefined. Pi keeps each as a usage entry; it uses the model that the request before it used.
 */
export function warmedAt(source: EntrySource): number | undefined {
  try {
    let entry = source.getLeafEntry?.();
    for (let seen = 0; isRecord(entry) && seen < WARMING_WALK; seen++) {
      if (isRecord(entry.message) && entry.message.role === "assistant") return undefined;
      if (entry.type === "usage" && entry.kind === "cache_warm") {
        return Date.parse(String(entry.timestamp)) || undefined;
      }
      entry = typeof entry.parentId === "string" ? source.getEntry?.(entry.parentId) : undefined;
    }
  } catch {
    // A Pi that keeps its entries in another way: the cache then counts as not warmed.
  }
  return undefined;
}
