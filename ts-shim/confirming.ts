/** What a tool of the model's has proposed, confirmed by the user before the model goes on. */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isRecord } from "./context/messages.ts";
import type { Shim } from "./shim.ts";
import { visible } from "./visible.ts";

const DEADLINE_MS = 10_000;

/**
 * Asks the user about the first of an answer's questions; what the model reads then. Undefined where
 * nobody was asked, or nobody answered: the proposal waits.
 */
export async function confirmed(
  questions: unknown,
  shim: Shim,
  ctx: ExtensionContext,
): Promise<string | undefined> {
  const [question] = Array.isArray(questions) ? questions.filter(isRecord) : [];
  if (!Array.isArray(question?.lines) || !ctx.hasUI) return undefined;
  const shown = visible(question.lines.join("\n"));
  const wanted = await ctx.ui.confirm("Keep this finding?", shown);
  const args = `${wanted ? "accept" : "refuse"} ${question.name}`;
  try {
    const command = { session: shim.sessionId(), name: "memory", args };
    await shim.engine.request("command", command, { deadlineMs: DEADLINE_MS });
  } catch (error) {
    shim.log(`/memory ${args}: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
  return wanted ? "Kept: the user has confirmed it." : "The user does not want it kept.";
}
