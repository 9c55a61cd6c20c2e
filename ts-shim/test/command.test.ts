import assert from "node:assert/strict";
import { test } from "node:test";
import { registered } from "./support/pi.ts";

test("/foredeck lists objects, forwards commands, switches off and on, and explains itself", async () => {
  const { command, harness } = registered("good");
  assert.match(await command(""), /command list $/m);
  assert.match(await command("name @12 parser"), /command name @12 parser/);
  assert.match(await command("why  @12"), /command why @12/);
  assert.match(await command("off"), /is off/);
  assert.ok(harness.shim.isOff());
  assert.match(await command("on"), /is on/);
  assert.ok(!harness.shim.isOff());
  assert.match(await command("setup"), /running/);
  assert.match(await command("doctor now"), /It is \/foredeck doctor \[ask\]/);
  assert.match(await command("help"), /\/foredeck why/);
  assert.match(await command("nonsense"), /There is no \/foredeck nonsense/);
});

test("/foredeck without an engine says what is wrong", async () => {
  const { command } = registered("refuse-start");
  assert.match(await command(""), /not running.*unknown key/);
  assert.match(await command("setup"), /unknown key/);
});

test("/foredeck completes its verbs", () => {
  const { commands } = registered("good");
  const complete = (prefix: string) =>
    commands.foredeck?.getArgumentCompletions(prefix)?.map(({ value }) => value);
  assert.deepEqual(complete("o"), ["observe", "off", "on"]);
  assert.equal(complete("off"), undefined);
  assert.deepEqual(complete("wh"), ["why"]);
  assert.equal(complete("x"), undefined);
});
