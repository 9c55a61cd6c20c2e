/** The state that an engine is in, and waiting for it to change. */

/**
 * `idle`: never started, or stopped. `pausing`: it crashed and will be started again.
 * `away`: it cannot be had.
 */
export type EngineState = "idle" | "setup" | "starting" | "ready" | "pausing" | "away";

export class EngineStatus {
  private current: EngineState = "idle";
  private why = "the engine was not started";
  private wakeUps: (() => void)[] = [];

  get state(): EngineState {
    return this.current;
  }

  /** Why the engine is not ready, for a user to read; empty where it is. */
  get reason(): string {
    return this.why;
  }

  /** Starting for the first time or again. Setting up takes minutes and does not count. */
  get isStarting(): boolean {
    return this.current === "starting" || this.current === "pausing";
  }

  enter(state: EngineState, reason: string): void {
    this.current = state;
    this.why = reason;
    const { wakeUps } = this;
    this.wakeUps = [];
    for (const wakeUp of wakeUps) wakeUp();
  }

  /** Resolves when a condition no longer holds; it is checked at each change of the state. */
  async whileTrue(condition: () => boolean): Promise<void> {
    while (condition()) {
      await new Promise<void>((resolve) => this.wakeUps.push(resolve));
    }
  }
}
