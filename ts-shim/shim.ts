/** One instance of the extension: what its parts share, and the life of a session, by Pi's events. */

import {
  type ExtensionAPI,
  type ExtensionContext,
  type SessionStartEvent,
  SettingsManager,
  VERSION,
} from "@earendil-works/pi-coding-agent";
import { askModel, describeModel, type Question } from "./asking.ts";
import { ContextHook } from "./context/hook.ts";
import { type Fields, recordOf } from "./context/messages.ts";
import { describe, modelOf } from "./context/request.ts";
import { Engine, type EngineInfo } from "./engine/engine.ts";
import { ProvisionError, packageVersion } from "./engine/locate.ts";
import { ErrorCode, type PeerHost, type RequestOptions, RpcError, textOf } from "./engine/wire.ts";
import { logLine, stateDir } from "./files.ts";
import { Host } from "./host.ts";

/** No model call waits for either. */
const OPEN_MS = 30_000;
const CLOSE_MS = 1000;

const SETTING_UP =
  "foredeck is setting up its engine, once, for about half a minute. Pi works as usual meanwhile.";
/** Without a screen Pi exits after its answer, which also ends the set-up. */
const SETTING_UP_WITHOUT_SCREEN =
  "setting the engine up; until that is done this is plain Pi (pi -p '/foredeck setup' waits for it)";

const MEANWHILE = "Pi works as usual meanwhile, and a line says when foredeck is ready.";
const SET_UP = "foredeck is ready. /foredeck help says what it does.";

/** `/foredeck off` holds for this Pi process, also over /new and /resume. */
const switches = { off: process.env.FOREDECK === "off" };

/** Parameters of `session/open` (docs/protocol.md). */
export interface SessionParams extends Fields {
  session: string;
  cwd: string;
}

/** A tool call that runs. */
export interface RunningCall {
  since: number;
  /** What the engine has to say about it. */
  notice: string | undefined;
  /** What `session/open` says of it, if it may write files. */
  writes: Fields | undefined;
}

/** What the parts of one extension instance share. */
export class Shim implements PeerHost {
  readonly host = new Host();
  readonly engine: Engine;
  /** The calls of the session that is open. */
  context: ContextHook;
  readonly api: ExtensionAPI;
  readonly state = stateDir();
  /** Calls by id, until the engine has their results. */
  readonly running = new Map<string, RunningCall>();
  /** While the session is being opened, until a call has waited for that. Never rejects. */
  opening: Promise<void> | null = null;
  private session: SessionParams | null = null;
  private trusted = false;
  /** The engine was not there, and is being set up. */
  private isSettingUp = false;

  constructor(pi: ExtensionAPI) {
    this.api = pi;
    this.engine = new Engine(this);
    this.context = new ContextHook(this, null);
  }

  sessionId(): string | null {
    return this.session?.session ?? null;
  }

  isOff(): boolean {
    return switches.off;
  }

  switchOff(): void {
    switches.off = true;
    this.host.status("foredeck off");
  }

  switchOn(): void {
    switches.off = false;
    this.host.status(null);
    this.engine.start();
  }

  /** A session begins. Some of Pi's modes announce the same one twice. */
  begin(params: SessionParams, ctx: ExtensionContext): void {
    this.host.ctx = ctx;
    const isSame = this.session?.session === params.session;
    // Nothing of the last session applies to another.
    if (!isSame) this.context = new ContextHook(this, params.session);
    this.session = isSame ? { ...this.session, ...params } : params;
    this.trusted = ctx.isProjectTrusted();
    if (this.isOff()) this.host.status("foredeck off");
    else if (this.engine.state !== "ready") this.engine.start();
    else if (!isSame) this.open();
  }

  /** The model in use, and what Pi leaves free in its window, as the protocol describes both. */
  model(ctx: ExtensionContext): Fields | null {
    const used = modelOf(ctx);
    if (!used) return null;
    const model = describe(used);
    this.safely("settings", () => {
      // Those in force, to which Pi's own class adds its defaults and what it has for this model.
      const settings = SettingsManager.inMemory(this.api.getSettings());
      const { enabled, reserveTokens } = settings.getCompactionSettings(used);
      if (enabled) model.reserve = reserveTokens;
    });
    return model;
  }

  /** The session ends, and with it this instance: Pi loads another for the next session. */
  async end(reason: string): Promise<void> {
    const closing = { session: this.sessionId(), reason };
    this.session = null;
    this.host.work("");
    if (closing.session && this.engine.state === "ready")
      await this.ask("session/close", closing, { deadlineMs: CLOSE_MS });
    await this.engine.stop();
    this.host.ctx = null;
  }

  /** The engine's answer; where it gives none, an empty one, and the log says why. */
  async ask(method: string, params: Fields, options: RequestOptions): Promise<Fields> {
    return this.engine.request(method, params, options).catch((error) => {
      this.logError(method, error);
      return {};
    });
  }

  /** Reports something early that the next request will show anyway. Never throws. */
  event(kind: string, fields: Fields): void {
    this.engine.notify("session/event", { kind, ...fields });
  }

