import assert from "node:assert/strict";
import { test } from "node:test";
import { registerToolCalls } from "../tool-calls.ts";
import { recorder, registered } from "./support/pi.ts";

async function start(mode = "good") {
  const { harness } = registered(mode);
  await harness.shim.engine.whenReady();
  const { pi, fire } = recorder();
  registerToolCalls(pi, harness.shim, undefined);
  const call = (toolName: string, input: object) =>
    fire("tool_call", { toolCallId: "c1", toolName, input });
  return { call, fire, asked: () => harness.requests("tool/prepare").length, harness };
}

test("what the engine refuses does not run, and the model reads why", async () => {
  const { call } = await start();
  const refused = await call("write", { path: "a", verdict: { block: "it has changed" } });
  assert.deepEqual(refused, { block: true, reason: "it has changed" });
  assert.equal(await call("write", { path: "a" }), undefined);
});

test("a notice is added to the result, once", async () => {
  const { call, fire } = await start();
  assert.equal(await call("edit", { path: "a", verdict: { notice: "look out" } }), undefined);
  const event = { toolCallId: "c1", content: [{ type: "text", text: "done" }] };
  const content = [...event.content, { type: "text", text: "look out" }];
  assert.deepEqual(await fire("tool_result", event), { content });
  assert.equal(await fire("tool_result", event), undefined);
});

test("a tool runs where the engine is slow, fails or talks nonsense", async () => {
  const hasty = await start("hasty");
  assert.equal(await hasty.call("write", { wait: true }), undefined);
  const { call } = await start();
  assert.equal(await call("write", { fail: true }), undefined);
  assert.equal(await call("write", { verdict: "?" }), undefined);
  assert.equal(await call("write", { verdict: { block: 7, notice: null } }), undefined);
});

test("only tools that may write are asked about, while foredeck and its guard are on", async () => {
  const { call, asked, harness } = await start();
  for (const tool of ["read", "grep", "find", "ls", "deactivate"]) await call(tool, {});
  assert.equal(asked(), 0);
  await call("bash", { command: "make" });
  assert.equal(asked(), 1);
  harness.shim.switchOff();
  await call("bash", { command: "make" });
  assert.equal(asked(), 1);
  harness.shim.switchOn();
});

test("without the guard nobody waits", async () => {
  const { call, asked } = await start("no-guard");
  await call("write", { path: "a" });
  assert.equal(asked(), 0);
});
