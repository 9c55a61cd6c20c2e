/** Builds the parameters of `context/assemble` from Pi's state. */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Shim } from "../shim.ts";
import { type HostMessage, isRecord, isSystem, nameOf, sameValue } from "./messages.ts";

/** The host's list for one model call, and apart from each other its system entries and the rest. */
export interface HostLists {
  ctx: ExtensionContext;
  all: HostMessage[];
  system: HostMessage[];
  list: HostMessage[];
}

/** Takes a list apart, in one pass: it runs over the whole conversation at every model call. */
export function takenApart(all: HostMessage[], ctx: ExtensionContext): HostLists {
  const lists: HostLists = { ctx, all, system: [], list: [] };
  for (const message of all) (isSystem(message) ? lists.system : lists.list).push(message);
  return lists;
}

/** The part of a request that depends on what was sent before, and how to remember that it was. */
interface BuiltRequest {
  params: Record<string, unknown>;
  /** Whether system messages and tools are those of the last answered request. */
  sameHead: boolean;
  /** To be called when the engine has answered: what was sent need not be sent again. */
  accepted(): void;
}

/** Leaves out system messages and tool definitions that the engine has already. */
export class RequestBuilder {
  private readonly pi: ExtensionAPI;
  private readonly shim: Shim;
  private sent: { system?: unknown; tools?: unknown } = {};

  constructor(pi: ExtensionAPI, shim: Shim) {
    this.pi = pi;
    this.shim = shim;
  }

  /** @param keep how many messages at the start of the list the engine has already */
  build({ ctx, system: own, list }: HostLists, keep: number): BuiltRequest {
    // It may be another engine, or one that has lost the session: it has nothing of before.
    if (keep === 0) this.sent = {};
    // A Pi without `context_with_system` leaves its system messages out of the list.
    const system = own.length > 0 ? own : [{ role: "system", content: ctx.getSystemPrompt() }];
    const tools = describeTools(this.pi);
    const params = {
      keep,
      messages: list.slice(keep),
      entries: entryIds(ctx.sessionManager, list, keep),
      system: sameValue(this.sent.system, system) ? undefined : system,
      tools: sameValue(this.sent.tools, tools) ? undefined : tools,
      model: this.shim.model(ctx),
      time_ms: Date.now(),
      warmed_ms: warmedAt(ctx.sessionManager),
      zone: timeZone(),
    };
    return {
      params,
      sameHead: params.system === undefined && params.tools === undefined,
      accepted: () => {
        this.sent = { system, tools };
      },
    };
  }
}

/** The fields of Pi's model record from which prices, windows and caches are computed. */
const MODEL_FIELDS = [
  "provider",
  "id",
  "api",
  "contextWindow",
  "input",
  "cost",
  "promptCache",
  "reasoning",
] as const;

/** One of Pi's models, as the protocol describes it. */
export function describe(model: object): Record<string, unknown> {
  const given = model as Record<string, unknown>;
  const fields = MODEL_FIELDS.filter((field) => given[field] !== undefined);
  // Pi asks providers for the long retention where its environment says so.
  const retention = process.env.PI_CACHE_RETENTION === "long" ? { retention: "long" } : {};
  return { ...Object.fromEntries(fields.map((field) => [field, given[field]])), ...retention };
}

/** The newest answer of `timeZone`: asking for a name takes longer than all else in a request. */
let zone = { name: "", offset_minutes: Number.NaN };

/** The time zone of this machine, as the protocol describes it. */
function timeZone(): Record<string, unknown> {
  const offset = -Math.round(new Date().getTimezoneOffset());
  if (offset !== zone.offset_minutes) {
    // A runtime without time zone data has no name for it.
    const name = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
    zone = { name, offset_minutes: offset };
  }
  return zone;
}

/** The definitions of the active tools: `{name, description, parameters}`, in Pi's order. */
function describeTools(pi: ExtensionAPI): Record<string, unknown>[] {
  const active = new Set(pi.getActiveTools());
  return pi
    .getAllTools()
    .filter((tool) => active.has(tool.name))
    .map(({ name, description, parameters }) => ({ name, description, parameters }));
}

/** The part of Pi's session manager that is used here. */
interface EntrySource {
  getLeafEntry?(): unknown;
  getEntry?(id: string): unknown;
}

