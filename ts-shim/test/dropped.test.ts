import assert from "node:assert/strict";
import { test } from "node:test";
import { droppedIn, isBound } from "../context/dropped.ts";
import type { HostMessage } from "../context/messages.ts";

const thought = (thinkingSignature: string) => ({
  type: "thinking",
  thinking: "hm",
  thinkingSignature,
});
const item = (id: string) => JSON.stringify({ id, type: "reasoning", encrypted_content: "x" });

const list: HostMessage[] = [
  { role: "user", content: "go" },
  { role: "assistant", content: [thought("sig-1"), { type: "text", text: "a" }] },
  { role: "user", content: "on" },
  { role: "assistant", content: [thought("sig-2"), { ...thought("sig-3"), redacted: true }] },
  { role: "assistant", content: [thought(item("rs_1")), thought(item("rs_2"))] },
];

/** As Pi's adapter has made it: with messages of its own between, and without those left out. */
const request = {
  messages: [
    { role: "user", content: "go" },
    { role: "system", content: [], output_config: { effort: "low" } },
    { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: "sig-2" }] },
    {
      role: "assistant",
      content: [{ type: "redacted_thinking", data: "sig-3" }, { type: "text" }],
    },
  ],
};

const answer = (type: string, ...transformations: unknown[]): HostMessage => ({
  role: "assistant",
  diagnostics: [{ type: "another" }, { type, details: { transformations } }],
});
const anthropic = "anthropic_input_transformations";
const openai = "openai_input_transformations";

test("what Anthropic has dropped is found by where it was in the request", () => {
  const dropped = (path: unknown) => ({ type: "thinking_dropped", path, reason: "r" });
  const told = answer(anthropic, dropped("messages.2.content.0"), dropped("messages.3.content.0"));
  assert.deepEqual(droppedIn(told, request, list), [
    [3, 0],
    [3, 1],
  ]);
  const strange = ["messages.3.content.1", "messages.9.content.0", "system.0", null].map(dropped);
  assert.deepEqual(droppedIn(answer(anthropic, ...strange), request, list), []);
});

test("what was used all the same is not dropped", () => {
  const allowed = { type: "thinking_mismatch_allowed", path: "messages.2.content.0" };
  assert.deepEqual(droppedIn(answer(anthropic, allowed), request, list), []);
});

test("what OpenAI has removed is found by its id, but for what ends with its turn", () => {
  const removed = (id: string, reason: string) => ({
    type: "reasoning",
    id,
    action: "removed",
    reason,
  });
  const told = answer(openai, removed("rs_2", "prefix_mismatch"), removed("rs_1", "turn_boundary"));
  assert.deepEqual(droppedIn(told, request, list), [[4, 1]]);
});

test("an answer that says nothing of it, or nonsense, has dropped nothing", () => {
  for (const diagnostics of [undefined, null, "x", [null], [{ type: anthropic, details: 7 }]]) {
    assert.deepEqual(droppedIn({ role: "assistant", diagnostics }, request, list), []);
  }
  const nowhere = { type: "thinking_dropped", path: "messages.2.content.0" };
  assert.deepEqual(droppedIn(answer(anthropic, nowhere), null, list), []);
});

test("what is bound to the bytes before it is told by the reason", () => {
  const of = (type: string, change: object) => isBound(answer(type, change));
  assert.ok(of(openai, { id: "rs_1", action: "removed", reason: "prefix_mismatch" }));
  assert.ok(of(anthropic, { type: "thinking_dropped", reason: "prefix_binding_mismatch" }));
  assert.ok(!of(openai, { id: "rs_1", action: "removed", reason: "model" }));
  const allowed = { type: "thinking_mismatch_allowed", reason: "prefix_binding_mismatch" };
  assert.ok(!of(anthropic, allowed));
});
