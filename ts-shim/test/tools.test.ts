import assert from "node:assert/strict";
import { test } from "node:test";
import { TOOL_NAMES, toolSpecs } from "../tools.ts";

test("the four tools are defined", () => {
  assert.deepEqual([...TOOL_NAMES], ["activate", "deactivate", "pin", "unpin"]);
  for (const { parameters } of toolSpecs()) {
    assert.deepEqual(parameters as unknown, {
      type: "object",
      properties: { id: { type: "string" } },
      required: ["id"],
    });
  }
});

test("together they cost no more than the replay counts for them, 138 tokens at 4 characters each, as a provider gets them", () => {
  const sent = toolSpecs().map(({ name, description, parameters }) => ({
    name,
    description,
    input_schema: parameters,
  }));
  assert.ok(JSON.stringify(sent).length / 4 <= 138);
});
