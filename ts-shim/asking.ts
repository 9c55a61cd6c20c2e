/** Asks a model of the user's for the engine, beside the agent's own work. */

import {
  type Api,
  type AssistantMessage,
  clampThinkingLevel,
  type Model,
} from "@earendil-works/pi-ai";
import type {
  ExtensionContext,
  ModelRegistry,
  SessionManager,
} from "@earendil-works/pi-coding-agent";
import { blocksIn, type Fields, isRecord, recordOf } from "./context/messages.ts";
import { lastOf, listOf, type SentPrompt } from "./context/provider.ts";
import { branchOf, describe, modelOf, warmedAt } from "./context/request.ts";
import { ErrorCode, RpcError } from "./engine/wire.ts";
import type { Shim } from "./shim.ts";

/** The parameters of `host/complete`, as docs/protocol.md describes them; the engine checks them. */
export interface Question {
  messages: Fields[];
  max_tokens: number;
  system?: string;
  model?: { provider: string; id: string };
  warm?: number;
  wanted?: boolean;
}

/** `host/model`: whether a model could be asked now, and its warm cache be read. Sends nothing. */
export function describeModel(shim: Shim, named?: Question["model"]): Fields {
  try {
    const { ctx, model } = usable(shim, named);
    const found = shim.context.lastRequest.find(model);
    const thinking = thinkingOf(model, null);
    const own = { model: describe(model), thinking, single_slot: isSingleSlot(model) };
    if (typeof found === "string") return { ...own, cold: found };
    const sentMs = Math.max(found.sentMs, warmedAt(branchOf(ctx)) ?? 0);
    return { ...own, warm: found.call, warm_thinking: thinkingOf(model, found), sent_ms: sentMs };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return { model: null, reason: error.message };
  }
}

/** `host/complete`: asks one question. @throws RpcError where it is refused: nothing was sent then */
export async function askModel(
  shim: Shim,
  question: Question,
  signal: AbortSignal,
): Promise<Fields> {
  const { ctx, model } = usable(shim, question.model);
  if (isSingleSlot(model) && !question.wanted)
    throw refused(`${model.id} answers one at a time, and nobody wants this asked`);
  const prompt = question.warm === undefined ? null : promptOf(shim, model, question.warm);
  const stream = ctx.modelRegistry.streamSimple(...request(model, question, prompt, signal));
  const answer = await stream.result();
  // Whatever went out is counted, also where its answer is of no use.
  countUsage(ctx, answer);
  if (signal.aborted) throw new RpcError(ErrorCode.cancelled, "cancelled");
  return { message: answer, single_slot: isSingleSlot(model) };
}

/** @throws RpcError with why no model can be asked */
function usable(shim: Shim, named: Question["model"]) {
  if (shim.isOff()) throw refused("foredeck is off: /foredeck on switches it on");
  const { ctx } = shim.host;
  if (!ctx) throw noModel("no session is open");
  const registry = ctx.modelRegistry;
  const model = named ? registry.find(named.provider, named.id) : modelOf(ctx);
  if (!model && !named) throw noModel("no model is selected: choose one with /model");
  if (!model)
    throw noModel(`Pi has no model ${named?.provider}/${named?.id}: /model lists those it has`);
  if (!registry.hasConfiguredAuth(model))
    throw noModel(`there is no key for ${model.provider}: log in with /login`);
  return { ctx, model };
}

/** What went out in this call, to be asked again. */
function promptOf(shim: Shim, model: Model<Api>, call: number): SentPrompt {
  const found = shim.context.lastRequest.find(model);
  if (typeof found === "string") throw refused(`the cache would not be read: ${found}`);
  if (found.call !== call) throw refused(`call ${call} is not the last that went out`);
  return found;
}

function request(
  model: Model<Api>,
  question: Question,
  prompt: SentPrompt | null,
  signal: AbortSignal,
): Parameters<ModelRegistry["streamSimple"]> {
  const reasoning = thinkingOf(model, prompt);
  const timestamp = Date.now();
  const messages = question.messages.map((message) => ({ timestamp, ...message }));
  const context = defined({ systemPrompt: question.system, messages });
  const options = defined({
    signal,
    maxTokens: Math.min(question.max_tokens, model.maxTokens || question.max_tokens),
    reasoning: reasoning === "off" ? undefined : reasoning,
    // What is asked once is not worth writing to a cache, which some providers charge for.
    cacheRetention: prompt ? undefined : "none",
    onPayload: prompt ? (built: unknown) => askedAgain(prompt, built) : undefined,
  });
  // Messages have Pi's own shape, which the engine has from Pi: nothing more to check.
  return [model, context, options] as unknown as Parameters<ModelRegistry["streamSimple"]>;
}

/** How much a model thinks about a question: as little as it can with the cache of that prompt. */
function thinkingOf(model: Model<Api>, prompt: SentPrompt | null) {
  if (prompt === null) return clampThinkingLevel(model, "off");
  const messages = listOf(prompt.payload);
  // Said behind what the cache holds: then it can be said anew.
  const isFree = lastOf(messages) < messages.length - 1;
  return isFree ? clampThinkingLevel(model, "minimal") : prompt.thinking;
}

/** What is not undefined: Pi lets such an option take the place of its default. */
function defined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Adds the call to Pi's own totals. */
function countUsage(ctx: ExtensionContext, { provider, model, usage }: AssistantMessage): void {
  try {
    (ctx.sessionManager as SessionManager).appendUsage("foredeck", provider, model, usage);
  } catch {
    // Pi's totals then lack this call.
  }
}

const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\]|\[::ffff:7f.*\])$/;

/** Whether a question would push the agent's own prompt out of a server's only slot. */
export function isSingleSlot(model: object): boolean {
  const { cost, baseUrl } = model as Fields;
  const { input, output } = recordOf(cost);
  // A server of the user's own usually has no price.
  if (!(Number(input) > 0 || Number(output) > 0)) return true;
  // Some providers have no address of their own.
  const address = URL.canParse(String(baseUrl)) ? new URL(String(baseUrl)).hostname : "";
  return LOOPBACK.test(address);
}

function noModel(text: string): RpcError {
  return new RpcError(ErrorCode.noModel, text);
}

function refused(text: string): RpcError {
  return new RpcError(ErrorCode.notAsked, text);
}

/** The request to send in place of one that Pi has built for the question alone. */
export function askedAgain({ payload, model }: SentPrompt, built: unknown): Fields {
  const alone = recordOf(built);
  const asked = listOf(alone);
  const question = asked[lastOf(asked)];
  if (!isRecord(question)) throw new Error("Pi has built no question");
  const sent = payload.messages as Fields[];
  const at = lastOf(sent);
  const last = sent[at];
  // Without cache markers: those of the prompt stay where they are, and what is asked once need not
  // be kept.
  const blocks = blocksIn(question.content).map(({ cache_control: _, ...block }) => block);
  // As the provider itself would join two messages of the user's.
  const joins = model.api === "anthropic-messages" && last?.role === "user";
  const end = joins
    ? [{ ...last, content: [...blocksIn(last.content), ...blocks] }]
    : [...sent.slice(at, at + 1), { ...question, content: blocks }];
  // The effort follows what the cache holds, and says how much is thought about what it follows.
  const [efforts, own] = [sent.slice(at + 1), asked.slice(lastOf(asked) + 1)];
  const ending = efforts.length > 0 && own.length > 0 ? own : efforts;
  const messages = [...sent.slice(0, at), ...end, ...ending];
  const { max_tokens, max_completion_tokens } = alone;
  return { ...payload, ...defined({ max_tokens, max_completion_tokens }), messages };
}
