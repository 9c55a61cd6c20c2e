/** What became of the model calls since the engine last answered: told with the next request. */

import type { Outcome } from "../engine/protocol.ts";

/** Outcomes kept at most; with the engine away for longer than this, the oldest go. */
const LIMIT = 1000;

/** The outcomes not yet told to the engine, oldest first. */
export class OutcomeLog {
  private untold: Outcome[] = [];

  /** The engine's answer went out. */
  applied(call: number): void {
    this.add({ call, kind: "applied" });
  }

  /** The call that went out last was changed by somebody else, or the one before it was. */
  rewritten(reason: string): void {
    const newest = this.untold.at(-1);
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
    const told = { call, kind, edited, messages, time_ms: Date.now(), reason };
    this.add(ending ? { ...told, ending } : told);
  }

  /** All that is untold. It stays untold until `told`. */
  pending(): Outcome[] {
    return [...this.untold];
  }

  /** The engine has answered a request that carried the first `count` of the pending ones. */
  told(count: number): void {
    this.untold.splice(0, count);
  }

  clear(): void {
    this.untold = [];
  }

  private add(outcome: Outcome): void {
    this.untold.push(outcome);
    if (this.untold.length > LIMIT) this.untold.shift();
  }
}
