/**
 * The engine as the rest of the extension sees it: found, started, connected, started again after
 * a crash, and ended. One per extension instance.
 */

import { DEFAULT_DEADLINE_MS, parseInfo } from "./handshake.ts";
import { EngineHealth, MAX_RESTARTS } from "./health.ts";
import { type EngineCommand, EngineProcess } from "./process.ts";
import { type EngineInfo, PROTOCOL_VERSION } from "./protocol.ts";
import { type EngineState, EngineStatus } from "./status.ts";
import { within } from "./wait.ts";
import { GoneError, type PeerHandlers, type RequestOptions, RpcError } from "./wire.ts";

/** A hanging `initialize` is given up after this long. Cold disks and first imports are slow. */
const INITIALIZE_MS = 30_000;
/** Notifications kept while the engine is starting. */
const MAX_HELD = 200;
/** How long ending waits for an installer's temporary files to go. */
const CLEANUP_MS = 1000;

export interface LocateOptions {
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
  locate(options: LocateOptions): Promise<EngineCommand>;
  /** Parameters of `initialize` beyond `protocol`. */
  hello(): Promise<Record<string, unknown>>;
  cwd(): string;
  /** The state folder. */
  readonly state: string;
  /** The engine is connected: open the session. Called again after each restart. */
  onConnected(info: EngineInfo): void;
  /** The engine cannot be had, with a sentence for the user. */
  onTrouble(error: Error): void;
}

/** Starts the engine and keeps it running. */
export class Engine {
  private readonly host: EngineHost;
  private readonly status = new EngineStatus();
  private readonly health = new EngineHealth();
  private process: EngineProcess | null = null;
  private heldNotifications: [string, unknown][] = [];
  private pause: NodeJS.Timeout | null = null;
  private locating: AbortController | null = null;
  private connecting: Promise<void> = Promise.resolve();
  private connections = 0;
  private preparing = 0;
  private deadline = DEFAULT_DEADLINE_MS;

  constructor(host: EngineHost) {
    this.host = host;
  }

  get state(): EngineState {
    return this.status.state;
  }

  /** Counts connections: when it changes, what an earlier engine process remembered is gone. */
  get generation(): number {
    return this.connections;
  }

  /** Milliseconds that a model call may wait: FOREDECK_DEADLINE_MS, else the engine's setting. */
  get deadlineMs(): number {
    const override = Number(process.env.FOREDECK_DEADLINE_MS);
    return override > 0 ? override : this.deadline;
  }

  /** Milliseconds that a tool or a command may wait: `least`, or as long as a model call. */
  patienceMs(least: number): number {
    return Math.max(least, this.deadlineMs);
  }

  /** Milliseconds that a tool which may write files waits for `tool/prepare`; 0: not at all. */
  get prepareMs(): number {
    return this.state === "ready" ? this.preparing : 0;
  }

  /** How the engine that runs was started; null where none does. */
  get command(): EngineCommand | null {
    return this.process?.command ?? null;
  }

  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** Starts the engine unless it is running or on its way. Returns at once. */
  start(insist = false): void {
    if (this.state !== "idle" && this.state !== "away") return;
    this.health.forgive();
    this.connecting = this.connect(insist);
  }

  /** Ends the engine, or what would have become one. It can be started again. */
  async stop(): Promise<void> {
    const { process } = this;
    this.process = null;
    this.locating?.abort();
    if (this.pause) clearTimeout(this.pause);
    this.heldNotifications = [];
    this.status.enter("idle", "the engine was ended");
    await process?.stop();
    // An installer that was just ended cleans up after itself.
    await within(this.connecting, { deadlineMs: CLEANUP_MS }).catch(() => {});
  }

  /**
   * Resolves when the engine is ready.
   * @param patient wait even while it is being set up, or started again more than once
   * @throws GoneError at once where it is not on its way, else as soon as it is known to fail
   */
  async whenReady(patient = false): Promise<void> {
    await this.status.whileTrue(() => this.isComing(patient));
    if (this.state !== "ready") throw new GoneError(this.status.reason);
  }

  /**
   * Resolves when another engine is ready in place of the one with this `generation`.
   * @throws GoneError where none is on its way
   */
  async whenReplaced(generation: number): Promise<void> {
    await this.status.whileTrue(
      () => this.connections === generation && (this.state === "ready" || this.status.isStarting),
    );
    if (this.state !== "ready") throw new GoneError(this.status.reason);
  }

