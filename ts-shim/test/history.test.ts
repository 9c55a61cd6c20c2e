import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { LEAST_MESSAGES, OPENING_MS } from "../context/hook.ts";
import { conversation, user } from "./support/conversation.ts";
import { Harness, PATIENT_MS, passTime, stopClock, until } from "./support/harness.ts";
import { Random } from "./support/random.ts";

let harness: Harness;
afterEach(() => harness.close());

/** A shim whose session holds so many messages when it begins; each call adds the user's next. */
async function start(mode: string, messages: number): Promise<void> {
  harness = new Harness(mode);
  harness.projected.push(...conversation(new Random(7), messages).slice(0, messages));
  harness.begin();
  await harness.shim.engine.whenReady();
}

async function ask(text: string) {
  harness.projected.push(user(text, 5000 + harness.projected.length));
  return harness.call(harness.projected);
}

const assembled = () => harness.requests("context/assemble").map(({ params }) => params);

test("a long history goes ahead, and the first call brings what is left of it", async () => {
  await start("good", 2 * LEAST_MESSAGES);
  await ask("go on");
  const [sent] = harness.requests("session/history");
  assert.deepEqual(sent?.params.messages, harness.projected.slice(0, -1));
  assert.deepEqual(sent?.params.system, [{ role: "system", content: "prompt" }]);
  const [first] = assembled();
  assert.equal(first?.keep, 2 * LEAST_MESSAGES - 1);
  assert.deepEqual(first?.messages, harness.projected.slice(-2));
  assert.deepEqual(first?.system, [{ role: "system", content: "prompt" }]);
  await ask("and on");
  assert.equal(assembled()[1]?.keep, 2 * LEAST_MESSAGES + 1);
  assert.ok(harness.statuses.includes(`foredeck: taking in ${2 * LEAST_MESSAGES} messages`));
});

test("what was changed since is sent from where it differs", async () => {
  await start("good", 2 * LEAST_MESSAGES);
  await until(() => harness.requests("session/history").length === 1, "the history is sent");
  harness.projected[9] = user("another way", 9);
  await ask("go on");
  assert.equal(assembled()[0]?.keep, 9);
});

test("a short history comes with the first call, and so does one that was refused", async () => {
  await start("good", LEAST_MESSAGES - 1);
  await ask("go on");
  assert.equal(harness.requests("session/history").length, 0);
  await harness.close();
  await start("no-history", LEAST_MESSAGES);
  await ask("go on");
  assert.equal(assembled()[0]?.keep, 0);
  assert.deepEqual(assembled()[0]?.messages, harness.projected);
});

test("a command before the first call brings a history however short, once", async () => {
  await start("good", 5);
  const ctx = Object.assign(harness.ctx, { isIdle: () => true });
  harness.shim.context.bringHistory(ctx);
  harness.shim.context.bringHistory(ctx);
  await ask("go on");
  harness.shim.context.bringHistory(ctx);
  const sent = harness.requests("session/history").map(({ params }) => params.messages);
  assert.deepEqual(sent, [harness.projected.slice(0, 5)]);
  assert.equal(assembled()[0]?.keep, 4);
});

test("a first call that gets no answer goes out as Pi has it, and the next brings everything", async () => {
  await start("hang-once", LEAST_MESSAGES);
  await until(() => harness.requests("session/history").length === 1, "the history is sent");
  stopClock();
  process.env.FOREDECK_DEADLINE_MS = "300";
  try {
    const waiting = ask("go on");
    await until(() => assembled().length === 1, "asked");
    passTime(OPENING_MS);
    await waiting;
  } finally {
    process.env.FOREDECK_DEADLINE_MS = PATIENT_MS;
  }
  await ask("and on");
  const [first, second] = assembled();
  assert.equal(first?.keep, LEAST_MESSAGES - 1);
  assert.equal(second?.keep, 0);
  const { call, kind, edited } = (second?.outcomes as Record<string, unknown>[])?.[0] ?? {};
  assert.deepEqual({ call, kind, edited }, { call: null, kind: "fallback", edited: 0 });
});

test("the first call waits for an opening that takes longer than its own deadline", async () => {
  process.env.FOREDECK_DEADLINE_MS = "300";
  try {
    await start("slow-open", 5);
    const sent = await ask("go on");
    assert.ok(harness.statuses.includes("foredeck: opening the session"));
    assert.deepEqual(assembled()[0]?.outcomes, []);
    assert.equal(sent.length, 6);
    await ask("and on");
    const [outcome] = (assembled()[1]?.outcomes as Record<string, unknown>[]) ?? [];
    assert.equal(outcome?.kind, "applied");
  } finally {
    process.env.FOREDECK_DEADLINE_MS = PATIENT_MS;
  }
});
