/** The context hook: asks the engine what goes out. Whatever goes wrong, a valid list does, in time. */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { chatOf, uncompacted } from "../compaction.ts";
import type { EngineState } from "../engine/engine.ts";
import {
  AbortedError,
  DeadlineError,
  ErrorCode,
  GoneError,
  MAX_LINE_BYTES,
  RpcError,
  remaining,
  TooLongError,
  textOf,
  within,
} from "../engine/wire.ts";
import type { Shim } from "../shim.ts";
import { type Fields, type HostMessage, sameValue } from "./messages.ts";
import { AnswerInForce, BadAnswerError, checkAnswer, type Reusable } from "./plan.ts";
import { LastRequest, reasoningChanges } from "./provider.ts";
import {
  branchOf,
  type HostLists,
  headOf,
  splitList,
  tailOf,
  timeZone,
  warmedAt,
} from "./request.ts";

/** More new messages may take the engine a second: the status line says so. */
const MANY_MESSAGES = 500;
/** A shorter history is sent with the first call. */
export const LEAST_MESSAGES = 200;
/** How long the engine may take over a history while no call waits. */
const TAKING_MS = 120_000;
/** How long the first call waits for the history and the opening, unless its deadline is later. */
export const OPENING_MS = 10_000;
/** The status line names an opening that takes longer. */
const SHORT_MS = 300;

/** Most outcomes, and texts of the user's, that are kept for an engine that is away: the newest. */
const MOST_OUTCOMES = 1000;
const MOST_TYPED = 50;

interface Call extends HostLists {
  /** How many messages `list` and the last answered request have in common at the start. */
  prefix: number;
  /** The time after which the call goes out without the engine. */
  until: number;
}

/** What became of one model call (docs/protocol.md, `outcomes`). */
interface Outcome extends Partial<Reusable> {
  call: number | null;
  kind: "applied" | "fallback" | "aborted" | "off";
  messages?: number;
  time_ms?: number;
  reason?: string;
  reasoning?: Fields[];
}

export function registerContextHook(pi: ExtensionAPI, shim: Shim): void {
  // It runs after every other extension's `context`, and Pi sends what it returns as it is.
  pi.on("context_with_system", async ({ messages }, ctx) => {
    shim.host.ctx = ctx;
    let list = messages as unknown as HostMessage[];
    shim.safely("compactions", () => {
      if (!shim.isOff()) list = uncompacted(list, ctx);
    });
    const result = await shim.context.run(list, ctx);
    return { messages: result as unknown as typeof messages };
  });
  pi.on("input", ({ text, source }, ctx) => {
    const input = { text, source, screen: ctx.hasUI, arguments: process.argv.slice(2) };
    keepNewest(shim.context.typed, input, MOST_TYPED);
  });
}

/** Runs before every model call of one session. */
export class ContextHook {
  private readonly shim: Shim;
  private readonly session: string | null;
  private readonly inForce = new AnswerInForce();
  /** System messages and tools of the last answered request. */
  private head: Fields = {};
  /** The history that is sent ahead of the first call, and to which engine. Never rejects. */
  private history: { generation: number; held: Promise<void> } | null = null;
  /** Whether the user has typed a command: even a short history is then sent ahead. */
  private isAskedAbout = false;
  /** What became of calls, and what the user has typed, since the last answered request. */
  private readonly outcomes: Outcome[] = [];
  readonly typed: Fields[] = [];
  readonly lastRequest = new LastRequest();
  /** The tool call on whose result one more cache marker goes, in the call under way. */
  marker: string | null = null;

  constructor(shim: Shim, session: string | null) {
    this.shim = shim;
    this.session = session;
  }

  /** Sends the messages of a session that opens: thousands take longer than a first call may. */
  sendHistory(ctx: ExtensionContext): void {
    if (this.inForce.call !== null) return;
    const all = chatOf(ctx);
    if (all.length < (this.isAskedAbout ? 1 : LEAST_MESSAGES)) return;
    const { generation } = this.shim.engine;
    this.history = { generation, held: this.takeIn(splitList(all, ctx), generation) };
  }

  /** Sends the history before a command of the user's, unless a call has done so. */
  bringHistory(ctx: ExtensionContext): void {
    const { engine } = this.shim;
    // A call under way sends it itself, and says what became of those before it.
    if (!ctx.isIdle() || this.outcomes.length > 0 || this.shim.isOff()) return;
    this.isAskedAbout = true;
    // An engine that is starting gets it when the session is opened.
    const isSent = this.history?.generation === engine.generation;
    if (engine.state === "ready" && !isSent) this.sendHistory(ctx);
  }

  /** The session's messages that the engine has not been sent yet. */
  unseen(ctx: ExtensionContext): HostMessage[] {
    const { list } = splitList(chatOf(ctx), ctx);
    return list.slice(this.inForce.commonPrefix(list));
  }

