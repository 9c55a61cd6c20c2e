import assert from "node:assert/strict";
import { test } from "node:test";
import { askedAgain, askModel, describeModel, isSingleSlot, type Question } from "../asking.ts";
import { LastRequest, type SentPrompt } from "../context/provider.ts";
import type { Shim } from "../shim.ts";

const control = { type: "ephemeral" };
const priced = { cost: { input: 3, output: 15 }, baseUrl: "https://api.example.com" };
const model = {
  provider: "p",
  id: "m",
  api: "anthropic-messages",
  promptCache: { short: 300 },
  ...priced,
};
const payload = {
  model: "m",
  max_tokens: 32_000,
  tools: [{ name: "read" }],
  messages: [
    { role: "user", content: "go" },
    { role: "assistant", content: [{ type: "tool_use", id: "a" }] },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "a", cache_control: control }],
    },
  ],
};

function sent(of: object = payload, by: typeof model = model): LastRequest {
  const prompt = new LastRequest();
  prompt.expect({ call: 8 });
  prompt.take(of, by);
  prompt.answered(200);
  return prompt;
}

test("a model here or without a price answers one at a time", () => {
  assert.equal(isSingleSlot(priced), false);
  assert.equal(isSingleSlot({ cost: priced.cost }), false);
  const here = ["localhost:8080", "127.0.0.1", "127.9.1.1:1", "[::1]:80", "0.0.0.0", "a.localhost"];
  for (const host of here) {
    assert.equal(isSingleSlot({ ...priced, baseUrl: `http://${host}/v1` }), true, host);
  }
  for (const host of ["localhost.example.com", "128.0.0.1", "10.0.0.127"]) {
    assert.equal(isSingleSlot({ ...priced, baseUrl: `http://${host}/v1` }), false, host);
  }
  assert.equal(isSingleSlot({ ...priced, cost: { input: 0, output: 0 } }), true);
  assert.equal(isSingleSlot({}), true);
});

test("the last prompt is found, and when it was last sent", () => {
  const lastRequest = sent();
  const found = lastRequest.find(model) as SentPrompt;
  assert.equal(found.call, 8);
  assert.equal(found.payload, payload);
  const warmed = { type: "usage", kind: "cache_warm", timestamp: "2100-01-01T00:00:00.000Z" };
  const at = (entry: unknown) => {
    const ctx = {
      model,
      modelRegistry: { hasConfiguredAuth: () => true },
      sessionManager: { getBranch: () => (entry ? [entry] : []) },
    };
    const shim = { context: { lastRequest }, host: { ctx }, isOff: () => false };
    const { warm, sent_ms } = describeModel(shim as never);
    return [warm, sent_ms];
  };
  assert.deepEqual(at(undefined), [8, found.sentMs]);
  assert.deepEqual(at(warmed), [8, Date.parse(warmed.timestamp)], "the warmer sent it again");
});

test("where the cache would not be read it is said why", () => {
  const why = (prompt: LastRequest, by: object = model) => String(prompt.find(by as typeof model));
  assert.match(why(new LastRequest()), /no call of this session/);
  const waiting = new LastRequest();
  waiting.expect({ call: 8 });
  waiting.take(payload, model);
  assert.match(why(waiting), /not begun to answer/);
  waiting.answered(529);
  assert.match(why(waiting), /not begun to answer/);
  const next = sent();
  next.expect({ call: null });
  next.take({ model: "m", messages: [] }, model);
  assert.match(why(next), /no call of this session/, "a call without the engine is none of ours");
  const rewritten = sent();
  rewritten.rewritten = true;
  assert.match(why(rewritten), /another extension/);
  assert.match(why(new LastRequest()), /no call of this session/);
  assert.match(why(sent(), { ...model, id: "n" }), /has been changed/);
  const google = { ...model, api: "google-generative-ai" };
  assert.match(why(sent(payload, google), google), /not asked again over google/);
  assert.match(why(sent({ ...payload, model: "other" })), /another model answers/);
  const budget = { ...payload, thinking: { type: "enabled", budget_tokens: 1024 } };
  assert.match(why(sent(budget)), /within a budget/);
});

