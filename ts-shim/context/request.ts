/** Builds the parameters of `context/assemble` from Pi's state. */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Shim } from "../shim.ts";
import { entryIds, warmedAt } from "./entries.ts";
import { type HostMessage, isSystem, sameValue } from "./messages.ts";

/** The host's list for one model call, with and without its system entries. */
export interface HostLists {
  ctx: ExtensionContext;
  all: HostMessage[];
  list: HostMessage[];
}

/** The part of a request that depends on what was sent before, and how to remember that it was. */
export interface BuiltRequest {
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
  build({ ctx, all, list }: HostLists, keep: number): BuiltRequest {
    // It may be another engine, or one that has lost the session: it has nothing of before.
    if (keep === 0) this.sent = {};
    const system = systemMessages(all, ctx);
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

function systemMessages(all: readonly HostMessage[], ctx: ExtensionContext): HostMessage[] {
  const system = all.filter(isSystem);
  // A Pi without `context_with_system` leaves its system messages out of the list.
  return system.length > 0 ? system : [{ role: "system", content: ctx.getSystemPrompt() }];
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
