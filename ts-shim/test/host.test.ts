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
      ask: async () => ({ text: answers.shift()?.() ?? "", asked: "" }),
      worded: visible,
      done: () => {},
    };
    return new ViewScreen(around as never, view as never, "view");
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

test("a key for several rows takes those that are marked, else the one at hand", async () => {
  const key = { key: "d", label: "delete", run: "memory delete {rows}" };
  const rows = ["m-1", "m-2", "m-3"].map((name) => ({ name, cells: [name, "critical"] }));
  const view = { title: "t", notes: [], bar: [], heads: ["", "h"], rows, keys: [key], empty: "" };
  const fg = (colour: string, text: string) => (colour === "error" ? `<${text}>` : text);
  const run: string[] = [];
  const around = {
    tui: { terminal: { rows: 12 }, requestRender: () => {} },
    theme: { fg, bg: (_: string, text: string) => text, bold: String },
    ask: async (line: string) => {
      if (line !== "memory") run.push(line);
      return { text: "", asked: "memory", ...(line === "memory" ? { view } : {}) };
    },
    worded: String,
    done: () => {},
  };
  const screen = new ViewScreen(around as never, asView(view, String) as never, "memory");
  const press = async (...keys: string[]) => {
    for (const each of keys) screen.handleInput(each);
    await new Promise((resolve) => setImmediate(resolve));
  };
  await press("d", "x", "x", "k");
  assert.match(screen.render(80).join("\n"), /\*m-1 +<critical>.*\n.*\*m-2.*\n.* m-3/);
  await press("d");
  await press("x", "x", "d");
  assert.deepEqual(run, ["memory delete m-1", "memory delete m-1 m-2", "memory delete m-2 m-3"]);
  await press("k", "x", "/", ..."m-1", "\r", "d");
  assert.equal(run.at(-1), "memory delete m-1", "what a search hides is left alone");
});

test("Pi is supported from 1.5.2 on", () => {
  for (const version of ["1.5.2", "1.5.3-dev", "1.6.0", "1.10.0", "10.0.0"])
    assert.ok(isSupported(version), version);
  for (const version of ["1.5.1", "1.4.9", "0.87.1", "0.73.1"])
    assert.ok(!isSupported(version), version);
});
