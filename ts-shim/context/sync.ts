/**
 * What the engine has seen: the last list that it answered, to find what has changed since. Pure.
 */

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

/** The list of the last answered request. */
export class AnsweredList {
  private readonly messages: HostMessage[] = [];

  get length(): number {
    return this.messages.length;
  }

  /** How many messages at the start of `list` are those of the last answered request. */
  commonPrefix(list: readonly HostMessage[]): number {
    const end = Math.min(list.length, this.messages.length);
    let index = 0;
    while (
      index < end &&
      sameMessage(this.messages[index] as HostMessage, list[index] as HostMessage)
    ) {
      index += 1;
    }
    return index;
  }

  /**
   * Keeps a list that was answered. Messages are copied one level deep: edits set a new `content`
   * on the originals, so call this before any are applied.
   * @param prefix what `commonPrefix(list)` gave
   */
  accept(list: readonly HostMessage[], prefix: number): void {
    this.messages.length = prefix;
    for (let i = prefix; i < list.length; i++) this.messages.push({ ...(list[i] as HostMessage) });
  }

  clear(): void {
    this.messages.length = 0;
  }
}

/** A value that is sent only when it differs from what was last sent and answered. */
export class LastSent {
  private value: unknown;

  /** The value if it has to be sent, else undefined. */
  ifChanged<T>(value: T): T | undefined {
    return sameValue(this.value, value) ? undefined : value;
  }

  accept(value: unknown): void {
    this.value = value;
  }

  clear(): void {
    this.value = undefined;
  }
}
