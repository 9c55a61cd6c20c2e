import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { registerCompaction } from "../compaction.ts";
import { Harness, until } from "./support/harness.ts";
import { registered } from "./support/pi.ts";

let harness: Harness | null = null;
afterEach(async () => {
  await harness?.close();
  harness = null;
});

/** Fires Pi's event; the fake engine answers with `answer`. */
async function compact(answer: unknown, reason = "threshold", mode = "good"): Promise<unknown> {
  harness = new Harness(mode);
  harness.begin();
  let handler: (event: unknown, ctx: unknown) => Promise<unknown> = async () => "none";
  const on = (name: string, given: typeof handler) => {
    if (name === "session_before_compact") handler = given;
  };
  const pi = { on };
  registerCompaction(pi as never, harness.shim);
  const preparation = {
    messagesToSummarize: [{ role: "user", content: "a" }],
    turnPrefixMessages: [{ role: "user", content: "b" }],
    previousSummary: "before",
    tokensBefore: 900.4,
    firstKeptEntryId: "e7",
    settings: { reserveTokens: 100 },
  };
  const customInstructions = answer === undefined ? undefined : JSON.stringify(answer);
  return handler({ preparation, reason, customInstructions }, harness.ctx);
}

test("the engine's summary becomes Pi's compaction", async () => {
  const details = { foredeck: { ordinal: 4 } };
  const result = await compact({ action: "summary", summary: "All.", details });
  const compaction = { summary: "All.", firstKeptEntryId: "e7", tokensBefore: 900.4, details };
  assert.deepEqual(result, { compaction });
  const { params } = harness?.requests("session/compact")[0] ?? {};
  assert.deepEqual(
    { ...(params as object), time_ms: 0, model: null, instructions: null },
    {
      session: "s1",
      reason: "threshold",
      messages: [
        { role: "user", content: "a" },
        { role: "user", content: "b" },
      ],
      previous: "before",
      instructions: null,
      tokens: 900,
      reserve: 100,
      new_chars: 0,
      model: null,
      time_ms: 0,
    },
  );
});

test("a threshold may be cancelled, an overflow never is", async () => {
  assert.deepEqual(await compact({ action: "cancel" }), { cancel: true });
  await harness?.close();
  assert.equal(await compact({ action: "cancel" }, "overflow"), undefined);
});

for (const answer of [undefined, { action: "host" }, { action: "summary" }, { summary: "x" }, []]) {
  test(`Pi compacts by itself after ${JSON.stringify(answer)}`, async () => {
    assert.equal(await compact(answer), undefined);
  });
}

test("Pi compacts by itself where there is no engine", async () => {
  assert.equal(await compact({ action: "cancel" }, "threshold", "refuse-start"), undefined);
});

test("the user is told when another extension cancels a compaction or writes its summary", async () => {
  const { fire, harness } = registered("good");
  await harness.shim.engine.whenReady();
  const preparation = { firstKeptEntryId: "e7", messagesToSummarize: [], turnPrefixMessages: [] };
  const { signal } = new AbortController();
  const asked = { preparation, reason: "manual", signal };
  const compact = async (compactionEntry: object) => {
    await fire("session_before_compact", asked, harness.ctx);
    await fire("session_compact", { compactionEntry, reason: "manual", fromExtension: true });
  };
  await compact({ id: "a", firstKeptEntryId: "e7", details: { foredeck: {} } });
  await fire("session_compact_failed", { aborted: false });
  assert.doesNotMatch(harness.notices.join("\n"), /another extension/);
  await compact({ id: "b", firstKeptEntryId: "e7", summary: "theirs" });
  await compact({ id: "c", firstKeptEntryId: "e8", summary: "of other messages" });
  assert.match(harness.notices.at(-1) ?? "", /^Another extension wrote the summary/);
  await until(() => harness.requests("session/event").length === 3, "reported");
  assert.deepEqual(
    harness
      .requests("session/event")
      .map(({ params }) => [params.entry, params.summary, params.by]),
    [
      ["a", undefined, undefined],
      ["b", "theirs", "extension"],
      ["c", undefined, undefined],
    ],
  );
  await fire("session_before_compact", asked, harness.ctx);
  await fire("session_compact_failed", { aborted: true });
  assert.match(harness.notices.at(-1) ?? "", /^A compaction was cancelled by another extension/);
});

test("a compaction that the user cancelled is not blamed on another extension", async () => {
  const { fire, harness } = registered("good");
  await harness.shim.engine.whenReady();
  const preparation = { messagesToSummarize: [], turnPrefixMessages: [] };
  const signal = AbortSignal.abort();
  await fire("session_before_compact", { preparation, reason: "manual", signal }, harness.ctx);
  await fire("session_compact_failed", { aborted: true });
  assert.doesNotMatch(harness.notices.join("\n"), /another extension/);
});
