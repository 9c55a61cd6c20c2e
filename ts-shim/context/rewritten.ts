/**
 * Finds out whether another extension changes requests after the conversation has gone through
 * foredeck.
 *
 * What Pi makes of a message is the same each time. So where nothing was changed here since the
 * last request, that one is the beginning of this one; where it is not, somebody else has changed
 * one of them, and the provider's cache does not find what stands after. Seen is what extensions
 * loaded before this one do, and what later ones change in place: a request that a later one puts
 * in its stead does not come by here.
 */

import { isRecord } from "./messages.ts";
import { sameValue } from "./sync.ts";

type Json = Record<string, unknown>;

/** Under which name the wires that Pi speaks have their messages. */
const LISTS = ["messages", "input", "contents"];
/** What stands before them, and how to call it. */
const AROUND: Record<string, string> = {
  system: "system prompt",
  systemInstruction: "system prompt",
  instructions: "system prompt",
  tools: "tools",
};

/** The requests of one session, the last of them kept. */
export class SentRequests {
  private last: Json | null = null;
  private next: { goesOn: boolean; signal: AbortSignal | undefined } | null = null;

  /**
   * A conversation is on its way to the provider.
   * @param goesOn it is the last one with messages added, and nothing else was changed
   */
  expect(goesOn: boolean, signal?: AbortSignal): void {
    this.next = { goesOn, signal };
  }

  /**
   * The request that was made of it, or another one, which is left alone.
   * @returns what compares it with the one before, where that can tell something: it gives what
   *   somebody else has changed in one of them, null for nothing
   */
  look(payload: unknown): (() => string | null) | null {
    const { next, last } = this;
    this.next = null;
    if (!next || next.signal?.aborted || !isRecord(payload)) return null;
    this.last = payload;
    if (!next.goesOn || !last || last.model !== payload.model) return null;
    return () => changes(last, payload);
  }

  /** Another session, or a request that is not told of: nothing is known of the next one. */
  clear(): void {
    this.last = null;
    this.next = null;
  }
}

/** What to say of it. */
export function describeRewriting(changed: string): string {
  return (
    `another extension changes requests on their way to the model (${changed}): the provider's ` +
    "cache does not find what stands after that. If costs rise, use only one of them"
  );
}

function changes(last: Json, now: Json): string | null {
  const found = Object.keys(AROUND)
    .filter((name) => !sameRequest(last[name], now[name]))
    .map((name) => AROUND[name]);
  const changed = firstChanged(listOf(last), listOf(now));
  if (changed !== null) found.push(`messages from number ${changed + 1} on`);
  return found.length > 0 ? found.join(", ") : null;
}

/** Index of the first message of `last` with which `now` does not begin; null for none. */
function firstChanged(last: unknown[], now: unknown[]): number | null {
  const at = last.findIndex((message, index) => {
    if (sameRequest(message, now[index])) return false;
    return index < last.length - 1 || !grown(plain(message), plain(now[index]));
  });
  return at < 0 ? null : at;
}

/** Results of later calls may join the newest message of a request. */
function grown(one: unknown, other: unknown): boolean {
  if (!isRecord(one) || !isRecord(other)) return false;
  const { content: before, ...fields } = one;
  const { content: after, ...others } = other;
  if (!Array.isArray(before) || !Array.isArray(after)) return false;
  return sameValue(fields, others) && sameValue(before, after.slice(0, before.length));
}

/** Whether the provider reads the same. Few messages carry a marker: only those are copied. */
function sameRequest(one: unknown, other: unknown): boolean {
  return sameValue(one, other) || sameValue(plain(one), plain(other));
}

function listOf(payload: Json): unknown[] {
  const list = LISTS.map((name) => payload[name]).find(Array.isArray);
  return (list as unknown[] | undefined) ?? [];
}

/** A copy without cache markers, which move, and with every text as a block, as under a marker. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!isRecord(value)) return value;
  const fields = Object.entries(value).filter(([name]) => name !== "cache_control");
  return Object.fromEntries(
    fields.map(([name, field]) => [
      name,
      name === "content" && typeof field === "string"
        ? [{ type: "text", text: field }]
        : plain(field),
    ]),
  );
}