  /** Runs a handler whose failure must not reach Pi. */
  safely(what: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.log(`${what}: ${error instanceof Error ? (error.stack ?? error) : error}`);
    }
  }

  log(text: string): void {
    logLine(this.state, text);
  }

  logError(what: string, error: unknown): void {
    this.log(`${what}: ${textOf(error)}`);
  }

  /** The folder that the engine works in. */
  get cwd(): string {
    return this.session?.cwd ?? process.cwd();
  }

  /** Setting up the engine begins, or goes on with this. */
  onSetUp(progress: string): void {
    if (!this.isSettingUp) this.host.notify("info", SETTING_UP, SETTING_UP_WITHOUT_SCREEN);
    this.isSettingUp = true;
    this.engine.enter("setup", `foredeck is being set up: ${progress}. ${MEANWHILE}`);
    this.host.status(`foredeck: ${progress}`);
  }

  /** Parameters of `initialize` beyond `protocol`. */
  async hello(): Promise<Fields> {
    const host = { name: "pi", version: VERSION };
    const { cwd, trusted } = this;
    return { shim: await packageVersion(), host, cwd, trusted, pid: process.pid };
  }

  /** The engine is connected. Called again after each restart. */
  onConnected(info: EngineInfo): void {
    if (this.isSettingUp) this.host.notify("info", SET_UP);
    this.isSettingUp = false;
    this.host.command = info.command ?? "foredeck";
    this.host.status(this.isOff() ? "foredeck off" : "foredeck");
    for (const text of info.warnings ?? []) this.host.notifyOnce(text, "warning", text);
    this.open();
  }

  /** Opens the session with an engine that does not know it. */
  open(): void {
    const { session } = this;
    if (!session) return;
    const running = [...this.running.values()].flatMap(({ writes }) => writes ?? []);
    const params = running.length > 0 ? { ...session, running } : session;
    this.opening = this.engine
      .request("session/open", params, { deadlineMs: OPEN_MS, holdsProcess: false })
      .then((result) => {
        this.host.showState(result);
        if (this.session?.session === session.session) this.session.calls ??= result.calls;
      })
      .catch((error: Error) => {
        this.logError("session/open", error);
        if (error instanceof RpcError) this.host.notifyOnce("open", "error", error.message);
      });
    const { ctx } = this.host;
    if (ctx && !this.isOff()) this.safely("session/history", () => this.context.sendHistory(ctx));
  }

  /** The engine cannot be had, with a sentence for the user. */
  onTrouble(error: Error): void {
    this.isSettingUp = false;
    this.host.status("foredeck: not running");
    this.host.work("");
    if (error instanceof ProvisionError && error.known) return;
    this.host.notifyOnce(error.message, "warning", `${error.message} (plain Pi goes on)`);
  }

  async onRequest(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    if (method === "host/complete") return askModel(this, params as Question, signal);
    if (method === "host/model") return describeModel(this, (params as Question).model);
    throw new RpcError(ErrorCode.methodNotFound, `there is no ${method} here`);
  }

  onNotification(method: string, params: unknown): void {
    if (method === "host/work") this.host.work(String(recordOf(params).text));
    if (method === "host/notify") this.host.notice(params);
  }
}

/** Passes this Pi's session id to the processes it starts: subagents are linked by it. */
const OWN_SESSION = "FOREDECK_SESSION";
/** Where the id of the starting session is kept once read: Pi loads this module for each session. */
const STARTED_BY = Symbol.for("foredeck.started_by");
const starter = globalThis as { [STARTED_BY]?: string | null };

const PRIVATE_FLAG = "foredeck-private";

export function registerSessions(pi: ExtensionAPI, shim: Shim): void {
  pi.registerFlag(PRIVATE_FLAG, {
    description: "foredeck: keep nothing that is said in new sessions beyond them",
    type: "boolean",
    default: false,
  });
  pi.on("session_start", (event, ctx) => {
    shim.safely("session_start", () => {
      const params = sessionParams(event, ctx);
      if (pi.getFlag(PRIVATE_FLAG) === true) params.private = true;
      shim.begin(params, ctx);
    });
  });
  pi.on("session_shutdown", async (event) => {
    await shim.end(event.reason).catch((error) => shim.logError("session_shutdown", error));
  });
  // The last answer of a run reaches a message list only when the user goes on, if ever.
  pi.on("turn_end", (event) => {
    if (event.message.role !== "assistant" || event.toolResults.length > 0) return;
    shim.event("answer", { message: event.message, entry: event.messageEntryId });
  });
}

function sessionParams(event: SessionStartEvent, ctx: ExtensionContext): SessionParams {
  const { sessionManager: manager, cwd } = ctx;
  const session = manager.getSessionId();
  // Read once, and first: from here on the variable holds this Pi's own session.
  if (!(STARTED_BY in starter)) starter[STARTED_BY] = process.env[OWN_SESSION] || null;
  process.env[OWN_SESSION] = session;
  const file = manager.getSessionFile() ?? null;
  const origin = { parent: null, parent_file: manager.getHeader()?.parentSession ?? null };
  const started_by = starter[STARTED_BY] ?? null;
  return { session, file, cwd, reason: event.reason, ...origin, started_by };
}
