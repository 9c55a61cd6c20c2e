/** Registers the context hook for the one event that fits this version of Pi. */

import type { ContextEventResult, ExtensionAPI } from "@earendil-works/pi-coding-agent";
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
    const result = await shim.context.run(messages as unknown as HostMessage[], ctx);
    return result ? { messages: result as unknown as typeof messages } : undefined;
  });
}
