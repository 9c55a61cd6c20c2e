import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "./support/harness.ts";
import { registered } from "./support/pi.ts";

test("/foredeck lists objects, forwards commands, switches off and on, and explains itself", async () => {
  const { command, harness } = registered("good");
  assert.match(await command(""), /command view $/m);
  assert.match(await command("name @12 parser"), /command name @12 parser/);
  assert.match(await command("why  @12"), /command why @12/);
  assert.match(await command("off"), /is off/);
  assert.ok(harness.shim.isOff());
  assert.match(await command("on"), /is on/);
  assert.ok(!harness.shim.isOff());
  assert.match(await command("setup"), /running/);
  assert.match(await command("setup path"), /command path *$/m);
  assert.match(await command("setup now"), /It is \/foredeck setup \[path\]/);
  assert.match(await command("doctor now"), /It is \/foredeck doctor \[ask\]/);
  assert.match(await command("help"), /\/foredeck why/);
  assert.match(await command("nonsense"), /There is no \/foredeck nonsense.*\/foredeck help/);
  assert.match(await command("", "memory"), /command memory *$/m);
  assert.match(await command("delete m-7k2p", "memory"), /command memory delete m-7k2p$/m);
  assert.match(await command("help", "memory"), /\/memory refuse +NAME/);
  assert.match(await command("frob", "memory"), /There is no \/memory frob/);
  for (const name of ["foredeck", "tasks", "memory"])
    for (const line of (await command("help", name)).split("\n"))
      assert.ok(line.length <= 80, line);
});

test("/foredeck without an engine says what is wrong", async () => {
  const { command } = registered("refuse-start");
  assert.match(await command(""), /not running.*unknown key/);
  assert.match(await command("setup"), /unknown key/);
});

test("/foredeck during set-up says how far that is, which is no error", async () => {
  const { command, harness } = registered("hang-at-start");
  await until(() => harness.requests("initialize").length > 0, "started");
  harness.shim.onSetUp("making a Python environment");
  harness.shim.onSetUp("fetching its packages, 3 of 40");
  const soFar = /^foredeck is being set up: fetching its packages, 3 of 40\. Pi works as usual/;
  for (const args of ["", "doctor", "ui", "tasks show"]) assert.match(await command(args), soFar);
  assert.equal(harness.notices.length, 5);
  assert.ok(harness.levels.every((level) => level === "info"));
});

test("verbs are completed here, and what follows them by the engine", async () => {
  const { commands, command } = registered("good");
  await command("cost");
  const complete = async (prefix: string, name = "foredeck") =>
    (await commands[name]?.getArgumentCompletions(prefix))?.map(({ value }) => value);
  assert.deepEqual(await complete("o"), ["open ", "observe ", "off", "on"]);
  assert.equal(await complete("off"), undefined, "Enter sends it");
  assert.deepEqual(await complete("wh"), ["why "]);
  assert.equal(await complete("x"), undefined);
  assert.deepEqual(await complete("why 1"), ["foredeck why 1 x"]);
  assert.deepEqual(await complete("cl", "tasks"), ["claim ", "close "]);
  assert.deepEqual(await complete("tasks claim t-"), ["tasks tasks claim t- x"]);
  assert.deepEqual(await complete("re", "memory"), ["refuse "]);
});

test("Ctrl-C ends a command whose answer does not come, other keys are for the next prompt", async () => {
  for (const interrupt of ["\x03", "\x1b[99;5u"]) {
    const { commands, command, harness } = registered("good");
    await command("cost");
    let [type, pasted] = [(_key: string) => {}, ""];
    const ui = {
      ...(harness.ctx as { ui: object }).ui,
      onTerminalInput: (handler: (key: string) => void) => {
        type = handler;
        return () => {};
      },
      pasteToEditor: (text: string) => {
        pasted += text;
      },
    };
    const done = commands.foredeck?.handler("why wait", {
      ...(harness.ctx as object),
      mode: "tui",
      ui,
    });
    for (const key of ["n", "\r", "o", interrupt]) type(key);
    await done;
    assert.equal(harness.notices.at(-1), "/foredeck was interrupted.");
    assert.equal(pasted, "no");
  }
});
