import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionEntry } from "@earendil-works/pi-coding-agent";
import { type HostMessage, sameMessage, sameValue } from "../context/messages.ts";
import { AnswerInForce, Plan } from "../context/plan.ts";
import { branchOf, entryIds } from "../context/request.ts";
import { assistant, call, conversation, result, user } from "./support/conversation.ts";
import { forSeeds } from "./support/random.ts";

test("values are equal where their JSON is", () => {
  assert.ok(sameValue({ a: [1, { b: null }], c: "x" }, { c: "x", a: [1, { b: null }] }));
  assert.ok(!sameValue({ a: 1 }, { a: 1, b: 2 }));
  assert.ok(!sameValue({ a: 1, b: 2 }, { a: 1 }));
  assert.ok(!sameValue({ a: undefined, b: 1 }, { b: 1, c: 1 }));
  assert.ok(!sameValue([], {}));
  assert.ok(!sameValue(null, {}));
  assert.ok(!sameValue("1", 1));
});

test("everything in a message counts but its details and usage", () => {
  const base = { ...result("a", "A"), details: { diff: "x" } };
  assert.ok(sameMessage(base, { ...base, details: { diff: "y" } }));
  assert.ok(sameMessage(base, result("a", "A")));
  for (const change of [
    { content: [{ type: "text", text: "B" }] },
    { isError: true },
    { toolCallId: "b" },
    { timestamp: 9 },
    { extra: 1 },
  ]) {
    assert.ok(!sameMessage(base, { ...base, ...change }), JSON.stringify(change));
  }
  assert.ok(
    !sameMessage(assistant([call("a")]), assistant([call("a", "bash", { command: "pwd" })])),
  );
});

test("the common prefix is found wherever the lists diverge", () => {
  forSeeds(300, (random) => {
    const list = conversation(random, 1 + random.below(10));
    const answered = new AnswerInForce();
    answered.hold(list, 1);
    const next = structuredClone(list);
    assert.equal(answered.commonPrefix(next), list.length);
    next.push(user("new"));
    assert.equal(answered.commonPrefix(next), list.length);
    const at = random.below(list.length);
    next[at] = { ...(next[at] as HostMessage), timestamp: -1 };
    assert.equal(answered.commonPrefix(next), at);
    assert.equal(answered.commonPrefix(next.slice(0, at)), at);
  });
});

test("accepted messages keep their content when edits replace it", () => {
  const answered = new AnswerInForce();
  const list = [user("a"), result("x", "X")];
  answered.hold(list, 1);
  (list[1] as HostMessage).content = [{ type: "text", text: "folded" }];
  assert.equal(answered.commonPrefix([user("a"), result("x", "X")]), 2);
});

test("accepting a shorter list forgets the rest", () => {
  const answered = new AnswerInForce();
  const answer = { call: 1, from: 0, plan: new Plan() };
  answered.accept([user("a"), user("b"), user("c")], 0, answer, 1);
  answered.accept([user("a"), user("d")], 1, answer, 1);
  assert.equal(answered.commonPrefix([user("a"), user("d"), user("c")]), 2);
});

/** A session's entries in a row, as Pi's session manager hands them out. */
function session(entries: Record<string, unknown>[]): SessionEntry[] {
  return entries.map((entry, i) => ({ ...entry, id: `e${i}` })) as never;
}

test("messages get the ids of the entries they came from", () => {
  const list = [user("a", 1), assistant([call("x")], 2), result("x", "X", 3), user("b", 4)];
  const [first, second, third, fourth] = list;
  const source = session([
    { type: "message", message: { role: "system", content: "prompt", timestamp: 0 } },
    { type: "message", message: first },
    { type: "model_change" },
    { type: "message", message: second },
    { type: "message", message: third },
    { type: "label" },
    { type: "message", message: fourth },
  ]);
  assert.deepEqual(entryIds(source, list), ["e1", "e3", "e4", "e6"]);
  assert.deepEqual(entryIds(source, list.slice(3)), ["e6"]);
  assert.deepEqual(entryIds(source, list.slice(4)), []);
});

test("a message that another extension made has no id; an entry that it left out is skipped", () => {
  const source = session([
    { type: "message", message: user("a", 1) },
    { type: "message", message: user("left out", 2) },
    { type: "message", message: user("c", 3) },
  ]);
  assert.deepEqual(entryIds(source, [user("a", 1), user("theirs", 77), user("c", 3)]), [
    "e0",
    null,
    "e2",
  ]);
});

test("custom messages and summaries are matched by the time of their entry", () => {
  const timestamp = "2026-01-01T00:00:00.000Z";
  const time = new Date(timestamp).getTime();
  const source = session([
    { type: "branch_summary", summary: "s", timestamp },
    { type: "custom_message", content: "c", timestamp },
  ]);
  const list = [
    { role: "branchSummary", summary: "s", timestamp: time },
    { role: "custom", content: "c", timestamp: time },
  ];
  assert.deepEqual(entryIds(source, list), ["e0", "e1"]);
});

test("after a compaction, and for many new messages, Pi's projection decides", () => {
  const timestamp = "2026-01-01T00:00:00.000Z";
  const summary = { role: "compactionSummary", timestamp: new Date(timestamp).getTime() };
  const compacted = session([
    { type: "compaction", timestamp },
    { type: "message", message: user("kept", 1) },
  ]);
  assert.deepEqual(entryIds(compacted, [summary, user("kept", 1)]), ["e0", "e1"]);
  const long = Array.from({ length: 500 }, (_, i) => user(`m${i}`, i));
  const source = session(long.map((message) => ({ type: "message", message })));
  assert.deepEqual(
    entryIds(source, long),
    long.map((_, i) => `e${i}`),
  );
});

test("a Pi that cannot tell, or throws, gives null", () => {
  const stale = {
    getBranch: () => {
      throw new Error("stale");
    },
  };
  for (const sessionManager of [{}, stale]) {
    const branch = branchOf({ sessionManager } as never);
    assert.deepEqual(entryIds(branch, [user("a")]), [null]);
  }
});
