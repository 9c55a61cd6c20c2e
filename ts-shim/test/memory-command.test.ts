import assert from "node:assert/strict";
import { test } from "node:test";
import { registered } from "./support/pi.ts";

test("/memory and its verbs are carried to the engine", async () => {
  const { command } = registered("good");
  assert.match(await command("", "memory"), /command memory *$/m);
  assert.match(await command("delete m-7k2p", "memory"), /command memory delete m-7k2p$/m);
  assert.match(await command("help", "memory"), /\/memory refuse +NAME/);
  assert.match(await command("frob", "memory"), /There is no \/memory frob/);
});

test("verbs are completed", () => {
  const { commands } = registered("good");
  const complete = (prefix: string) =>
    commands.memory?.getArgumentCompletions(prefix)?.map(({ value }) => value);
  assert.deepEqual(complete("re"), ["replace", "refuse"]);
  assert.equal(complete("list"), undefined);
});