  /** One request. @throws as `Peer.request` does. */
  async request(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    const { process } = this;
    if (!process || this.state !== "ready") throw new GoneError(this.status.reason);
    return process.peer.request(method, params, options);
  }

  /** One notification; kept for later while the engine is starting, dropped while it is away. */
  notify(method: string, params: unknown): void {
    if (this.state === "ready") this.process?.peer.notify(method, params);
    else if (this.status.isStarting && this.heldNotifications.length < MAX_HELD) {
      this.heldNotifications.push([method, params]);
    }
  }

  /** A model call got its answer. */
  answered(): void {
    this.health.answered();
  }

  /** A model call waited its whole time for the engine to start; the next ones do not. */
  missedStart(): void {
    this.health.missedStart();
  }

  /** A model call got no answer in time. A few in a row, and the engine is started again. */
  missedDeadline(): void {
    if (this.health.missedDeadline()) this.process?.kill();
  }

  private isComing(patient: boolean): boolean {
    const { state } = this;
    if (patient) return this.status.isStarting || state === "setup";
    return (state === "starting" || state === "pausing") && this.health.isWorthWaitingFor(state);
  }

  private async connect(insist = false): Promise<void> {
    this.status.enter("starting", "the engine is starting");
    const locating = new AbortController();
    this.locating = locating;
    try {
      const command = await this.host.locate({
        settingUp: () => {
          if (!locating.signal.aborted) this.status.enter("setup", "foredeck is being set up");
        },
        signal: locating.signal,
        failedBefore: this.health.failedBefore,
        insist,
      });
      if (locating.signal.aborted) return;
      this.status.enter("starting", "the engine is starting");
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
      stateDir: this.host.state,
      onExit: (reason, started) => this.onExit(process, reason, started),
    });
    this.process = process;
    this.health.launched();
    try {
      const hello = { protocol: PROTOCOL_VERSION, ...(await this.host.hello()) };
      const options = { deadlineMs: INITIALIZE_MS, holdsProcess: false };
      this.onInitialized(parseInfo(await process.peer.request("initialize", hello, options)));
    } catch (error) {
      // `onExit`, or whoever has ended it on purpose, has seen to it.
      if (this.process !== process) return;
      // What the engine says about itself will not change by starting it again.
      if (error instanceof RpcError) this.abandon(process, error);
      else process.kill();
    }
  }

  /** Ends an engine that runs but cannot be used. */
  private abandon(process: EngineProcess, error: Error): void {
    this.process = null;
    void process.stop();
    this.giveUp(error);
  }

  private onInitialized(info: EngineInfo): void {
    this.deadline = info.deadlineMs;
    this.preparing = info.prepareMs;
    this.health.initialized();
    this.connections += 1;
    const held = this.heldNotifications;
    this.heldNotifications = [];
    this.status.enter("ready", "");
    // It opens the session, which the engine must know before it hears of anything in it.
    this.host.onConnected(info);
    for (const [method, params] of held) this.notify(method, params);
  }

  private onExit(process: EngineProcess, reason: string, started: boolean): void {
    // It was ended on purpose, which is no crash.
    if (this.process !== process) return;
    this.process = null;
    if (!started) {
      this.giveUp(new Error(reason));
      return;
    }
    this.host.log(reason);
    const pauseMs = this.health.nextRestart();
    if (pauseMs === null) {
      const text = `${reason}; it was started ${MAX_RESTARTS} more times and is left alone now`;
      this.giveUp(new Error(text));
      return;
    }
    this.status.enter("pausing", reason);
    this.pause = setTimeout(() => {
      this.connecting = this.connect();
    }, pauseMs);
    this.pause.unref();
  }

  private giveUp(error: Error): void {
    this.heldNotifications = [];
    this.status.enter("away", error.message);
    this.host.log(error.message);
    this.host.onTrouble(error);
  }

  private handlers(): Omit<PeerHandlers, "write"> {
    return {
      log: (text) => this.host.log(text),
      onRequest: (method, params, signal) => this.host.onRequest(method, params, signal),
      onNotification: (method, params) => this.host.onNotification(method, params),
    };
  }
}
