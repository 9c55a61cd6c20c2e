import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { FIRST_PAUSE_MS, MAX_RESTARTS } from "../engine/engine.ts";
import { GRACE_MS } from "../engine/process.ts";
import { result, user } from "./support/conversation.ts";
import { Harness, passTime, stopClock, until } from "./support/harness.ts";
import { isAlive } from "./support/processes.ts";

let harness: Harness;
afterEach(() => harness.close());

function start(mode: string, env?: Record<string, string>): Harness {
  harness = new Harness(mode, env);
  harness.begin();
  return harness;
}

test("ending a session closes it and ends the engine", async () => {
  start("good");
  await harness.shim.engine.whenReady();
  const pid = harness.shim.engine.process?.child.pid as number;
  assert.ok(isAlive(pid));
  await harness.shim.end("quit");
  assert.ok(!isAlive(pid));
  const methods = harness.requests().map(({ method }) => method);
  assert.deepEqual(methods.slice(-2), ["session/close", "shutdown"]);
});

test("an engine that refuses to end is killed", async () => {
  start("stubborn");
  await harness.shim.engine.whenReady();
  const pid = harness.shim.engine.process?.child.pid as number;
  stopClock();
  const ended = harness.shim.end("quit");
  await until(() => harness.requests("shutdown").length === 1, "asked to end");
  await until(() => {
    passTime(GRACE_MS);
    return !isAlive(pid);
  }, "killed, and gone");
  await ended;
});

test("ending while the engine is still starting leaves nothing behind", async () => {
  start("hang-at-start");
  await until(() => harness.requests("initialize").length === 1, "asked");
  const pid = harness.shim.engine.process?.child.pid as number;
  await harness.shim.end("quit");
  assert.ok(!isAlive(pid));
  assert.equal(harness.shim.engine.state, "idle");
});

test("a crashing engine is started again a few times and then left alone", async () => {
  stopClock();
  const { engine } = start("crash-at-start").shim;
  const given = assert.rejects(engine.whenReady(true), new RegExp(`${MAX_RESTARTS} more times`));
  await until(() => {
    if (engine.process === null) passTime(FIRST_PAUSE_MS * 2 ** MAX_RESTARTS);
    return engine.state === "away";
  }, "left alone");
  await given;
  assert.equal(harness.notices.length, 1);
});

test("an engine that refuses to start is not started again; its reason is shown", async () => {
  start("refuse-start");
  await assert.rejects(harness.shim.engine.whenReady(true), /unknown key/);
  assert.equal(harness.requests("initialize").length, 1);
  assert.match(harness.notices.join(), /config\.toml: unknown key/);
});

test("a hung engine is replaced after a few missed deadlines", async () => {
  start("hang", { FOREDECK_DEADLINE_MS: "60" });
  await harness.shim.engine.whenReady();
  const pid = harness.shim.engine.process?.child.pid;
  for (let i = 0; i < 3; i++) await harness.call([user("x")]);
  await until(
    () => harness.shim.engine.state === "ready" && harness.shim.engine.process?.child.pid !== pid,
    "new",
  );
});

test("notifications sent while the engine starts arrive after the session was opened", async () => {
  start("good");
  harness.shim.engine.notify("tool/observed", { id: "x" });
  await harness.shim.engine.whenReady();
  await until(() => harness.requests("tool/observed").length === 1, "observed");
  const methods = harness.requests().map(({ method }) => method);
  assert.ok(methods.indexOf("session/open") < methods.indexOf("tool/observed"));
});

test("the engine's requests are answered and its notifications shown", async () => {
  start("reverse");
  const answered = () => harness.requests().filter(({ method }) => method === undefined);
  await until(() => answered().length === 2, "both answered");
  const answers = answered();
  const completed = answers.find(({ id }) => id === "e1");
  assert.deepEqual(completed?.result, {
    message: {
      stopReason: "stop",
      content: [{ type: "text", text: "answer" }],
      usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, cost: { total: 5 } },
      provider: "p",
      model: "m",
    },
    single_slot: false,
  });
  const refused = answers.find(({ id }) => id === "e2");
  assert.equal((refused?.error as { code: number } | undefined)?.code, -32601);
  assert.deepEqual(harness.notices, ["from the engine"]);
  assert.deepEqual(harness.widgets.at(-1), ["fd reverse"]);
});

test("details of a failure go to the log, not to the screen", async () => {
  start("bad");
  await harness.call([user("x"), result("a", "A")]);
  const log = readFileSync(join(harness.folder, "logs", "engine.log"), "utf8");
  assert.match(log, /fell back \(answer\)/);
});

const HOLDER = fileURLToPath(new URL("./support/holder.ts", import.meta.url));

for (const mode of ["good", "hang-at-start"]) {
  test(`an engine (${mode}) does not keep its host alive, and ends with it`, async () => {
    harness = new Harness(mode);
    const child = spawn(process.execPath, [HOLDER, harness.log], { env: process.env });
    const code = await new Promise((resolve) => child.once("exit", resolve));
    assert.equal(code, 0);
    const { pid } = harness.requests("initialize")[0] as { pid: number };
    await until(() => !isAlive(pid), "the engine ended with its host");
  });
}

test("the engine ends when Pi is killed", async () => {
  harness = new Harness("good");
  const child = spawn(process.execPath, [HOLDER], { env: process.env });
  await until(() => harness.requests("session/open").length === 1, "connected");
  const { pid } = harness.requests("session/open")[0] as { pid: number };
  child.kill("SIGKILL");
  await until(() => !isAlive(pid), "the engine ended");
});
