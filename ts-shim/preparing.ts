/**
 * Asks the engine before a tool runs that may write files: a write must not undo what the model has
 * not seen. An exception to the rule that a guard decides alone, and so bounded: whatever goes wrong,
 * the tool runs after a quarter of a second (the setting `prepare_ms`).
 */

import type { ExtensionAPI, ToolCallEvent } from "@earendil-works/pi-coding-agent";
import { isRecord } from "./context/messages.ts";
import type { Shim } from "./shim.ts";
import { TOOL_NAMES } from "./tools.ts";

/** These write nothing. */
const READERS: ReadonlySet<string> = new Set(["read", "grep", "find", "ls"]);

/** Longer arguments take longer to send than a tool may wait. */
const MAX_CHARS = 4 * 1024 * 1024;

/** Registers the question, and what it adds to a result. */
export function registerPreparing(pi: ExtensionAPI, shim: Shim): void {
  const notices = new Map<string, string>();
  pi.on("tool_call", async (event) => {
    const { block, notice } = await prepare(event, shim);
    if (block === undefined && notice !== undefined) notices.set(event.toolCallId, notice);
    return block === undefined ? undefined : { block: true, reason: block };
  });
  pi.on("tool_result", (event) => {
    const notice = notices.get(event?.toolCallId);
    if (notice === undefined) return undefined;
    notices.delete(event.toolCallId);
    return { content: [...event.content, { type: "text", text: notice }] };
  });
}

interface Verdict {
  block?: string;
  notice?: string;
}

/** What the engine says of a call; nothing where it does not answer in time. Never throws. */
export async function prepare(
  event: Pick<ToolCallEvent, "toolCallId" | "toolName" | "input">,
  shim: Pick<Shim, "engine" | "isOff" | "log" | "sessionId">,
): Promise<Verdict> {
  try {
    const { toolCallId: id, toolName: tool, input } = event;
    if (READERS.has(tool) || TOOL_NAMES.has(tool) || shim.isOff()) return {};
    const deadlineMs = shim.engine.prepareMs;
    if (deadlineMs === 0 || isTooLong(input)) return {};
    const params = { session: shim.sessionId(), id, tool, input };
    const answer = await shim.engine.request("tool/prepare", params, { deadlineMs });
    return isRecord(answer) ? { ...text(answer, "block"), ...text(answer, "notice") } : {};
  } catch (error) {
    shim.log(`tool/prepare: ${error instanceof Error ? error.message : String(error)}`);
    return {};
  }
}

function text(answer: Record<string, unknown>, name: "block" | "notice"): Verdict {
  const value = answer[name];
  return typeof value === "string" && value !== "" ? { [name]: value } : {};
}

function isTooLong(input: object): boolean {
  let chars = 0;
  for (const value of Object.values(input)) if (typeof value === "string") chars += value.length;
  return chars > MAX_CHARS;
}
