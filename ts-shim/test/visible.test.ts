import assert from "node:assert/strict";
import { test } from "node:test";
import { asView } from "../view.ts";
import { visible } from "../visible.ts";
import { Harness } from "./support/harness.ts";

const HOSTILE = "a\u001b[2Jb\u009bc\u202ed\u200b\u{e0041}\ud800\u2028";
const SHOWN = "a\\x1b[2Jb\\x9bc\\u202ed\\u200b\\udb40\\udc41\\ud800\\u2028";

test("what steers a terminal, turns text round or hides in it is shown", () => {
  assert.equal(visible(HOSTILE), SHOWN);
  for (const text of ["ein Weg/ä.py\n\tzwei", "日本語", "✔️ 🎉"]) assert.equal(visible(text), text);
});

test("nothing goes to the screen that is not", async () => {
  const harness = new Harness("good");
  try {
    const { host } = harness.shim;
    harness.begin();
    host.notify("info", HOSTILE);
    host.show(HOSTILE);
    host.status(HOSTILE);
    host.take({ tasks: { line: HOSTILE } });
    host.work(HOSTILE);
    assert.deepEqual(harness.notices, [SHOWN, SHOWN]);
    assert.deepEqual(harness.widgets.slice(-2), [[SHOWN], [SHOWN]]);
    assert.ok(harness.statuses.includes(SHOWN));
    const view = { rows: [{ name: "m-1", cells: [`${HOSTILE}\nb`] }], keys: [] };
    const shown = asView(view, (text) => host.worded(text));
    assert.deepEqual(shown?.rows[0]?.cells, [`${SHOWN} b`]);
  } finally {
    await harness.close();
  }
});
