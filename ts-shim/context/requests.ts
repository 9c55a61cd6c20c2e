/**
 * Requests on their way to the provider, as Pi and the extensions loaded before this one have made
 * them: changes by others are found, the last request is kept to be asked again, and an Anthropic
 * request gets one more cache marker. Pi marks the end of each request; the engine names the end of
 * an earlier one that the provider should keep in its cache as well.
 */

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { Shim } from "../shim.ts";
import { blocksIn, isRecord, sameValue } from "./messages.ts";

/** What Anthropic allows in one request. */
const MAX_MARKERS = 4;

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

/** Registers what is done with each request. */
export function registerRequests(pi: ExtensionAPI, shim: Shim): void {
  const { context, host } = shim;
  pi.on("after_provider_response", ({ status }) => context.lastPrompt.answered(status));
  pi.on("before_provider_request", ({ payload }, ctx) => {
    let marked: Json | undefined;
    shim.safely("before_provider_request", () => {
      const compare = context.requestsSent.inspect(payload);
      // Later extensions may still change it in place: compared when it is on its way.
      if (compare) setImmediate(() => shim.safely("comparing requests", () => report(compare())));
      marked = withMarker(payload, context.marker);
      context.lastPrompt.take(marked ?? payload, ctx.model);
    });
    return marked;
  });
  const report = (changed: string | null) => {
    if (changed === null) return;
    context.rewrittenByOthers(changed);
    host.notifyOnce(
      "rewritten",
      "warning",
      `Another extension changes requests on their way to the model (${changed}), and the ` +
        "provider's cache misses what follows. If costs rise, use only one of the two.",
    );
  };
}

/**
 * A copy of the request with a marker on the result of this tool call.
 *
 * @returns undefined where the request is to stay as it is: without Pi's own marker at its end
 * (another API, caching switched off), without that result, or with no marker left to set
 */
export function withMarker(payload: unknown, toolCallId: string | null): Json | undefined {
  if (!toolCallId || !isRecord(payload) || !Array.isArray(payload.messages)) return undefined;
  const messages = payload.messages as unknown[];
  const control = contentOf(messages.at(-1)).at(-1)?.cache_control;
  if (!control || markers(payload) >= MAX_MARKERS) return undefined;
  const isWanted = (block: Json) =>
    block.type === "tool_result" && block.tool_use_id === toolCallId;
  const at = messages.findLastIndex((message) => contentOf(message).some(isWanted));
  const message = messages[at];
  const block = contentOf(message).find(isWanted);
  if (!isRecord(message) || !block || block.cache_control) return undefined;
  const content = contentOf(message).map((own) =>
    own === block ? { ...own, cache_control: control } : own,
  );
  return { ...payload, messages: messages.with(at, { ...message, content }) };
}

function markers(payload: Json): number {
  const { tools, system, messages } = payload;
  const blocks = [tools, system].flatMap(records).concat(records(messages).flatMap(contentOf));
  return blocks.filter((block) => block.cache_control).length;
}

function contentOf(message: unknown): Json[] {
  return isRecord(message) ? records(message.content) : [];
}

function records(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/**
 * Detects other extensions that change requests after the conversation has gone through foredeck.
 *
 * Pi turns a message into the same bytes every time. So where foredeck changed nothing since the
 * last request, this one must begin with it. If it does not, somebody else has changed one of the
 * two, and the provider's cache misses everything after the change. This sees extensions loaded
 * before foredeck, and later ones that change a request in place; a later extension that replaces
 * the request does so out of our sight.
 */
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
    const { content, ...fields } = isRecord(message) ? message : { message };
    // Pi writes a text that carries a marker as a block, and as a plain string otherwise.
    const parts = [fields, ...blocksIn(content)].map(unmarked);
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
