/** The engine as the rest of the extension sees it: started, again after a crash, and ended. */

import timers from "node:timers/promises";
import { type Fields, recordOf } from "../context/messages.ts";
import type { Shim } from "../shim.ts";
import { locateInstalled, provision } from "./locate.ts";
import { type EngineCommand, EngineProcess } from "./process.ts";
import { GoneError, type RequestOptions, RpcError, remaining, within } from "./wire.ts";

/** Both ship in one package: an engine that speaks another version refuses this one. */
const PROTOCOL_VERSION = 2;
/** A hanging `initialize` is given up after this long. Cold disks and first imports are slow. */
const INITIALIZE_MS = 30_000;
/** What may wait while the engine is starting; later notifications are lost, like those to none. */
const MAX_HELD = 200;
/** How long ending waits for an installer's temporary files to go. */
const CLEANUP_MS = 1000;
/** How long a model call may wait until an engine has said. */
const DEFAULT_DEADLINE_MS = 3000;
export const MAX_RESTARTS = 5;
/** It doubles with each further restart. */
export const FIRST_PAUSE_MS = 200;
/** An engine that has answered this many requests is sound: if it dies, the count starts over. */
const SOUND_ANSWERS = 5;
/** An engine that misses this many deadlines in a row is hung. */
const MAX_MISSED = 3;

const STARTING = "the engine is starting";

/** `idle`: never started, or stopped. `away`: it cannot be had. */
export type EngineState = "idle" | "setup" | "starting" | "ready" | "away";

/** The answer to `initialize`, as far as it matters here. */
export interface EngineInfo {
  deadline_ms: number;
  prepare_ms: number;
  command: string;
  warnings: string[];
}

export class Engine {
  private readonly host: Shim;
  /** Changed by `enter` alone, which wakes up who waits. */
  state: EngineState = "idle";
  /** Why the engine is not ready, for a user to read; empty where it is. */
  reason = "the engine was not started";
  private wakeUps: (() => void)[] = [];
  /** The one that runs, or is being started. */
  process: EngineProcess | null = null;
  private locating = new AbortController();
  private connecting: Promise<void> = Promise.resolve();
  /** Counts connections: when it changes, what an earlier engine process remembered is gone. */
  generation = 0;
  private info: EngineInfo | null = null;
  private restarts = 0;
  private missed = 0;
  private answers = 0;
  /** A model call waited its whole time for the engine to start; later ones do not wait. */
  isSlowToStart = false;
  /** The last process that was started ended before it answered `initialize`. */
  private failedBefore = false;

  constructor(host: Shim) {
    this.host = host;
  }

  /** Milliseconds that a model call may wait: FOREDECK_DEADLINE_MS, else the engine's setting. */
  get deadlineMs(): number {
    const override = Number(process.env.FOREDECK_DEADLINE_MS);
    return override > 0 ? override : (this.info?.deadline_ms ?? DEFAULT_DEADLINE_MS);
  }

  /** Milliseconds that a tool which may write files waits for `tool/prepare`; 0: not at all. */
  get prepareMs(): number {
    return this.state === "ready" ? (this.info?.prepare_ms ?? 0) : 0;
  }

  /** Starts the engine unless it is running or on its way. Returns at once. */
  start(insist = false): void {
    if (this.state !== "idle" && this.state !== "away") return;
    // The user, or a new session, starts it: past crashes no longer count.
    this.restarts = 0;
    this.connecting = this.connect({ insist });
  }

  /** Ends the engine, or what would have become one. It can be started again. */
  async stop(): Promise<void> {
    const { process } = this;
    this.process = null;
    this.locating.abort();
    this.enter("idle", "the engine was ended");
    await process?.stop();
    // An installer that was just ended cleans up after itself.
    await within(this.connecting, { deadlineMs: CLEANUP_MS }).catch(() => {});
  }

  /** Resolves when the engine is ready; `patient`: also set up before. @throws GoneError if it fails */
  whenReady(patient = false): Promise<void> {
    return this.readyAfter(() => {
      if (patient) return this.state === "starting" || this.state === "setup";
      // A model call waits for a start once: an engine that crashes again, or was too slow for a call
      // before, would hold up each of them.
      return this.state === "starting" && this.restarts <= 1 && !this.isSlowToStart;
    });
  }

  /** Resolves when another engine is ready in this one's place. @throws GoneError where none comes */
  whenReplaced(generation: number): Promise<void> {
    const isComing = () => this.state === "ready" || this.state === "starting";
    return this.readyAfter(() => this.generation === generation && isComing());
  }

  /** One request about the session at hand. @throws as `Peer.request` does */
  async request(method: string, params: Fields, options: RequestOptions): Promise<Fields> {
    const { process } = this;
    if (!process || this.state !== "ready") throw new GoneError(this.reason);
    const all = { session: this.host.sessionId(), ...params };
    return recordOf(await process.peer.request(method, all, options));
  }

