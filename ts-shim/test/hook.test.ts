import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { HostMessage } from "../context/messages.ts";
import { assistant, call, result, user } from "./support/conversation.ts";
import { Harness, PATIENT_MS, passTime, stopClock, until } from "./support/harness.ts";

let harness: Harness;
afterEach(async () => {
  delete process.env.FOREDECK_DEADLINE_MS;
  await harness.close();
});

function start(mode: string, env?: Record<string, string>): Harness {
  harness = new Harness(mode, env);
  harness.begin();
  return harness;
}

const first = [user("go"), assistant([call("a")]), result("a", "A")];
const second = [...first, assistant([call("b")]), result("b", "B")];
const third = [...second, user("thanks")];

const texts = (list: HostMessage[]) =>
  list.flatMap((message) =>
    message.role === "toolResult"
      ? [(message.content as unknown as { text: string }[]).map((block) => block.text).join("|")]
      : [],
  );

function outcomes(at: number): Record<string, unknown>[] {
  return harness.requests("context/assemble")[at]?.params.outcomes as Record<string, unknown>[];
}

/** The first call, in an engine that does not answer it: its time passes at once. */
async function callInVain(list: HostMessage[]): Promise<HostMessage[]> {
  stopClock();
  const waiting = harness.call(list);
  await until(() => harness.requests("context/assemble").length === 1, "asked");
  passTime(Number(PATIENT_MS));
  return waiting;
}

test("edits reach the list, and the second request sends only what is new", async () => {
  start("good");
  assert.deepEqual(texts(await harness.call(first)), ["@2|A"]);
  assert.deepEqual(texts(await harness.call(second)), ["@2|A", "@4|B"]);
  const [one, two] = harness.requests("context/assemble").map(({ params }) => params);
  assert.equal(one?.keep, 0);
  assert.deepEqual(one?.messages, first);
  assert.deepEqual(one?.entries, [null, null, null]);
  assert.deepEqual(one?.system, [{ role: "system", content: "prompt" }]);
  assert.deepEqual(one?.tools, [
    { name: "read", description: "reads", parameters: { type: "object" } },
  ]);
  assert.equal(two?.keep, 3);
  assert.deepEqual(two?.messages, second.slice(3));
  assert.ok(!("system" in (two ?? {})) && !("tools" in (two ?? {})));
  assert.deepEqual(outcomes(0), []);
  assert.deepEqual(outcomes(1), [{ call: 1, kind: "applied" }]);
});

test("the handshake, the open session and the status line", async () => {
  start("good");
  await harness.call(first);
  const [hello, open] = harness.requests();
  assert.equal(hello?.method, "initialize");
  assert.equal(hello?.params.protocol, 2);
  assert.deepEqual(hello?.params.host, { name: "pi", version: "1.6.0" });
  assert.equal(hello?.params.trusted, true);
  assert.equal(open?.method, "session/open");
  assert.equal(open?.params.session, "s1");
  assert.equal(harness.statuses.at(-1), "fd 1");
  assert.deepEqual(harness.notices, ["a warning"]);
});

test("a session that begins twice is opened once; another session starts afresh", async () => {
  start("good");
  harness.begin();
  await harness.call(first);
  harness.begin();
  await harness.call(second);
  assert.equal(harness.requests("session/open").length, 1);
  harness.begin("s2");
  await harness.call(second);
  assert.equal(harness.requests("session/open").length, 2);
  const last = harness.requests("context/assemble").at(-1)?.params;
  assert.equal(last?.keep, 0);
  assert.equal(last?.session, "s2");
  assert.deepEqual(last?.outcomes, []);
});

test("system entries are recorded, not counted, and not touched", async () => {
  start("good");
  const system = { role: "system", content: "the prompt", timestamp: 1 };
  const out = await harness.call([system, ...first]);
  assert.deepEqual(out[0], system);
  assert.deepEqual(texts(out), ["@2|A"]);
  const params = harness.requests("context/assemble")[0]?.params;
  assert.deepEqual(params?.system, [system]);
  assert.deepEqual(params?.messages, first);
});

test("a replaced message list is sent from where it differs", async () => {
  start("good");
  await harness.call(second);
  const replaced = [...first, user("other way")];
  assert.deepEqual(texts(await harness.call(replaced)), ["@2|A"]);
  assert.equal(harness.requests("context/assemble")[1]?.params.keep, 3);
});

