import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostMessage, isSystem } from "../context/messages.ts";
import { BadAnswerError, checkAnswer, type EditBlock, Plan } from "../context/plan.ts";
import { assistant, call, conversation, result, user } from "./support/conversation.ts";
import { answerOf, type Brief, planOf } from "./support/plan.ts";
import { forSeeds, type Random } from "./support/random.ts";

const thinking = { type: "thinking", thinking: "hm", thinkingSignature: "signed" };
const list: HostMessage[] = [
  user("hello"),
  assistant([thinking, { type: "text", text: "ok" }, call("a"), call("b")]),
  result("a", "A"),
  result("b", "B"),
  user("more"),
];

function answer(fields: Brief & Record<string, unknown>, messages = list) {
  const { rewrites, says, omits, from, ...others } = fields;
  return { ...answerOf({ rewrites, says, omits, from } as Brief, messages), ...others };
}

function check(fields: Brief & Record<string, unknown>, keep = 0, held = new Plan()) {
  return checkAnswer(answer(fields), list, keep, held);
}

const image = { type: "image", data: "AAAA", mimeType: "image/png" };

test("good answers pass", () => {
  check({ rewrites: [[2, [{ type: "text", text: "@1" }, { keep: 0 }]]] });
  check({ rewrites: [[2, [image]]] });
  check({ rewrites: [[1, [{ keep: 1 }, { keep: 2 }, { keep: 3 }]]] });
  check({
    rewrites: [[1, [{ keep: 0 }, { ...call("a"), arguments: { command: "x" } }, { keep: 3 }]]],
  });
  check({
    says: [
      [0, [user("head")]],
      [5, [user("tail")]],
    ],
  });
  check({ omits: [1, 2, 3] });
  check({ from: 3, rewrites: [[4, [{ keep: 0 }]]] }, 4);
  assert.equal(check({ status: { text: "fd" } }).status?.text, "fd");
});

test("a call that the host left without a result gets one", () => {
  const torn = [user("hello"), assistant([call("a"), call("b")]), result("b", "B"), user("more")];
  const lost = answer({ says: [[3, [result("a", "lost")]]] }, torn);
  assert.equal(checkAnswer(lost, torn, 0, new Plan()).plan.slot(3).says.length, 1);
  const unsent = { role: "bashExecution", command: "env", excludeFromContext: true };
  const apart = [user("hello"), assistant([call("a"), call("b")]), unsent, result("b", "B")];
  const late = answer({ says: [[4, [result("a", "lost")]]] }, apart);
  assert.equal(checkAnswer(late, apart, 0, new Plan()).plan.slot(4).says.length, 1);
  const twice = [user("hello"), assistant([call("a")]), result("a", "A"), result("a", "A")];
  const second = answer({ omits: [3] }, twice);
  assert.equal(checkAnswer(second, twice, 0, new Plan()).plan.firstOmitted, 3);
  const orphan = [user("hello"), result("z", "Z")];
  const alone = answer({ omits: [1] }, orphan);
  assert.equal(checkAnswer(alone, orphan, 0, new Plan()).plan.firstOmitted, 1);
});

test("a result of ours before the newest answer belongs to the one before that", () => {
  const torn = [user("hello"), assistant([call("a")]), assistant([call("b")]), result("b", "B")];
  const { plan } = checkAnswer(
    answer({ says: [[2, [result("a", "lost")]]] }, torn.slice(0, 3)),
    torn.slice(0, 3),
    0,
    new Plan(),
  );
  const more = [["keep", 1]];
  const next = checkAnswer({ call: 2, from: 3, ops: more }, torn, 3, plan).plan;
  assert.equal(next.firstOmitted, -1);
});

test("an answer that was cut off has no calls to answer", () => {
  const cut = [user("hello"), { ...assistant([call("a")]), stopReason: "aborted" }, user("again")];
  const answered = answer({ says: [[2, [result("a", "A")]]] }, cut);
  assert.throws(() => checkAnswer(answered, cut, 0, new Plan()), BadAnswerError);
});

