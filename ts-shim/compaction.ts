/**
 * Compaction. The engine decides whether Pi's is needed, and writes the summary unless the user's model
 * should. Where it is away, slow or wrong, Pi's own goes ahead. Another extension may cancel it or write
 * the summary itself: the user gets a notice, and the engine that summary.
 */

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

/** A compaction that Pi has asked about and not yet reported the end of. */
interface Pending {
  signal: AbortSignal;
  firstKept: string;
  cancelled: boolean;
}

/** Registers the handlers. Pi compacts by itself where one returns undefined; `{}` would not do. */
export function registerCompaction(pi: ExtensionAPI, shim: Shim): void {
  let pending: Pending | null = null;
  pi.on("session_before_compact", async (event, ctx) => {
    const firstKept = event.preparation.firstKeptEntryId;
    const asked: Pending = { signal: event.signal, firstKept, cancelled: false };
    pending = asked;
    try {
      const result = shim.isOff() ? undefined : await askEngine(event, ctx, shim);
      asked.cancelled = result?.cancel === true;
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
    const byOthers = aborted && !pending?.cancelled && !pending?.signal.aborted;
    if (byOthers && !shim.isOff()) shim.host.notifyOnce("cancelled", "info", CANCELLED);
    pending = null;
  });
}

/** Reports a compaction to the engine, with the summary where it is not the engine's own. */
function report(event: SessionCompactEvent, pending: Pending | null, shim: Shim): void {
  const { id, summary, firstKeptEntryId, details } = event.compactionEntry;
  const isOurs = event.fromExtension && isRecord(details) && isRecord(details.foredeck);
  const isOthers = event.fromExtension && !isOurs;
  if (isOthers && !shim.isOff()) shim.host.notifyOnce("written", "info", WRITTEN);
  // Another extension may have compacted other messages than those that the engine was asked about:
  // then its summary does not describe the ones that the engine knows of.
  const sendsSummary = !isOurs && (!isOthers || pending?.firstKept === firstKeptEntryId);
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
  return {
    reason,
    messages: [...preparation.messagesToSummarize, ...preparation.turnPrefixMessages],
    previous: preparation.previousSummary ?? null,
    instructions: customInstructions ?? null,
    tokens: Math.max(0, Math.round(preparation.tokensBefore)),
    reserve: preparation.settings.reserveTokens,
    new_chars: charsOf(shim.context.unseen(ctx).map(withoutImages)),
    model: shim.model(ctx),
    time_ms: Date.now(),
  };
}

function withoutImages({ content }: HostMessage): unknown {
  return Array.isArray(content) ? content.filter(({ type }) => type !== "image") : content;
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

/**
 * The list to go on with: where the newest compaction was taken back, what stood before it in place
 * of its summary, which begins Pi's list; else `list` itself.
 * @param list the host's messages, system entries included
 */
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
  const before = entries.slice(0, end).flatMap((entry) => entry.messages);
  // Copies: edits set a new `content` on what goes out.
  const back = (before as unknown as HostMessage[])
    .filter((message) => !isSystem(message))
    .map((message) => ({ ...message }));
  return list.toSpliced(at, 1, ...back);
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