  /** Notes what the provider says, with its answer, that it has done to the prompt's reasoning. */
  answered(answer: HostMessage): void {
    const newest = this.outcomes.at(-1);
    if (newest?.kind !== "applied" || newest.call !== this.inForce.call) return;
    const changes = reasoningChanges(answer, this.lastRequest.newest);
    if (changes.length > 0) newest.reasoning = changes;
  }

  /** Notes that another extension has changed the newest request, or the one before it. */
  rewrittenByOthers(changed: string): void {
    const newest = this.outcomes.at(-1);
    if (newest?.kind === "applied") newest.reason = changed;
    this.lastRequest.rewritten = true;
  }

  /** The list to send in place of `all`, which it may change. Never rejects. */
  async run(all: HostMessage[], ctx: ExtensionContext): Promise<HostMessage[]> {
    const lists = splitList(all, ctx);
    const { list } = lists;
    // These were for the prompt before.
    this.marker = null;
    this.lastRequest.expect({ call: null });
    if (this.shim.isOff()) {
      this.record({ call: null, kind: "off", messages: list.length, reason: "off" });
      return all;
    }
    const prefix = this.inForce.commonPrefix(list);
    // One deadline for everything: the start of the engine, the request, a request to its
    // successor.
    const call = { ...lists, prefix, until: Date.now() + this.shim.engine.deadlineMs };
    return this.ask(call).catch((error) => this.fallBack(call, error));
  }

  private async ask(call: Call): Promise<HostMessage[]> {
    const { engine } = this.shim;
    await within(engine.whenReady(), remaining(call.until, call.ctx.signal)).catch((error) => {
      // The next calls do not wait for its start.
      if (error instanceof DeadlineError) engine.isSlowToStart = true;
      throw error;
    });
    await this.waitForOpening(call);
    const { generation } = engine;
    try {
      return await this.assemble(call, this.inForce.connection === generation ? call.prefix : 0);
    } catch (error) {
      const code = error instanceof RpcError ? error.code : null;
      // The engine died over the request. The one that replaces it finds the call's record or
      // makes the same one, so the prompt is the same.
      if (error instanceof GoneError)
        await within(engine.whenReplaced(generation), remaining(call.until, call.ctx.signal));
      // The engine reads its requests in order: the session is open when it is asked again.
      else if (code === ErrorCode.unknownSession) this.shim.open();
      else if (code !== ErrorCode.outOfSync) throw error;
      // Whoever answers now may hold none of the list.
      return this.assemble(call, 0);
    }
  }

  private takeIn(lists: HostLists, generation: number): Promise<void> {
    const { shim, session } = this;
    const { list, ctx } = lists;
    const params = { session, ...tailOf(list, 0, branchOf(ctx)), ...headOf(lists, shim.api) };
    const limits = { deadlineMs: TAKING_MS, holdsProcess: false };
    shim.host.status(`foredeck: taking in ${list.length} messages`);
    // Where this fails, the first call brings them.
    return shim.ask("session/history", params, limits).then(({ messages }) => {
      // No longer once a call went out without it: the engine may have been sent more since.
      if (this.history) this.inForce.hold(list.slice(0, Number(messages ?? 0)), generation);
      shim.host.status("foredeck");
    });
  }

  /** Waits until the session is open and its history taken in. Once: an engine may be stuck in it. */
  private async waitForOpening(call: Call): Promise<void> {
    const { shim } = this;
    // The engine answers in order: the history is taken in once the session is open.
    const opening = this.history?.held ?? shim.opening;
    if (opening === null) return;
    // Longer than for an answer: a long chat that goes out as it is costs more than that.
    const until = Math.max(call.until, Date.now() + OPENING_MS);
    const say = () => shim.host.status("foredeck: opening the session");
    const timer = this.history ? undefined : setTimeout(say, SHORT_MS);
    await within(opening, remaining(until, call.ctx.signal)).finally(() => {
      clearTimeout(timer);
      this.history = null;
      shim.opening = null;
    });
    call.prefix = this.inForce.commonPrefix(call.list);
    // The answer has its own time after an opening, and what is left where a history was taken in.
    const isHeld = this.inForce.connection !== 0;
    call.until = isHeld ? until : Math.min(until, Date.now() + shim.engine.deadlineMs);
  }

