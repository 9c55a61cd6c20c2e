/**
 * The context hook: asks the engine what the model should see, and falls back in time.
 *
 * Pi waits for a hook without any limit of its own, so the wait for the engine ends at a deadline or
 * when the user stops the agent. Whatever goes wrong, a valid list goes out: with the edits last in
 * force on the messages they were made for, and what is newer as Pi has it.
 */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Engine, EngineState } from "../engine/engine.ts";
import { ErrorCode } from "../engine/protocol.ts";
import { within } from "../engine/wait.ts";
import { AbortedError, DeadlineError, GoneError, RpcError } from "../engine/wire.ts";
import type { Host } from "../host.ts";
import { BadAnswerError, checkAnswer } from "./answer.ts";
import { applyEdits, EditBook } from "./edits.ts";
import { entryIds } from "./entries.ts";
import { describeChanges, foreignChanges, replacedTools } from "./foreign.ts";
import { type HostMessage, isSystem } from "./messages.ts";
import { OutcomeLog } from "./outcomes.ts";
import { describeModel, describeTools } from "./request.ts";
import { describeRewriting, SentRequests } from "./rewritten.ts";
import { AnsweredList, LastSent } from "./sync.ts";
import { warmedAt } from "./warming.ts";

/** What the hook needs of the rest of the extension. */
export interface HookHost {
  pi: ExtensionAPI;
  engine: Engine;
  host: Host;
  /** The session that is open, or null before the first. */
  session(): string | null;
  /** Opens the session again with an engine that does not know it. */
  reopen(): void;
  isOff(): boolean;
  /** Runs what must not reach Pi where it fails. */
  safely(what: string, work: () => void): void;
  log(text: string): void;
}

/** So many messages at once may take the engine a second or more. */
const MANY = 500;

/** Why a call went out without the engine, for the user. */
const TROUBLE: Record<string, string> = {
  timeout: "the engine did not answer in time",
  answer: "the engine's answer did not fit the conversation",
  away: "the engine is not running",
};

/** One call's view: the host's list with and without its system entries. */
interface Call {
  ctx: ExtensionContext;
  all: HostMessage[];
  list: HostMessage[];
  /** Messages at the start of `list` that are those of the last answered request. */
  prefix: number;
  /** `Date.now()` after which the call goes out without the engine. */
  until: number;
}

/** Runs before every model call of one session. */
export class ContextHook {
  private readonly deps: HookHost;
  private readonly answered = new AnsweredList();
  private readonly system = new LastSent();
  private readonly tools = new LastSent();
  private readonly outcomes = new OutcomeLog();
  private readonly requests = new SentRequests();
  private book = new EditBook();
  /** The call record that `book` belongs to. */
  private bookOf: number | null = null;
  private knowsOthers = false;
  /** The engine connection that holds `answered`; another one, or 0, has to be told everything. */
  private holder = 0;
  /** The tool call on whose result one more cache marker stands in the call under way. */
  marker: string | null = null;

  constructor(deps: HookHost) {
    this.deps = deps;
  }

  /** Another session: nothing of the last one holds. */
  reset(): void {
    this.answered.clear();
    this.outcomes.clear();
    this.requests.clear();
    this.book = new EditBook();
    this.bookOf = null;
    this.holder = 0;
  }

  /** What of a list the engine has not been told yet. */
  unseen(list: readonly HostMessage[]): HostMessage[] {
    return list.slice(this.answered.commonPrefix(list));
  }

  /** A request as Pi and the extensions before this one have made it. */
  look(payload: unknown): void {
    const compare = this.requests.look(payload);
    if (!compare) return;
    // Once the request is on its way, with what others have changed in it meanwhile.
    setImmediate(() => {
      const changed = compare();
      if (changed === null) return;
      this.outcomes.rewritten(changed);
      this.deps.host.notifyOnce("rewritten", "warning", describeRewriting(changed));
    });
  }

  /**
   * The list to send in place of `all`, or undefined to send it as it is. Never rejects.
   * @param all the host's messages, a copy that may be changed
   */
  async run(all: HostMessage[], ctx: ExtensionContext): Promise<HostMessage[] | undefined> {
    const list = all.filter((message) => !isSystem(message));
    if (list.at(-1)?.role !== "toolResult") {
      this.deps.safely("looking for others", () => this.lookForOthers(list, ctx));
    }
    let prefix = 0;
    this.marker = null;
    this.requests.expect(false);
    try {
      prefix = this.answered.commonPrefix(list);
      const until = Date.now() + this.deadlineMs();
      return await this.decide({ ctx, all, list, prefix, until });
    } catch (error) {
      this.deps.log(`context hook: ${error instanceof Error ? (error.stack ?? error) : error}`);
      this.showAway("internal");
      return this.fallBack("fallback", all, list, prefix, "internal");
    }
  }

