/** Compaction: the engine may cancel Pi's, or write the summary; where it is away Pi's own goes on. */

import {
  buildSessionProjection,
  type CompactionEntry,
  type ExtensionAPI,
  type ExtensionCommandContext,
  type ExtensionContext,
  type SessionBeforeCompactEvent,
  type SessionBeforeCompactResult,
  type SessionCompactEvent,
  type SessionEntry,
} from "@earendil-works/pi-coding-agent";
import {
  blocksIn,
  charsOf,
  type Fields,
  type HostMessage,
  isRecord,
  isSystem,
  isText,
  recordOf,
} from "./context/messages.ts";
import { branchOf } from "./context/request.ts";
import type { Shim } from "./shim.ts";

/** A compaction may write some megabytes; Pi's own takes a model call. */
const DEADLINE_MS = 10_000;

const CANCELLED =
  "A compaction was cancelled by another extension or by you: the conversation goes on in full.";
const WRITTEN =
  "Another extension wrote the summary of a compaction. foredeck keeps the messages that it covers.";

/** Registers the handlers. Pi compacts by itself where one returns undefined; `{}` would not do. */
export function registerCompaction(pi: ExtensionAPI, shim: Shim): void {
  /** What Pi has asked about and not yet reported the end of, and whether the engine cancelled it. */
  let pending: SessionBeforeCompactEvent | null = null;
  let isCancelled = false;
  pi.on("session_before_compact", async (event, ctx) => {
    pending = event;
    try {
      const result = shim.isOff() ? undefined : await askEngine(event, ctx, shim);
      isCancelled = result?.cancel === true;
      return result;
    } catch (error) {
      shim.logError("session_before_compact", error);
      return undefined;
    }
  });
  pi.on("session_compact", (event) => {
    report(event, pending, shim);
    pending = null;
  });
  pi.on("session_compact_failed", ({ aborted }) => {
    const byOthers = aborted && !isCancelled && !pending?.signal.aborted;
    if (byOthers && !shim.isOff()) shim.host.notifyOnce("cancelled", "info", CANCELLED);
    pending = null;
    isCancelled = false;
  });
}

/** Reports a compaction to the engine, with the summary where it is not the engine's own. */
function report(
  event: SessionCompactEvent,
  asked: SessionBeforeCompactEvent | null,
  shim: Shim,
): void {
  const { id, summary, firstKeptEntryId, details } = event.compactionEntry;
  const isOurs = event.fromExtension && isRecord(recordOf(details).foredeck);
  const isOthers = event.fromExtension && !isOurs;
  if (isOthers && !shim.isOff()) shim.host.notifyOnce("written", "info", WRITTEN);
  // Another extension may have compacted other messages than those that the engine was asked about.
  const isSame = asked?.preparation.firstKeptEntryId === firstKeptEntryId;
  const sendsSummary = !isOurs && (!isOthers || isSame);
  const written = sendsSummary ? { summary, by: isOthers ? "extension" : "model" } : {};
  shim.event("compact", { entry: id, ...written });
}

async function askEngine(
  event: SessionBeforeCompactEvent,
  ctx: ExtensionContext,
  shim: Shim,
): Promise<SessionBeforeCompactResult | undefined> {
  const limits = {
    deadlineMs: Math.max(DEADLINE_MS, shim.engine.deadlineMs),
    signal: event.signal,
  };
  const answer = await shim.engine.ask("session/compact", parameters(event, ctx, shim), limits);
  const { action, summary, details, keep, notice } = answer;
  if (isText(notice)) shim.host.notifyOnce(notice, "info", notice);
  // On overflow a cancelled compaction would end Pi's run.
  if (action === "cancel") return event.reason === "threshold" ? { cancel: true } : undefined;
  if (action !== "summary" || !isText(summary)) return undefined;
  const { firstKeptEntryId: asked, tokensBefore } = event.preparation;
  const firstKeptEntryId = isText(keep) ? keep : asked;
  return { compaction: { summary, firstKeptEntryId, tokensBefore, details } };
}