/** Entries beyond the messages that are looked for: Pi may leave some out of the list. */
const SLACK = 50;

/**
 * Entry ids for `list[start..]`, index-aligned, null where unknown.
 *
 * Walks back from the session's leaf, which costs as much as there are new messages.
 *
 * @param list the host's messages without system entries
 */
export function entryIds(
  source: EntrySource,
  list: readonly HostMessage[],
  start: number,
): (string | null)[] {
  const wanted = list.slice(start).reverse();
  const ids: (string | null)[] = wanted.map(() => null);
  if (wanted.length === 0) return ids;
  try {
    const found = new Map<string, string[]>();
    let count = 0;
    for (const entry of fromLeaf(source)) {
      const key = entryKey(entry);
      if (key === null) continue;
      found.set(key, [...(found.get(key) ?? []), String(entry.id)]);
      count += 1;
      if (count === wanted.length + SLACK) break;
    }
    // The newest first, as they were found: two messages can have the same key.
    wanted.forEach((message, index) => {
      ids[index] = found.get(nameOf(message))?.shift() ?? null;
    });
  } catch {
    // A Pi that keeps its entries in another way.
  }
  return ids.reverse();
}

/** The entries of the branch, from its leaf back. */
function* fromLeaf(source: EntrySource): Generator<Record<string, unknown>> {
  let entry = source.getLeafEntry?.();
  while (isRecord(entry)) {
    yield entry;
    entry = typeof entry.parentId === "string" ? source.getEntry?.(entry.parentId) : undefined;
  }
}

/** The key of the message that Pi makes of an entry, or null if it makes none that we count. */
function entryKey(entry: Record<string, unknown>): string | null {
  if (entry.type === "message" && isRecord(entry.message)) {
    return entry.message.role === "system" ? null : nameOf(entry.message as HostMessage);
  }
  const role = ROLE_OF_ENTRY[String(entry.type)];
  return role && typeof entry.timestamp === "string"
    ? `${role} ${new Date(entry.timestamp).getTime()}`
    : null;
}

const ROLE_OF_ENTRY: Record<string, string> = {
  custom_message: "custom",
  branch_summary: "branchSummary",
  compaction: "compactionSummary",
};

/**
 * The time of the newest warming request since the newest answer, in milliseconds since 1970, or
 * undefined. Pi keeps each as a usage entry; it uses the model that the request before it used.
 */
export function warmedAt(source: EntrySource): number | undefined {
  try {
    for (const entry of fromLeaf(source)) {
      if (isRecord(entry.message) && entry.message.role === "assistant") return undefined;
      if (entry.type === "usage" && entry.kind === "cache_warm") {
        return Date.parse(String(entry.timestamp)) || undefined;
      }
    }
  } catch {
    // As above: the cache then counts as not warmed.
  }
  return undefined;
}

/** A longer text was pasted: nothing in it counts as said by the user. */
const MOST_TYPED_CHARS = 1000;
/** How Pi puts the `@file` arguments of its command line before the message. */
const FILE_BEGINS = '<file name="';
const FILE_ENDS = "</file>\n";
/** `/skill:name` or a prompt template: what follows is the user's. */
const COMMAND = /^\/\S+\s+/;

/**
 * What of an input the user typed; null for nothing. Of what came with Pi's command line one
 * argument of one line counts: files and standard input come before it in the same text, and a
 * longer argument is most likely the text of a file (`pi "$(cat issue.md)"`).
 *
 * @param args the arguments of this process
 * @param hasUI whether a user could type into this Pi
 */
export function typedIn(
  { text, source }: { text: string; source: string },
  args: readonly string[],
  hasUI: boolean,
): string | null {
  if (source === "extension") return null;
  const files = text.includes(FILE_BEGINS) ? text.lastIndexOf(FILE_ENDS) : -1;
  const own = files < 0 ? text : text.slice(files + FILE_ENDS.length);
  const given = args.filter((arg) => own.endsWith(arg)).sort((a, b) => b.length - a.length)[0];
  const isArgument = source === "interactive" && (!hasUI || given === own);
  const typed = isArgument ? (given ?? "") : own;
  if (isArgument && typed.includes("\n")) return null;
  const said = typed.replace(COMMAND, "").trim();
  return said !== "" && said.length <= MOST_TYPED_CHARS ? said : null;
}
