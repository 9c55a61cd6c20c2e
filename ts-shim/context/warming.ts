/** When Pi's cache warmer last repeated the newest request. */

import type { EntrySource } from "./entries.ts";
import { isRecord } from "./messages.ts";

/** Entries searched, at most: those since the model's newest answer. */
const WALK_LIMIT = 500;

/**
 * The time of the newest warming request since the newest answer, in milliseconds since 1970, or
 * undefined. Pi keeps each as a usage entry; it uses the model that the request before it used.
 */
export function warmedAt(source: EntrySource): number | undefined {
  try {
    let entry = source.getLeafEntry?.();
    for (let seen = 0; isRecord(entry) && seen < WALK_LIMIT; seen++) {
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
