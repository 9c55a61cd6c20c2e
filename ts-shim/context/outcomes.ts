/** What became of the model calls since the engine last answered: reported with the next request. */

/** What became of one model call (docs/protocol.md). */
export interface Outcome {
  /** Of a fallback the call whose edits went out again, of an aborted call its own, if answered. */
  call: number | null;
  kind: "applied" | "fallback" | "aborted" | "off";
  /** Messages before this index went out with the edits in force, later ones as the host has them. */
  edited?: number;
  /** Whether what the edits insert after the last of them went out too. */
  ending?: boolean;
  messages?: number;
  time_ms?: number;
  reason?: string;
}

/** What goes with the next request until the engine has answered one that carried it. */
export class Unacknowledged<T> {
  private waiting: T[] = [];
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
