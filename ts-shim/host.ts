/**
 * What the rest of the extension asks of Pi: messages to the user, the status line, and calls of the
 * user's model.
 *
 * Holds Pi's context object for one session and no longer: once a session is replaced, using its
 * objects throws.
 */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isRecord } from "./context/messages.ts";
import type { NoticeLevel } from "./engine/protocol.ts";

const STATUS_KEY = "foredeck";
const WIDGET_KEY = "foredeck-tasks";

/** Pi for one session. No method throws, except `complete`. */
export class Host {
  private ctx: ExtensionContext | null = null;
  private readonly notified = new Set<string>();

  /** Uses this context from now on. */
  attach(ctx: ExtensionContext): void {
    this.ctx = ctx;
  }

  /** The session is over. */
  detach(): void {
    this.ctx = null;
  }

  /**
   * Shows a notice. Where Pi has no screen, warnings and errors go to stderr.
   * @param withoutScreen what to print there in place of `text`, whatever the level
   */
  notify(level: NoticeLevel, text: string, withoutScreen?: string): void {
    try {
      if (this.ctx?.hasUI) this.ctx.ui.notify(text, level);
      else if (withoutScreen || level !== "info")
        console.error(`foredeck: ${withoutScreen ?? text}`);
    } catch {
      // The session has just been replaced: nobody is left to read it.
    }
  }

  /** Shows a notice once per key, in the life of this extension. */
  notifyOnce(key: string, level: NoticeLevel, text: string): void {
    if (this.notified.has(key)) return;
    this.notified.add(key);
    this.notify(level, text);
  }

  /** Shows what the user asked for. In print mode Pi keeps stdout for the model's answer. */
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

  /** Shows lines above the editor; undefined removes them. */
  widget(lines: string[] | undefined): void {
    try {
      if (this.ctx?.hasUI) this.ctx.ui.setWidget(WIDGET_KEY, lines);
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

  /** Adds the call to Pi's own totals, where this version of Pi can. */
  private countUsage(
    ctx: ExtensionContext,
    answer: { provider: string; model: string; usage: unknown },
  ): void {
    try {
      const session = ctx.sessionManager as unknown as Partial<UsageLog>;
      session.appendUsage?.("foredeck", answer.provider, answer.model, answer.usage);
    } catch {
      // Pi's totals then lack this call.
    }
  }
}

interface UsageLog {
  appendUsage(kind: string, provider: string, model: string, usage: unknown): unknown;
}
