/**
 * Compaction: the engine decides whether it is needed, and writes the summary unless the user's
 * model should. Where the engine is away, slow or wrong, Pi's own compaction goes ahead. Another
 * extension may cancel it or write the summary itself; then the user reads so, and the engine gets to know.
 */

import type {
  ExtensionAPI,
  ExtensionContext,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
  SessionCompactEvent,
} from "@earendil-works/pi-coding-agent";
import { charsOf, type HostMessage, isRecord } from "./context/messages.ts";
import type { Shim } from "./shim.ts";

/** A compaction may write some megabytes; Pi's own takes a model call. */
const DEADLINE_MS = 10_000;

const CANCELLED =
  "A compaction was cancelled by another extension or by you: the conversation goes on in full.";
const WRITTEN =
  "Another extension wrote the summary of a compaction. foredeck keeps the messages that it covers.";

/** A compaction that Pi has asked about and not yet reported the end of. */
interface Pending {
  signal: AbortSignal | undefined;
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
      const { takingBack } = shim.compactions;
      if (takingBack && event.reason === "manual") return { compaction: takingBack };
      const result = shim.isOff() ? undefined : await askEngine(event, ctx, shim);
      asked.cancelled = result?.cancel === true;
      return result;
    } catch (error) {
      shim.logError("session_before_compact", error);
      return undefined;
    }
  });
  pi.on("session_compact", (event) => {
    // One that takes another one back has nothing to report, and Pi may show the earlier one here.
    if (shim.compactions.takingBack === null) report(event, pending, shim);
    pending = null;
  });
  pi.on("session_compact_failed", ({ aborted }) => {
    const byOthers = aborted && !pending?.cancelled && !pending?.signal?.aborted;
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
  shim.event("compact", { entry: id, reason: event.reason, ...written });
}

async function askEngine(
  event: SessionBeforeCompactEvent,
  ctx: ExtensionContext,
  shim: Shim,
): Promise<SessionBeforeCompactResult | undefined> {
  const limits = { deadlineMs: shim.engine.patienceMs(DEADLINE_MS), signal: event.signal };
  const answer = await shim.engine.ask("session/compact", parameters(event, ctx, shim), limits);
  const { action, summary, details, keep, notice } = isRecord(answer) ? answer : {};
  if (typeof notice === "string") shim.host.notifyOnce(notice, "info", notice);
  // On overflow a cancelled compaction would end Pi's run.
  if (action === "cancel") return event.reason === "threshold" ? { cancel: true } : undefined;
  if (action !== "summary" || typeof summary !== "string" || summary === "") return undefined;
  const { firstKeptEntryId: asked, tokensBefore } = event.preparation;
  const firstKeptEntryId = typeof keep === "string" ? keep : asked;
  return { compaction: { summary, firstKeptEntryId, tokensBefore, details } };
}

function parameters(
  event: SessionBeforeCompactEvent,
  ctx: ExtensionContext,
  shim: Shim,
): Record<string, unknown> {
  const { preparation, reason, customInstructions } = event;
  return {
    session: shim.sessionId(),
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
