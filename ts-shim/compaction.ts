/**
 * Compaction: who decides about Pi's, what the user has had compacted besides, and taking one back.
 *
 * The engine decides whether Pi's is needed, and writes the summary unless the user's model should.
 * Where it is away, slow or wrong, Pi's own compaction goes ahead. Another extension may cancel it or
 * write the summary itself: the user gets a notice, and the engine that summary.
 */

import type {
  ExtensionAPI,
  ExtensionCommandContext,
  ExtensionContext,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
  SessionCompactEvent,
} from "@earendil-works/pi-coding-agent";
import {
  charsOf,
  type Fields,
  type HostMessage,
  isRecord,
  isSystem,
  nameOf,
  recordOf,
} from "./context/messages.ts";
import { torn } from "./context/plan.ts";
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
  if (typeof notice === "string") shim.host.notifyOnce(notice, "info", notice);
  // On overflow a cancelled compaction would end Pi's run.
  if (action === "cancel") return event.reason === "threshold" ? { cancel: true } : undefined;
  if (action !== "summary" || typeof summary !== "string" || summary === "") return undefined;
  const { firstKeptEntryId: asked, tokensBefore } = event.preparation;
  const firstKeptEntryId = typeof keep === "string" ? keep : asked;
  return { compaction: { summary, firstKeptEntryId, tokensBefore, details } };
}