test("on a timeout earlier messages keep their edits and newer ones go out raw; then it recovers", async () => {
  start("hang-once");
  await harness.shim.engine.whenReady();
  assert.deepEqual(texts(await callInVain(first)), ["A"], "nothing was ever answered");
  assert.equal(
    harness.statuses.at(-1),
    "foredeck away: the engine did not answer in time",
    "the status line is not that of an earlier call",
  );
  assert.deepEqual(texts(await harness.call(second)), ["@2|A", "@4|B"]);
  assert.match(harness.statuses.at(-1) ?? "", /^fd \d/);
  const retry = harness.requests("context/assemble")[1]?.params;
  assert.equal(retry?.keep, 0);
  const [fallback] = outcomes(1);
  assert.equal(fallback?.kind, "fallback");
  assert.deepEqual(
    [fallback?.call, fallback?.edited, fallback?.messages, fallback?.reason],
    [null, 0, 3, "timeout"],
  );
  assert.equal(harness.requests("$/cancel").length, 1);
  assert.equal(harness.notices.filter((text) => text.includes("in time")).length, 1);
});

test("the status line shows progress while a long history is taken in", async () => {
  start("good");
  const long = Array.from({ length: 501 }, (_, number) => user(`message ${number}`));
  await harness.call(long);
  assert.ok(harness.statuses.includes("foredeck: taking in 501 messages"));
  assert.match(harness.statuses.at(-1) ?? "", /^fd \d/);
});

test("if the engine dies over a request, its successor is asked within the same call", async () => {
  start("crash");
  assert.deepEqual(texts(await harness.call(first)), ["@2|A"]);
  assert.deepEqual(texts(await harness.call(second)), ["@2|A", "@4|B"]);
  const [, died, again] = harness.requests("context/assemble");
  assert.equal(died?.params.keep, 3);
  assert.equal(again?.params.keep, 0);
  assert.deepEqual(again?.params.messages, second);
  assert.deepEqual(outcomes(2), [{ call: 1, kind: "applied" }]);
  assert.equal(harness.requests("session/open").length, 2);
  assert.equal(new Set(harness.requests().map(({ pid }) => pid)).size, 2);
  assert.deepEqual(harness.notices, []);
});

test("if every engine dies over it, the edited prefix goes out and the next engine gets everything", async () => {
  start("crash-twice");
  assert.deepEqual(texts(await harness.call(first)), ["@2|A"]);
  assert.deepEqual(texts(await harness.call(second)), ["@2|A", "B"]);
  await harness.shim.engine.whenReady(true);
  assert.deepEqual(texts(await harness.call(third)), ["@2|A", "@4|B"]);
  const after = harness.requests("context/assemble").at(-1);
  assert.equal(after?.params.keep, 0);
  assert.deepEqual(after?.params.messages, third);
  const reported = outcomes(3);
  assert.deepEqual(reported[0], { call: 1, kind: "applied" });
  assert.equal(reported[1]?.kind, "fallback");
  const { call, edited, messages, reason } = reported[1] ?? {};
  assert.deepEqual([call, edited, messages, reason], [1, 3, 5, "away"]);
});

test("an answer that does not fit the list is refused, and the user is told once", async () => {
  start("bad");
  assert.deepEqual(texts(await harness.call(first)), ["A"]);
  assert.deepEqual(texts(await harness.call(second)), ["A", "B"]);
  assert.equal(outcomes(1)[0]?.reason, "answer");
  assert.equal(harness.notices.length, 1);
});

test("garbage between the answers does no harm", async () => {
  start("rubbish");
  assert.deepEqual(texts(await harness.call(first)), ["@2|A"]);
  assert.deepEqual(texts(await harness.call(second)), ["@2|A", "@4|B"]);
});

test("when out of sync it asks again with everything, within the same call", async () => {
  start("forgetful");
  await harness.call(first);
  assert.deepEqual(texts(await harness.call(second)), ["@2|A", "@4|B"]);
  const keeps = harness.requests("context/assemble").map(({ params }) => params.keep);
  assert.deepEqual(keeps, [0, 3, 0]);
  assert.ok(harness.requests("context/assemble")[2]?.params.system);
  assert.equal(harness.notices.length, 0);
});

test("an engine that does not know the session has it opened again", async () => {
  start("unknown");
  assert.deepEqual(texts(await harness.call(first)), ["@2|A"]);
  assert.equal(harness.requests("session/open").length, 2);
});

test("Esc ends the wait at once and is reported to the engine", async () => {
  start("hang-once");
  await harness.shim.engine.whenReady();
  const waiting = harness.call(first);
  await until(() => harness.requests("context/assemble").length === 1, "asked");
  harness.interrupt();
  assert.deepEqual(texts(await waiting), ["A"]);
  await harness.call(second);
  assert.equal(outcomes(1)[0]?.kind, "aborted");
  assert.equal(harness.notices.length, 0);
});

