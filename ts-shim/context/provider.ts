/** Requests to a provider: marked for its cache, compared, kept to be asked again, and made again. */

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { Shim } from "../shim.ts";
import {
  type Block,
  blocksIn,
  type Fields,
  type HostMessage,
  isRecord,
  recordOf,
  sameValue,
} from "./messages.ts";
import { inThreads, modelOf } from "./request.ts";

/** What Anthropic allows in one request. */
const MAX_MARKERS = 4;

export function registerRequests(pi: ExtensionAPI, shim: Shim): void {
  pi.on("after_provider_response", ({ status }) => shim.context.lastRequest.answered(status));
  pi.on("turn_end", ({ message }) => {
    shim.safely("turn_end", () => shim.context.answered(message as unknown as HostMessage));
  });
  pi.on("before_provider_request", ({ payload }, ctx) => {
    let marked: Fields | undefined;
    shim.safely("before_provider_request", () => {
      const { context } = shim;
      const model = modelOf(ctx);
      marked = withMarker(payload, context.marker, model !== undefined && inThreads(model));
      const compare = context.lastRequest.take(marked ?? payload, model, pi.getThinkingLevel());
      // Later extensions may still change it in place: compared when it is on its way. One that
      // replaces it does so out of our sight.
      const report = () => {
        const changed = compare?.() ?? null;
        if (changed === null) return;
        context.rewrittenByOthers(changed);
        const text =
          `Another extension changes requests on their way to the model (${changed}), and the ` +
          "provider's cache misses what follows. If costs rise, use only one of the two.";
        shim.host.notifyOnce("rewritten", "warning", text);
      };
      if (compare) setImmediate(() => shim.safely("comparing requests", report));
    });
    return marked;
  });
}

/** A copy with one more cache marker, on a tool call's result; undefined where it stays as it is. */
export function withMarker(
  payload: unknown,
  toolCallId: string | null,
  isThread = false,
): Fields | undefined {
  if (!toolCallId || !isRecord(payload) || !Array.isArray(payload.messages)) return undefined;
  const messages = payload.messages as unknown[];
  // Pi marks the end of each request, but over other APIs or with caching switched off.
  const control = contentOf(messages[lastOf(messages)]).at(-1)?.cache_control;
  // A thread goes on with requests that do not bring its older messages, and with them no markers.
  // Pi begins another one, with all messages, where the markers on the system prompt have changed.
  const isFull = markers(payload) >= MAX_MARKERS && markers({ system: payload.system }) > 1;
  const request = isThread || isFull ? withoutSystemMarker(payload) : payload;
  if (!control || markers(request) >= MAX_MARKERS) return undefined;
  const isResult = ({ type, tool_use_id: id }: Block) =>
    type === "tool_result" && id === toolCallId;
  const at = messages.findLastIndex((message) => contentOf(message).some(isResult));
  const content = contentOf(messages[at]);
  const n = content.findIndex(isResult);
  const block = content[n];
  if (!block || block.cache_control) return undefined;
  const marked = content.with(n, { ...block, cache_control: control });
  return {
    ...request,
    messages: messages.with(at, { ...recordOf(messages[at]), content: marked }),
  };
}

/** Without the first system marker: a subscription's is on a sentence too short to be kept. */
function withoutSystemMarker(payload: Fields): Fields {
  const parts = objectsIn(payload.system);
  const marked = parts.findIndex((part) => part.cache_control);
  if (marked < 0) return payload;
  return { ...payload, system: parts.with(marked, unmarked(parts[marked]) as Block) };
}

function markers({ tools, system, messages }: Fields): number {
  const blocks = [...[tools, system].flatMap(objectsIn), ...objectsIn(messages).flatMap(contentOf)];
  return blocks.filter((block) => block.cache_control).length;
}

function contentOf(message: unknown): Block[] {
  return objectsIn(recordOf(message).content);
}

/** Another extension may have put anything into a request. */
function objectsIn(content: unknown): Block[] {
  return blocksIn(content).filter(isRecord);
}

