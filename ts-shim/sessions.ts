/** Pi's session events: opens sessions with the engine, reports changes to it, ends it. */

import { closeSync, openSync, readSync } from "node:fs";
import type {
  ExtensionAPI,
  ExtensionContext,
  SessionStartEvent,
} from "@earendil-works/pi-coding-agent";
import { isRecord } from "./context/messages.ts";
import type { SessionParams } from "./engine/protocol.ts";
import type { Shim } from "./shim.ts";

/** Passes this Pi's session id to the processes it starts, so that a subagent can be linked. */
const OWN_SESSION = "FOREDECK_SESSION";
/**
 * Where the id of the starting session is kept once read: the variable is then overwritten with
 * this Pi's own session, and Pi loads this module again for each one.
 */
const STARTED_BY = Symbol.for("foredeck.started_by");

/** The session whose agent started this Pi process, or null. */
function startedBy(): string | null {
  const known = globalThis as { [STARTED_BY]?: string | null };
  if (known[STARTED_BY] === undefined) known[STARTED_BY] = process.env[OWN_SESSION] || null;
  return known[STARTED_BY] ?? null;
}

/** `pi --foredeck-private`: the sessions that this Pi begins are private. */
const PRIVATE_FLAG = "foredeck-private";

/** Registers the handlers, and the flag that makes new sessions private. */
export function registerSessions(pi: ExtensionAPI, shim: Shim): void {
  pi.registerFlag?.(PRIVATE_FLAG, {
    description: "foredeck: keep nothing that is said in new sessions beyond them",
    type: "boolean",
    default: false,
  });
  pi.on("session_start", (event, ctx) => {
    shim.safely("session_start", () => {
      const params = sessionParams(event, ctx);
      if (pi.getFlag?.(PRIVATE_FLAG) === true) params.private = true;
      shim.begin(params, ctx);
    });
  });
  pi.on("session_shutdown", async (event) => {
    await shim.end(event.reason).catch((error) => shim.log(`session_shutdown: ${error}`));
  });
  pi.on("session_tree", (event) => {
    shim.event("tree", { new_leaf: event.newLeafId, old_leaf: event.oldLeafId });
  });
  pi.on("model_select", (event) => {
    shim.event("model", { provider: event.model.provider, id: event.model.id });
  });
}

function sessionParams(event: SessionStartEvent, ctx: ExtensionContext): SessionParams {
  const { sessionManager } = ctx;
  const starter = startedBy();
  process.env[OWN_SESSION] = sessionManager.getSessionId();
  const parentFile = sessionManager.getHeader?.()?.parentSession;
  return {
    session: sessionManager.getSessionId(),
    file: sessionManager.getSessionFile() ?? null,
    cwd: ctx.cwd,
    reason: event.reason,
    parent: parentFile ? sessionIdIn(parentFile) : null,
    started_by: starter,
  };
}

/** Enough for any real header, though Pi's own limit is higher. */
const HEADER_BYTES = 64 * 1024;

/** The session id in the first line of a session file, or null. */
export function sessionIdIn(file: string): string | null {
  try {
    const header: unknown = JSON.parse(firstLine(file));
    return isRecord(header) && typeof header.id === "string" ? header.id : null;
  } catch {
    return null;
  }
}

function firstLine(file: string): string {
  const descriptor = openSync(file, "r");
  try {
    const buffer = Buffer.alloc(HEADER_BYTES);
    const text = buffer.toString("utf8", 0, readSync(descriptor, buffer, 0, HEADER_BYTES, 0));
    return text.split("\n", 1)[0] ?? "";
  } finally {
    closeSync(descriptor);
  }
}