function parameters(event: SessionBeforeCompactEvent, ctx: ExtensionContext, shim: Shim): Fields {
  const { preparation, reason, customInstructions } = event;
  const blocks = shim.context.unseen(ctx).flatMap(({ content }) => blocksIn(content));
  return {
    reason,
    messages: [...preparation.messagesToSummarize, ...preparation.turnPrefixMessages],
    previous: preparation.previousSummary ?? null,
    instructions: customInstructions ?? null,
    tokens: Math.max(0, Math.round(preparation.tokensBefore)),
    reserve: preparation.settings.reserveTokens,
    new_chars: charsOf(blocks.filter(({ type }) => type !== "image")),
    model: shim.model(ctx),
    time_ms: Date.now(),
  };
}

/** What was taken back stands in an entry of Pi's session: it holds on one branch, over restarts. */
const TAKEN_BACK = "foredeck-uncompacted";

/** Ids of the compactions of a branch that were taken back. */
function takenBack(branch: readonly SessionEntry[]): Set<unknown> {
  const marks = branch.filter((entry) => entry.type === "custom");
  const ours = marks.filter(({ customType }) => customType === TAKEN_BACK);
  return new Set(ours.map(({ data }) => recordOf(data).compaction));
}

/** The compactions of a branch that were not, oldest first. */
export function compactionsOf(branch: readonly SessionEntry[]): CompactionEntry[] {
  const gone = takenBack(branch);
  return branch.filter((entry) => entry.type === "compaction").filter(({ id }) => !gone.has(id));
}

/** The messages that the session holds now, as a call would bring them. */
export function chatOf(ctx: ExtensionContext): HostMessage[] {
  const { messages } = ctx.sessionManager.buildSessionProjection();
  return uncompacted(messages as unknown as HostMessage[], ctx);
}

/** The host's list; where the newest compaction was taken back, with what its summary replaced. */
export function uncompacted(list: HostMessage[], ctx: ExtensionContext): HostMessage[] {
  const branch = branchOf(ctx);
  const at = list.findIndex((message) => !isSystem(message));
  const newest = branch.findLast((entry) => entry.type === "compaction");
  if (list[at]?.role !== "compactionSummary" || !newest) return list;
  const gone = takenBack(branch);
  if (!gone.has(newest.id)) return list;
  // Pi follows parents; these are copies, so its session stays as it is.
  const left = branch.filter(({ id }) => !gone.has(id));
  const copies = left.map((entry, n) => ({ ...entry, parentId: left[n - 1]?.id ?? null }));
  const { entries } = buildSessionProjection(copies, copies.at(-1)?.id);
  const end = entries.findIndex(({ sourceEntry }) => sourceEntry.id === newest.firstKeptEntryId);
  if (end < 0) return list;
  const before = entries.slice(0, end).flatMap((entry) => entry.messages) as unknown[];
  // Copies: edits set a new `content` on what goes out.
  const copied = (before as HostMessage[]).map((message) => ({ ...message }));
  return list.toSpliced(at, 1, ...copied.filter((message) => !isSystem(message)));
}

const NOTHING = "There is no compaction on this branch, or all of them have been taken back.";
const BACK =
  "The newest compaction is taken back: until the next one, what it covered goes to the model again.";

/** Takes the newest compaction back; gives what the user reads. @throws what prevents it */
export function uncompact(shim: Shim, ctx: ExtensionCommandContext): string {
  const newest = compactionsOf(ctx.sessionManager.getBranch()).at(-1);
  if (!newest) throw new Error(NOTHING);
  shim.api.appendEntry(TAKEN_BACK, { compaction: newest.id });
  // The engine keeps it in the store: what a summary replaces may be pruned, and this no more.
  shim.event("uncompact", { summary: newest.summary });
  return BACK;
}
