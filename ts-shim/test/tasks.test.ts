import assert from "node:assert/strict";
import { test } from "node:test";
import { registered } from "./support/pi.ts";

test("/tasks and /search are carried to the engine", async () => {
  const { command } = registered("good");
  assert.match(await command("", "tasks"), /command tasks *$/m);
  assert.match(
    await command("new Fix the  login", "tasks"),
    /command tasks new Fix the {2}login$/m,
  );
  assert.match(await command(" LoginSchema ", "search"), /command search LoginSchema$/m);
  assert.match(await command("help", "tasks"), /\/tasks claim +TASK/);
  assert.match(await command("frob", "tasks"), /There is no \/tasks frob/);
});

test("without an engine they say what is wrong", async () => {
  const { command } = registered("refuse-start");
  assert.match(await command("", "tasks"), /not running.*unknown key/);
  assert.match(await command("x", "search"), /not running.*unknown key/);
});

test("the widget shows the line, and goes where a project has no tasks", () => {
  const { harness } = registered("good");
  for (const tasks of [undefined, null, { line: "1 ready" }, { line: "" }])
    harness.shim.host.showState({ tasks });
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
