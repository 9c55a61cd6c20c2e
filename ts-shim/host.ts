/**
 * Pi, as the engine's side of this extension needs it: messages to the user, the status line, and
 * calls of the user's model.
 *
 * Holds Pi's context object for the time of one session and not longer: after a session was
 * replaced, Pi's objects refuse to be used.
 */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isRecord } from "./context/messages.ts";
import type { NoticeLevel } from "./engine/protocol.ts";

const STATUS_KEY = "foredeck";

/** What this extension says and asks through Pi. No method throws, except `complete`. */
export class Host {
  private ctx: ExtensionContext | null = null;
  private readonly said = new Set<string>();

  /** Uses this context from now on. */
  attach(ctx: ExtensionContext): void {
    this.ctx = ctx;
  }

  /** The session is over. */
  detach(): void {
    this.ctx = null;
  }

  /**
   * Says something to the user. Where Pi has no screen, warnings and errors go to stderr.
   * @param unseen what to say there in place of `text`, whatever the level
   */
  notify(level: NoticeLevel, text: string, unseen?: string): void {
    try {
      if (this.ctx?.hasUI) this.ctx.ui.notify(text, level);
      else if (unseen || level !== "info") console.error(`foredeck: ${unseen ?? text}`);
    } catch {
      // The session was replaced while we spoke.
    }
  }

  /** Says something once for each key, in the life of this extension. */
  notifyOnce(key: string, level: NoticeLevel, text: string): void {
    if (this.said.has(key)) return;
    this.said.add(key);
    this.notify(level, text);
  }

  /** Shows what the user asked for. Pi lends print mode's stdout to the model's answer alone. */
  show(text: string): void {
    try {
      if (this.ctx?.hasUI) this.ctx.ui.notify(text, "info");
      else console.log(text);
    } catch {
      // As above.
    }
  }

  /** Sets the status line; null removes it. */
  status(text: string | null): void {
    try {
      this.ctx?.ui.setStatus(STATUS_KEY, text ?? undefined);
    } catch {
      // As above.
    }
  }

  /**
   * One call of the user's model, for the engine.
   * @param params `{system, messages, max_tokens}`
   * @returns `{text, usage, model}`
   * @throws Error where there is no model, or its answer is an error
   */
  async complete(params: unknown, signal: AbortSignal): Promise<Record<string, unknown>> {
    const { ctx } = this;
    const model = ctx?.model;
    if (!ctx || !model) throw new Error("no model is selected");
    const { system, messages, max_tokens: maxTokens } = isRecord(params) ? params : {};
    if (!Array.isArray(messages)) throw new Error("host/complete needs messages");
    const now = Date.now();
    const stream = ctx.modelRegistry.streamSimple(
      model,
      {
        ...(typeof system === "string" ? { systemPrompt: system } : {}),
        messages: messages.map((message) => ({ timestamp: now, ...message })),
      },
      { signal, ...(typeof maxTokens === "number" ? { maxTokens } : {}) },
    );
    const answer = await stream.result();
    if (answer.stopReason === "error" || answer.stopReason === "aborted") {
      throw new Error(answer.errorMessage ?? `the model call was ${answer.stopReason}`);
    }
    this.countUsage(ctx, answer);
    const texts = answer.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
    return { text: texts.join(""), usage: answer.usage, model: answer.model };
  }

  /** Lets the call show in Pi's totals, where this version of Pi can take it down. */
  private countUsage(
    ctx: ExtensionContext,
    answer: { provider: string; model: string; usage: unknown },
  ): void {
    try {
      const session = ctx.sessionManager as unknown as Partial<UsageLog>;
      session.appendUsage?.("foredeck", answer.provider, answer.model, answer.usage);
    } catch {
      // The totals are then low by one call.
    }
  }
}

interface UsageLog {
  appendUsage(kind: string, provider: string, model: string, usage: unknown): unknown;
}
