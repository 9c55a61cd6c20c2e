/**
 * Reports to the engine every tool call, of any kind and also from scripts in code mode, the answer
 * that ends a run, and what the user types.
 */

import type { ExtensionAPI, ToolCallEvent, ToolResultEvent } from "@earendil-works/pi-coding-agent";
import { charsOf } from "./context/messages.ts";
import type { Shim } from "./shim.ts";

/** Larger results are not reported: the engine meets them in the message list anyway. */
const MAX_CHARS = 16 * 1024 * 1024;

/** A longer text was pasted: nothing in it counts as said by the user. */
const MOST_CHARS = 1000;
/** How Pi puts the `@file` arguments of its command line before the message. */
const FILE_BEGINS = '<file name="';
const FILE_ENDS = "</file>\n";
/** `/skill:name` or a prompt template: what follows is the user's. */
const COMMAND = /^\/\S+\s+/;

/** Registers the reports, which change nothing. */
export function registerReporting(pi: ExtensionAPI, shim: Shim): void {
  pi.on("tool_call", (event) => {
    shim.safely("tool_call", () => {
      const { path } = event.input as { path?: unknown };
      if (typeof path === "string") shim.engine.notify("tool/started", started(event, path, shim));
    });
  });
  pi.on("tool_result", (event) => {
    shim.safely("tool_result", () => {
      // Not waited for: tools take no longer for being reported. The engine serves in order of
      // arrival, so the result is stored before the next model call is assembled. If this is lost,
      // that call's list still has the result.
      if (charsOf(event) <= MAX_CHARS) shim.engine.notify("tool/observed", observed(event, shim));
    });
  });
  pi.on("input", (event, ctx) => {
    shim.safely("input", () => {
      const typed = typedIn(event, process.argv.slice(2), ctx.hasUI);
      if (typed !== null) shim.context.typed.add(typed);
    });
  });
  // The last answer of a run reaches a message list only when the user goes on, if ever.
  pi.on("turn_end", (event) => {
    if (event.message.role !== "assistant" || event.toolResults.length > 0) return;
    shim.event("answer", { message: event.message, entry: event.messageEntryId ?? null });
  });
}

function started(event: ToolCallEvent, path: string, shim: Shim): Record<string, unknown> {
  return { session: shim.sessionId(), id: event.toolCallId, tool: event.toolName, path };
}

function observed(event: ToolResultEvent, shim: Shim): Record<string, unknown> {
  const { parentToolCallId } = event as { parentToolCallId?: string };
  return {
    session: shim.sessionId(),
    id: event.toolCallId,
    parent: parentToolCallId ?? null,
    tool: event.toolName,
    input: event.input,
    content: event.content,
    details: event.details ?? null,
    is_error: event.isError,
  };
}

/**
 * What of an input the user typed; null for nothing. Of what came with Pi's command line one
 * argument of one line counts: files and standard input come before it in the same text, and a
 * longer argument is most likely the text of a file (`pi "$(cat issue.md)"`).
 *
 * @param args the arguments of this process
 * @param hasUI whether a user could type into this Pi
 */
export function typedIn(
  { text, source }: { text: string; source: string },
  args: readonly string[],
  hasUI: boolean,
) {
  if (source === "extension") return null;
  const files = text.includes(FILE_BEGINS) ? text.lastIndexOf(FILE_ENDS) : -1;
  const own = files < 0 ? text : text.slice(files + FILE_ENDS.length);
  const given = args.filter((arg) => own.endsWith(arg)).sort((a, b) => b.length - a.length)[0];
  const isArgument = source === "interactive" && (!hasUI || given === own);
  const typed = isArgument ? (given ?? "") : own;
  if (isArgument && typed.includes("\n")) return null;
  const said = typed.replace(COMMAND, "").trim();
  return said !== "" && said.length <= MOST_CHARS ? said : null;
}
