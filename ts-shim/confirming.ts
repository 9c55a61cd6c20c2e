/** What a tool of the model's has proposed, confirmed by the user before the model goes on. */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { waitingIn } from "./memory-question.ts";
import type { Shim } from "./shim.ts";

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
  const question = waitingIn(questions)[0];
  if (question === undefined || !ctx.hasUI) return undefined;
  const wanted = await ctx.ui.confirm("Keep this finding?", question.lines.join("\n"));
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