function parameters(event: SessionBeforeCompactEvent, ctx: ExtensionContext, shim: Shim): Fields {
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

/*
 * What the user has had compacted, and what was taken back, stands in entries of Pi's session: so it
 * holds on one branch, and after a restart. A stretch that foredeck has compacted is a custom entry.
 * What takes a compaction back is either a compaction of Pi's that keeps from the earlier place, or a
 * custom entry that names it.
 */

/** Types of our custom entries. */
const STRETCH = "foredeck-compacted";
const TAKEN_BACK = "foredeck-uncompacted";

/** An entry of Pi's session, as far as it is looked at here. */
export type Entry = { id: string; type: string; parentId?: string | null } & Fields;

/** Pi's own: what messages it makes of the entries that lead to a leaf. */
export type Project = (
  entries: Entry[],
  leaf: string,
) => { entries: { sourceEntry: Entry; messages: HostMessage[] }[] };

/** A stretch of chat that a summary of foredeck's replaces. `first`, `last`: its messages. */
export interface Stretch {
  first: string;
  last: string;
  summary: string;
  time_ms: number;
}

/** Compactions of a branch that have not been taken back, oldest first: Pi's, and ours. */
export function notTakenBack(branch: readonly Entry[]): Entry[] {
  const gone = takenBack(branch);
  return branch.filter(
    (entry) => (entry.type === "compaction" || stretchOf(entry) !== null) && !isUndone(entry, gone),
  );
}

/** The id of the compaction that an entry takes back; null for any other entry. */
function takenBackBy(entry: Entry): string | null {
  const { details, data } = entry;
  if (entry.type === "compaction") {
    const { takes_back: back } = recordOf(recordOf(details).foredeck);
    return typeof back === "string" ? back : null;
  }
  const isOurs = entry.type === "custom" && entry.customType === TAKEN_BACK && isRecord(data);
  return isOurs && typeof data.compaction === "string" ? data.compaction : null;
}

function takenBack(branch: readonly Entry[]): Set<string> {
  return new Set(branch.map(takenBackBy).filter((id) => id !== null));
}

/** Whether a compaction no longer counts: it was taken back, or only takes another one back. */
function isUndone(compaction: Entry, gone: ReadonlySet<string>): boolean {
  return gone.has(compaction.id) || takenBackBy(compaction) !== null;
}

function stretchOf({ type, customType, data }: Entry): Stretch | null {
  const isOurs = type === "custom" && customType === STRETCH && isRecord(data);
  return isOurs ? (data as unknown as Stretch) : null;
}

/** The entries that a branch would have without the compactions that were taken back. */
function withoutTakenBack(branch: readonly Entry[]): Entry[] {
  const gone = takenBack(branch);
  const left = branch.filter((entry) => entry.type !== "compaction" || !isUndone(entry, gone));
  // Pi follows parents; these are copies, so its session stays as it is.
  return left.map((entry, at) => ({ ...entry, parentId: left[at - 1]?.id ?? null }));
}

/** A compaction that Pi is to make. */
type MadeCompaction = NonNullable<SessionBeforeCompactResult["compaction"]>;

/** The user's compactions on the branch at hand. */
export class Compactions {
  /** While Pi makes a compaction that takes another one back: that one. */
  takingBack: MadeCompaction | null = null;
  private readonly pi: Pick<ExtensionAPI, "appendEntry">;
  /** What Pi itself makes of entries; undefined where it does not say. */
  private readonly project: Project | undefined;
  /** By the newest compaction and what was taken back: a long session is projected once. */
  private known: { key: string; messages: HostMessage[] | null } | null = null;

  constructor(pi: Pick<ExtensionAPI, "appendEntry">, project: Project | undefined) {
    this.pi = pi;
    this.project = project;
  }

  /** Replaces a stretch by its summary from now on. */
  keep(stretch: Stretch): void {
    this.pi.appendEntry(STRETCH, stretch);
  }

  /** Takes a compaction back, without Pi; one of Pi's own only where Pi exports its projection. */
  takeBack(compaction: Entry): void {
    this.pi.appendEntry(TAKEN_BACK, { compaction: compaction.id });
  }

  /** The messages that the session holds now, as a call would bring them. */
  current(ctx: Pick<ExtensionContext, "sessionManager">): HostMessage[] {
    const source = ctx.sessionManager as { buildSessionProjection?(): { messages: unknown[] } };
    const own = source.buildSessionProjection?.().messages ?? [];
    return this.apply(own as HostMessage[], ctx);
  }

  /**
   * The list to go on with: `list` itself where nothing was compacted or taken back.
   * @param list the host's messages, system entries included
   */
  apply(list: HostMessage[], ctx: Pick<ExtensionContext, "sessionManager">): HostMessage[] {
    const source = ctx.sessionManager as { getBranch?(): unknown[] };
    const branch = (source.getBranch?.() ?? []) as Entry[];
    // Few entries say something of it, and this runs before every call.
    const marks = branch.filter(({ type }) => type === "compaction" || type === "custom");
    const changed = this.withRestored(list, branch, marks);
    return notTakenBack(marks)
      .map(stretchOf)
      .filter((stretch) => stretch !== null)
      .reduce(withStretch, changed);
  }

  /** In place of the summary that begins Pi's list: what stood there before that compaction. */
  private withRestored(list: HostMessage[], branch: Entry[], marks: Entry[]): HostMessage[] {
    const at = list.findIndex((message) => !isSystem(message));
    if (list[at]?.role !== "compactionSummary") return list;
    const messages = this.restoredMessages(branch, marks);
    if (messages === null) return list;
    // Copies: edits set a new `content` on what goes out.
    const back = messages.map((message) => ({ ...message }));
    return [...list.slice(0, at), ...back, ...list.slice(at + 1)];
  }

  private restoredMessages(branch: Entry[], marks: Entry[]): HostMessage[] | null {
    const newest = marks.findLast((entry) => entry.type === "compaction");
    const gone = takenBack(marks);
    if (!newest || !this.project || !isUndone(newest, gone)) return null;
    const key = `${newest.id} ${[...gone].join(" ")}`;
    if (this.known?.key !== key) {
      this.known = { key, messages: before(newest, branch, this.project) };
    }
    return this.known.messages;
  }
}

/** The messages before the first one that a compaction keeps; null where that is not known. */
function before(compaction: Entry, branch: Entry[], project: Project): HostMessage[] | null {
  const entries = withoutTakenBack(branch);
  const { id: leaf } = entries.at(-1) ?? {};
  if (leaf === undefined) return null;
  const projected = project(entries, leaf).entries;
  const kept = compaction.firstKeptEntryId;
  const end = projected.findIndex(({ sourceEntry }) => sourceEntry.id === kept);
  if (end < 0) return null;
  const messages = projected.slice(0, end).flatMap((entry) => entry.messages);
  return messages.filter((message) => !isSystem(message));
}

/** A list with the summary of a stretch in its place; the list itself where that cannot be done. */
function withStretch(list: HostMessage[], stretch: Stretch): HostMessage[] {
  const first = list.findIndex((message) => nameOf(message) === stretch.first);
  const last = list.findLastIndex((message) => nameOf(message) === stretch.last);
  if (first < 0 || last < first) return list;
  const covered = list.slice(first, last + 1);
  const content = [{ type: "text", text: stretch.summary }];
  const message = { role: "custom", customType: "foredeck", content, display: false };
  const summary = { ...message, timestamp: stretch.time_ms };
  const left = [...covered.filter(isSystem), summary];
  const made = [...list.slice(0, first), ...left, ...list.slice(last + 1)];
  // A provider refuses a result without its call.
  return torn(list, made).length > 0 ? list : made;
}

/*
 * `/foredeck uncompact`. With nothing after the newest compaction, Pi goes to the entry before it.
 * Else Pi makes a compaction that keeps from the earlier place, with the earlier summary. Where Pi has
 * nothing to compact it refuses that; then the context hook puts the messages back, for as long as Pi
 * does not compact again.
 */

/** The summary where there was none before: Pi's list begins with one. */
const NO_SUMMARY =
  "Nothing is summed up: a compaction was taken back, and the whole conversation follows.";

const NOTHING = "There is no compaction on this branch, or all of them have been taken back.";
const BUSY = "The agent is at work: take the compaction back once its turn has ended.";
const BACK = "The newest compaction is taken back: what it covered is in the chat again.";
const BY_US =
  "Pi could not do that itself: foredeck adds the messages to each call until the next compaction.";

/** Takes the newest compaction back; what the user reads. Throws what prevents it. */
export async function uncompact(shim: Shim, ctx: ExtensionCommandContext): Promise<string> {
  if (!ctx.isIdle()) throw new Error(BUSY);
  const branch = ctx.sessionManager.getBranch() as unknown as Entry[];
  const newest = notTakenBack(branch).at(-1);
  if (!newest) throw new Error(NOTHING);
  const said = await takeBack(newest, branch, shim, ctx);
  // The engine keeps it in the store: what a summary replaces may be pruned, and this no more.
  const { summary } = stretchOf(newest) ?? newest;
  shim.event("uncompact", { summary });
  return said;
}

/** Takes one back in the way that its place allows. */
async function takeBack(
  newest: Entry,
  branch: Entry[],
  shim: Shim,
  ctx: ExtensionCommandContext,
): Promise<string> {
  if (stretchOf(newest) !== null) {
    shim.compactions.takeBack(newest);
    return BACK;
  }
  if (branch.at(-1)?.id === newest.id && isPlace(branch.at(-2))) {
    const { cancelled } = await ctx.navigateTree(newest.parentId as string);
    if (!cancelled) return BACK;
  }
  try {
    shim.compactions.takingBack = earlier(branch, newest);
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
    shim.compactions.takingBack = null;
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
    details: { foredeck: { takes_back: newest.id } },
  };
}
