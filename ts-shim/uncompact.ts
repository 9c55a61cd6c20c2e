/**
 * `/foredeck uncompact`: the newest compaction of the branch is taken back.
 *
 * With nothing after it Pi goes to the entry before it. Else Pi makes a compaction that keeps from
 * the earlier place, with the earlier summary. Where Pi has nothing to compact it refuses that; then
 * the context hook puts the messages back, for as long as Pi does not compact again.
 */

import type {
  ExtensionCommandContext,
  SessionBeforeCompactResult,
} from "@earendil-works/pi-coding-agent";
import { type Entry, isStretch, standing, summaryOf, takingBack } from "./context/compactions.ts";
import type { Shim } from "./shim.ts";

/** Stands for the summary where there was none before: Pi's list begins with one. */
const NO_SUMMARY =
  "Nothing is summed up: a compaction was taken back, and the whole conversation follows.";

const NOTHING = "There is no compaction on this branch, or all of them have been taken back.";
const BUSY = "The agent is at work: take the compaction back once its turn has ended.";
const BACK = "The newest compaction is taken back: what it covered is in the chat again.";
const BY_US =
  "Pi could not do that itself: foredeck adds the messages to each call until the next compaction.";

/** A compaction that Pi is to make. */
export type MadeCompaction = NonNullable<SessionBeforeCompactResult["compaction"]>;

/** Takes the newest compaction back; what the user reads. Throws what prevents it. */
export async function uncompact(shim: Shim, ctx: ExtensionCommandContext): Promise<string> {
  if (!ctx.isIdle()) throw new Error(BUSY);
  const branch = ctx.sessionManager.getBranch() as unknown as Entry[];
  const newest = standing(branch).at(-1);
  if (!newest) throw new Error(NOTHING);
  const told = await takeBack(newest, branch, shim, ctx);
  // The engine keeps it in the store: what a summary replaces may be pruned, and this no more.
  shim.event("uncompact", { summary: summaryOf(newest) });
  return told;
}

/** Takes one back in the way that its place allows. */
async function takeBack(
  newest: Entry,
  branch: Entry[],
  shim: Shim,
  ctx: ExtensionCommandContext,
): Promise<string> {
  if (isStretch(newest)) {
    shim.compactions.takeBack(newest);
    return BACK;
  }
  if (branch.at(-1)?.id === newest.id && isPlace(branch.at(-2))) {
    const { cancelled } = await ctx.navigateTree(newest.parentId as string);
    if (!cancelled) return BACK;
  }
  try {
    shim.takingBack = earlier(branch, newest);
    await new Promise<void>((resolve, onError) => {
      ctx.compact({ onComplete: () => resolve(), onError });
    });
    return BACK;
  } catch (error) {
    shim.logError("uncompact", error);
    if (!shim.pi.buildSessionProjection) throw error;
    shim.compactions.takeBack(newest);
    return `${BACK} ${BY_US}`;
  } finally {
    shim.takingBack = null;
  }
}

/** Whether going to an entry leaves it in the chat: a message of the user's goes to the editor. */
function isPlace(entry: Entry | undefined): boolean {
  if (!entry || entry.type === "custom_message") return false;
  const { role } = (entry.message ?? {}) as { role?: string };
  return entry.type !== "message" || role !== "user";
}

/** A compaction that keeps what was kept before another one was made. */
function earlier(branch: Entry[], newest: Entry): MadeCompaction {
  const previous = branch
    .slice(0, branch.indexOf(newest))
    .findLast((entry) => entry.type === "compaction");
  const tokensBefore = Number(newest.tokensBefore) || 0;
  return {
    summary: typeof previous?.summary === "string" ? previous.summary : NO_SUMMARY,
    firstKeptEntryId: String(previous?.firstKeptEntryId ?? branch[0]?.id),
    tokensBefore,
    details: takingBack(newest),
  };
}