const doing = (...ops: unknown[][]) => ({ ...answer({}), ops });

const bad: [string, unknown][] = [
  ["nothing", null],
  ["a list", []],
  ["no call", { ...answer({}), call: undefined }],
  ["call 0", answer({ call: 0 })],
  ["from beyond keep", answer({ from: 1 })],
  ["no operations", { ...answer({}), ops: undefined }],
  ["operations for too few messages", doing(["keep", 4])],
  ["operations for too many messages", doing(["keep", 6])],
  ["a rewriting after the last message", doing(["keep", 5], ["rewrite", [{ keep: 0 }]])],
  ["none kept", doing(["keep", 0], ["keep", 5])],
  ["half of one left out", doing(["omit", 0.5], ["keep", 5])],
  ["an operation that is no pair", doing(["keep"])],
  ["an unknown operation", doing(["swap", 5])],
  ["keep of a block that is not there", answer({ rewrites: [[2, [{ keep: 1 }]]] })],
  ["keep that is no number", answer({ rewrites: [[2, [{ keep: "0" } as never]]] })],
  ["empty content", answer({ rewrites: [[2, []]] })],
  ["tool call in a result", answer({ rewrites: [[2, [call("a")]]] })],
  ["thinking rewritten", answer({ rewrites: [[1, [thinking, { keep: 2 }, { keep: 3 }]]] })],
  ["tool call lost", answer({ rewrites: [[1, [{ keep: 1 }, { keep: 2 }]]] })],
  ["tool call renamed", answer({ rewrites: [[1, [{ keep: 2 }, call("c")]]] })],
  ["tool calls in another order", answer({ rewrites: [[1, [{ keep: 3 }, { keep: 2 }]]] })],
  ["leaving out a call alone", answer({ omits: [1] })],
  ["leaving out one result", answer({ omits: [2] })],
  ["leaving out a call and one result", answer({ omits: [1, 2] })],
  ["leaving out everything", answer({ omits: [0, 1, 2, 3, 4] })],
  ["saying a result without a call", answer({ says: [[0, [result("z", "Z")]]] })],
  ["saying a second result", answer({ says: [[4, [result("a", "A again")]]] })],
  ["saying a result after the turn", answer({ says: [[5, [result("a", "late")]]] })],
  ["saying a tool call", answer({ says: [[0, [assistant([call("z")])]]] })],
  ["saying a system message", answer({ says: [[0, [{ role: "system", content: "x" }]]] })],
  ["saying something between call and result", answer({ says: [[2, [user("x")]]] })],
];

for (const [name, value] of bad) {
  test(`refused: ${name}`, () => {
    assert.throws(() => checkAnswer(value, list, 0, new Plan()), BadAnswerError);
  });
}

test("a refused answer leaves the plan in force as it was", () => {
  const held = check({ rewrites: [[2, [{ keep: 0 }]]] }).plan;
  assert.throws(() => check({ omits: [1] }, 0, held), BadAnswerError);
  assert.deepEqual(held.slot(2).blocks, [{ keep: 0 }]);
});

test("an answer that passes keeps every call with its result; a damaged one throws only BadAnswerError", () => {
  let passed = 0;
  forSeeds(2000, (random) => {
    const messages = conversation(random, 1 + random.below(8));
    const value = randomAnswer(random, messages);
    let plan: Plan;
    try {
      plan = checkAnswer(value, messages, 0, new Plan()).plan;
    } catch (error) {
      assert.ok(error instanceof BadAnswerError, String(error));
      return;
    }
    passed += 1;
    assertPaired(plan.apply(structuredClone(messages)));
  });
  assert.ok(passed > 100, `only ${passed} of the random answers were good`);
});