  /** Once the call is on its way: a long conversation takes some milliseconds to compare. */
  private lookForOthers(list: readonly HostMessage[], ctx: ExtensionContext): void {
    if (this.deps.isOff()) return;
    const replaced = replacedTools(this.deps.pi);
    if (replaced) this.deps.host.notifyOnce("replaced", "info", replaced);
    if (this.knowsOthers) return;
    const seen = list.map((message) => ({ ...message }));
    const { sessionManager } = ctx;
    setImmediate(() => {
      try {
        const changes = foreignChanges(sessionManager, seen);
        if (!changes) return;
        this.knowsOthers = true;
        this.deps.host.notifyOnce("foreign", "warning", describeChanges(changes));
      } catch (error) {
        this.deps.log(`comparing with Pi's own list: ${error}`);
      }
    });
  }

  private async decide(call: Call): Promise<HostMessage[] | undefined> {
    const { all, list, prefix } = call;
    if (this.deps.isOff()) {
      this.outcomes.without("off", { edited: 0, messages: list.length, reason: "off" });
      return undefined;
    }
    try {
      return await this.ask(call);
    } catch (error) {
      // The call goes out without an answer; the engine may hold one that never arrived.
      this.holder = 0;
      const [kind, reason] = describeFailure(error, this.deps.engine.state);
      if (kind === "fallback") {
        this.tellOnce(reason, error);
        this.showAway(reason);
      }
      return this.fallBack(kind, all, list, prefix, reason);
    }
  }

  private async ask(call: Call): Promise<HostMessage[] | undefined> {
    const { engine } = this.deps;
    await this.waitForStart(call);
    const { generation } = engine;
    try {
      return await this.assemble(call, this.holder === generation ? call.prefix : 0);
    } catch (error) {
      if (error instanceof GoneError) return this.askNext(generation, call);
      if (!(error instanceof RpcError)) throw error;
      if (error.code === ErrorCode.unknownSession) this.deps.reopen();
      else if (error.code !== ErrorCode.outOfSync) throw error;
      return this.assemble(call, 0);
    }
  }

  /**
   * The engine has died over the request: the one that comes after it is asked once, in the time
   * that is left. It finds the call's record, or makes the same one, so the prompt is the same.
   */
  private async askNext(generation: number, call: Call): Promise<HostMessage[] | undefined> {
    const limits = { deadlineMs: call.until - Date.now(), signal: call.ctx.signal };
    await within(this.deps.engine.whenReplaced(generation), limits);
    return this.assemble(call, 0);
  }

  private async waitForStart(call: Call): Promise<void> {
    const { engine } = this.deps;
    try {
      const limits = { deadlineMs: call.until - Date.now(), signal: call.ctx.signal };
      await within(engine.whenReady(), limits);
    } catch (error) {
      if (error instanceof DeadlineError) engine.missedStart();
      throw error;
    }
  }

  private async assemble(call: Call, keep: number): Promise<HostMessage[] | undefined> {
    const { engine, host } = this.deps;
    const { generation } = engine;
    if (keep === 0) this.forgetSent();
    const fresh = call.list.length - keep;
    if (fresh > MANY) host.status(`foredeck: taking in ${fresh} messages`);
    const { params, system, tools, told } = this.parameters(call, keep);
    const value = await this.request(params, call);
    const held = this.book.copy();
    held.truncate(keep);
    const { answer, book } = checkAnswer(value, call.list, keep, held);
    this.outcomes.told(told);
    const before = this.answered.length;
    const sameAround = params.system === undefined && params.tools === undefined;
    const goesOn = before > 0 && keep === before && answer.from >= before && sameAround;
    this.requests.expect(goesOn, call.ctx.signal);
    this.answered.accept(call.list, keep);
    this.book = book;
    this.bookOf = answer.call;
    this.marker = answer.marker;
    this.system.accept(system);
    this.tools.accept(tools);
    this.holder = generation;
    if (answer.status !== null) host.status(answer.status);
    for (const { level, text } of answer.notices) host.notify(level, text);
    return this.send(call, answer.call);
  }

