/**
 * Requests on their way to the provider, as Pi and the extensions loaded before this one have made
 * them: changes by others are found, the last request is kept to be asked again, and an Anthropic
 * request gets one more cache marker. Pi marks the end of each request; the engine names the end of
 * an earlier one that the provider should keep in its cache as well.
 */

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { Shim } from "../shim.ts";
import { isRecord } from "./messages.ts";

/** What Anthropic allows in one request. */
const MAX_MARKERS = 4;

type Json = Record<string, unknown>;

/** Registers what is done with each request. */
export function registerRequests(pi: ExtensionAPI, shim: Shim): void {
  const { context, host } = shim;
  pi.on("after_provider_response", ({ status }) => context.lastRequest.answered(status));
  pi.on("before_provider_request", ({ payload }, ctx) => {
    let marked: Json | undefined;
    shim.safely("before_provider_request", () => {
      marked = withMarker(payload, context.marker);
      const compare = context.lastRequest.take(marked ?? payload, ctx.model);
      // Later extensions may still change it in place: compared when it is on its way.
      if (compare) setImmediate(() => shim.safely("comparing requests", () => report(compare())));
    });
    return marked;
  });
  const report = (changed: string | null) => {
    if (changed === null) return;
    context.rewrittenByOthers(changed);
    host.notifyOnce(
      "rewritten",
      "warning",
      `Another extension changes requests on their way to the model (${changed}), and the ` +
        "provider's cache misses what follows. If costs rise, use only one of the two.",
    );
  };
}

/**
 * A copy of the request with a marker on the result of this tool call.
 *
 * @returns undefined where the request is to stay as it is: without Pi's own marker at its end
 * (another API, caching switched off), without that result, or with no marker left to set
 */
export function withMarker(payload: unknown, toolCallId: string | null): Json | undefined {
  if (!toolCallId || !isRecord(payload) || !Array.isArray(payload.messages)) return undefined;
  const messages = payload.messages as unknown[];
  const control = contentOf(messages.at(-1)).at(-1)?.cache_control;
  if (!control || markers(payload) >= MAX_MARKERS) return undefined;
  const isWanted = (block: Json) =>
    block.type === "tool_result" && block.tool_use_id === toolCallId;
  const at = messages.findLastIndex((message) => contentOf(message).some(isWanted));
  const message = messages[at];
  const block = contentOf(message).find(isWanted);
  if (!isRecord(message) || !block || block.cache_control) return undefined;
  const content = contentOf(message).map((own) =>
    own === block ? { ...own, cache_control: control } : own,
  );
  return { ...payload, messages: messages.with(at, { ...message, content }) };
}

function markers(payload: Json): number {
  const { tools, system, messages } = payload;
  const blocks = [tools, system].flatMap(records).concat(records(messages).flatMap(contentOf));
  return blocks.filter((block) => block.cache_control).length;
}

function contentOf(message: unknown): Json[] {
  return isRecord(message) ? records(message.content) : [];
}

function records(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
