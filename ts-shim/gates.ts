/**
 * Lets extensions that guard `read` decide of `activate` and `pin` too: these show a file as `read`
 * does. One that no read has shown in this chat is shown only if no extension would block reading it.
 */

import type { ExtensionAPI, ToolCallEvent } from "@earendil-works/pi-coding-agent";
import { replacedTools } from "./context/foreign.ts";
import { isRecord } from "./context/messages.ts";
import type { Shim } from "./shim.ts";
import { AWAY, askEngine, TOOL_NAMES } from "./tools.ts";

/** The tools that show a file. */
const SHOWING: ReadonlySet<string> = new Set(["activate", "pin"]);

/** What Pi asks all extensions before a tool runs. */
export interface Runner {
  emitToolCall(event: object): Promise<{ block?: boolean; reason?: string } | undefined>;
}

export type RunnerClass = { prototype: Runner & { [RUNNERS]?: WeakMap<object, Runner> } };

/** Shared by all instances of this extension, of which Pi makes one for each session. */
const RUNNERS = Symbol.for("foredeck:runners");

/**
 * Registers the question.
 * @param runnerClass Pi's own, which lends no other way to ask; null where Pi does not export it:
 *   then nothing is shown that no read has shown
 */
export function registerGates(
  pi: ExtensionAPI,
  shim: Pick<Shim, "engine" | "isOff" | "log" | "sessionId">,
  runnerClass: RunnerClass | null,
): void {
  const runners = runnerClass === null ? null : remembered(runnerClass);
  pi.on("tool_call", async (event) => {
    const name = event?.toolName;
    if (!SHOWING.has(name) || !TOOL_NAMES.has(name) || shim.isOff()) return undefined;
    let path: string | undefined;
    try {
      path = await shownFile(event, shim);
    } catch (error) {
      // The call itself could be luckier: then it would show what nobody was asked about.
      shim.log(`tool/prepare: ${error instanceof Error ? error.message : String(error)}`);
      return { block: true, reason: AWAY };
    }
    if (path === undefined) return undefined;
    const reason = await refused(path, event, pi, runners?.get(event));
    return reason === undefined ? undefined : { block: true, reason };
  });
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

/** The file that the call would show and no read has shown; undefined for none. */
async function shownFile(
  event: ToolCallEvent,
  shim: Pick<Shim, "engine" | "sessionId">,
): Promise<string | undefined> {
  const { toolCallId: id, toolName: tool, input } = event;
  const answer = await askEngine(shim, "tool/prepare", { id, tool, input });
  return isRecord(answer) && typeof answer.reads === "string" ? answer.reads : undefined;
}

/** Why a read of the file would not run, for the model; undefined where it would. */
async function refused(
  path: string,
  event: ToolCallEvent,
  pi: ExtensionAPI,
  runner: Runner | undefined,
): Promise<string | undefined> {
  if (runner === undefined || replacedTools(pi, ["read"]) !== null)
    return `No read has shown ${path} in this chat: use read.`;
  const read = { type: "tool_call", toolName: "read", toolCallId: event.toolCallId };
  const verdict = await runner.emitToolCall({ ...read, input: { path } });
  return verdict?.block
    ? (verdict.reason ?? `An extension does not allow to read ${path}.`)
    : undefined;
}