function randomAnswer(random: Random, messages: HostMessage[]): unknown {
  const index = () => random.below(messages.length + 1);
  const rewrites = messages.flatMap((message, i): [number, EditBlock[]][] => {
    if (!random.chance(0.2) || !Array.isArray(message.content)) return [];
    const kept = message.content.map((_, keep) => ({ keep })).filter(() => random.chance(0.9));
    return [[i, [{ type: "text", text: "@" }, ...kept]]];
  });
  const says: Brief["says"] = random.chance(0.3) ? [[index(), [user("inserted")]]] : [];
  const omits = random.chance(0.3) ? [index(), index()] : [];
  const broken = random.chance(0.1) ? { from: random.pick([1, -1, null, "0"]) } : {};
  return { ...answerOf({ rewrites, says, omits }, messages), ...broken };
}

/** Each result directly follows the message that calls it, each call has its result. */
function assertPaired(messages: HostMessage[]): void {
  assert.ok(messages.length > 0);
  let open = new Set<unknown>();
  for (const message of messages) {
    if (message.role === "toolResult") {
      assert.ok(open.delete(message.toolCallId), `result ${message.toolCallId} without its call`);
      continue;
    }
    assert.equal(open.size, 0, "a call without its result");
    const blocks =
      message.role === "assistant" ? (message.content as { type: string; id?: string }[]) : [];
    open = new Set(blocks.filter((block) => block.type === "toolCall").map((block) => block.id));
  }
  assert.equal(open.size, 0, "a call without its result");
}

const text = (value: string): EditBlock => ({ type: "text", text: value });

test("a rewriting reuses the host's own blocks and its own message object", () => {
  const list = [user("hello"), result("a", "long")];
  const own = list[1]?.content as object[];
  const plan = planOf({ rewrites: [[1, [text("@1"), { keep: 0 }]]] }, 2);
  const out = plan.apply(list);
  assert.equal(out[1], list[1]);
  assert.equal((out[1]?.content as object[] | undefined)?.[1], own[0]);
  assert.deepEqual(out[1]?.content, [text("@1"), text("long")]);
});

test("a string content is one text block, number 0", () => {
  const plan = planOf({ rewrites: [[0, [{ keep: 0 }, text("more")]]] }, 1);
  assert.deepEqual(plan.apply([user("hello")])[0]?.content, [text("hello"), text("more")]);
});

test("what is said, left out, and the end of the list", () => {
  const list = [user("a"), user("b"), user("c")];
  const says: Brief["says"] = [
    [0, [user("head")]],
    [3, [user("tail")]],
  ];
  const plan = planOf({ says, omits: [1] }, 3);
  const contents = plan.apply(list).map((message) => message.content);
  assert.deepEqual(contents, ["head", "a", "c", "tail"]);
});

test("the rewriting of a message without content makes a user message of it", () => {
  const shell: HostMessage = { role: "bashExecution", command: "ls", output: "x", timestamp: 7 };
  const plan = planOf({ rewrites: [[0, [text("ran ls")]]] }, 1);
  const expected = [{ role: "user", content: [text("ran ls")], timestamp: 7 }];
  assert.deepEqual(plan.apply([shell]), expected);
});

test("system entries keep their place and do not count", () => {
  const system: HostMessage = { role: "system", content: "prompt" };
  const update: HostMessage = { role: "system", content: "update" };
  const list = [system, user("a"), update, user("b")];
  const says: Brief["says"] = [[0, [user("head")]]];
  const plan = planOf({ rewrites: [[1, [text("B")]]], says }, 2);
  const out = plan.apply(list);
  assert.deepEqual(
    out.map((message) => message.role),
    ["system", "user", "user", "system", "user"],
  );
  assert.equal(out[0], system);
  assert.equal(out[1]?.content, "head");
  assert.deepEqual(out[4]?.content, [text("B")]);
});

test("an answer replaces everything at or after its `from` and leaves the rest alone", () => {
  const rewrites: Brief["rewrites"] = [
    [0, [text("0")]],
    [2, [text("2")]],
  ];
  const held = planOf({ rewrites, says: [[2, [user("x")]]], omits: [3] }, 4);
  const plan = planOf({ from: 2, rewrites: [[3, [text("3")]]] }, 4, held);
  assert.deepEqual(plan.slot(0).blocks, [text("0")]);
  assert.deepEqual(plan.slot(2), { says: [], blocks: null, isOmitted: false });
  assert.deepEqual(plan.slot(3), { says: [], blocks: [text("3")], isOmitted: false });
});

