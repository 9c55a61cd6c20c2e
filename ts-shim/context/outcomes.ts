/** What became of the model calls since the engine last answered: reported with the next request. */

import type { Outcome } from "../engine/protocol.ts";

/** Outcomes kept at most; if the engine is away for more calls than this, the oldest are lost. */
const LIMIT = 1000;

/** The outcomes that the engine has not acknowledged, oldest first. */
export class OutcomeLog {
  private unacknowledged: Outcome[] = [];

  /** The engine's answer went out. */
  applied(call: number): void {
    this.add({ call, kind: "applied" });
  }

  /** Another extension changed the call that went out last, or the one before it. */
  rewritten(reason: string): void {
    const newest = this.unacknowledged.at(-1);
    if (newest?.kind === "applied") newest.reason = reason;
  }

  /**
   * A call went out, or was stopped, without a fresh answer.
   * @param edited messages before this index went out with the edits in force, later ones as the
   *   host has them
   * @param ending whether what the edits insert after the last of them went out too
   * @param call the engine's call record: of a fallback the one whose edits went out again, of an
   *   aborted call its own, where the engine had answered already
   */
  without(
    kind: "fallback" | "aborted" | "off",
    sent: {
      edited: number;
      ending?: boolean;
      messages: number;
      reason: string;
      call?: number | null;
    },
  ): void {
    const { edited, ending = false, messages, reason, call = null } = sent;
    const outcome = { call, kind, edited, messages, time_ms: Date.now(), reason };
    this.add(ending ? { ...outcome, ending } : outcome);
  }

  /** All of them. They stay pending until they are acknowledged. */
  pending(): Outcome[] {
    return [...this.unacknowledged];
  }

  /** The engine has answered a request that carried the first `count` of the pending ones. */
  acknowledge(count: number): void {
    this.unacknowledged.splice(0, count);
  }

  clear(): void {
    this.unacknowledged = [];
  }

  private add(outcome: Outcome): void {
    this.unacknowledged.push(outcome);
    if (this.unacknowledged.length > LIMIT) this.unacknowledged.shift();
  }
}