test("a question joins the last message, with the markers where they were", () => {
  const before = structuredClone(payload);
  const found = sent().find(model) as SentPrompt;
  const question = [{ type: "text", text: "?", cache_control: control }];
  const built = { max_tokens: 200, tools: [], messages: [{ role: "user", content: question }] };
  const again = askedAgain(found, built);
  const [first, second, last] = payload.messages;
  const end = { ...last, content: [...(last?.content ?? []), { type: "text", text: "?" }] };
  assert.deepEqual(again, { ...payload, max_tokens: 200, messages: [first, second, end] });
  assert.deepEqual(payload, before, "what is kept stays as it is");
});

test("a question stands before the effort, which is the least that the question itself has", () => {
  const effort = (level: string) => ({
    role: "system",
    content: [],
    output_config: { effort: level },
  });
  const prompt = { ...payload, messages: [...payload.messages, effort("high")] };
  const found = sent(prompt).find(model) as SentPrompt;
  const asked = { role: "user", content: [{ type: "text", text: "?" }] };
  const again = askedAgain(found, { max_tokens: 9, messages: [asked, effort("low")] });
  const messages = again.messages as typeof prompt.messages;
  assert.deepEqual(messages.at(-1), effort("low"));
  assert.deepEqual(messages.at(-2)?.content.at(-1), { type: "text", text: "?" });
  assert.deepEqual(messages.slice(0, -2), payload.messages.slice(0, -1));
  // Without thinking there are no efforts, and none comes into a prompt that has none.
  assert.deepEqual(
    (askedAgain(found, { messages: [asked] }).messages as unknown[]).at(-1),
    effort("high"),
  );
  const plain = sent().find(model) as SentPrompt;
  assert.deepEqual(
    askedAgain(plain, { messages: [asked, effort("low")] }),
    askedAgain(plain, { messages: [asked] }),
  );
});

test("behind a change of the instructions there is no question", () => {
  const changed = { role: "system", content: [{ type: "text", text: "Be quick." }] };
  const prompt = { ...payload, messages: [...payload.messages, changed] };
  assert.match(String(sent(prompt).find(model)), /ends in a change of the instructions/);
});

test("a model thinks as little as it can, and that is said before it is asked", async () => {
  const [asked, options]: [Question, Record<string, unknown>[]] = [
    { messages: [{ role: "user", content: "?" }], max_tokens: 900 },
    [],
  ];
  const seen = async (record: object) => {
    const usage = { cost: {} };
    const answer = { content: [], stopReason: "stop", usage, provider: "p", model: "m" };
    const modelRegistry = {
      hasConfiguredAuth: () => true,
      streamSimple: (_model: unknown, _context: unknown, given: Record<string, unknown>) => {
        options.push(given);
        return { result: async () => answer };
      },
    };
    const shim = shimWith({ model: { ...model, ...record }, modelRegistry, sessionManager: {} });
    await askModel(shim, asked, AbortSignal.timeout(10_000));
    const { reasoning, maxTokens } = options.at(-1) ?? {};
    return [describeModel(shim).thinking, reasoning, maxTokens];
  };
  assert.deepEqual(await seen({}), ["off", undefined, 900]);
  assert.deepEqual(await seen({ reasoning: true }), ["off", undefined, 900]);
  const always = { reasoning: true, thinkingLevelMap: { off: null, minimal: null } };
  assert.deepEqual(await seen(always), ["low", "low", 900]);
  assert.deepEqual(await seen({ ...always, maxTokens: 500 }), ["low", "low", 500]);
});

test("on the other wire it is a message of its own", () => {
  const openai = { ...model, api: "openai-completions" };
  const messages = [{ role: "user", content: "go" }];
  const found = sent({ model: "m", messages }, openai).find(openai) as SentPrompt;
  const built = { max_completion_tokens: 9, messages: [{ role: "user", content: "?" }] };
  const asked = { role: "user", content: [{ type: "text", text: "?" }] };
  assert.deepEqual(askedAgain(found, built), {
    model: "m",
    max_completion_tokens: 9,
    messages: [...messages, asked],
  });
});

function shimWith(ctx: object | null, off = false, lastRequest = new LastRequest()): Shim {
  return { context: { lastRequest }, host: { ctx }, isOff: () => off } as never;
}

