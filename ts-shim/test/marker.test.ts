import assert from "node:assert/strict";
import { test } from "node:test";
import { withMarker } from "../context/provider.ts";
import { describe, warmedAt } from "../context/request.ts";

const control = { type: "ephemeral", ttl: "1h" };
const result = (id: string, more = {}) => ({ type: "tool_result", tool_use_id: id, ...more });

function request(marked = 2) {
  const system = Array.from({ length: marked - 1 }, () => ({
    type: "text",
    cache_control: control,
  }));
  return {
    model: "m",
    system,
    tools: [{ name: "read" }],
    messages: [
      { role: "user", content: "go" },
      { role: "assistant", content: [{ type: "tool_use", id: "a" }] },
      { role: "user", content: [result("a"), result("b")] },
      { role: "assistant", content: [{ type: "tool_use", id: "c" }] },
      { role: "user", content: [result("c", { cache_control: control })] },
    ],
  };
}

test("the result that the engine names gets the marker that Pi puts at the end", () => {
  const before = request();
  const after = withMarker(before, "a") as ReturnType<typeof request>;
  assert.deepEqual(after.messages[2]?.content, [
    result("a", { cache_control: control }),
    result("b"),
  ]);
  assert.deepEqual(
    { ...after, messages: after.messages.with(2, before.messages[2] as never) },
    before,
  );
  assert.deepEqual(before, request(), "Pi's own request is not changed");
});

test("there are never more than four markers, or two on one block", () => {
  assert.ok(withMarker(request(3), "a"));
  const [begin, ...rest] = request(2).messages;
  const marked = { ...begin, content: [{ type: "text", cache_control: control }] };
  const tools = [{ name: "read", cache_control: control }];
  const full = { ...request(2), tools, messages: [marked, ...rest] };
  assert.equal(withMarker(full, "a"), undefined);
  assert.equal(withMarker(request(), "c"), undefined);
});

test("Pi's marker stands before the effort of the next answer", () => {
  const before = request();
  const effort = { role: "system", content: [], output_config: { effort: "high" } };
  const { messages } = withMarker({ ...before, messages: [...before.messages, effort] }, "a") ?? {};
  assert.deepEqual(messages, [
    ...((withMarker(before, "a") as typeof before).messages ?? []),
    effort,
  ]);
});

test("of two markers on the system prompt the first makes room", () => {
  const tools = [{ name: "read", cache_control: control }];
  const after = withMarker({ ...request(3), tools }, "a") as ReturnType<typeof request>;
  assert.deepEqual(after.system, [{ type: "text" }, { type: "text", cache_control: control }]);
  assert.deepEqual(after.messages[2]?.content[0], result("a", { cache_control: control }));
  assert.deepEqual(after.tools, tools);
});

test("in a thread the system prompt goes without its marker, for all to be sent", () => {
  const after = withMarker(request(), "a", true) as ReturnType<typeof request>;
  assert.deepEqual(after.system, [{ type: "text" }]);
  assert.deepEqual({ ...after, system: request().system }, withMarker(request(), "a"));
  assert.equal(withMarker(request(), null, true), undefined, "it goes on otherwise");
});

test("whether Pi uses threads is in the model's record, or in its address", () => {
  const record = { provider: "p", id: "m", api: "anthropic-messages", baseUrl: "http://127.0.0.1" };
  const threads = (more: object) => describe({ ...record, ...more }).threads;
  const theirs = { baseUrl: "https://api.anthropic.com" };
  assert.equal(threads({}), undefined);
  assert.equal(threads(theirs), true);
  assert.equal(threads({ ...theirs, compat: { supportsMessageThreads: false } }), undefined);
  assert.equal(threads({ compat: { supportsMessageThreads: true } }), true);
  assert.equal(threads({ ...theirs, api: "openai-completions" }), undefined);
});

test("requests without Pi's marker, or without that result, stay as they are", () => {
  const unmarked = request();
  unmarked.messages.push({ role: "assistant", content: [{ type: "text", id: "x" }] });
  const openai = { messages: [{ role: "tool", tool_call_id: "a", content: "A" }] };
  for (const payload of [unmarked, openai, { messages: "none" }, { messages: [] }, null, "x", 7]) {
    assert.equal(withMarker(payload, "a"), undefined);
  }
  assert.equal(withMarker(request(), "gone"), undefined);
  assert.equal(withMarker(request(), null), undefined);
});

test("only a warming request since the newest answer is found", () => {
  const warm = { type: "usage", kind: "cache_warm", timestamp: "2026-01-01T00:00:05.000Z" };
  const said = { type: "message", message: { role: "assistant" } };
  const asked = { type: "message", message: { role: "user" } };
  assert.equal(warmedAt([said, warm, asked] as never), Date.parse(warm.timestamp));
  assert.equal(warmedAt([warm, said, asked] as never), undefined);
  assert.equal(warmedAt([said, { ...warm, kind: "other" }, asked] as never), undefined);
  assert.equal(warmedAt([said, { ...warm, timestamp: "?" }, asked] as never), undefined);
  assert.equal(warmedAt([]), undefined);
});

test("what is no object among the blocks of a request does no harm", () => {
  const before = request();
  const odd = { role: "assistant", content: [null] };
  const after = withMarker(
    {
      ...before,
      tools: [null],
      messages: [...before.messages.slice(0, 3), odd, ...before.messages.slice(3)],
    },
    "a",
  ) as ReturnType<typeof request>;
  assert.deepEqual(after.messages[2]?.content[0], result("a", { cache_control: control }));
});
