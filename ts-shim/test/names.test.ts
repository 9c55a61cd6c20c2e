import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { DEFAULT_FACILITIES, registerNames, TOOL_NAMES, TOOL_SPECS } from "../tools.ts";
import { recorder, registered } from "./support/pi.ts";

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