/** The field that holds the messages, in one or another of the APIs that Pi speaks. */
const MESSAGE_FIELDS = ["messages", "input", "contents"];

export function listOf(payload: Fields): unknown[] {
  return MESSAGE_FIELDS.map((name) => payload[name]).find(Array.isArray) ?? [];
}

/** Whether this only says with which effort to answer next. It moves where no answer has come. */
function isEffort(message: unknown): boolean {
  const { type, role, content, output_config } = recordOf(message);
  // OpenAI's, else Anthropic's.
  if (type === "configuration_update") return true;
  return role === "system" && isRecord(output_config) && blocksIn(content).length === 0;
}

/** The last message: the newest that is no effort. -1 for none. */
export function lastOf(messages: readonly unknown[]): number {
  return messages.findLastIndex((message) => !isEffort(message));
}

type ModelRecord = { provider: string; id: string; api: string };

/** A prompt that went out with the engine's answer. */
export interface SentPrompt {
  call: number;
  /** The request itself and not what it was made of: the same bytes, whatever was switched since. */
  payload: Fields;
  model: ModelRecord;
  thinking: string;
  sentMs: number;
  /** The provider has begun to answer, so its cache can be read. */
  answered: boolean;
}

/** The two wires on which a request has been seen to come back from the cache. */
const WIRES = new Set(["anthropic-messages", "openai-completions"]);

/** What is sent in front of the messages, as the user would call it. */
const HEAD_FIELDS = {
  system: "system prompt",
  systemInstruction: "system prompt",
  instructions: "system prompt",
  tools: "tools",
};

/** A request that is about to go out. */
interface Expected {
  /** The call record whose edits are in it, null where it has none. */
  call: number | null;
  /** It is the last one with messages added, and nothing else was changed. */
  extendsLast?: boolean;
  signal?: AbortSignal | undefined;
}

export class LastRequest {
  /** The last request, whatever it was made by. */
  newest: Fields | null = null;
  private sent: SentPrompt | null = null;
  private expected: Expected | null = null;
  /** Another extension changes requests: what is kept here need not be what went out. */
  rewritten = false;

  /** Announces a request; the one before is the last no more. */
  expect(expected: Expected): void {
    this.sent = null;
    this.expected = expected;
  }

  /** Takes a request that was announced. Gives what tells later how others changed the start of it. */
  take(payload: unknown, model?: ModelRecord, thinking = "off"): (() => string | null) | null {
    const { expected, newest: last } = this;
    this.expected = null;
    if (!expected || expected.signal?.aborted || !isRecord(payload)) return null;
    const { call, extendsLast } = expected;
    this.newest = payload;
    if (call !== null && model) {
      this.sent = { call, payload, model, thinking, sentMs: Date.now(), answered: false };
    }
    // Pi turns a message into the same bytes every time. So where foredeck has changed nothing, the
    // next request must begin with the last, or the provider's cache misses what follows the change.
    if (!extendsLast || !last || last.model !== payload.model) return null;
    return () => changes(last, payload);
  }

  answered(status: number): void {
    if (this.sent && status < 300) this.sent.answered = true;
  }

  /** The prompt to ask this model again, or why the provider's cache would not be read. */
  find(model: ModelRecord): SentPrompt | string {
    const { sent } = this;
    if (this.rewritten) return "another extension changes requests on their way to the model";
    if (!sent) return "no call of this session has gone out with foredeck's answer yet";
    if (!sent.answered) return "the model has not begun to answer the last call";
    if (sent.model.provider !== model.provider || sent.model.id !== model.id) {
      return "the model has been changed since the last call";
    }
    const { payload } = sent;
    if (!WIRES.has(model.api) || !Array.isArray(payload.messages)) {
      return `prompts are not asked again over ${model.api}`;
    }
    if (payload.model !== model.id) return "another model answers in the place of this one";
    // No message of the user's may stand behind one of the system, and before it the cache ends.
    if (recordOf(payload.messages[lastOf(payload.messages)]).role === "system") {
      return "the last call ends in a change of the instructions or the tools";
    }
    // Pi's own cache warmer leaves these alone as well: the budget would follow the shorter answer.
    if (isRecord(payload.thinking) && payload.thinking.type === "enabled") {
      return "the last call thinks within a budget, with which the provider's cache is bound up";
    }
    return sent;
  }
}

