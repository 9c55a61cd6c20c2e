/** Registers the context hook for the one event that fits this version of Pi. */

import type {
  ContextEventResult,
  ExtensionAPI,
  ExtensionContext,
} from "@earendil-works/pi-coding-agent";
import { firesContextWithSystem } from "../pi-version.ts";
import type { Shim } from "../shim.ts";
import type { HostMessage } from "./messages.ts";

/**
 * Registers for `context_with_system` where Pi has it: it runs after every other extension, and Pi
 * sends what it returns as it is. Elsewhere for `context`.
 */
export function registerContextHook(pi: ExtensionAPI, shim: Shim, version: string): void {
  const event = firesContextWithSystem(version) ? "context_with_system" : "context";
  pi.on(event as "context", async ({ messages }, ctx): Promise<ContextEventResult | undefined> => {
    shim.host.attach(ctx);
    const own = messages as unknown as HostMessage[];
    const list = withPutAway(own, ctx, shim);
    const result = await shim.context.run(list, ctx);
    if (!result && list === own) return undefined;
    return { messages: (result ?? list) as unknown as typeof messages };
  });
}

/** Pi's list, with what the user has had put away or back; Pi's own where that fails. */
function withPutAway(own: HostMessage[], ctx: ExtensionContext, shim: Shim): HostMessage[] {
  let list = own;
  shim.safely("chat put away or back", () => {
    if (!shim.isOff()) list = shim.putAway.apply(own, ctx);
  });
  return list;
}
