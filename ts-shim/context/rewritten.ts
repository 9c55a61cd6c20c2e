/**
 * Detects other extensions that change requests after the conversation has gone through foredeck.
 *
 * Pi turns a message into the same bytes every time. So where foredeck changed nothing since the
 * last request, this one must begin with it. If it does not, somebody else has changed one of the
 * two, and the provider's cache misses everything after the change. This sees extensions loaded
 * before foredeck, and later ones that change a request in place; a later extension that replaces
 * the request does so out of our sight.
 */

import { isRecord } from "./messages.ts";
import { sameValue } from "./sync.ts";

type Json = Record<string, unknown>;

/** The field that holds the messages, in one or another of the APIs that Pi speaks. */
const MESSAGE_FIELDS = ["messages", "input", "contents"];
/** What is sent in front of the messages, as the user would call it. */
const HEAD_FIELDS: Record<string, string> = {
  system: "system prompt",
  systemInstruction: "system prompt",
  instructions: "system prompt",
  tools: "tools",
};

/** Compares each request of a session with the one before it. */
export class SentRequests {
  private last: Json | null = null;
  private expected: { extendsLast: boolean; signal: AbortSignal | undefined } | null = null;

  /**
   * Announces a request.
   * @param extendsLast it is the last one with messages added, and nothing else was changed
   */
  expect(extendsLast: boolean, signal?: AbortSignal): void {
    this.expected = { extendsLast, signal };
  }

  /**
   * Takes a request. One that was not announced (a warming request, a summary) is ignored.
   * @returns null where there is nothing to compare; else a function that compares this request
   *   with the last one, and returns what somebody else has changed in either, null for nothing
   */
  inspect(payload: unknown): (() => string | null) | null {
    const { expected, last } = this;
    this.expected = null;
    if (!expected || expected.signal?.aborted || !isRecord(payload)) return null;
    this.last = payload;
    if (!expected.extendsLast || !last || last.model !== payload.model) return null;
    return () => changes(last, payload);
  }

  /** Another session: its first request continues nothing. */
  clear(): void {
    this.last = null;
    this.expected = null;
  }
}

/** The warning for the user. */
export function describeRewriting(changed: string): string {
  return (
    `Another extension changes requests on their way to the model (${changed}), and the provider's ` +
    "cache misses what follows. If costs rise, use only one of the two."
  );
}

function changes(last: Json, now: Json): string | null {
  const found = Object.keys(HEAD_FIELDS)
    .filter((name) => !sameRequest(last[name], now[name]))
    .map((name) => HEAD_FIELDS[name]);
  const changed = firstChanged(listOf(last), listOf(now));
  if (changed !== null) found.push(`messages from number ${changed + 1} on`);
  return found.length > 0 ? found.join(", ") : null;
}

/** Index of the first message of `last` with which `now` does not begin; null for none. */
function firstChanged(last: unknown[], now: unknown[]): number | null {
  const at = last.findIndex((message, index) => {
    if (sameRequest(message, now[index])) return false;
    return index < last.length - 1 || !isExtendedBy(plain(message), plain(now[index]));
  });
  return at < 0 ? null : at;
}

/** Whether `other` is `one` with blocks added: results of later calls may join its last message. */
function isExtendedBy(one: unknown, other: unknown): boolean {
  if (!isRecord(one) || !isRecord(other)) return false;
  const { content: before, ...fields } = one;
  const { content: after, ...others } = other;
  if (!Array.isArray(before) || !Array.isArray(after)) return false;
  return sameValue(fields, others) && sameValue(before, after.slice(0, before.length));
}

/** Whether the provider reads the same. Compares as is first: few messages carry a marker. */
function sameRequest(one: unknown, other: unknown): boolean {
  return sameValue(one, other) || sameValue(plain(one), plain(other));
}

function listOf(payload: Json): unknown[] {
  const list = MESSAGE_FIELDS.map((name) => payload[name]).find(Array.isArray);
  return (list as unknown[] | undefined) ?? [];
}

/**
 * A copy without cache markers, which move from request to request. Pi writes a text that carries
 * a marker as a block, and as a plain string otherwise, so every text becomes a block here.
 */
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