/** What another extension has changed in one of two requests; null for nothing. */
function changes(last: Fields, now: Fields): string | null {
  const changed = Object.entries(HEAD_FIELDS)
    .filter(([name]) => !sameValue(unmarked(last[name]), unmarked(now[name])))
    .map(([, title]) => title);
  const first = firstChanged(lasting(last), lasting(now));
  if (first !== null) changed.push(`messages from number ${first} on`);
  return changed.length > 0 ? changed.join(", ") : null;
}

/** The messages of a request but for what moves behind the newest one, until an answer comes. */
function lasting(request: Fields): unknown[] {
  const messages = listOf(request).filter((message) => !isEffort(message));
  const end = messages.findLastIndex((message) => recordOf(message).role !== "system");
  return messages.slice(0, end + 1);
}

/** Number of the first message from which on `now` does not continue `last`; null for none. */
function firstChanged(last: unknown[], now: unknown[]): number | null {
  const at = last.findIndex((message, index) => {
    // Few messages carry a marker: what is the same as it is need not be taken apart.
    if (sameValue(message, now[index])) return false;
    const [before, after] = [partsOf(message), partsOf(now[index])];
    // Later results may join the last message.
    const isWhole = index === last.length - 1 || before.length === after.length;
    return !isWhole || before.some((part, n) => !sameValue(part, after[n]));
  });
  return at < 0 ? null : at + 1;
}

/** What a provider reads of a message. Pi writes a text that carries a marker as a block. */
function partsOf(message: unknown): unknown[] {
  const { content, ...fields } = isRecord(message) ? message : { message };
  return [fields, ...blocksIn(content)].map(unmarked);
}

/** A copy without cache markers, which move from request to request. */
function unmarked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unmarked);
  if (!isRecord(value)) return value;
  const { cache_control: _, ...rest } = value;
  return rest;
}

/** Where Anthropic says that a block was, in the request. */
const PATH = /^messages\.(\d+)\.content\.(\d+)$/;

/** What Pi notes with an answer of reasoning in its prompt, and where that has a path, the block. */
export function reasoningChanges({ diagnostics }: HostMessage, request: Fields | null): Fields[] {
  const details = objectsIn(diagnostics).map((each) => recordOf(each.details));
  return details.flatMap(({ transformations }) =>
    objectsIn(transformations).map((change) => {
      const [, message, block] = PATH.exec(String(change.path)) ?? [];
      const messages = objectsIn(request?.messages);
      return { ...change, block: contentOf(messages[Number(message)])[Number(block)] };
    }),
  );
}

/** Generous: going back reads call records, and the run that waits has failed already. */
const REFUSED_MS = 5000;

/** Where the engine has another prompt for a call that was refused, the run goes on with that. */
export function registerRefused(pi: ExtensionAPI, shim: Shim): void {
  /** The newest answer, where it failed: Pi's entry of it, and what the provider said. */
  let failed: { entry: string; message: string } | null = null;
  pi.on("turn_end", ({ message, messageEntryId }) => {
    const isFailed = message.role === "assistant" && message.stopReason === "error";
    const said = isFailed ? message.errorMessage : undefined;
    failed = said && messageEntryId ? { entry: messageEntryId, message: said } : null;
  });
  pi.on("agent_before_settle", async (event) => {
    const last = failed;
    failed = null;
    if (last === null || event.outcome !== "error" || shim.isOff()) return undefined;
    const { message } = last;
    const { again } = await shim.ask("context/refused", { message }, { deadlineMs: REFUSED_MS });
    if (again !== true) return undefined;
    // Out of the list, as Pi itself leaves out an answer that it tries again.
    const omitted = { type: "context_edit", targetId: last.entry, replacement: null } as const;
    return { entries: [...event.entries, omitted], continue: true };
  });
}
