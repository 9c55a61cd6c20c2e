import assert from "node:assert/strict";
import { test } from "node:test";
import { registered } from "./support/pi.ts";

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
