/**
 * Around every tool call, of any kind and also from scripts in code mode.
 *
 * Before it runs, calls that are bound to fail are refused here, and the engine is asked about those
 * that may write files: they must not undo what the model has not seen. Once a call has run, its
 * result is reported.
 */

import { statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI, ToolCallEvent, ToolResultEvent } from "@earendil-works/pi-coding-agent";
import { charsOf, type Fields } from "./context/messages.ts";
import type { Shim } from "./shim.ts";
import { ASKING, isText, READERS, replaced, TOOL_NAMES } from "./tools.ts";

/** Longer arguments take longer to send than a tool may wait. */
const MOST_ARGUMENT_CHARS = 4 * 1024 * 1024;
/** Larger results are not reported: the engine meets them in the message list anyway. */
const MOST_RESULT_CHARS = 16 * 1024 * 1024;

/** Registers what happens before and after a tool call, and a notice about replaced tools. */
export function registerToolCalls(pi: ExtensionAPI, shim: Shim): void {
  const { running } = shim;
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
    if (isText(path)) shim.engine.notify("tool/started", { id: toolCallId, tool: toolName, path });
    running.set(toolCallId, {
      since: performance.now(),
      notice: isText(notice) ? notice : undefined,
      writes: mayWrite(event) ? { id: toolCallId, tool: toolName, input } : undefined,
    });
    return undefined;
  });
  pi.on("tool_result", (event) => {
    let content: ToolResultEvent["content"] | undefined;
    if (ASKING.has(event?.parentToolCallId ?? "")) return undefined;
    // Not waited for: tools take no longer for being reported. The engine serves in order of arrival,
    // so the result is stored before the next model call is assembled. If this is lost, that call's
    // list still has the result.
    shim.safely("tool_result", () => {
      const { since, notice } = running.get(event.toolCallId) ?? {};
      // An engine that is being started opens the session before it gets the report.
      if (shim.engine.state === "ready") running.delete(event.toolCallId);
      const tookMs = since === undefined ? null : Math.round(performance.now() - since);
      if (notice) content = [...event.content, { type: "text", text: notice }];
      report({ ...event, content: content ?? event.content }, tookMs, shim);
    });
    return content && { content };
  });
  // Also of a call that another extension has blocked, and which has no result.
  pi.on("tool_execution_end", ({ toolCallId }) => void running.delete(toolCallId));
  pi.on("agent_start", () => {
    running.clear();
    shim.safely("looking for replaced tools", () => {
      const names = shim.isOff() ? "" : replaced(pi).join(", ");
      const text = `Another extension replaces Pi's own ${names}; foredeck keeps the results all the same.`;
      if (names !== "") shim.host.notifyOnce("replaced", "info", text);
    });
  });
}

function report(event: ToolResultEvent, tookMs: number | null, shim: Shim): void {
  if (charsOf(event) > MOST_RESULT_CHARS) return;
  shim.engine.notify("tool/observed", {
    id: event.toolCallId,
    parent: event.parentToolCallId ?? null,
    tool: event.toolName,
    input: event.input,
    content: event.content,
    details: event.details ?? null,
    is_error: event.isError,
    took_ms: tookMs,
  });
}

/*
 * Calls that are bound to fail. Decided without the engine: a guard that throws or hangs would block
 * every tool.
 */

/**
 * What the model sees in place of a folded argument: `<activate @12: 4120 chars folded>`. Models
 * imitate what they see.
 */
const FOLD_MARKER = /<activate "?@\d+[^<>\n]{0,60} chars folded>/;

/** Why this tool call must not run, written for the model; undefined when it may. Never throws. */
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
  // Pi's own read waits for ever on a FIFO without a writer.
  const stats = statSync(resolveLikePi(path, cwd), { throwIfNoEntry: false });
  if (!stats || stats.isFile() || stats.isDirectory()) return undefined;
  const kind = stats.isFIFO() ? "a named pipe (FIFO)" : stats.isSocket() ? "a socket" : "a device";
  return `${path} is ${kind}, not a file: reading it could wait for ever. Use bash with a timeout if you need what it gives.`;
}

const UNICODE_SPACES = /[\u00A0\u2000-\u200A\u202F\u205F\u3000]/g;

/** The path as Pi's file tools understand it: `@` in front, `~`, file URLs, odd spaces. */
function resolveLikePi(path: string, cwd: string): string {
  const plain = path.replace(UNICODE_SPACES, " ").replace(/^@/, "");
  if (plain === "~" || plain.startsWith("~/")) return join(homedir(), plain.slice(1));
  if (plain.startsWith("file://")) return fileURLToPath(plain);
  return isAbsolute(plain) ? plain : resolve(cwd, plain);
}

function foldMarker(input: Fields): string | undefined {
  let marker: string | undefined;
  // Visits every text in the arguments.
  JSON.stringify(input, (_key, value) => {
    if (typeof value === "string") marker ??= value.match(FOLD_MARKER)?.[0];
    return value;
  });
  return marker
    ? `The argument contains ${marker}, which only stands for text that is folded in this conversation. ` +
        "Write the real text in its place; activate shows it again."
    : undefined;
}

/** What the engine says about a call that may write: why it is blocked, or what to add to its result. */
async function askEngine(
  event: ToolCallEvent,
  shim: Shim,
): Promise<{ block?: unknown; notice?: unknown }> {
  const { toolCallId: id, toolName: tool, input } = event;
  const { prepareMs: deadlineMs } = shim.engine;
  if (deadlineMs <= 0 || shim.isOff() || !mayWrite(event)) return {};
  try {
    return await shim.engine.request("tool/prepare", { id, tool, input }, { deadlineMs });
  } catch (error) {
    // The tool runs after a quarter of a second (`prepare_ms`), whatever goes wrong here.
    shim.logError("tool/prepare", error);
    return {};
  }
}

function mayWrite({ toolName, input }: ToolCallEvent): boolean {
  const reads = READERS.has(toolName) || TOOL_NAMES.has(toolName);
  return !reads && charsOf(input) <= MOST_ARGUMENT_CHARS;
}
