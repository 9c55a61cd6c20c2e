/** How an engine has been doing: whether to start it again, give up on it, or wait for it at all. */

/** How often an engine that keeps crashing is started again. */
export const MAX_RESTARTS = 5;
/** The pause before the first restart; it doubles with each further one. */
const FIRST_PAUSE_MS = 200;
/** An engine that has answered this many requests is sound: if it dies, the count starts over. */
const SOUND_ANSWERS = 5;
/** An engine that misses this many deadlines in a row is hung. */
const MAX_MISSED = 3;

export class EngineHealth {
  private restarts = 0;
  private missed = 0;
  private answers = 0;
  private slowStart = false;
  /** The last process that was started ended before it answered `initialize`. */
  failedBefore = false;

  /** The user, or a new session, starts the engine: past crashes no longer count. */
  forgive(): void {
    this.restarts = 0;
  }

  launched(): void {
    this.failedBefore = true;
  }

  initialized(): void {
    this.missed = 0;
    this.answers = 0;
    this.failedBefore = false;
    this.slowStart = false;
  }

  answered(): void {
    this.missed = 0;
    this.answers += 1;
    if (this.answers >= SOUND_ANSWERS) this.restarts = 0;
  }

  /** @returns whether the engine counts as hung now */
  missedDeadline(): boolean {
    this.missed += 1;
    return this.missed >= MAX_MISSED;
  }

  /** A model call waited its whole time for the engine to start; later ones do not wait. */
  missedStart(): void {
    this.slowStart = true;
  }

  /** Whether a model call should wait for an engine that is starting, or is about to. */
  isWorthWaitingFor(state: "starting" | "pausing"): boolean {
    if (this.slowStart) return false;
    return state === "starting" || this.restarts <= 1;
  }

  /** The pause before a restart in milliseconds, or null when there have been too many. */
  nextRestart(): number | null {
    if (this.restarts >= MAX_RESTARTS) return null;
    const pause = FIRST_PAUSE_MS * 2 ** this.restarts;
    this.restarts += 1;
    return pause;
  }
}
