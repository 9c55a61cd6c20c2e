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

function changes(last: Json, now: Json): string | null {
  const found = Object.keys(HEAD_FIELDS)
    .filter((name) => !sameValue(unmarked(last[name]), unmarked(now[name])))
    .map((name) => HEAD_FIELDS[name]);
  const [before, after] = [partsOf(last), partsOf(now)];
  const at = before.findIndex(({ part }, index) => !sameValue(part, after[index]?.part));
  const [was, is] = [before[at], after[at]];
  if (was) found.push(`messages from number ${Math.min(was.number, is?.number ?? was.number)} on`);
  return found.length > 0 ? found.join(", ") : null;
}

/**
 * What a provider reads of each message, in its order: the fields beside the content, then block
 * after block, so that results of later calls may join the last message.
 */
function partsOf(payload: Json): { number: number; part: unknown }[] {
  const list = MESSAGE_FIELDS.map((name) => payload[name]).find(Array.isArray) ?? [];
  return list.flatMap((message: unknown, index: number) => {
    const { content, ...fields } = isRecord(message) ? message : { content: message };
    // Pi writes a text that carries a marker as a block, and as a plain string otherwise.
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const parts = [fields, blocks].flatMap(unmarked);
    return parts.map((part) => ({ number: index + 1, part }));
  });
}

/** A copy without cache markers, which move from request to request. */
function unmarked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unmarked);
  if (!isRecord(value)) return value;
  const { cache_control: _, ...rest } = value;
  return rest;
}
