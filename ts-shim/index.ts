/** foredeck inside Pi: carries messages to the engine, which decides, and applies its answers. */

import { fileURLToPath } from "node:url";
import { type ExtensionAPI, VERSION } from "@earendil-works/pi-coding-agent";
import { register } from "./command.ts";
import { registerCompaction } from "./compaction.ts";
import { registerContextHook } from "./context/hook.ts";
import { registerRefused, registerRequests } from "./context/provider.ts";
import { stateDir } from "./files.ts";
import { isSupported, TOO_OLD, visible } from "./host.ts";
import { registerSessions, Shim } from "./shim.ts";
import { registerToolCalls } from "./tool-calls.ts";
import { declaredFacilities, keepFacilities, registerNames } from "./tools.ts";

export default async function foredeck(pi: ExtensionAPI): Promise<void> {
  const here = fileURLToPath(import.meta.url);
  const first = firstCopy(pi, here);
  if (first !== null) {
    const twice = `foredeck is loaded twice: ${here} does nothing beside ${first}.`;
    return stayOff(pi, `${twice} Remove one of them (pi list, pi remove).`);
  }
  if (!isSupported(VERSION)) return stayOff(pi, TOO_OLD);
  const shim = new Shim(pi);
  registerSessions(pi, shim);
  registerContextHook(pi, shim);
  registerRequests(pi, shim);
  registerRefused(pi, shim);
  registerCompaction(pi, shim);
  const facilities = await declaredFacilities(stateDir(), process.cwd());
  registerNames(pi, shim, facilities);
  pi.on("session_shutdown", (event) => keepFacilities(event.reason, facilities));
  registerToolCalls(pi, shim);
  register(pi, shim, "foredeck");
}

/** A copy asks here who was first, with a function that takes the path of that one. */
const CHANNEL = "foredeck:loaded";

/** The path of the copy that was loaded before: Pi would not start with the tools of both. */
function firstCopy(pi: ExtensionAPI, path: string): string | null {
  let first: string | null = null;
  pi.events.emit(CHANNEL, (other: string) => {
    first ??= other;
  });
  if (first === null) pi.events.on(CHANNEL, (answer) => (answer as (path: string) => void)(path));
  return first;
}

/** Says why this copy does nothing, once. */
function stayOff(pi: ExtensionAPI, why: string): void {
  let notified = false;
  pi.on("session_start", (_event, ctx) => {
    if (notified) return;
    notified = true;
    if (ctx.hasUI) ctx.ui.notify(visible(why), "warning");
    else console.error(visible(why));
  });
}
