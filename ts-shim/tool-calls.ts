/** Around every tool call: some are refused, the engine is asked about writing, results are reported. */

import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { ExtensionAPI, ToolCallEvent, ToolResultEvent } from "@earendil-works/pi-coding-agent";
import { charsOf, type Fields, isText } from "./context/messages.ts";
import type { Shim } from "./shim.ts";
import { ASKING, READERS, replaced, TOOL_NAMES } from "./tools.ts";

/** Longer arguments take longer to send than a tool may wait. */
const MOST_ARGUMENT_CHARS = 4 * 1024 * 1024;
/** The engine meets larger results in the message list. */
const MOST_RESULT_CHARS = 16 * 1024 * 1024;

export function registerToolCalls(pi: ExtensionAPI, shim: Shim): void {
  const { running } = shim;
  const forget = (id: string): void => {
    // An engine that is being started opens the session before it gets the report.
    if (shim.engine.state === "ready") running.delete(id);
  };
  pi.on("tool_call", async (event, ctx) => {
    const { toolCallId, toolName, input } = event;
    // First what is decided at once: a call that cannot succeed need not wait for the engine.
    const reason = refusal(toolName, input as Fields, () => ctx.cwd);
    if (reason) return { block: true, reason };
    if (ASKING.has(event.parentToolCallId ?? "")) return undefined;
    const { block, notice } = await askEngine(event, shim);
    if (isText(block)) return { block: true, reason: block };
    const { path } = input as Fields;
    // Last: a call that was blocked above never runs. Another extension may still block this one.
    const call = { id: toolCallId, tool: toolName };
    if (isText(path)) shim.engine.notify("tool/started", { ...call, path });
    running.set(toolCallId, {
      since: performance.now(),
      notice: isText(notice) ? notice : undefined,
      writes: mayWrite(event) ? { ...call, input } : undefined,
    });
    return undefined;
  });
  pi.on("tool_result", (event) => {
    let content: ToolResultEvent["content"] | undefined;
    if (ASKING.has(event?.parentToolCallId ?? "")) return undefined;
    // Not waited for: if this is lost, the next call's list still has the result.
    shim.safely("tool_result", () => {
      const { since, notice } = running.get(event.toolCallId) ?? {};
      forget(event.toolCallId);
      const tookMs = since === undefined ? null : Math.round(performance.now() - since);
      if (notice) content = [...event.content, { type: "text", text: notice }];
      report({ ...event, content: content ?? event.content }, tookMs, shim);
    });
    return content && { content };
  });
  // Also of a call that another extension has blocked, and which has no result.
  pi.on("tool_execution_end", ({ toolCallId }) => forget(toolCallId));
  pi.on("agent_start", () => {
    running.clear();
    const names = shim.isOff() ? "" : replaced(pi).join(", ");
    const text = `Another extension replaces Pi's own ${names}; foredeck keeps the results all the same.`;
    if (names !== "") shim.host.notifyOnce("replaced", "info", text);
  });
}

function report(event: ToolResultEvent, tookMs: number | null, shim: Shim): void {
  if (charsOf(event) > MOST_RESULT_CHARS) return;
  const { toolCallId: id, toolName: tool, input, content, isError } = event;
  const [parent, details] = [event.parentToolCallId ?? null, event.details ?? null];
  const call = { id, parent, tool, input, content, details };
  shim.engine.notify("tool/observed", { ...call, is_error: isError, took_ms: tookMs });
}

/** In place of a folded argument, `<activate @12: 4120 chars folded>`: models imitate what they see. */
const FOLD_MARKER = /<activate "?@\d+[^<>\n]{0,60} chars folded>/;

/** Why this tool call must not run, for the model. Never throws, and asks nobody: that would block. */
export function refusal(tool: string, input: Fields, cwd: () => string): string | undefined {
  try {
    const { path } = input;
    const special = tool === "read" && isText(path) ? specialFile(path, cwd()) : undefined;
    return special ?? (TOOL_NAMES.has(tool) ? undefined : foldMarker(input));
  } catch {
    return undefined;
  }
}

function specialFile(path: string, cwd: string): string | undefined {
  // As Pi's file tools understand it; `~` and file URLs, which name no pipe, are left to Pi.
  const plain = path.replace(/[\u00A0\u2000-\u200A\u202F\u205F\u3000]/g, " ").replace(/^@/, "");
  // Pi's own read waits for ever on a FIFO without a writer.
  const stats = statSync(resolve(cwd, plain), { throwIfNoEntry: false });
  if (!stats || stats.isFile() || stats.isDirectory()) return undefined;
  const kind = stats.isFIFO() ? "a named pipe (FIFO)" : stats.isSocket() ? "a socket" : "a device";
  return `${path} is ${kind}, not a file: reading it could wait for ever. Use bash with a timeout if you need what it gives.`;
}

function foldMarker(input: Fields): string | undefined {
  let marker: string | undefined;
  // Visits every text in the arguments.
  JSON.stringify(input, (_key, value) => {
    if (typeof value === "string") marker ??= value.match(FOLD_MARKER)?.[0];
    return value;
  });
  const why = "which only stands for text that is folded in this conversation";
  const advice = "Write the real text in its place; activate shows it again.";
  return marker && `The argument contains ${marker}, ${why}. ${advice}`;
}

/** What the engine says about a call that may write: its `block`, or a `notice` for its result. */
async function askEngine(event: ToolCallEvent, shim: Shim): Promise<Fields> {
  const { toolCallId: id, toolName: tool, input } = event;
  const { prepareMs: deadlineMs } = shim.engine;
  if (deadlineMs <= 0 || shim.isOff() || !mayWrite(event)) return {};
  // The tool runs after a quarter of a second (`prepare_ms`), whatever goes wrong here.
  return shim.ask("tool/prepare", { id, tool, input }, { deadlineMs });
}

function mayWrite({ toolName, input }: ToolCallEvent): boolean {
  const reads = READERS.has(toolName) || TOOL_NAMES.has(toolName);
  return !reads && charsOf(input) <= MOST_ARGUMENT_CHARS;
}