  private async request(params: unknown, call: Call): Promise<unknown> {
    const { engine } = this.deps;
    const deadlineMs = Math.max(1, call.until - Date.now());
    try {
      const limits = { deadlineMs, signal: call.ctx.signal };
      const value = await engine.request("context/assemble", params, limits);
      engine.answered();
      return value;
    } catch (error) {
      if (error instanceof DeadlineError) engine.missedDeadline();
      throw error;
    }
  }

  private send(call: Call, ordinal: number): HostMessage[] | undefined {
    if (call.ctx.signal?.aborted) {
      const sent = { edited: 0, messages: call.list.length, reason: "user", call: ordinal };
      this.outcomes.without("aborted", sent);
    } else {
      this.outcomes.applied(ordinal);
    }
    return this.book.isEmpty() ? undefined : applyEdits(call.all, this.book);
  }

  private parameters(call: Call, keep: number) {
    const { ctx, all, list } = call;
    const system = systemMessages(all, ctx);
    const tools = describeTools(this.deps.pi);
    const outcomes = this.outcomes.pending();
    const params = {
      session: this.deps.session(),
      keep,
      messages: list.slice(keep),
      entries: entryIds(ctx.sessionManager, list, keep),
      system: this.system.ifChanged(system),
      tools: this.tools.ifChanged(tools),
      model: describeModel(ctx),
      time_ms: Date.now(),
      warmed_ms: warmedAt(ctx.sessionManager),
      outcomes,
    };
    return { params, system, tools, told: outcomes.length };
  }

  private forgetSent(): void {
    this.system.clear();
    this.tools.clear();
  }

  private fallBack(
    kind: "fallback" | "aborted",
    all: HostMessage[],
    list: HostMessage[],
    prefix: number,
    reason: string,
  ): HostMessage[] | undefined {
    const edited = this.safePrefix(list, prefix);
    // What stood at the end of the last prompt stands there still; nothing may come between a call
    // and its result.
    const ending = edited === this.answered.length && list[edited]?.role !== "toolResult";
    const call = kind === "fallback" ? this.bookOf : null;
    this.outcomes.without(kind, { edited, ending, messages: list.length, reason, call });
    if (edited === 0 || this.book.isEmpty()) return undefined;
    return applyEdits(all, this.book, edited, ending);
  }

  /** `prefix`, or less where dropping a call before it would leave the call's result behind. */
  private safePrefix(list: readonly HostMessage[], prefix: number): number {
    const whole = prefix === this.answered.length;
    const firstDrop = Math.min(...this.book.dropped(), Number.POSITIVE_INFINITY);
    return whole || list.length === 0 ? prefix : Math.min(prefix, firstDrop);
  }

  private deadlineMs(): number {
    // FOREDECK_DEADLINE_MS: milliseconds a model call may wait, whatever the engine's own setting.
    const override = Number(process.env.FOREDECK_DEADLINE_MS);
    return override > 0 ? override : this.deps.engine.deadlineMs;
  }

  /** The status line must not go on with figures of a prompt that was not sent. */
  private showAway(reason: string): void {
    const { state } = this.deps.engine;
    if (state === "setup" || state === "away") return;
    this.deps.host.status(`foredeck away: ${TROUBLE[reason] ?? "it failed, see its log"}`);
  }

  private tellOnce(reason: string, error: unknown): void {
    // While it is being set up the user has been told so; where it is away, why.
    const { state } = this.deps.engine;
    const text = error instanceof Error ? error.message : String(error);
    this.deps.log(`fell back (${reason}): ${text}`);
    if (state === "setup" || state === "away" || state === "idle") return;
    this.deps.host.notifyOnce(
      "fallback",
      "warning",
      `${TROUBLE[reason] ?? text}; Pi goes on with what the engine last said`,
    );
  }
}

function systemMessages(all: readonly HostMessage[], ctx: ExtensionContext): HostMessage[] {
  const system = all.filter(isSystem);
  // Hosts without `context_with_system` hide theirs.
  return system.length > 0 ? system : [{ role: "system", content: ctx.getSystemPrompt() }];
}

function describeFailure(error: unknown, state: EngineState): ["fallback" | "aborted", string] {
  if (error instanceof AbortedError) return ["aborted", "user"];
  if (error instanceof DeadlineError) return ["fallback", "timeout"];
  if (error instanceof BadAnswerError) return ["fallback", "answer"];
  if (error instanceof RpcError) return ["fallback", `error ${error.code}`];
  if (error instanceof GoneError) return ["fallback", state === "setup" ? "setup" : "away"];
  return ["fallback", "internal"];
}
