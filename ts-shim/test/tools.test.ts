import assert from "node:assert/strict";
import { test } from "node:test";
import { registerNames, TOOL_NAMES, TOOL_SPECS } from "../tools.ts";
import { recorder, registered } from "./support/pi.ts";

test("the tools are defined in the order in which they are declared", () => {
  const names = TOOL_SPECS.map(({ facility, name }) => `${facility} ${name}`);
  assert.deepEqual(names, [
    "context activate",
    "context deactivate",
    "context pin",
    "context unpin",
    "search memory-search",
    "tasks task-query",
    "tasks task-mutate",
    "findings promote-finding",
  ]);
  assert.deepEqual(
    [...TOOL_NAMES],
    TOOL_SPECS.map(({ name }) => name),
  );
});

test("only the tools of the facilities that are switched on are registered", () => {
  const { harness } = registered("good");
  const { pi, tools } = recorder();
  registerNames(pi, harness.shim, ["search"], true);
  assert.deepEqual(Object.keys(tools), ["memory-search"]);
  assert.ok(!("facility" in (tools["memory-search"] ?? {})));
});

test("a tool returns the engine's text and keeps its details", async () => {
  const { tools, harness } = registered("good");
  assert.deepEqual(await tools.pin?.execute("toolu_1", { id: "@1" }), {
    content: [{ type: "text", text: "did pin" }],
    details: { foredeck: { object: "x" } },
  });
  const [request] = harness.requests("tool/call");
  assert.deepEqual(request?.params, {
    session: "s1",
    id: "toolu_1",
    tool: "pin",
    input: { id: "@1" },
  });
});

test("a tool that fails throws the engine's message for the model", async () => {
  const { tools } = registered("good");
  await assert.rejects(async () => tools.activate?.execute("t", { id: "@404" }), {
    message: "there is no @404; nearest: @40",
  });
});

test("without an engine, or switched off, a tool tells the model to go on without it", async () => {
  const { tools, harness } = registered("refuse-start");
  await assert.rejects(async () => tools.activate?.execute("t", { id: "@1" }), /use read or bash/);
  harness.shim.switchOff();
  await assert.rejects(async () => tools.activate?.execute("t", { id: "@1" }), /switched/);
  harness.shim.switchOn();
});

test("a tool waits for an engine that hangs as long as a model call, no longer", {
  timeout: 8000, // it waited for ten seconds, whatever the deadline
}, async () => {
  const { tools } = registered("hang-at-start");
  process.env.FOREDECK_DEADLINE_MS = "50";
  await assert.rejects(async () => tools.activate?.execute("t", { id: "@1" }), /use read or bash/);
});