  /** A request once the engine is ready; `again`: of its successor, too, where it dies over that. */
  async ask(
    method: string,
    params: Fields,
    { deadlineMs, signal }: RequestOptions,
    again = false,
  ): Promise<Fields> {
    const until = Date.now() + deadlineMs;
    const limits = () => remaining(until, signal);
    await within(this.whenReady(), limits());
    const { generation } = this;
    try {
      return await this.request(method, params, limits());
    } catch (error) {
      if (!again || !(error instanceof GoneError)) throw error;
      await within(this.whenReplaced(generation), limits());
      return this.request(method, params, limits());
    }
  }

  /** One notification; sent later while the engine is starting, dropped while it is away. */
  notify(method: string, params: Fields): void {
    const all = { session: this.host.sessionId(), ...params };
    const send = () => this.process?.peer.notify(method, all);
    if (this.state === "ready") send();
    else if (this.state === "starting" && this.wakeUps.length < MAX_HELD) {
      this.whenReady(true).then(send, () => {});
    }
  }

  /** A model call got its answer. */
  answered(): void {
    this.missed = 0;
    this.answers += 1;
    if (this.answers >= SOUND_ANSWERS) this.restarts = 0;
  }

  /** A model call got no answer in time. A few in a row, and the engine is started again. */
  missedDeadline(): void {
    this.missed += 1;
    if (this.missed >= MAX_MISSED) this.process?.kill();
  }

  enter(state: EngineState, reason: string): void {
    this.state = state;
    this.reason = reason;
    for (const wakeUp of this.wakeUps.splice(0)) wakeUp();
  }

  /** Waits while a condition holds, which is checked at each change of the state. */
  private async readyAfter(isComing: () => boolean): Promise<void> {
    while (isComing()) await new Promise<void>((resolve) => this.wakeUps.push(resolve));
    if (this.state !== "ready") throw new GoneError(this.reason);
  }

  private async connect({ insist = false, pauseMs = 0, reason = STARTING } = {}): Promise<void> {
    this.enter("starting", reason);
    this.locating = new AbortController();
    const { signal } = this.locating;
    try {
      // Pi may end in the meantime.
      if (pauseMs > 0) await timers.setTimeout(pauseMs, undefined, { signal, ref: false });
      const { failedBefore, host } = this;
      const command =
        locateInstalled() ?? (await provision({ signal, failedBefore, insist }, host));
      if (signal.aborted) return;
      this.enter("starting", STARTING);
      await this.launch(command);
    } catch (error) {
      if (signal.aborted) return;
      this.giveUp(error instanceof Error ? error : new Error(String(error)));
    }
  }

  private async launch(command: EngineCommand): Promise<void> {
    const process: EngineProcess = new EngineProcess(command, this.host, (reason, started) =>
      this.onExit(process, reason, started),
    );
    this.process = process;
    // Until it has answered: if it dies before that, it is checked before it is started again.
    this.failedBefore = true;
    try {
      const hello = { protocol: PROTOCOL_VERSION, ...(await this.host.hello()) };
      const options = { deadlineMs: INITIALIZE_MS, holdsProcess: false };
      this.onInitialized((await process.peer.request("initialize", hello, options)) as EngineInfo);
    } catch (error) {
      // It has ended, which `onExit` has handled, or `stop` has ended it.
      if (this.process !== process) return;
      if (!(error instanceof RpcError)) return process.kill();
      // What the engine says about itself will not change by starting it again.
      this.process = null;
      void process.stop();
      this.giveUp(error);
    }
  }

  private onInitialized(info: EngineInfo): void {
    this.info = info;
    this.missed = 0;
    this.answers = 0;
    this.failedBefore = false;
    this.isSlowToStart = false;
    this.generation += 1;
    this.enter("ready", "");
    // It opens the session, which the engine must know before it hears of anything in it: who waits
    // for the engine goes on only after this.
    this.host.onConnected(info);
  }

  private onExit(process: EngineProcess, reason: string, started: boolean): void {
    // It was ended on purpose, which is no crash.
    if (this.process !== process) return;
    this.process = null;
    const end = `it was started ${MAX_RESTARTS} more times and is left alone now`;
    if (!started) this.giveUp(new Error(reason));
    else if (this.restarts >= MAX_RESTARTS) this.giveUp(new Error(`${reason}; ${end}`));
    else {
      this.host.log(reason);
      const pauseMs = FIRST_PAUSE_MS * 2 ** this.restarts;
      this.restarts += 1;
      this.connecting = this.connect({ pauseMs, reason });
    }
  }

  private giveUp(error: Error): void {
    this.enter("away", error.message);
    this.host.log(error.message);
    this.host.onTrouble(error);
  }
}
