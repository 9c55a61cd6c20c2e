/**
 * Asks the engine before a tool runs: one that may write files must not undo what the model has not
 * seen, and `activate` and `pin` show a file as `read` does, so that what guards `read` decides of
 * them, too.
 *
 * The first is an exception to the rule that a guard decides alone, and so bounded: whatever goes
 * wrong, the tool runs after a quarter of a second (the setting `prepare_ms`). The second fails
 * closed: what an extension would not let `read` show is not shown.
 */

import type { ExtensionAPI, ToolCallEvent } from "@earendil-works/pi-coding-agent";
import { charsOf, isRecord } from "./context/messages.ts";
import type { Shim } from "./shim.ts";
import { AWAY, TOOL_NAMES } from "./tools.ts";

/** These write nothing. */
const READERS: ReadonlySet<string> = new Set(["read", "grep", "find", "ls"]);
/** The context tools that show a file. */
const SHOWING: ReadonlySet<string> = new Set(["activate", "pin"]);
/** The names of the tools that come with Pi. */
const PI_TOOLS = ["read", "bash", "edit", "write", "grep", "find", "ls"];
/** Sources of Pi's own tools, and of those that a program embedding Pi supplies. */
const PI_SOURCES: ReadonlySet<string> = new Set(["builtin", "sdk"]);

/** Longer arguments take longer to send than a tool may wait. */
const MAX_CHARS = 4 * 1024 * 1024;

/** What Pi asks all extensions before a tool runs. */
export interface Runner {
  emitToolCall(event: object): Promise<{ block?: boolean; reason?: string } | undefined>;
}

export type RunnerClass = { prototype: Runner & { [RUNNERS]?: WeakMap<object, Runner> } };

/** Shared by all instances of this extension, of which Pi makes one for each session. */
const RUNNERS = Symbol.for("foredeck:runners");

/**
 * Registers the questions, what they add to a result, and a notice about replaced tools.
 * @param runnerClass Pi's own, since Pi has no other way to ask the other extensions; undefined
 *   where Pi does not export it: then nothing is shown that no read has shown
 */
export function registerPreparing(
  pi: ExtensionAPI,
  shim: Shim,
  runnerClass: RunnerClass | undefined,
): void {
  const runners = runnerClass && remembered(runnerClass);
  const notices = new Map<string, string>();
  pi.on("tool_call", async (event) => {
    const name = event?.toolName;
    if (shim.isOff() || READERS.has(name)) return undefined;
    if (TOOL_NAMES.has(name) && !SHOWING.has(name)) return undefined;
    const isShowing = TOOL_NAMES.has(name);
    const answer = await prepared(event, shim, isShowing);
    if (isShowing && typeof answer.reads === "string") {
      answer.block = await refused(answer.reads, event, pi, runners?.get(event));
    }
    const { block, notice } = answer;
    if (typeof block === "string" && block !== "") return { block: true, reason: block };
    if (typeof notice === "string" && notice !== "") notices.set(event.toolCallId, notice);
    return undefined;
  });
  pi.on("tool_result", (event) => {
    const notice = notices.get(event?.toolCallId);
    if (notice === undefined) return undefined;
    notices.delete(event.toolCallId);
    return { content: [...event.content, { type: "text", text: notice }] };
  });
  pi.on("agent_start", () => {
    shim.safely("looking for replaced tools", () => {
      const names = shim.isOff() ? "" : replaced(pi).join(", ");
      const text = `Another extension replaces Pi's own ${names}; foredeck keeps the results all the same.`;
      if (names !== "") shim.host.notifyOnce("replaced", "info", text);
    });
  });
}

/**
 * What the engine says of a call. Where it does not, a file is not shown, and a tool that may write
 * runs after a short wait.
 */
async function prepared(
  event: ToolCallEvent,
  shim: Shim,
  isShowing: boolean,
): Promise<Record<string, unknown>> {
  try {
    const { toolCallId: id, toolName: tool, input } = event;
    const call = { session: shim.sessionId(), id, tool, input };
    const { engine } = shim;
    const deadlineMs = isShowing ? engine.deadlineMs : engine.prepareMs;
    if (!isShowing && (deadlineMs === 0 || charsOf(input) > MAX_CHARS)) return {};
    const answer = isShowing
      ? await engine.ask("tool/prepare", call, { deadlineMs }, true)
      : await engine.request("tool/prepare", call, { deadlineMs });
    return isRecord(answer) ? answer : {};
  } catch (error) {
    shim.logError("tool/prepare", error);
    // The call itself could be luckier: then it would show a file that no extension was asked about.
    return isShowing ? { block: AWAY } : {};
  }
}

/** Why a read of the file would not run, for the model; undefined where it would. */
async function refused(
  path: string,
  event: ToolCallEvent,
  pi: ExtensionAPI,
  runner: Runner | undefined,
): Promise<string | undefined> {
  if (runner === undefined || replaced(pi).includes("read"))
    return `No read has shown ${path} in this chat: use read.`;
  const read = { type: "tool_call", toolName: "read", toolCallId: event.toolCallId };
  const verdict = await runner.emitToolCall({ ...read, input: { path } });
  // A guard may give no reason, or an empty one: it blocks all the same.
  return verdict?.block
    ? String(verdict.reason || `An extension does not allow to read ${path}.`)
    : undefined;
}

/** From now on, which runner has emitted which event. */
function remembered(runnerClass: RunnerClass): WeakMap<object, Runner> {
  const { prototype } = runnerClass;
  const known = prototype[RUNNERS];
  if (known !== undefined) return known;
  const runners = new WeakMap<object, Runner>();
  const { emitToolCall } = prototype;
  prototype.emitToolCall = function (this: Runner, event: object) {
    runners.set(event, this);
    return emitToolCall.call(this, event);
  };
  prototype[RUNNERS] = runners;
  return runners;
}

/** Which of Pi's own tools another extension has replaced. */
function replaced(pi: ExtensionAPI): string[] {
  const active = new Set(pi.getActiveTools());
  const names = pi.getAllTools().flatMap(({ name, sourceInfo }) => {
    const isPis = PI_SOURCES.has(sourceInfo?.source ?? "builtin");
    return active.has(name) && !isPis ? [name] : [];
  });
  return names.filter((name) => PI_TOOLS.includes(name));
}
