/**
 * Compaction. The engine decides whether Pi's is needed, and writes the summary unless the user's model
 * should. Where it is away, slow or wrong, Pi's own goes ahead. Another extension may cancel it or write
 * the summary itself: the user gets a notice, and the engine that summary.
 */

import type {
  CompactionEntry,
  CompactionResult,
  ExtensionAPI,
  ExtensionCommandContext,
  ExtensionContext,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
  SessionCompactEvent,
  SessionEntry,
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
import type { PiModule } from "./host.ts";
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
  const limits = { deadlineMs: shim.engine.patienceMs(DEADLINE_MS), signal: event.signal };
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

/*
 * What was taken back stands in entries of Pi's session, so it holds on one branch, and after a
 * restart: a compaction of Pi's that keeps from the earlier place, or an entry of this type.
 */
const TAKEN_BACK = "foredeck-uncompacted";

/** Compactions of a branch that have not been taken back, oldest first. */
export function notTakenBack(branch: readonly SessionEntry[]): CompactionEntry[] {
  const gone = undone(branch);
  return branch.filter((entry) => entry.type === "compaction").filter(({ id }) => !gone.has(id));
}

/** Ids of what no longer counts: compactions that were taken back, and what only takes one back. */
function undone(branch: readonly SessionEntry[]): Set<string> {
  const gone = new Set<string>();
  for (const entry of branch) {
    let back: unknown;
    if (entry.type === "compaction") back = recordOf(recordOf(entry.details).foredeck).takes_back;
    else if (entry.type === "custom" && entry.customType === TAKEN_BACK)
      back = recordOf(entry.data).compaction;
    if (typeof back === "string") gone.add(back).add(entry.id);
  }
  return gone;
}

/** The compactions that were taken back on the branch at hand. */
export class Compactions {
  /** While Pi makes a compaction that takes another one back: that one. */
  takingBack: CompactionResult | null = null;
  private readonly project: PiModule["buildSessionProjection"];

  /** @param project Pi's own */
  constructor(project: PiModule["buildSessionProjection"]) {
    this.project = project;
  }

  /** The messages that the session holds now, as a call would bring them. */
  current(ctx: Pick<ExtensionContext, "sessionManager">): HostMessage[] {
    const { messages } = ctx.sessionManager.buildSessionProjection();
    return this.apply(messages as unknown as HostMessage[], ctx);
  }

  /**
   * The list to go on with, in place of the summary that begins Pi's: what stood there before that
   * compaction. `list` itself where the newest compaction was not taken back.
   * @param list the host's messages, system entries included
   */
  apply(list: HostMessage[], ctx: Pick<ExtensionContext, "sessionManager">): HostMessage[] {
    const branch = branchOf(ctx);
    // Few entries say something of it, and this runs before every call.
    const marks = branch.filter(({ type }) => type === "compaction" || type === "custom");
    const at = list.findIndex((message) => !isSystem(message));
    const newest = marks.findLast((entry) => entry.type === "compaction");
    const gone = undone(marks);
    if (list[at]?.role !== "compactionSummary" || !newest || !gone.has(newest.id)) return list;
    const left = branch.filter((entry) => entry.type !== "compaction" || !gone.has(entry.id));
    const back = this.before(newest.firstKeptEntryId, left);
    return back ? list.toSpliced(at, 1, ...back) : list;
  }

  /** The messages of a branch before this entry; null where that is not known. */
  private before(kept: string, branch: SessionEntry[]): HostMessage[] | null {
    // Pi follows parents; these are copies, so its session stays as it is.
    const copies = branch.map((entry, n) => ({ ...entry, parentId: branch[n - 1]?.id ?? null }));
    const projected = this.project(copies, copies.at(-1)?.id).entries;
    const end = projected.findIndex(({ sourceEntry }) => sourceEntry.id === kept);
    if (end < 0) return null;
    const messages = projected.slice(0, end).flatMap((entry) => entry.messages);
    // Copies: edits set a new `content` on what goes out.
    return (messages as unknown as HostMessage[])
      .filter((message) => !isSystem(message))
      .map((message) => ({ ...message }));
  }
}

/** The summary where there was none before: Pi's list begins with one. */
const NO_SUMMARY =
  "Nothing is summed up: a compaction was taken back, and the whole conversation follows.";

const NOTHING = "There is no compaction on this branch, or all of them have been taken back.";
const BUSY = "The agent is at work: take the compaction back once its turn has ended.";
const BACK = "The newest compaction is taken back: what it covered is in the chat again.";
const BY_US =
  "Pi could not do that itself: foredeck adds the messages to each call until the next compaction.";

/** Takes the newest compaction back; gives what the user reads. @throws what prevents it */
export async function uncompact(shim: Shim, ctx: ExtensionCommandContext): Promise<string> {
  if (!ctx.isIdle()) throw new Error(BUSY);
  const branch = ctx.sessionManager.getBranch();
  const newest = notTakenBack(branch).at(-1);
  if (!newest) throw new Error(NOTHING);
  const isByPi = await takeBack(newest, branch, shim, ctx);
  // The engine keeps it in the store: what a summary replaces may be pruned, and this no more.
  shim.event("uncompact", { summary: newest.summary });
  return isByPi ? BACK : `${BACK} ${BY_US}`;
}

/**
 * With nothing after the newest compaction, Pi goes to the entry before it. Else Pi makes one that
 * keeps from the earlier place. False where it refuses that: then the context hook puts the messages
 * back, until Pi compacts again.
 */
async function takeBack(
  newest: CompactionEntry,
  branch: SessionEntry[],
  shim: Shim,
  ctx: ExtensionCommandContext,
): Promise<boolean> {
  if (branch.at(-1)?.id === newest.id && newest.parentId && isPlace(branch.at(-2))) {
    const { cancelled } = await ctx.navigateTree(newest.parentId);
    if (!cancelled) return true;
  }
  try {
    shim.compactions.takingBack = earlier(branch, newest);
    await new Promise<void>((resolve, onError) => {
      ctx.compact({ onComplete: () => resolve(), onError });
    });
    return true;
  } catch (error) {
    shim.logError("uncompact", error);
    shim.api.appendEntry(TAKEN_BACK, { compaction: newest.id });
    return false;
  } finally {
    shim.compactions.takingBack = null;
  }
}

/** Whether going to an entry leaves it in the chat: a message of the user's goes to the editor. */
function isPlace(entry: SessionEntry | undefined): boolean {
  if (!entry || entry.type === "custom_message") return false;
  return entry.type !== "message" || entry.message.role !== "user";
}

/** A compaction that keeps what was kept before another one was made. */
function earlier(branch: SessionEntry[], newest: CompactionEntry): CompactionResult {
  const before = branch.slice(0, branch.indexOf(newest));
  const previous = before.findLast((entry) => entry.type === "compaction");
  return {
    summary: previous?.summary ?? NO_SUMMARY,
    firstKeptEntryId: String(previous?.firstKeptEntryId ?? branch[0]?.id),
    tokensBefore: Number(newest.tokensBefore) || 0,
    details: { foredeck: { takes_back: newest.id } },
  };
}
