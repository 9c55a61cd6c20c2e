import assert from "node:assert/strict";
import { test } from "node:test";
import { LastRequest } from "../context/provider.ts";

const control = { type: "ephemeral" };
const text = (words: string, more = {}) => ({ type: "text", text: words, ...more });
const user = (content: unknown) => ({ role: "user", content });
const says = (words: string) => ({ role: "assistant", content: [text(words)] });
const around = { model: "m", system: [text("Be careful.", { cache_control: control })], tools: [] };
const first = { ...around, messages: [user([text("go", { cache_control: control })])] };
const second = {
  ...around,
  messages: [user("go"), says("ok"), user([text("on", { cache_control: control })])],
};

function look(...requests: unknown[]): string | null {
  const sent = new LastRequest();
  let found: string | null = null;
  for (const request of requests) {
    sent.expect({ call: 1, extendsLast: true });
    found = sent.take(request, undefined)?.() ?? null;
  }
  return found;
}

test("a request that continues the last one was changed by nobody", () => {
  assert.equal(look(first), null);
  assert.equal(look(first, second), null);
});

test("results of later calls join the newest message", () => {
  const results = (...ids: string[]) => user(ids.map((id) => ({ type: "tool_result", id })));
  const grown = { ...around, messages: [user("go"), results("a", "b"), says("ok")] };
  assert.equal(look({ ...around, messages: [user("go"), results("a")] }, grown), null);
  assert.equal(
    look({ ...around, messages: [user("go"), results("c")] }, grown),
    "messages from number 2 on",
  );
});

test("what was removed, changed or left out is reported by its position", () => {
  const nudged = { ...first, messages: [user("think"), ...first.messages] };
  assert.equal(look(nudged, second), "messages from number 1 on");
  assert.equal(look(second, first), "messages from number 2 on");
  const other = { ...second, system: [text("Be quick.")], tools: [{ name: "x" }] };
  assert.equal(look(first, other), "system prompt, tools");
});

test("requests to other APIs are compared as well", () => {
  for (const name of ["input", "contents"]) {
    const one = { model: "m", [name]: [{ a: 1 }, { b: 2 }] };
    assert.equal(look(one, { model: "m", [name]: [{ a: 1 }, { b: 2 }, { c: 3 }] }), null);
    assert.equal(look(one, { model: "m", [name]: [{ a: 2 }] }), "messages from number 1 on");
  }
});

const effort = (level: string) => ({
  role: "system",
  content: [],
  output_config: { effort: level },
});
const instructions = { role: "system", content: [text("Be quick.", { cache_control: control })] };

test("what Pi moves behind a newer message was changed by nobody", () => {
  const having = (...messages: unknown[]) => ({ ...around, messages });
  const stopped = having(user("go"), effort("high"));
  assert.equal(look(stopped, having(user("go"), user("on"), effort("high"))), null);
  const answered = having(user("go"), effort("high"), says("ok"), user("on"), effort("low"));
  assert.equal(look(stopped, answered), null);
  assert.equal(look(answered, having(user("go"), says("ok"), user("on"))), null, "thinking is off");
  const changed = having(user("go"), instructions, effort("high"));
  assert.equal(look(changed, having(user("go"), user("on"), instructions, effort("high"))), null);
  assert.equal(look(changed, having(user("go"), instructions, effort("high"), says("ok"))), null);
  assert.equal(
    look(answered, having(user("go"), effort("high"), says("no"), user("on"), effort("low"))),
    "messages from number 2 on",
  );
});

test("an item that sets the effort is no message of OpenAI's, either", () => {
  const update = { type: "configuration_update", reasoning: { effort: "high" } };
  const input = (...items: unknown[]) => ({ model: "m", input: items });
  const stopped = input(user("go"), update);
  assert.equal(look(stopped, input(user("go"), user("on"), update)), null);
  assert.equal(look(stopped, input(user("stay"), update)), "messages from number 1 on");
});

test("requests that cannot be compared are ignored", () => {
  const sent = new LastRequest();
  assert.equal(sent.take(second, undefined), null, "not announced");
  sent.expect({ call: 1, extendsLast: true });
  assert.equal(sent.take("text", undefined), null);
  sent.expect({ call: 1, extendsLast: true });
  sent.take(second, undefined);
  sent.expect({ call: 1 });
  assert.equal(sent.take(first, undefined), null, "changed by the engine");
  sent.expect({ call: 1, extendsLast: true });
  assert.equal(sent.take({ ...second, model: "another" }, undefined), null);
  sent.expect({ call: 1, extendsLast: true, signal: AbortSignal.abort() });
  assert.equal(sent.take(first, undefined), null);
  const fresh = new LastRequest();
  fresh.expect({ call: 1, extendsLast: true });
  assert.equal(fresh.take(first, undefined), null, "nothing went out before it");
});
