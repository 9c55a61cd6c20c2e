/** What became of the model calls since the engine last answered: reported with the next request. */

/** What became of one model call (docs/protocol.md). */
interface Outcome {
  call: number | null;
  kind: "applied" | "fallback" | "aborted" | "off";
  edited?: number;
  ending?: boolean;
  messages?: number;
  time_ms?: number;
  reason?: string;
}

/** What goes with the next request until the engine has answered one that carried it. */
export class Unacknowledged<T> {
  protected waiting: T[] = [];
  private readonly limit: number;

  /** @param limit how many are kept: while the engine is away for longer, the oldest are lost */
  constructor(limit: number) {
    this.limit = limit;
  }

  add(item: T): void {
    this.waiting.push(item);
    if (this.waiting.length > this.limit) this.waiting.shift();
  }

  /** All of them, oldest first. They stay pending until they are acknowledged. */
  pending(): T[] {
    return [...this.waiting];
  }

  /** The engine has answered a request that carried the first `count` of the pending ones. */
  acknowledge(count: number): void {
    this.waiting.splice(0, count);
  }

  clear(): void {
    this.waiting = [];
  }
}

/** Outcomes kept at most. */
const LIMIT = 1000;

/** The outcomes that the engine has not acknowledged. */
export class OutcomeLog extends Unacknowledged<Outcome> {
  constructor() {
    super(LIMIT);
  }

  /** The engine's answer went out. */
  applied(call: number): void {
    this.add({ call, kind: "applied" });
  }

  /** Another extension changed the call that went out last, or the one before it. */
  rewritten(reason: string): void {
    const newest = this.waiting.at(-1);
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
    messages: number,
    reason: string,
    { edited = 0, ending = false, call = null }: Partial<Outcome> = {},
  ): void {
    const sent = { call, kind, edited, messages, time_ms: Date.now(), reason };
    this.add(ending ? { ...sent, ending } : sent);
  }
}
