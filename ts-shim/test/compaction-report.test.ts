import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "./support/harness.ts";
import { registered } from "./support/pi.ts";

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
