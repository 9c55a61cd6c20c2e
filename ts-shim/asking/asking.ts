/**
 * Asks a model of the user's for the engine, beside the agent's own work.
 *
 * A question that is refused costs nothing: it throws before anything is sent. Whatever went out
 * is answered with what it used, also where the answer is of no use, so that the engine can keep
 * count.
 */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { describe } from "../context/request.ts";
import { warmedAt } from "../context/warming.ts";
import { ErrorCode } from "../engine/protocol.ts";
import { RpcError } from "../engine/wire.ts";
import { askedAgain, type LastPrompt, type SentPrompt } from "./last-prompt.ts";
import { isSingleSlot } from "./model.ts";
import { type Question, readModel, readQuestion } from "./question.ts";

type Model = NonNullable<ExtensionContext["model"]>;
type Registry = ExtensionContext["modelRegistry"];
type StreamSimple = Registry["streamSimple"];
type Answer = Awaited<ReturnType<ReturnType<StreamSimple>["result"]>>;

export interface AskingHost {
  /** Pi for the session at hand; null where there is none. */
  context(): ExtensionContext | null;
  lastPrompt(): LastPrompt;
  isOff(): boolean;
}

/** Serves `host/model` and `host/complete`. */
export class Asking {
  private readonly host: AskingHost;
  private ending = new AbortController();

  constructor(host: AskingHost) {
    this.host = host;
  }

  /** The session ends: nobody waits for what is being asked in it. */
  stop(): void {
    this.ending.abort();
    this.ending = new AbortController();
  }

  /**
   * Whether a model could be asked now, and whether its warm cache would be read. Sends nothing.
   * @throws RpcError where the parameters are none
   */
  describe(params: unknown): Record<string, unknown> {
    const named = readModel(params);
    try {
      const { ctx, model } = this.usable(named);
      const found = this.host.lastPrompt().find(model, warmedAt(ctx.sessionManager));
      const warm = typeof found === "string" ? { cold: found } : { warm: found.call };
      return { model: describe(model), single_slot: isSingleSlot(model), ...warm };
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      return { model: null, reason: error.message };
    }
  }

  /**
   * Asks one question.
   * @throws RpcError where it is refused: nothing was sent then
   */
  async complete(params: unknown, signal: AbortSignal): Promise<Record<string, unknown>> {
    const question = readQuestion(params);
    const { ctx, model } = this.usable(question.model);
    if (isSingleSlot(model) && !question.wanted) {
      throw refused(`${model.id} answers one at a time, and nobody wants this asked`);
    }
    const prompt = question.warm === undefined ? null : this.prompt(ctx, model, question.warm);
    const until = AbortSignal.any([signal, this.ending.signal]);
    const stream = ctx.modelRegistry.streamSimple(...request(model, question, prompt, until));
    const answer = await stream.result();
    countUsage(ctx, answer);
    if (until.aborted) throw new RpcError(ErrorCode.cancelled, "cancelled");
    return { ...resultOf(answer, prompt !== null), single_slot: isSingleSlot(model) };
  }

  private usable(named: Question["model"]): { ctx: ExtensionContext; model: Model } {
    if (this.host.isOff()) throw refused("foredeck is off: /foredeck on switches it on");
    const ctx = this.host.context();
    if (!ctx) throw noModel("no session is open");
    const registry = ctx.modelRegistry as Partial<Registry>;
    if (!registry.streamSimple)
      throw noModel("this Pi lends no models: update it to 0.87 or later");
    const model = named ? registry.find?.(named.provider, named.id) : ctx.model;
    if (!model) {
      throw named
        ? noModel(`Pi has no model ${named.provider}/${named.id}: /model lists those it has`)
        : noModel("no model is selected: choose one with /model");
    }
    if (registry.hasConfiguredAuth?.(model) === false) {
      throw noModel(`there is no key for ${model.provider}: log in with /login`);
    }
    return { ctx, model };
  }

  private prompt(ctx: ExtensionContext, model: Model, call: number): SentPrompt {
    const found = this.host.lastPrompt().find(model, warmedAt(ctx.sessionManager));
    if (typeof found === "string") throw refused(`the cache would not be read: ${found}`);
    if (found.call !== call) throw refused(`call ${call} is not the last that went out`);
    return found;
  }
}

function request(
  model: Model,
  question: Question,
  prompt: SentPrompt | null,
  signal: AbortSignal,
): Parameters<StreamSimple> {
  const { system, tools, reasoning, sessionId, retention } = question;
  const now = Date.now();
  const context = {
    ...(system === undefined ? {} : { systemPrompt: system }),
    ...(tools ? { tools } : {}),
    messages: question.messages.map((message) => ({ timestamp: now, ...message })),
  };
  const options = {
    signal,
    maxTokens: question.maxTokens,
    ...(reasoning && reasoning !== "off" ? { reasoning } : {}),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(retention === undefined ? {} : { cacheRetention: retention }),
    ...(prompt ? { onPayload: (built: unknown) => askedAgain(prompt, built) } : {}),
  };
  // Messages and tools are Pi's own shapes, which the engine has from Pi: nothing more to check.
  return [model, context, options] as unknown as Parameters<StreamSimple>;
}

function resultOf(answer: Answer, warm: boolean): Record<string, unknown> {
  const { content, stopReason, usage, provider, model } = answer;
  const calls = content.flatMap((block) =>
    block.type === "toolCall" ? [{ name: block.name, arguments: block.arguments }] : [],
  );
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const failed = failureOf(answer, warm && calls.length > 0);
  return {
    text: failed ? "" : texts.join(""),
    calls: failed ? [] : calls,
    stop: stopReason,
    ...(failed ? { failed } : {}),
    model: { provider, id: model },
    usage: {
      read: usage.cacheRead,
      written: usage.cacheWrite,
      fresh: usage.input,
      output: usage.output,
      cost: usage.cost.total,
    },
  };
}

function failureOf({ stopReason, errorMessage }: Answer, callsTools: boolean): string | null {
  if (stopReason === "error" || stopReason === "aborted") {
    return errorMessage || `the call was ${stopReason}`;
  }
  // They are the agent's own tools, and nobody will run them.
  return callsTools ? "it calls tools instead of answering" : null;
}

/** Adds the call to Pi's own totals, where this version of Pi can. */
function countUsage(ctx: ExtensionContext, answer: Answer): void {
  try {
    const session = ctx.sessionManager as unknown as Partial<UsageLog>;
    session.appendUsage?.("foredeck", answer.provider, answer.model, answer.usage);
  } catch {
    // Pi's totals then lack this call.
  }
}

interface UsageLog {
  appendUsage(kind: string, provider: string, model: string, usage: unknown): unknown;
}

function noModel(text: string): RpcError {
  return new RpcError(ErrorCode.noModel, text);
}

function refused(text: string): RpcError {
  return new RpcError(ErrorCode.notAsked, text);
}
