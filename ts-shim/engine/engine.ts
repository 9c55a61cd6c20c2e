/**
 * The engine as the rest of the extension sees it: found, started, connected, started again after
 * a crash, and ended. One per extension instance.
 */

import { isRecord } from "../context/messages.ts";
import { type EngineCommand, EngineProcess } from "./process.ts";
import { type EngineInfo, ErrorCode, PROTOCOL_VERSION } from "./protocol.ts";
import { within } from "./wait.ts";
import { GoneError, type PeerHandlers, type RequestOptions, RpcError } from "./wire.ts";

/** How often an engine that keeps crashing is started again, and the pauses before it. */
export const MAX_RESTARTS = 5;
/** An engine that has answered so many requests does not keep crashing: its death is the first. */
const SOUND_ANSWERS = 5;
const FIRST_PAUSE_MS = 200;
/** A hanging `initialize` is given up after this long. Cold disks and first imports are slow. */
const INITIALIZE_MS = 30_000;
/** So many requests in a row without an answer, and the engine counts as hung. */
const MAX_MISSED = 3;
/** Notifications kept while the engine is starting. */
const MAX_HELD = 200;
/** How long ending waits for an installer's temporary files to go. */
const CLEANUP_MS = 1000;
const DEFAULT_DEADLINE_MS = 3000;

/** `idle`: never started. `pausing`: crashed, to be started again. `away`: not to be had. */
export type EngineState = "idle" | "setup" | "starting" | "ready" | "pausing" | "away";

export interface Locating {
  /** To be called before setting up starts. */
  settingUp(): void;
  signal: AbortSignal;
  /** The engine found last time ended before it answered anything. */
  failedBefore: boolean;
  /** The user asked for it: try again what failed lately. */
  insist: boolean;
}

export interface EngineHost extends Omit<PeerHandlers, "write"> {
  /** Finds the engine, setting it up if need be. */
  locate(how: Locating): Promise<EngineCommand>;
  /** Parameters of `initialize` beyond `protocol`. */
  hello(): Record<string, unknown>;
  cwd(): string;
  stateDir(): string;
  /** The engine is connected: open the session. Called again after each restart. */
  onConnected(info: EngineInfo): void;
  /** The engine cannot be had, with a sentence for the user. */
  onTrouble(error: Error): void;
}

/** Starts the engine and keeps it running. */
export class Engine {
  private readonly host: EngineHost;
  private process: EngineProcess | null = null;
  private current: EngineState = "idle";
  private waiters: (() => void)[] = [];
  private heldNotifications: [string, unknown][] = [];
  private pause: NodeJS.Timeout | null = null;
  private locating: AbortController | null = null;
  private restarts = 0;
  private missed = 0;
  private answers = 0;
  private failedBefore = false;
  private slowStart = false;
  private connecting: Promise<void> = Promise.resolve();
  private connections = 0;
  private deadline = DEFAULT_DEADLINE_MS;
  private reason = "the engine was not started";

  constructor(host: EngineHost) {
    this.host = host;
  }

  get state(): EngineState {
    return this.current;
  }

  /** Counts connections: state that an earlier engine process held is gone when it changes. */
  get generation(): number {
    return this.connections;
  }

  /** Milliseconds that a model call may wait, by the engine's configuration. */
  get deadlineMs(): number {
    return this.deadline;
  }

  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** Why there is no engine, for a user to read. */
  get trouble(): string {
    return this.reason;
  }

  /** Starts the engine unless it is running or on its way. Returns at once. */
  start(insist = false): void {
    if (this.current !== "idle" && this.current !== "away") return;
    this.restarts = 0;
    this.connecting = this.connect(insist);
  }

  /** Ends the engine, or what would have become one. It can be started again. */
  async stop(): Promise<void> {
    const { process } = this;
    this.process = null;
    this.locating?.abort();
    if (this.pause) clearTimeout(this.pause);
    this.heldNotifications = [];
    this.enter("idle", "the engine was ended");
    await process?.stop();
    // An installer that was just ended cleans up after itself.
    await within(this.connecting, { deadlineMs: CLEANUP_MS }).catch(() => {});
  }

