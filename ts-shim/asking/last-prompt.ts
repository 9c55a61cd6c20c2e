/**
 * The agent's own last prompt, as it went to the provider: asked again with one more request at its
 * end, it is read from the provider's cache.
 *
 * Kept is the request itself and not what it was made of, so that system prompt, tools, thinking
 * and retention are the same bytes whatever has been switched since.
 */

import { blocksIn, isRecord } from "../context/messages.ts";

type Json = Record<string, unknown>;

/** What is asked of Pi's model record here. */
export interface ModelRecord {
  provider: string;
  id: string;
  api: string;
}

/** A prompt that went out with the engine's answer. */
export interface SentPrompt {
  /** The call record whose edits are in it. */
  call: number;
  payload: Json;
  model: ModelRecord;
  sentMs: number;
  /** The provider has begun to answer, so its cache can be read. */
  answered: boolean;
}

/** The two wires on which a request has been seen to come back from the cache. */
const WIRES = new Set(["anthropic-messages", "openai-completions"]);

export class LastPrompt {
  private sent: SentPrompt | null = null;
  private due: number | null = null;
  private rewritten = false;

  /** The next request is that of this call record; null: of none. The one before is the last no more. */
  expect(call: number | null): void {
    this.sent = null;
    this.due = call;
  }

  /** Takes the request that was expected; any other (a warming one, a summary) is passed over. */
  take(payload: unknown, model: ModelRecord | undefined): void {
    const { due } = this;
    if (due === null || !model || !isRecord(payload)) return;
    this.due = null;
    this.sent = { call: due, payload, model, sentMs: Date.now(), answered: false };
  }

  /** A provider has begun to answer, with this HTTP status. */
  answered(status: number): void {
    if (this.sent && status < 300) this.sent.answered = true;
  }

  /** Another extension changes requests: what is kept here need not be what went out. */
  othersRewrite(): void {
    this.rewritten = true;
  }

  /** Another session. */
  clear(): void {
    this.expect(null);
    this.rewritten = false;
  }

  /**
   * The prompt to ask again, or why the provider's cache would not be read.
   * @param model the model in use now
   * @param repeatedMs when Pi's cache warmer last sent it again
   */
  find(model: ModelRecord, repeatedMs = 0): SentPrompt | string {
    const { sent } = this;
    if (this.rewritten) return "another extension changes requests on their way to the model";
    if (!sent) return "no call of this session has gone out with foredeck's answer yet";
    if (!sent.answered) return "the model has not begun to answer the last call";
    if (sent.model.provider !== model.provider || sent.model.id !== model.id) {
      return "the model has been changed since the last call";
    }
    return unreadable(sent, model, repeatedMs) ?? sent;
  }
}

/** Milliseconds that the provider keeps a prompt of this model; null where Pi does not know. */
export function warmTime(model: object): number | null {
  const { promptCache } = model as Record<string, unknown>;
  const retention = process.env.PI_CACHE_RETENTION === "long" ? "long" : "short";
  const seconds = isRecord(promptCache) ? promptCache[retention] : undefined;
  return typeof seconds === "number" ? seconds * 1000 : null;
}

function unreadable({ payload, sentMs }: SentPrompt, model: ModelRecord, repeatedMs: number) {
  if (!WIRES.has(model.api) || !Array.isArray(payload.messages)) {
    return `prompts are not asked again over ${model.api}`;
  }
  if (payload.model !== model.id) return "another model answers in the place of this one";
  // Pi's own cache warmer leaves these alone as well: the budget would follow the shorter answer.
  if (isRecord(payload.thinking) && payload.thinking.type === "enabled") {
    return "the last call thinks within a budget, with which the provider's cache is bound up";
  }
  const lifetimeMs = warmTime(model);
  if (lifetimeMs === null) return "Pi does not know how long this provider keeps its cache";
  const ageMs = Date.now() - Math.max(sentMs, repeatedMs);
  return ageMs < lifetimeMs ? null : "the provider has dropped the last call from its cache by now";
}

/**
 * The request to send in place of one that Pi has built for the question alone.
 *
 * The question joins the last message where that is a user's, as the provider itself would join
 * them. It carries no cache marker: those of the prompt stay where they are, and what is asked once
 * need not be kept.
 */
export function askedAgain({ payload, model }: SentPrompt, built: unknown): Json {
  const alone = isRecord(built) ? built : {};
  const question = (alone.messages as unknown[] | undefined)?.at(-1);
  if (!isRecord(question)) throw new Error("Pi has built no question");
  const messages = [...(payload.messages as Json[])];
  const last = messages.at(-1);
  const blocks = blocksIn(question.content).map(({ cache_control: _, ...block }) => block);
  if (model.api === "anthropic-messages" && last?.role === "user") {
    messages[messages.length - 1] = { ...last, content: [...blocksIn(last.content), ...blocks] };
  } else {
    messages.push({ ...question, content: blocks });
  }
  return { ...payload, ...limits(alone), messages };
}

function limits(built: Json): Json {
  const names = ["max_tokens", "max_completion_tokens"].filter((name) => built[name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, built[name]]));
}