  private async assemble(asked: Call, keep: number): Promise<HostMessage[]> {
    const { engine, host } = this.shim;
    // Taken before the wait: if the engine is replaced meanwhile, its successor does not know what
    // this answer was given for.
    const { generation } = engine;
    const { list, all, ctx, until } = asked;
    const count = list.length - keep;
    if (count > MANY_MESSAGES) host.status(`foredeck: taking in ${count} messages`);
    // Once: Pi makes the list anew, from the newest entry back.
    const branch = branchOf(ctx);
    const head = headOf(asked, this.shim.api);
    // An engine that is sent the whole list may be another one: it has nothing of before.
    const isNew = ([name, part]: [string, unknown]) => !keep || !sameValue(part, this.head[name]);
    const changed = Object.entries(head).filter(isNew);
    const [outcomes, typed] = [[...this.outcomes], [...this.typed]];
    const model = this.shim.model(ctx);
    const times = { time_ms: Date.now(), warmed_ms: warmedAt(branch), zone: timeZone() };
    const own = { ...tailOf(list, keep, branch), ...Object.fromEntries(changed) };
    const request = { session: this.session, keep, ...own, model, ...times, outcomes, typed };
    const value = await engine.request("context/assemble", request, remaining(until, ctx.signal));
    engine.answered();
    const answer = checkAnswer(value, list, keep, this.inForce.plan);
    // From here on nothing can fail: the answer is taken as a whole or not at all.
    this.head = head;
    this.outcomes.splice(0, outcomes.length);
    this.typed.splice(0, typed.length);
    const extendsLast = changed.length === 0 && answer.from === this.inForce.messages.length;
    this.inForce.accept(list, keep, answer, generation);
    this.marker = answer.marker ?? null;
    if (answer.status) host.status(answer.status.text);
    for (const notice of answer.notices ?? []) host.notice(notice);
    const { call } = answer;
    this.lastRequest.expect({ call, extendsLast, signal: ctx.signal });
    // Pi sends nothing after an abort: the engine must not take its prompt for one that was sent.
    if (ctx.signal?.aborted)
      this.record({ call, kind: "aborted", messages: list.length, reason: "user" });
    // The engine sends only changes, and only on top of an answer that it knows to have arrived.
    else this.outcomes.push({ call, kind: "applied" });
    return this.inForce.plan.apply(all);
  }

  private fallBack({ all, list, prefix }: Call, error: unknown): HostMessage[] {
    // The engine may hold an answer that never arrived: it has to be sent everything next time.
    this.inForce.connection = 0;
    if (error instanceof DeadlineError) this.shim.engine.missedDeadline();
    const reusable = this.inForce.reusable(list, prefix);
    const outcome = { ...reusable, messages: list.length };
    if (error instanceof AbortedError)
      this.record({ ...outcome, call: null, kind: "aborted", reason: "user" });
    else {
      const { call } = this.inForce;
      this.record({ ...outcome, call, kind: "fallback", reason: this.warnUser(error) });
    }
    return this.inForce.plan.apply(all, reusable.edited, reusable.ending);
  }

  /** A call went out, or was stopped, without a fresh answer. */
  private record(outcome: Outcome): void {
    keepNewest(this.outcomes, { edited: 0, time_ms: Date.now(), ...outcome }, MOST_OUTCOMES);
  }

  /** Says, once, that a call goes out without the engine, and why. Returns the reason. */
  private warnUser(error: unknown): string {
    const { host, engine } = this.shim;
    const [reason, words] = reasonOf(error, engine.state);
    this.shim.log(`fell back (${reason}): ${textOf(error)}`);
    // In these states the user has read already that there is no engine, and why.
    if (["setup", "away", "idle"].includes(engine.state)) return reason;
    const why = (words ?? textOf(error)).replace(/^./, (first) => first.toUpperCase());
    const notice = `${why}. Pi goes on with what foredeck last sent.`;
    host.notifyOnce("fallback", "warning", reason === TOO_LARGE ? TOO_LARGE_NOTICE : notice);
    // The status line must not keep showing the figures of a prompt that was not sent.
    host.status(`foredeck away: ${words ?? "it failed, see its log"}`);
    return reason;
  }
}

function keepNewest<T>(list: T[], item: T, most: number): void {
  list.push(item);
  if (list.length > most) list.shift();
}

const TOO_LARGE = "too large";
const TOO_LARGE_NOTICE = `This chat is larger than the ${MAX_LINE_BYTES / 1024 / 1024} MiB that foredeck takes in at once, so Pi goes on without it. /compact makes it smaller.`;

/** Why a call goes out without the engine: for the call record, and where possible for the user. */
function reasonOf(error: unknown, state: EngineState): [reason: string, words?: string] {
  if (error instanceof DeadlineError) return ["timeout", "the engine did not answer in time"];
  if (error instanceof BadAnswerError)
    return ["answer", "the engine's answer did not fit the conversation"];
  if (error instanceof TooLongError) return [TOO_LARGE, "this chat is too large"];
  if (error instanceof RpcError) return [`error ${error.code}`];
  if (!(error instanceof GoneError)) return ["internal"];
  return state === "setup" ? ["setup"] : ["away", "the engine is not running"];
}
