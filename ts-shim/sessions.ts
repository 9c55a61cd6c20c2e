/** Pi's session events: opens sessions with the engine, reports changes to it, ends it. */

import type {
  ExtensionAPI,
  ExtensionContext,
  SessionStartEvent,
} from "@earendil-works/pi-coding-agent";
import type { Shim } from "./shim.ts";

/** Parameters of `session/open`. */
export interface SessionParams {
  session: string;
  file: string | null;
  cwd: string;
  reason: string;
  parent: string | null;
  /** The host's file of that session, where only this is known. */
  parent_file?: string | null;
  /** The session whose agent started this Pi, by a command or as a subagent. */
  started_by?: string | null;
  /** Whether a new session keeps to itself what is said in it. */
  private?: boolean;
  /** Calls that the session had when this Pi first opened it; left out that first time. */
  calls?: number;
}

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
    await shim.end(event.reason).catch((error) => shim.logError("session_shutdown", error));
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
  return {
    session: sessionManager.getSessionId(),
    file: sessionManager.getSessionFile() ?? null,
    cwd: ctx.cwd,
    // oh-my-pi, a fork of Pi, gives no reason.
    reason: event.reason ?? "startup",
    parent: null,
    parent_file: sessionManager.getHeader?.()?.parentSession ?? null,
    started_by: starter,
  };
}
