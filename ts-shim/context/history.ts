/**
 * What a session holds when it opens, sent to the engine ahead of the first model call: that call
 * would have to bring thousands of messages within its own time.
 */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Shim } from "../shim.ts";
import { type HostMessage, isSystem } from "./messages.ts";
import type { RequestBuilder } from "./request.ts";

/** A shorter history comes with the first call, which takes it in as fast. */
export const LEAST_MESSAGES = 200;
/** How long the engine may take over it while no call waits. */
const TAKING_MS = 120_000;
/** How long the first call waits for that, unless it may wait longer for an answer anyway. */
export const HISTORY_MS = 10_000;

/** The messages that the engine holds, and its connection that does. */
export interface Held {
  list: HostMessage[];
  generation: number;
}

/**
 * Sends a session's messages. Where it fails, the first call brings them.
 * @param all as Pi has them, system entries included
 * @returns what the engine then holds; null where nothing came of it. Never rejects
 */
export async function sendHistory(
  shim: Shim,
  requests: RequestBuilder,
  { session, all, ctx }: { session: string; all: HostMessage[]; ctx: ExtensionContext },
): Promise<Held | null> {
  const { engine, host } = shim;
  const { generation } = engine;
  const list = all.filter((message) => !isSystem(message));
  host.status(`foredeck: taking in ${list.length} messages`);
  try {
    const { messages, entries, system, tools } = requests.build({ ctx, all, list }, 0).params;
    const params = { session, messages, entries, system, tools };
    const limits = { deadlineMs: TAKING_MS, holdsProcess: false };
    const held = (await engine.request("session/history", params, limits)) as { messages: number };
    return held.messages > 0 ? { list: list.slice(0, held.messages), generation } : null;
  } catch (error) {
    shim.logError("session/history", error);
    return null;
  } finally {
    host.status("foredeck");
  }
}
