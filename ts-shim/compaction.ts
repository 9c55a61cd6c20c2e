/**
 * Compaction: the engine says whether it is needed, and writes the summary unless the user's model
 * shall. Where the engine is away, slow or wrong, Pi's own compaction goes on. Another extension may
 * cancel it, or write the summary itself: the user is told, and the engine.
 */

import type {
  ExtensionAPI,
  ExtensionContext,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
  SessionCompactEvent,
} from "@earendil-works/pi-coding-agent";
import { type HostMessage, isRecord, isSystem } from "./context/messages.ts";
import { describeModel } from "./context/request.ts";
import { within } from "./engine/wait.ts";
import type { Shim } from "./shim.ts";

/** A compaction may write some megabytes; Pi's own takes a model call. */
const DEADLINE_MS = 10_000;

const CANCELLED =
  "another extension (or you) has cancelled a compaction; foredeck has not: the conversation goes on whole";
const WRITTEN =
  "another extension has written the summary of a compaction; foredeck keeps what it covers";

/** A compaction that this extension was asked about. */
interface Asked {
  signal: AbortSignal | undefined;
  firstKept: string;
  cancelled: boolean;
}

/** Registers the handlers. Asked, it returns nothing where Pi shall do it: `{}` would not do. */
export function registerCompaction(pi: ExtensionAPI, shim: Shim): void {
  let asked: Asked | null = null;
  pi.on("session_before_compact", async (event, ctx) => {
    const firstKept = event.preparation.firstKeptEntryId;
    const now: Asked = { signal: event.signal, firstKept, cancelled: false };
    asked = now;
    try {
      const result = shim.isOff() ? undefined : await ask(event, ctx, shim);
      now.cancelled = result?.cancel === true;
      return result;
    } catch (error) {
      shim.log(`session_before_compact: ${error instanceof Error ? error.message : error}`);
      return undefined;
    }
  });
  pi.on("session_compact", (event) => {
    tell(event, asked, shim);
    asked = null;
  });
  pi.on("session_compact_failed", ({ aborted }) => {
    const byOthers = aborted && !asked?.cancelled && !asked?.signal?.aborted;
    if (byOthers && !shim.isOff()) shim.host.notifyOnce("cancelled", "info", CANCELLED);
    asked = null;
  });
}

/** Tells the engine of a compaction: with the summary where it is not the engine's own. */
function tell(event: SessionCompactEvent, asked: Asked | null, shim: Shim): void {
  const { id, summary, firstKeptEntryId, details } = event.compactionEntry;
  const isOurs = event.fromExtension && isRecord(details) && isRecord(details.foredeck);
  const isOthers = event.fromExtension && !isOurs;
  if (isOthers && !shim.isOff()) shim.host.notifyOnce("written", "info", WRITTEN);
  // A summary of other messages than those that the engine was asked about is not one of them.
  const isTold = !isOurs && (!isOthers || asked?.firstKept === firstKeptEntryId);
  const written = isTold ? { summary, by: isOthers ? "extension" : "model" } : {};
  shim.event("compact", { entry: id, reason: event.reason, ...written });
}

async function ask(
  event: SessionBeforeCompactEvent,
  ctx: ExtensionContext,
  shim: Shim,
): Promise<SessionBeforeCompactResult | undefined> {
  const limits = { deadlineMs: DEADLINE_MS, signal: event.signal };
  await within(shim.engine.whenReady(), limits);
  const answer = await shim.engine.request("session/compact", parameters(event, ctx, shim), limits);
  const { action, summary, details } = isRecord(answer) ? answer : {};
  // On overflow Pi ends the run where it is told to cancel.
  if (action === "cancel") return event.reason === "threshold" ? { cancel: true } : undefined;
  if (action !== "summary" || typeof summary !== "string" || summary === "") return undefined;
  const { firstKeptEntryId, tokensBefore } = event.preparation;
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
    new_chars: newChars(ctx, shim),
    model: describeModel(ctx),
    time_ms: Date.now(),
  };
}

/** Characters of the messages that the engine has not been told yet. */
function newChars(ctx: ExtensionContext, shim: Shim): number {
  const source = ctx.sessionManager as { buildSessionProjection?(): { messages: unknown[] } };
  const all = (source.buildSessionProjection?.().messages ?? []) as HostMessage[];
  const unseen = shim.context.unseen(all.filter((message) => !isSystem(message)));
  return unseen.reduce((sum, { content }) => sum + charsOf(content), 0);
}

/** Text that the model would read in a message, roughly. */
function charsOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  if (isRecord(value) && value.type === "image") return 0;
  return Object.values(value).reduce((sum: number, item) => sum + charsOf(item), 0);
}
