/**
 * foredeck inside Pi. The engine (python/foredeck) makes all decisions; this extension carries
 * messages to it, applies its edits, and keeps Pi going without it.
 */

import { fileURLToPath } from "node:url";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { register } from "./command.ts";
import { registerCompaction } from "./compaction.ts";
import { registerContextHook } from "./context/hook.ts";
import { registerRequests } from "./context/provider.ts";
import { registerRefused } from "./context/refused.ts";
import { stateDir } from "./engine/state-dir.ts";
import { registerGuards } from "./guards.ts";
import { registerNames } from "./names.ts";
import { isOhMyPi, piModule } from "./pi.ts";
import { registerPreparing } from "./preparing.ts";
import { registerReporting } from "./reporting.ts";
import { registerSessions } from "./sessions.ts";
import { Shim } from "./shim.ts";
import { firstCopy, stepAside } from "./single.ts";
import { declaredFacilities, keepFacilities } from "./switches.ts";

export default async function foredeck(pi: ExtensionAPI): Promise<void> {
  const here = fileURLToPath(import.meta.url);
  const first = firstCopy(pi, here);
  if (first !== null) return stepAside(pi, here, first);
  const shim = new Shim(pi, await piModule());
  registerSessions(pi, shim);
  registerContextHook(pi, shim);
  registerRequests(pi, shim);
  registerRefused(pi, shim);
  registerCompaction(pi, shim);
  const facilities = await declaredFacilities(stateDir(), process.cwd());
  registerNames(pi, shim, facilities, isOhMyPi(pi));
  pi.on("session_shutdown", (event) => keepFacilities(event.reason, facilities));
  registerGuards(pi);
  // Before the reports: a call that is blocked never runs, so its start is not reported.
  registerPreparing(pi, shim, shim.pi.ExtensionRunner);
  registerReporting(pi, shim);
  register(pi, shim, "foredeck");
}
