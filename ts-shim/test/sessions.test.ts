import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "./support/harness.ts";
import { registered } from "./support/pi.ts";

test("session events are reported", async () => {
  const { fire, harness } = registered("good");
  await harness.shim.engine.whenReady();
  await fire("session_compact", { compactionEntry: { id: "c", summary: "s" }, reason: "manual" });
  const answer = { role: "assistant", content: [] };
  await fire("turn_end", { message: answer, messageEntryId: "d", toolResults: [] });
  await fire("turn_end", { message: answer, toolResults: [{}] });
  await until(() => harness.requests("session/event").length === 2, "reported");
  assert.deepEqual(
    harness.requests("session/event").map(({ params }) => params),
    [
      { session: "s1", kind: "compact", entry: "c", summary: "s", by: "model" },
      { session: "s1", kind: "answer", message: answer, entry: "d" },
    ],
  );
});

test("session_start opens a session with its file and parent; session_shutdown closes it", async () => {
  const { fire, harness } = registered("good");
  const sessionManager = {
    getSessionId: () => "s2",
    getSessionFile: () => "/s2.jsonl",
    getHeader: () => ({ parentSession: "/p1.jsonl" }),
  };
  await harness.shim.engine.whenReady();
  const ctx = { ...(harness.ctx as object), sessionManager };
  await fire("session_start", { reason: "fork" }, ctx);
  await fire("session_start", { reason: "fork" }, ctx);
  await fire("session_shutdown", { reason: "quit" });
  const opened = harness.requests("session/open").map(({ params }) => params);
  assert.equal(opened.length, 2);
  assert.deepEqual(opened[1], {
    session: "s2",
    file: "/s2.jsonl",
    cwd: harness.folder,
    reason: "fork",
    parent: null,
    parent_file: "/p1.jsonl",
    started_by: null,
  });
  assert.deepEqual(harness.requests("session/close")[0]?.params, { session: "s2", reason: "quit" });
});

test("--foredeck-private asks for private sessions, and nothing else does", async () => {
  const { fire, flags, harness } = registered("good");
  await harness.shim.engine.whenReady();
  for (const session of ["s2", "s3"]) {
    flags["foredeck-private"] = session === "s3";
    const sessionManager = {
      getSessionId: () => session,
      getSessionFile: () => null,
      getHeader: () => null,
    };
    await fire("session_start", { reason: "new" }, { ...(harness.ctx as object), sessionManager });
  }
  await until(() => harness.requests("session/open").length === 3, "opened");
  const opened = harness.requests("session/open").map(({ params }) => params);
  assert.deepEqual(
    opened.map((params) => params.private),
    [undefined, undefined, true],
  );
});
