/**
 * Tells the engine of every tool, of every kind, also those that scripts call in code mode, and of
 * the answer that ends a run.
 */

import type { ExtensionAPI, ToolCallEvent, ToolResultEvent } from "@earendil-works/pi-coding-agent";
import type { Shim } from "./shim.ts";

/** Results larger than this are left to the message list, where the engine meets them anyway. */
const MAX_CHARS = 16 * 1024 * 1024;

/** Registers the observer. It changes nothing. */
export function registerObserver(pi: ExtensionAPI, shim: Shim): void {
  pi.on("tool_call", (event) => {
    shim.safely("tool_call", () => {
      const { path } = event.input as { path?: unknown };
      if (typeof path === "string") shim.engine.notify("tool/started", started(event, path, shim));
    });
  });
  pi.on("tool_result", (event) => {
    shim.safely("tool_result", () => {
      if (sizeOf(event) <= MAX_CHARS) shim.engine.notify("tool/observed", observed(event, shim));
    });
  });
  // The last answer of a run is in no message list until the user goes on, if ever.
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

/** Characters of text and image data, roughly. Stops counting when there are too many. */
function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  let size = 0;
  for (const item of Object.values(value)) {
    size += sizeOf(item);
    if (size > MAX_CHARS) break;
  }
  return size;
}
