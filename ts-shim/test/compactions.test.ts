import assert from "node:assert/strict";
import { test } from "node:test";
import { buildSessionProjection, type SessionEntry } from "@earendil-works/pi-coding-agent";
import { compactionsOf, uncompacted } from "../compaction.ts";
import type { HostMessage } from "../context/messages.ts";
import { user } from "./support/conversation.ts";

/** A branch of Pi's: each entry follows the one before. */
class Branch {
  readonly entries: SessionEntry[] = [];

  add(type: string, fields: Record<string, unknown>): string {
    const id = `e${this.entries.length}`;
    const timestamp = new Date(1000 + this.entries.length).toISOString();
    this.entries.push({
      type,
      id,
      parentId: this.entries.at(-1)?.id ?? null,
      timestamp,
      ...fields,
    } as never);
    return id;
  }

  message(message: HostMessage): string {
    return this.add("message", { message });
  }

  compact(summary: string, firstKeptEntryId: string): string {
    return this.add("compaction", { summary, firstKeptEntryId, tokensBefore: 9 });
  }

  takeBack(compaction: string): void {
    this.add("custom", { customType: "foredeck-uncompacted", data: { compaction } });
  }

  /** What Pi makes of it. */
  list(): HostMessage[] {
    const entries = structuredClone(this.entries);
    const projected = buildSessionProjection(entries, entries.at(-1)?.id).entries;
    return projected.flatMap((entry) => entry.messages) as unknown as HostMessage[];
  }

  /** Texts and summaries of what goes on to the engine. */
  texts(): unknown[] {
    const ctx = { sessionManager: { getBranch: () => this.entries } };
    return uncompacted(this.list(), ctx as never).map(textOf);
  }
}

function textOf({ content, summary }: HostMessage): unknown {
  if (typeof summary === "string") return summary;
  if (typeof content === "string") return content;
  return content?.map((block) => block.text ?? block.id).join(" ");
}

function conversation(branch: Branch, from: number, until: number): string[] {
  const ids = [];
  for (let n = from; n < until; n++) ids.push(branch.message(user(`m${n}`, n)));
  return ids;
}

test("Pi's list stays as it is where nothing was put away or back", () => {
  const branch = new Branch();
  const [, , third] = conversation(branch, 0, 4);
  branch.compact("C1", third as string);
  conversation(branch, 4, 5);
  assert.deepEqual(branch.texts(), ["C1", "m2", "m3", "m4"]);
});

test("what a compaction has put away comes back in front of what it has kept", () => {
  const branch = new Branch();
  const [, second] = conversation(branch, 0, 3);
  const first = branch.compact("C1", second as string);
  const [fourth] = conversation(branch, 3, 5);
  const newest = branch.compact("C2", fourth as string);
  conversation(branch, 5, 6);
  branch.takeBack(newest);
  assert.deepEqual(branch.texts(), ["C1", "m1", "m2", "m3", "m4", "m5"]);
  assert.deepEqual(
    compactionsOf(branch.entries).map(({ id }) => id),
    [first],
  );
  branch.takeBack(first);
  conversation(branch, 6, 7);
  assert.deepEqual(branch.texts(), ["m0", "m1", "m2", "m3", "m4", "m5", "m6"]);
  assert.deepEqual(compactionsOf(branch.entries), []);
});

test("the next compaction ends it", () => {
  const branch = new Branch();
  const [, , third] = conversation(branch, 0, 4);
  branch.takeBack(branch.compact("C1", third as string));
  const [fifth] = conversation(branch, 4, 6);
  const newest = branch.compact("C2", fifth as string);
  assert.deepEqual(branch.texts(), ["C2", "m4", "m5"]);
  branch.takeBack(newest);
  assert.deepEqual(branch.texts(), ["m0", "m1", "m2", "m3", "m4", "m5"]);
});