test("without a model it is said how to come by one, and nothing throws", () => {
  const cases: [Shim, RegExp][] = [
    [shimWith(null), /no session/],
    [shimWith({}, true), /foredeck on/],
    [shimWith({ modelRegistry: {} }), /choose one with \/model/],
    [shimWith({ model, modelRegistry: { hasConfiguredAuth: () => false } }), /log in/],
  ];
  for (const [shim, reason] of cases) {
    const described = describeModel(shim);
    assert.equal(described.model, null);
    assert.match(String(described.reason), reason);
  }
});

test("a model that is not selected can be described, too", () => {
  const small = { ...model, id: "small", cost: { input: 1, output: 2 } };
  const modelRegistry = {
    hasConfiguredAuth: () => true,
    find: (provider: string, id: string) => (provider === "p" && id === "small" ? small : null),
  };
  const shim = shimWith({ model, modelRegistry, sessionManager: {} });
  const described = describeModel(shim, { provider: "p", id: "small" });
  assert.deepEqual((described.model as typeof small).cost, small.cost);
  assert.match(String(described.cold), /no call of this session/);
  const unknown = describeModel(shim, { provider: "p", id: "large" });
  assert.match(String(unknown.reason), /Pi has no model p\/large/);
});

test("a question that is taken back ends", async () => {
  const result = (signal: AbortSignal) =>
    new Promise((resolve) => {
      const usage = { cost: {} };
      const answer = { content: [], stopReason: "aborted", usage, provider: "p", model: "m" };
      signal.addEventListener("abort", () => resolve(answer));
    });
  const modelRegistry = {
    hasConfiguredAuth: () => true,
    streamSimple: (_model: unknown, _context: unknown, { signal }: { signal: AbortSignal }) => ({
      result: () => result(signal),
    }),
  };
  const shim = shimWith({ model, modelRegistry, sessionManager: {} });
  const question = { messages: [{ role: "user", content: "?" }], max_tokens: 9 };
  const taking = new AbortController();
  const answer = askModel(shim, question, taking.signal);
  taking.abort();
  await assert.rejects(answer, { code: -32800 });
});

/** Asks `model`, or one that differs in `more`; with what went out, and what Pi counted. */
async function ask(question: Partial<Question>, more: object = {}) {
  const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, cost: { total: 5 } };
  const answer = { content: [], stopReason: "stop", usage, provider: "p", model: "m" };
  const out: unknown[] = [];
  const counted: unknown[] = [];
  const modelRegistry = {
    hasConfiguredAuth: () => true,
    streamSimple: (_: unknown, { messages: _m, ...context }: Question, given: object) => {
      const { signal: _s, onPayload: _p, ...options } = given as Record<string, unknown>;
      out.push({ ...context, ...options });
      return { result: async () => answer };
    },
  };
  const sessionManager = { appendUsage: (...told: unknown[]) => counted.push(told) };
  const ctx = { model: { ...model, ...more }, modelRegistry, sessionManager };
  const shim = shimWith(ctx, false, sent());
  const asked = { messages: [{ role: "user", content: "?" }], max_tokens: 9, ...question };
  const told = await askModel(shim, asked, AbortSignal.timeout(10_000)).catch(({ message }) => ({
    refused: message as string,
  }));
  return { told: told as Record<string, unknown>, out, counted };
}

test("a question goes out as it was asked, and what it took is told and counted", async () => {
  const { told, out, counted } = await ask({ system: "You look on." });
  assert.deepEqual(out, [{ systemPrompt: "You look on.", maxTokens: 9, cacheRetention: "none" }]);
  const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, cost: { total: 5 } };
  const message = { content: [], stopReason: "stop", usage, provider: "p", model: "m" };
  assert.deepEqual(told, { message, single_slot: false });
  assert.deepEqual(counted, [["foredeck", "p", "m", usage]]);
});

test("what is refused sends nothing", async () => {
  const cases: [Partial<Question>, object, RegExp][] = [
    [{ warm: 1 }, {}, /call 1 is not the last/],
    [{ warm: 8 }, { id: "n" }, /has been changed/],
    [{}, { baseUrl: "http://127.0.0.1:1" }, /one at a time/],
  ];
  for (const [question, more, why] of cases) {
    const { told, out } = await ask(question, more);
    assert.match(String(told.refused), why);
    assert.deepEqual(out, []);
  }
  const { told } = await ask({ wanted: true }, { baseUrl: "http://127.0.0.1:1" });
  assert.equal(told.single_slot, true);
});
