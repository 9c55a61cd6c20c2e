import assert from "node:assert/strict";
import { test } from "node:test";
import { registered } from "./support/pi.ts";

test("/tasks and /search are carried to the engine", async () => {
  const { command } = registered("good");
  assert.match(await command("", "tasks"), /command tasks list$/m);
  assert.match(
    await command("new Fix the  login", "tasks"),
    /command tasks new Fix the {2}login$/m,
  );
  assert.match(await command(" LoginSchema ", "search"), /command search LoginSchema$/m);
  assert.match(await command("help", "tasks"), /\/tasks claim +TASK/);
  assert.match(await command("frob", "tasks"), /There is no \/tasks frob/);
  assert.match(await command("", "search"), /\/search QUERY/);
});

test("without an engine they say what is wrong", async () => {
  const { command } = registered("refuse-start");
  assert.match(await command("", "tasks"), /not running.*unknown key/);
  assert.match(await command("x", "search"), /not running.*unknown key/);
});

test("verbs are completed, then the open tasks", () => {
  const { commands, harness } = registered("good");
  const complete = (prefix: string) =>
    commands.tasks?.getArgumentCompletions(prefix)?.map(({ value }) => value);
  assert.deepEqual(complete("cl"), ["claim", "close"]);
  assert.equal(complete("claim"), undefined);
  assert.equal(complete("claim "), undefined);
  const open = [["t-k3f9", "Fix the login"], ["t-m2xd", "Test it"], ["half"]];
  harness.shim.tasks.take({ line: "2 ready", open });
  assert.deepEqual(complete("claim "), ["claim t-k3f9", "claim t-m2xd"]);
  assert.deepEqual(complete("show t-m"), ["show t-m2xd"]);
  assert.equal(complete("new "), undefined);
});

test("the widget shows the line, and goes where a project has no tasks", () => {
  const { harness } = registered("good");
  for (const tasks of [undefined, null, { line: "1 ready", open: [] }, { line: "", open: [] }])
    harness.shim.tasks.take(tasks);
  assert.deepEqual(harness.widgets, [["1 ready"], undefined]);
});

test("what is done in the background is shown until it has ended", () => {
  const { harness } = registered("good");
  harness.shim.host.work("foredeck: noting down what was said and done, with p/m");
  harness.shim.host.work("");
  assert.deepEqual(harness.widgets, [
    ["foredeck: noting down what was said and done, with p/m"],
    undefined,
  ]);
});
