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
