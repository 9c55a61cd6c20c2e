import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterEach, test } from "node:test";
import { DEFAULT_FACILITIES, registerNames, TOOL_NAMES, TOOL_SPECS } from "../tools.ts";
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

test("only the tools of the facilities that are switched on are registered", async () => {
  const { harness } = registered("good");
  const { pi, tools, fire } = recorder();
  registerNames(pi, harness.shim, ["search"]);
  await fire("session_start");
  assert.deepEqual(Object.keys(tools), ["memory-search"]);
  assert.ok(!("facility" in (tools["memory-search"] ?? {})));
});

test("a tool returns the engine's text and keeps its details", async () => {
  const { tools, harness } = registered("good");
  assert.deepEqual(await tools.pin?.execute("toolu_1", { id: "@1" }), {
    content: [{ type: "text", text: "did pin" }],
    details: { foredeck: { object: "x" } },
  });
  const params = { session: "s1", id: "toolu_1", tool: "pin", input: { id: "@1" } };
  for (const method of ["tool/prepare", "tool/call"])
    assert.deepEqual(harness.requests(method)[0]?.params, params);
});

/** Runs a tool of ours with a `read` beside it, of which another extension decides. */
async function showing({ source = "builtin", tools: names = ["read"] } = {}) {
  const { tools, harness } = registered("good");
  await harness.shim.engine.whenReady();
  const all = [{ name: "read", sourceInfo: { source } }];
  Object.assign(harness.shim.api, { getAllTools: () => all });
  const read: unknown[] = [];
  const ctx = {
    tools: names.map((name) => ({ name })),
    executeTool: async (name: string, input: { path: string }) => {
      read.push([name, input]);
      const [how] = basename(input.path).split("-");
      const text = how === "blocked" ? "not for you" : `${how}: ${input.path}`;
      const ran = how === "blocked" ? {} : { durationMs: 1 };
      return { isError: how !== "plain", result: { content: [{ type: "text", text }] }, ...ran };
    },
  };
  const call = (tool: string, reads?: string, more: object = {}) =>
    tools[tool]?.execute("t", { id: "a", verdict: { reads }, ...more }, undefined, undefined, ctx);
  const shown = () => harness.requests("tool/call").map(({ params }) => params.tool);
  return { call, read, shown, harness };
}

test("a file that no read has shown is read inside the call, and whoever blocks that blocks it", async () => {
  const { call, read, shown } = await showing();
  await assert.rejects(async () => call("activate", "blocked-a"), { message: "not for you" });
  await assert.rejects(async () => call("pin", "blocked-b"), { message: "not for you" });
  assert.deepEqual(shown(), []);
  assert.ok(await call("activate", "plain"));
  assert.deepEqual(
    read,
    ["blocked-a", "blocked-b", "plain"].map((path) => ["read", { path }]),
  );
  assert.deepEqual(shown(), ["activate"]);
});

test("a read that finds no file refuses nothing; one whose result was made an error does", async () => {
  const { call, shown, harness } = await showing();
  const there = join(harness.folder, "failed-here");
  writeFileSync(there, "x");
  await assert.rejects(async () => call("activate", there), { message: `failed: ${there}` });
  assert.deepEqual(shown(), []);
  assert.ok(await call("activate", join(harness.folder, "failed-gone")));
  assert.deepEqual(shown(), ["activate"]);
});

test("nothing is read for what a read has shown, for what shows no file, and without an engine's answer", async () => {
  const { call, read } = await showing();
  assert.ok(await call("activate"));
  assert.ok(await call("deactivate", "blocked"));
  await assert.rejects(async () => call("activate", "plain", { fail: true }), /use read or bash/);
  assert.deepEqual(read, []);
});

test("where read is another extension's, or is not there, only what it has shown is shown", async () => {
  const message = "No read has shown plain in this chat: use read.";
  for (const how of [{ tools: ["bash"] }, { source: "/an/extension.ts" }]) {
    const { call, read } = await showing(how);
    await assert.rejects(async () => call("activate", "plain"), { message });
    assert.ok(await call("activate"));
    assert.deepEqual(read, []);
  }
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

afterEach(() => {
  for (const { name } of TOOL_SPECS) TOOL_NAMES.add(name);
});

test("where names are free, commands are short and behind /foredeck, too", async () => {
  const { command, commands, tools, harness } = registered("good");
  assert.deepEqual(Object.keys(commands).sort(), [
    "context",
    "foredeck",
    "memory",
    "search",
    "tasks",
  ]);
  assert.ok("pin" in tools);
  assert.match(await command("tasks show t"), /command tasks show t$/m);
  assert.match(await command("search a  b"), /command search a {2}b$/m);
  assert.match(await command("context"), /command context $/m);
  assert.match(await command("memory help"), /\/memory accept/);
  const complete = async (prefix: string) =>
    (await commands.foredeck?.getArgumentCompletions(prefix))?.map(({ value }) => value);
  assert.deepEqual(await complete("tasks cl"), ["tasks claim ", "tasks close "]);
  assert.deepEqual(await complete("mem"), ["memory"]);
  assert.deepEqual(
    harness.notices.filter((text) => text.includes("another extension")),
    [],
  );
});

test("what another extension has stays its own, and that is said once", async () => {
  const others = { tools: ["pin", "bash"], commands: ["tasks:1", "tasks:2", "search"] };
  const { command, commands, tools, harness, begun } = registered("good", others);
  await begun;
  assert.deepEqual([Object.keys(tools.pin ?? {}), TOOL_NAMES.has("pin")], [[], false]);
  assert.ok("activate" in tools && TOOL_NAMES.has("activate"));
  assert.deepEqual(["tasks" in commands, "memory" in commands], [false, true]);
  const told = harness.notices.filter((text) => text.includes("another extension"));
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /^.*\/tasks belongs to another extension: type \/foredeck tasks\.$/m);
  assert.match(told[0] ?? "", /The tool is another extension's: pin\./);
  // What is said elsewhere names what works here.
  assert.match(await command("tasks help"), /^.*\/foredeck tasks claim +TASK/m);
  assert.match(await command("memory help"), /^\S* ?\/memory accept/m);
  const again = recorder();
  const pi = Object.assign(again.pi, {
    getAllTools: () => [{ name: "pin" }],
    getCommands: () => [{ name: "tasks" }, { name: "search" }],
  });
  registerNames(pi, harness.shim, DEFAULT_FACILITIES);
  await again.fire("session_start");
  assert.equal(harness.notices.filter((text) => text.includes("another extension")).length, 1);
});
