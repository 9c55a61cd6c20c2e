import assert from "node:assert/strict";
import { test } from "node:test";
import { type Runner, type RunnerClass, registerToolCalls } from "../tool-calls.ts";
import { recorder, registered } from "./support/pi.ts";

/** A runner of Pi's with one extension, which guards `read`, beside this one. */
async function start({ lent = true, source = "builtin" } = {}) {
  const { harness } = registered("good");
  await harness.shim.engine.whenReady();
  const { pi, events } = recorder();
  const tools = {
    getActiveTools: () => ["read"],
    getAllTools: () => [{ name: "read", sourceInfo: { source } }],
  };
  const asked: unknown[] = [];
  class ExtensionRunner implements Runner {
    async emitToolCall(event: { toolName?: string; input?: Record<string, unknown> }) {
      if (event.toolName === "read") {
        asked.push(event.input);
        if (event.input?.path === "secrets") return { block: true, reason: "" };
        return event.input?.path === "keys" ? { block: true, reason: "not for you" } : undefined;
      }
      return (await events.tool_call?.[0]?.(event)) as undefined;
    }
  }
  const runnerClass = ExtensionRunner as unknown as RunnerClass;
  registerToolCalls(
    Object.assign(pi as object, tools) as never,
    harness.shim,
    lent ? runnerClass : undefined,
  );
  const call = (toolName: string, verdict: object, more: object = {}) =>
    new ExtensionRunner().emitToolCall({
      toolName,
      ...{ toolCallId: "c1", input: { path: "a", verdict, ...more } },
    });
  return { call, asked, runnerClass, harness };
}

test("an extension that guards read decides of activate and pin, too", async () => {
  const { call, asked } = await start();
  const refused = { block: true, reason: "not for you" };
  assert.deepEqual(await call("activate", { reads: "keys" }), refused);
  assert.deepEqual(await call("pin", { reads: "keys" }), refused);
  assert.equal(await call("activate", { reads: "plain" }), undefined);
  assert.deepEqual(asked, [{ path: "keys" }, { path: "keys" }, { path: "plain" }]);
});

test("a guard that gives an empty reason blocks all the same", async () => {
  const { call } = await start();
  const reason = "An extension does not allow to read secrets.";
  assert.deepEqual(await call("activate", { reads: "secrets" }), { block: true, reason });
});

test("without the engine's answer nothing is shown", async () => {
  const { call, asked } = await start();
  const refused = (await call("activate", {}, { fail: true })) as { reason?: string } | undefined;
  assert.match(refused?.reason ?? "", /use read or bash/);
  assert.deepEqual(asked, []);
});

test("nobody is asked of what a read has shown, or what shows no file", async () => {
  const { call, asked, harness } = await start();
  assert.equal(await call("activate", {}), undefined);
  assert.equal(await call("deactivate", { reads: "keys" }), undefined);
  assert.equal(await call("bash", { reads: "keys" }), undefined);
  harness.shim.switchOff();
  assert.equal(await call("activate", { reads: "keys" }), undefined);
  harness.shim.switchOn();
  assert.deepEqual(asked, []);
});

test("where nobody can be asked, only what a read has shown is shown", async () => {
  const refused = { block: true, reason: "No read has shown plain in this chat: use read." };
  for (const how of [{ lent: false }, { source: "/an/extension.ts" }]) {
    const { call } = await start(how);
    assert.deepEqual(await call("activate", { reads: "plain" }), refused);
    assert.equal(await call("activate", {}), undefined);
  }
});

test("Pi's class is changed once, whatever number of sessions it serves", async () => {
  const { runnerClass, harness } = await start();
  const { emitToolCall } = runnerClass.prototype;
  registerToolCalls(recorder().pi, harness.shim, runnerClass);
  assert.equal(runnerClass.prototype.emitToolCall, emitToolCall);
});
