/**
 * Tells the user, once each, of other extensions that change what foredeck works on: the
 * conversation, Pi's own tools, or the request on its way to the provider.
 */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Host } from "../host.ts";
import { describeChanges, foreignChanges, replacedTools } from "./foreign.ts";
import type { HostMessage } from "./messages.ts";
import { describeRewriting, SentRequests } from "./rewritten.ts";

export interface OthersHost {
  pi: ExtensionAPI;
  host: Host;
  /** Runs work whose failure must not reach Pi. */
  safely(what: string, work: () => void): void;
}

export class OtherExtensions {
  private readonly deps: OthersHost;
  private readonly requests = new SentRequests();
  private foundChanges = false;

  constructor(deps: OthersHost) {
    this.deps = deps;
  }

  /** Another session: its requests continue none of the last one's. */
  clear(): void {
    this.requests.clear();
  }

  /** Compares a conversation with Pi's own, once the call is under way: that takes milliseconds. */
  inspectConversation(list: readonly HostMessage[], ctx: ExtensionContext): void {
    const { host, pi, safely } = this.deps;
    safely("looking for replaced tools", () => {
      const replaced = replacedTools(pi);
      if (replaced) host.notifyOnce("replaced", "info", replaced);
    });
    if (this.foundChanges) return;
    // The edits that follow set a new `content` on the messages themselves.
    const seen = list.map((message) => ({ ...message }));
    const { sessionManager } = ctx;
    setImmediate(() =>
      safely("comparing with Pi's own list", () => {
        const changes = foreignChanges(sessionManager, seen);
        if (!changes) return;
        this.foundChanges = true;
        host.notifyOnce("foreign", "warning", describeChanges(changes));
      }),
    );
  }

  /**
   * Announces the next request.
   * @param extendsLast it is the last one with messages added, and nothing else was changed
   */
  expectRequest(extendsLast: boolean, signal?: AbortSignal): void {
    this.requests.expect(extendsLast, signal);
  }

  /**
   * Looks at a request as Pi and the extensions loaded before this one have made it.
   * @param onRewritten called later with what somebody else has changed in it
   */
  inspectRequest(payload: unknown, onRewritten: (changed: string) => void): void {
    const compare = this.requests.inspect(payload);
    if (!compare) return;
    // Later extensions may still change it in place: compare when it is on its way.
    setImmediate(() => {
      const changed = compare();
      if (changed === null) return;
      onRewritten(changed);
      this.deps.host.notifyOnce("rewritten", "warning", describeRewriting(changed));
    });
  }
}
