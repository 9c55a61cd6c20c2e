/**
 * Refused prompts: where the engine has another prompt for the very same call, the run goes on with
 * that instead of ending in an error. Asked when Pi will not try again by itself.
 */

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { Shim } from "../shim.ts";
import { isRecord } from "./messages.ts";

/** Generous: going back reads call records, and the run that waits has failed already. */
const DEADLINE_MS = 5000;

/** An answer that failed: Pi's entry of it, and what the provider said. */
interface Failed {
  entry: string;
  message: string;
}

/** Registers the question. Both events are Pi's own boundaries: it waits for what they return. */
export function registerRefused(pi: ExtensionAPI, shim: Shim): void {
  let failed: Failed | null = null;
  pi.on("turn_end", ({ message, messageEntryId }) => {
    const isFailed = message.role === "assistant" && message.stopReason === "error";
    const said = isFailed ? message.errorMessage : undefined;
    failed = said && messageEntryId ? { entry: messageEntryId, message: said } : null;
  });
  pi.on("agent_before_settle", async (event) => {
    const last = failed;
    failed = null;
    if (last === null || event.outcome !== "error" || shim.isOff()) return undefined;
    if (!(await hasAnother(last.message, shim))) return undefined;
    // Out of the list, as Pi itself leaves out an answer that it tries again.
    const omitted = { type: "context_edit", targetId: last.entry, replacement: null } as const;
    return { entries: [...event.entries, omitted], continue: true };
  });
}

/** Whether the engine has another prompt for the call that was refused. Never throws. */
async function hasAnother(message: string, shim: Shim): Promise<boolean> {
  try {
    const params = { session: shim.sessionId(), message };
    const limits = { deadlineMs: DEADLINE_MS };
    const answer = await shim.engine.request("context/refused", params, limits);
    return isRecord(answer) && answer.again === true;
  } catch (error) {
    shim.logError("context/refused", error);
    return false;
  }
}
