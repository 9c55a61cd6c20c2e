import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Harness } from "./support/harness.ts";
import { registered } from "./support/pi.ts";

let running: Harness | null = null;
afterEach(async () => {
  await running?.close();
  running = null;
});

function start(mode: string) {
  const started = registered(mode);
  running = started.harness;
  return started;
}

test("/memory and its verbs are carried to the engine", async () => {
  const { command } = start("good");
  assert.match(await command("", "memory"), /command memory *$/m);
  assert.match(await command("delete m-7k2p", "memory"), /command memory delete m-7k2p$/m);
  assert.match(await command("help", "memory"), /\/memory refuse +NAME/);
  assert.match(await command("frob", "memory"), /There is no \/memory frob/);
});

test("verbs are completed", () => {
  const { commands } = start("good");
  const complete = (prefix: string) =>
    commands.memory?.getArgumentCompletions(prefix)?.map(({ value }) => value);
  assert.deepEqual(complete("re"), ["replace", "refuse"]);
  assert.equal(complete("list"), undefined);
});