  /**
   * Resolves when the engine is ready.
   * @param patient wait even while it is being set up, or started again more than once
   * @throws GoneError at once where it is not on its way, else as soon as its fate is known.
   */
  async whenReady(patient = false): Promise<void> {
    while (this.isComing(patient)) {
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
    if (this.current !== "ready") throw new GoneError(this.reason);
  }

  /**
   * Resolves when another engine is ready in place of the one that was the n-th (`generation`).
   * @throws GoneError where none is on its way.
   */
  async whenReplaced(generation: number): Promise<void> {
    while (this.connections === generation && (this.current === "ready" || this.isStarting())) {
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
    if (this.current !== "ready") throw new GoneError(this.reason);
  }

  /** One request. @throws as `Peer.request` does. */
  async request(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    const { process } = this;
    if (!process || this.current !== "ready") throw new GoneError(this.reason);
    return process.peer.request(method, params, options);
  }

  /** One notification; kept for later while the engine is starting, dropped while it is away. */
  notify(method: string, params: unknown): void {
    if (this.current === "ready") this.process?.peer.notify(method, params);
    else if (this.isStarting() && this.heldNotifications.length < MAX_HELD) {
      this.heldNotifications.push([method, params]);
    }
  }

  /** A request got its answer. */
  answered(): void {
    this.missed = 0;
    this.answers += 1;
    if (this.answers >= SOUND_ANSWERS) this.restarts = 0;
  }

  /** A model call has waited its whole time for the engine to start; the next ones do not. */
  missedStart(): void {
    this.slowStart = true;
  }

  /** A request got no answer in time. A few in a row, and the engine is started again. */
  missedDeadline(): void {
    this.missed += 1;
    if (this.missed >= MAX_MISSED) this.process?.kill();
  }

  private isStarting(): boolean {
    return this.current === "starting" || this.current === "pausing";
  }

  /** Starting, or about to start again after its first crash; a longer wait is not worth it. */
  private isComing(patient: boolean): boolean {
    if (patient) return this.isStarting() || this.current === "setup";
    if (this.slowStart) return false;
    return this.current === "starting" || (this.current === "pausing" && this.restarts <= 1);
  }

  private async connect(insist = false): Promise<void> {
    this.enter("starting", "the engine is starting");
    const locating = new AbortController();
    this.locating = locating;
    try {
      const command = await this.host.locate({
        settingUp: () => {
          if (!locating.signal.aborted) this.enter("setup", "foredeck is being set up");
        },
        signal: locating.signal,
        failedBefore: this.failedBefore,
        insist,
      });
      if (locating.signal.aborted) return;
      this.enter("starting", "the engine is starting");
      await this.launch(command);
    } catch (error) {
      if (locating.signal.aborted) return;
      this.giveUp(error instanceof Error ? error : new Error(String(error)));
    }
  }

  private async launch(command: EngineCommand): Promise<void> {
    const process: EngineProcess = new EngineProcess(command, {
      ...this.handlers(),
      cwd: this.host.cwd(),
      stateDir: this.host.stateDir(),
      onExit: (reason, started) => this.onExit(process, reason, started),
    });
    this.process = process;
    this.failedBefore = true;
    try {
      const hello = { protocol: PROTOCOL_VERSION, ...this.host.hello() };
      const options = { deadlineMs: INITIALIZE_MS, holdsProcess: false };
      this.onInitialized(parseInfo(await process.peer.request("initialize", hello, options)));
    } catch (error) {
      if (this.process !== process) return;
      // What the engine says about itself will not change by starting it again.
      if (error instanceof RpcError) this.disown(process, error);
      else process.kill();
    }
  }

  /** Lets go of an engine that runs but cannot be used. */
  private disown(process: EngineProcess, error: Error): void {
    this.process = null;
    void process.stop();
    this.giveUp(error);
  }

  private onInitialized(info: EngineInfo): void {
    this.deadline = info.deadlineMs;
    this.missed = 0;
    this.answers = 0;
    this.failedBefore = false;
    this.slowStart = false;
    this.connections += 1;
    const held = this.heldNotifications;
    this.heldNotifications = [];
    this.enter("ready", "");
    this.host.onConnected(info);
    for (const [method, params] of held) this.notify(method, params);
  }

  private onExit(process: EngineProcess, reason: string, started: boolean): void {
    if (this.process !== process) return;
    this.process = null;
    if (!started) {
      this.giveUp(new Error(reason));
      return;
    }
    this.host.log(reason);
    if (this.restarts >= MAX_RESTARTS) {
      const text = `${reason}; it was started ${MAX_RESTARTS} more times and is left alone now`;
      this.giveUp(new Error(text));
      return;
    }
    const pause = FIRST_PAUSE_MS * 2 ** this.restarts;
    this.restarts += 1;
    this.enter("pausing", reason);
    this.pause = setTimeout(() => {
      this.connecting = this.connect();
    }, pause);
    this.pause.unref();
  }

  private giveUp(error: Error): void {
    this.heldNotifications = [];
    this.enter("away", error.message);
    this.host.log(error.message);
    this.host.onTrouble(error);
  }

  private enter(state: EngineState, reason: string): void {
    this.current = state;
    this.reason = reason;
    const { waiters } = this;
    this.waiters = [];
    for (const wake of waiters) wake();
  }

  private handlers(): Omit<PeerHandlers, "write"> {
    return {
      log: (text) => this.host.log(text),
      onRequest: (method, params, signal) => this.host.onRequest(method, params, signal),
      onNotification: (method, params) => this.host.onNotification(method, params),
    };
  }
}

function parseInfo(value: unknown): EngineInfo {
  const info = isRecord(value) ? value : {};
  if (info.protocol !== PROTOCOL_VERSION) {
    throw new RpcError(
      ErrorCode.protocol,
      `the engine speaks protocol ${String(info.protocol)}, this extension ${PROTOCOL_VERSION}`,
    );
  }
  const { deadline_ms: deadline, warnings } = info;
  return {
    engine: String(info.engine ?? "?"),
    store: String(info.store ?? "?"),
    deadlineMs: typeof deadline === "number" && deadline > 0 ? deadline : DEFAULT_DEADLINE_MS,
    warnings: Array.isArray(warnings) ? warnings.filter((text) => typeof text === "string") : [],
  };
}
