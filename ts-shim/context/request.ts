/** The parts of a request to the engine, as Pi's state has them. */

import {
  type ExtensionAPI,
  type ExtensionContext,
  type SessionEntry,
  sessionEntryToContextMessages,
} from "@earendil-works/pi-coding-agent";
import {
  type Fields,
  type HostMessage,
  isSystem,
  nameOf,
  recordOf,
  UNSENT_STOPS,
} from "./messages.ts";

/** The host's list for one model call, and apart from each other its system entries and the rest. */
export interface HostLists {
  ctx: ExtensionContext;
  all: HostMessage[];
  system: HostMessage[];
  list: HostMessage[];
}

/** Takes a list apart, in one pass: it runs over the whole conversation at every model call. */
export function splitList(all: HostMessage[], ctx: ExtensionContext): HostLists {
  const lists: HostLists = { ctx, all, system: [], list: [] };
  for (const message of all) (isSystem(message) ? lists.system : lists.list).push(message);
  return lists;
}

/** The system messages of a list, and the definitions of the tools that are active, in Pi's order. */
export function headOf({ ctx, system: own }: HostLists, pi: ExtensionAPI): Fields {
  // A session has none before its first call, nor has one that an old Pi has kept.
  const system = own.length > 0 ? own : [{ role: "system", content: ctx.getSystemPrompt() }];
  const active = new Set(pi.getActiveTools());
  const tools = pi
    .getAllTools()
    .filter((tool) => active.has(tool.name))
    .map(({ name, description, parameters }) => ({ name, description, parameters }));
  return { system, tools };
}

type Branch = readonly SessionEntry[];

/** The messages from an index on, and Pi's entries of them. */
export function tailOf(list: readonly HostMessage[], keep: number, branch: Branch): Fields {
  const messages = list.slice(keep);
  return { messages, entries: entryIds(branch, messages) };
}

/** The API of Pi's virtual models, each of which picks a physical model for every request. */
const VIRTUAL = "pi-virtual";

/** The model in use, or in place of a virtual one the model that has answered last on the branch. */
export function modelOf(ctx: ExtensionContext): ExtensionContext["model"] {
  const { model } = ctx;
  if (model?.api !== VIRTUAL) return model;
  const answers = branchOf(ctx).flatMap((entry) =>
    entry.type === "message" && entry.message.role === "assistant" ? [entry.message] : [],
  );
  // Of a request that failed the model may be the virtual one.
  const newest = answers.findLast(({ stopReason }) => !UNSENT_STOPS.has(stopReason));
  return newest && ctx.modelRegistry.find(newest.provider, newest.model);
}

/** One of Pi's models, as the protocol describes it: nothing of its keys and addresses. */
export function describe(model: object): Fields {
  const { provider, id, api, contextWindow, input, cost, promptCache, reasoning } = model as Fields;
  // For which of their two times Pi asks providers to keep what they cache.
  const retention = process.env.PI_CACHE_RETENTION === "long" ? "long" : undefined;
  // Only switches: what else is there, such as a route, is nobody's business.
  const flags = Object.entries(recordOf((model as Fields).compat)).filter(([, on]) => on === true);
  const compat = flags.length > 0 ? Object.fromEntries(flags) : undefined;
  const own = { provider, id, api, contextWindow, input, cost, promptCache, reasoning };
  return { ...own, retention, compat, threads: inThreads(model) || undefined };
}

/** Whether Pi sends only what is new to a thread that the provider keeps. By Pi's own rule. */
export function inThreads(model: object): boolean {
  const { api, baseUrl, compat } = model as Fields;
  const { supportsMessageThreads } = recordOf(compat);
  const isTheirs = String(baseUrl).includes("api.anthropic.com");
  return api === "anthropic-messages" && Boolean(supportsMessageThreads ?? isTheirs);
}

/** The time zone of this machine, as the protocol describes it. Some runtimes have no name for it. */
export function timeZone(): Fields {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  return { name, offset_minutes: -Math.round(new Date().getTimezoneOffset()) };
}

/** The entries of the session's branch, oldest first; none where Pi cannot tell. */
export function branchOf(ctx: Pick<ExtensionContext, "sessionManager">): SessionEntry[] {
  try {
    return ctx.sessionManager.getBranch();
  } catch {
    return [];
  }
}

/** Entries beyond the messages that are looked for: Pi may leave some out of the list. */
const SLACK = 50;

/** Of each of the newest messages, the id of its entry in a branch; null where unknown. */
export function entryIds(branch: Branch, newest: readonly HostMessage[]): (string | null)[] {
  const ids = new Map<string, string[]>();
  let count = 0;
  // From the newest back, which costs as much as there are new messages.
  for (const entry of branch.toReversed()) {
    const messages = sessionEntryToContextMessages(entry) as unknown as HostMessage[];
    const message = messages.find((each) => !isSystem(each));
    if (!message) continue;
    const name = nameOf(message);
    ids.set(name, [...(ids.get(name) ?? []), entry.id]);
    count += 1;
    if (count === newest.length + SLACK) break;
  }
  const idOf = (message: HostMessage) => ids.get(nameOf(message))?.shift() ?? null;
  // In the order in which they were met: two messages can have the same name.
  return newest.toReversed().map(idOf).reverse();
}

/** The time of the newest warming request since the newest answer. Pi keeps each as a usage entry. */
export function warmedAt(branch: Branch): number | undefined {
  const isWarming = (entry: SessionEntry) => entry.type === "usage" && entry.kind === "cache_warm";
  const isAnswer = (entry: SessionEntry) =>
    entry.type === "message" && entry.message.role === "assistant";
  const newest = branch.findLast((entry) => isWarming(entry) || isAnswer(entry));
  return newest && isWarming(newest) ? Date.parse(newest.timestamp) || undefined : undefined;
}
