import assert from "node:assert/strict";
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
  assert.match(await command("tasks list"), /command tasks list$/m);
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
