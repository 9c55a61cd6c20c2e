import assert from "node:assert/strict";
import { test } from "node:test";
import { user } from "./support/conversation.ts";
import { until } from "./support/harness.ts";
import { registered } from "./support/pi.ts";

test("every tool result is reported, with its details and its parent; nothing is returned", async () => {
  const { fire, harness } = registered("good");
  await harness.shim.engine.whenReady();
  const event = {
    toolCallId: "a/1",
    parentToolCallId: "a",
    toolName: "bash",
    input: { command: "ls" },
    content: [{ type: "text", text: "x" }],
    details: { fullOutputPath: "/tmp/out" },
    isError: false,
  };
  assert.equal(await fire("tool_result", event), undefined);
  assert.equal(await fire("tool_result", { ...event, content: [{ text: 1n }] }), undefined);
  const huge = [{ type: "text", text: "x".repeat(17 * 1024 * 1024) }];
  assert.equal(await fire("tool_result", { ...event, content: huge }), undefined);
  await until(() => harness.requests("tool/observed").length > 0, "observed");
  await harness.call([user("x")]);
  const observed = harness.requests("tool/observed");
  assert.equal(observed.length, 1);
  assert.deepEqual(observed[0]?.params, {
    session: "s1",
    id: "a/1",
    parent: "a",
    tool: "bash",
    input: { command: "ls" },
    content: [{ type: "text", text: "x" }],
    details: { fullOutputPath: "/tmp/out" },
    is_error: false,
  });
});

test("a tool that names a file is reported before it runs", async () => {
  const { fire, harness } = registered("good");
  await harness.shim.engine.whenReady();
  await fire("tool_call", { toolCallId: "a", toolName: "edit", input: { path: "x", edits: [] } });
  await fire("tool_call", { toolCallId: "b", toolName: "bash", input: { command: "ls" } });
  await until(() => harness.requests("tool/started").length > 0, "started");
  await harness.call([user("x")]);
  assert.deepEqual(
    harness.requests("tool/started").map(({ params }) => params),
    [{ session: "s1", id: "a", tool: "edit", path: "x" }],
  );
});
