/**
 * What a session holds when it opens, sent to the engine ahead of the first model call: that call
 * would have to bring thousands of messages within its own time.
 */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type RequestOptions, within } from "../engine/wire.ts";
import type { Shim } from "../shim.ts";
import { type HostMessage, isSystem } from "./messages.ts";
import type { RequestBuilder } from "./request.ts";

/** A shorter history comes with the first call, which takes it in as fast. */
export const LEAST_MESSAGES = 200;
/** How long the engine may take over it while nobody waits. */
const TAKING_MS = 120_000;
/** How long the first call waits for that, unless it may wait longer for an answer anyway. */
export const HISTORY_MS = 10_000;

/** The messages that the engine holds, and its connection that does. */
export interface Held {
  list: HostMessage[];
  generation: number;
}

/** Sends the history of one session, once to each engine. */
export class History {
  private readonly shim: Shim;
  private readonly requests: RequestBuilder;
  private underWay: Promise<Held | null> | null = null;

  constructor(shim: Shim, requests: RequestBuilder) {
    this.shim = shim;
    this.requests = requests;
  }

  /**
   * Sends the session's messages. Returns at once; where it fails, the first call brings them.
   * @param all as Pi has them, system entries included
   */
  send(session: string, all: HostMessage[], ctx: ExtensionContext): void {
    const { engine, host } = this.shim;
    const list = all.filter((message) => !isSystem(message));
    const { params } = this.requests.build({ ctx, all, list }, 0);
    const { messages, entries, system, tools } = params;
    const { generation } = engine;
    host.status(`foredeck: taking in ${list.length} messages`);
    const request = { session, messages, entries, system, tools };
    this.underWay = engine
      .request("session/history", request, { deadlineMs: TAKING_MS, holdsProcess: false })
      .then((result) => {
        const { messages: count } = result as { messages: number };
        return count > 0 ? { list: list.slice(0, count), generation } : null;
      })
      .catch((error) => {
        this.shim.logError("session/history", error);
        return null;
      })
      .finally(() => host.status("foredeck"));
  }

  /** Another session: nothing of the last one applies. */
  clear(): void {
    this.underWay = null;
  }

  /**
   * What the engine holds, as soon as it does; null where nothing was sent, or nothing came of it.
   * Given once.
   * @throws DeadlineError, AbortedError
   */
  async take(options: RequestOptions): Promise<Held | null> {
    const { underWay } = this;
    this.underWay = null;
    return underWay === null ? null : within(underWay, options);
  }
}