test("answer after answer gives the same as one answer with everything", () => {
  forSeeds(300, (random) => {
    const list = conversation(random, 1 + random.below(12));
    const model = new Map<number, EditBlock[]>();
    let plan = new Plan();
    for (let round = 0; round < 5; round++) {
      const from = random.below(list.length + 1);
      const rewrites = randomRewrites(random, list, from, round);
      for (const index of [...model.keys()]) if (index >= from) model.delete(index);
      for (const [index, blocks] of rewrites) model.set(index, blocks);
      plan = planOf({ from, rewrites }, list.length, plan);
    }
    const once = planOf({ rewrites: [...model] }, list.length);
    const [a, b] = [structuredClone(list), structuredClone(list)];
    assert.deepEqual(plan.apply(a), once.apply(b));
  });
});

test("operations at or after the limit are left out, the others are not", () => {
  forSeeds(300, (random) => {
    const list = conversation(random, 1 + random.below(12));
    const says: Brief["says"] = [[random.below(list.length + 1), [user("inserted")]]];
    const plan = planOf({ rewrites: randomRewrites(random, list, 0, 0), says }, list.length);
    const limit = random.below(list.length + 1);
    const out = plan.apply(structuredClone(list), limit);
    const all = plan.apply(structuredClone(list));
    const newer = list.slice(limit);
    assert.deepEqual(out.slice(out.length - newer.length), newer);
    const older = out.slice(0, out.length - newer.length);
    assert.deepEqual(older, all.slice(0, older.length));
    const ended = plan.apply(structuredClone(list), limit, true);
    const ending = plan.slot(limit).says;
    assert.deepEqual(ended, [...older, ...ending, ...newer]);
  });
});

test("no operation changes system entries", () => {
  forSeeds(200, (random) => {
    const list = conversation(random, 6);
    const mixed = list.flatMap((message) =>
      random.chance(0.3)
        ? [{ role: "system", content: `s${random.below(99)}` }, message]
        : [message],
    );
    const system = mixed.filter(isSystem);
    const plan = planOf({ rewrites: randomRewrites(random, list, 0, 0), omits: [0] }, list.length);
    const out = plan.apply(mixed);
    assert.ok(out.filter(isSystem).every((message, index) => message === system[index]));
    assert.equal(out.length, mixed.length - 1);
  });
});

test("messages of ours are copied each time, since others may change what went out", () => {
  const plan = planOf({ says: [[0, [user("head")]]] }, 1);
  const first = plan.apply([user("a")])[0] as HostMessage;
  first.content = "changed";
  assert.equal(plan.apply([user("a")])[0]?.content, "head");
});

function randomRewrites(
  random: Random,
  list: HostMessage[],
  from: number,
  round: number,
): [number, EditBlock[]][] {
  const rewrites: [number, EditBlock[]][] = [];
  for (let index = from; index < list.length; index++) {
    const own = list[index]?.content;
    if (!random.chance(0.4) || own === undefined) continue;
    const kept = Array.from(
      { length: own.length && Array.isArray(own) ? own.length : 1 },
      (_, k) => ({
        keep: k,
      }),
    );
    rewrites.push([index, [text(`@${index}.${round}`), ...kept]]);
  }
  return rewrites;
}

test("a folded argument takes the place of the call's own", () => {
  const list = [assistant([call("a", "write", { path: "x", content: "long" })])];
  const folded = { ...call("a", "write", { path: "x", content: "<@1: ...>" }) } as EditBlock;
  const plan = planOf({ rewrites: [[0, [folded]]] }, 1);
  assert.deepEqual(plan.apply(list)[0]?.content, [folded]);
});
