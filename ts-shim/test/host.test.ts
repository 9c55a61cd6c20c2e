import assert from "node:assert/strict";
import { test } from "node:test";
import { isSupported, visible } from "../host.ts";
import { asView, ViewScreen } from "../view.ts";
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
    host.showState({ tasks: { line: HOSTILE } });
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

test("nor does what a key of a view answers", async () => {
  const key = { key: "o", label: "open", run: "open {row}", opens: true };
  const rows = [{ name: "@1", cells: ["a"] }];
  const view = asView({ title: "t", notes: [], bar: [], heads: ["h"], rows, keys: [key] }, String);
  const theme = { fg: (_: string, text: string) => text, bg: (_: string, text: string) => text };
  const screen = (...answers: (() => string)[]) => {
    const around = {
      tui: { terminal: { rows: 9 }, requestRender: () => {} },
      theme: { ...theme, bold: String },
      ask: async () => ({ text: answers.shift()?.() ?? "", asked: ["", ""] }),
      worded: visible,
      done: () => {},
    };
    return new ViewScreen(around as never, view as never, ["view", ""]);
  };
  const lines = async (shown: ViewScreen) => {
    shown.handleInput("o");
    await new Promise((resolve) => setImmediate(resolve));
    return shown.render(80).join("\n");
  };
  assert.ok((await lines(screen(() => HOSTILE))).includes(SHOWN));
  const fails = () => {
    throw new Error(HOSTILE);
  };
  assert.ok((await lines(screen(fails))).includes(SHOWN));
});

test("Pi is supported from 1.5.2 on", () => {
  for (const version of ["1.5.2", "1.5.3-dev", "1.6.0", "1.10.0", "10.0.0"])
    assert.ok(isSupported(version), version);
  for (const version of ["1.5.1", "1.4.9", "0.87.1", "0.73.1"])
    assert.ok(!isSupported(version), version);
});
