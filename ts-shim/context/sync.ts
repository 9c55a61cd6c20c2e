/** Whether values and messages are the same, to find what has changed since the last call. Pure. */

import type { HostMessage } from "./messages.ts";

/** Exact equality of two JSON-like values. An undefined field counts as missing. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!sameValue(a[i], b[i])) return false;
    return true;
  }
  return !Array.isArray(b) && sameFields(a as Fields, b as Fields, false);
}

type Fields = Record<string, unknown>;

/**
 * Exact equality of all that the model can see of two messages. `details` and `usage` it cannot,
 * and Pi or an extension may change them at will.
 */
export function sameMessage(a: HostMessage, b: HostMessage): boolean {
  return a === b || sameFields(a, b, true);
}

// Runs over the whole conversation at every model call, hence plain loops and no set of names.
function sameFields(a: Fields, b: Fields, seenOnly: boolean): boolean {
  let balance = 0;
  for (const key in a) {
    const value = a[key];
    if (value === undefined || (seenOnly && (key === "details" || key === "usage"))) continue;
    const other = b[key];
    if (value !== other && !sameValue(value, other)) return false;
    balance += 1;
  }
  for (const key in b) {
    if (b[key] === undefined || (seenOnly && (key === "details" || key === "usage"))) continue;
    balance -= 1;
  }
  return balance === 0;
}