test("what Pi asks after Esc is not taken for the call that was not made", async () => {
  start("good");
  const { lastRequest } = harness.shim.context;
  const send = (...messages: string[]) => lastRequest.take({ messages }, undefined)?.() ?? null;
  await harness.call(first);
  send("go");
  const esc = new AbortController();
  const { ui } = harness.ctx as { ui: { setStatus(key: string, text?: string): void } };
  ui.setStatus = () => esc.abort();
  Object.defineProperty(harness.ctx, "signal", { value: esc.signal, configurable: true });
  await harness.call(second);
  assert.equal(send("sum it up"), null);
  Object.defineProperty(harness.ctx, "signal", { value: undefined });
  await harness.call(third);
  assert.equal(outcomes(2)[0]?.kind, "aborted");
  assert.equal(send("go", "thanks"), null);
});

test("a late answer is not taken for the next one", async () => {
  start("late");
  await harness.shim.engine.whenReady();
  assert.deepEqual(texts(await callInVain(first)), ["A"]);
  await until(() => harness.requests("$/cancel").length === 1, "cancelled");
  assert.deepEqual(texts(await harness.call(second)), ["@2|A", "@4|B"]);
});

test("while off, the list goes out unchanged and the engine hears of it afterwards", async () => {
  start("good");
  await harness.call(first);
  harness.shim.switchOff();
  assert.deepEqual(texts(await harness.call(second)), ["A", "B"]);
  assert.equal(harness.statuses.at(-1), "foredeck off");
  harness.shim.switchOn();
  assert.deepEqual(texts(await harness.call(third)), ["@2|A", "@4|B"]);
  const kinds = outcomes(1).map(({ kind, edited, messages }) => [kind, edited, messages]);
  assert.deepEqual(kinds, [
    ["applied", undefined, undefined],
    ["off", 0, 5],
  ]);
  assert.equal(harness.requests("context/assemble")[1]?.params.keep, 3);
});

test("without an engine Pi goes on as usual, and the user is told once", async () => {
  start("good", { FOREDECK_ENGINE: '["/nonexistent/foredeck", "engine"]' });
  assert.deepEqual(texts(await harness.call(first)), ["A"]);
  await until(() => harness.shim.engine.state === "away", "given up");
  assert.deepEqual(texts(await harness.call(second)), ["A", "B"]);
  assert.equal(harness.notices.length, 1);
});

test("a chat that no line can hold goes out as it is, and the user is told once what to do", async () => {
  start("good");
  const large = [user(`go ${"x".repeat(64 * 1024 * 1024)}`), ...first.slice(1)];
  assert.deepEqual(texts(await harness.call(large)), ["A"]);
  assert.deepEqual(texts(await harness.call(large)), ["A"]);
  const told = harness.notices.filter((text) => text.includes("larger than the 64 MiB"));
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /Pi goes on without it\. \/compact makes it smaller/);
  assert.deepEqual(texts(await harness.call(first)), ["@2|A"], "the engine has not been ended");
  assert.deepEqual(
    outcomes(-1 + harness.requests("context/assemble").length).map(({ reason }) => reason),
    ["too large", "too large"],
  );
});

test("a Pi whose objects throw still gets a list", async () => {
  start("good");
  const broken = {
    get model() {
      throw new Error("stale");
    },
    signal: undefined,
    sessionManager: {},
  };
  const list = structuredClone(first);
  const out = await harness.shim.context.run(list, broken as never);
  assert.deepEqual(out, first);
});

test("the time zone of a request is that of now", async () => {
  const before = process.env.TZ;
  try {
    start("good");
    for (const zone of ["Asia/Dubai", "Asia/Tokyo"]) {
      process.env.TZ = zone;
      await harness.call(first);
    }
    const zones = harness.requests("context/assemble").map(({ params }) => params.zone);
    assert.deepEqual(zones, [
      { name: "Asia/Dubai", offset_minutes: 240 },
      { name: "Asia/Tokyo", offset_minutes: 540 },
    ]);
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
});

test("an answer that comes after the session has ended is none of the next one's", async () => {
  start("good");
  const late = harness.call(first);
  harness.begin("s2");
  assert.deepEqual(texts(await late), ["@2|A"]);
  await harness.call(second);
  const [before, next] = harness.requests("context/assemble");
  assert.deepEqual([before?.params.session, next?.params.session], ["s1", "s2"]);
  assert.equal(next?.params.keep, 0);
  assert.deepEqual(outcomes(1), []);
});
