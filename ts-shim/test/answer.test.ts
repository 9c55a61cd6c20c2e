import assert from "node:assert/strict";
import { test } from "node:test";
import { BadAnswerError, checkAnswer } from "../context/answer.ts";
import { applyEdits, EditBook } from "../context/edits.ts";
import type { HostMessage } from "../context/messages.ts";
import { assistant, call, conversation, result, user } from "./support/conversation.ts";
import { forSeeds, type Random } from "./support/random.ts";

const thinking = { type: "thinking", thinking: "hm", thinkingSignature: "signed" };
const list: HostMessage[] = [
  user("hello"),
  assistant([thinking, { type: "text", text: "ok" }, call("a"), call("b")]),
  result("a", "A"),
  result("b", "B"),
  user("more"),
];

function answer(fields: object) {
  return { call: 1, from: 0, edits: [], inserts: [], drops: [], ...fields };
}

function check(fields: object, keep = 0, held = new EditBook()) {
  return checkAnswer(answer(fields), list, keep, held);
}

const image = { type: "image", data: "AAAA", mimeType: "image/png" };

test("good answers pass", () => {
  check({ edits: [[2, [{ type: "text", text: "@1" }, { keep: 0 }]]] });
  check({ edits: [[2, [image]]] });
  check({ edits: [[1, [{ keep: 1 }, { keep: 2 }, { keep: 3 }]]] });
  check({
    edits: [[1, [{ keep: 0 }, { ...call("a"), arguments: { command: "x" } }, { keep: 3 }]]],
  });
  check({
    inserts: [
      [0, [user("head")]],
      [5, [user("tail")]],
    ],
  });
  check({ drops: [1, 2, 3] });
  check({ from: 3, edits: [[4, [{ keep: 0 }]]] }, 4);
  const { answer: full } = check({
    status: { text: "fd" },
    notices: [{ level: "info", text: "hi" }, { level: "shout", text: "x" }, 7],
  });
  assert.equal(full.status, "fd");
  assert.deepEqual(full.notices, [{ level: "info", text: "hi" }]);
});

test("a call that the host left without a result gets one", () => {
  const torn = [user("hello"), assistant([call("a"), call("b")]), result("b", "B"), user("more")];
  const lost = answer({ inserts: [[3, [result("a", "lost")]]] });
  assert.equal(checkAnswer(lost, torn, 0, new EditBook()).answer.inserts.length, 1);
  const unsent = { role: "bashExecution", command: "env", excludeFromContext: true };
  const apart = [user("hello"), assistant([call("a"), call("b")]), unsent, result("b", "B")];
  const late = answer({ inserts: [[4, [result("a", "lost")]]] });
  assert.equal(checkAnswer(late, apart, 0, new EditBook()).answer.inserts.length, 1);
  const twice = [user("hello"), assistant([call("a")]), result("a", "A"), result("a", "A")];
  assert.deepEqual(checkAnswer(answer({ drops: [3] }), twice, 0, new EditBook()).answer.drops, [3]);
  const orphan = [user("hello"), result("z", "Z")];
  assert.deepEqual(
    checkAnswer(answer({ drops: [1] }), orphan, 0, new EditBook()).answer.drops,
    [1],
  );
});

test("an answer that was cut off has no calls to answer", () => {
  const cut = [user("hello"), { ...assistant([call("a")]), stopReason: "aborted" }, user("again")];
  const answered = answer({ inserts: [[2, [result("a", "A")]]] });
  assert.throws(() => checkAnswer(answered, cut, 0, new EditBook()), BadAnswerError);
});

const bad: [string, unknown][] = [
  ["nothing", null],
  ["a list", []],
  ["no call", { ...answer({}), call: undefined }],
  ["call 0", answer({ call: 0 })],
  ["from beyond keep", answer({ from: 1 })],
  ["edits missing", { ...answer({}), edits: undefined }],
  ["edit of a message that is not there", answer({ edits: [[5, [{ keep: 0 }]]] })],
  ["edit at a negative index", answer({ edits: [[-1, [{ keep: 0 }]]] })],
  ["edit at a fraction", answer({ edits: [[0.5, [{ keep: 0 }]]] })],
  ["edit that is no pair", answer({ edits: [[0]] })],
  [
    "two edits of one message",
    answer({
      edits: [
        [0, [{ keep: 0 }]],
        [0, [{ keep: 0 }]],
      ],
    }),
  ],
  ["edit and drop of one message", answer({ edits: [[0, [{ keep: 0 }]]], drops: [0] })],
  ["keep of a block that is not there", answer({ edits: [[2, [{ keep: 1 }]]] })],
  ["keep that is no number", answer({ edits: [[2, [{ keep: "0" }]]] })],
  ["text that is no string", answer({ edits: [[2, [{ type: "text", text: 1 }]]] })],
  ["empty content", answer({ edits: [[2, []]] })],
  ["unknown block", answer({ edits: [[2, [{ type: "video" }]]] })],
  ["tool call in a result", answer({ edits: [[2, [call("a")]]] })],
  ["image in an assistant message", answer({ edits: [[1, [image, { keep: 2 }, { keep: 3 }]]] })],
  ["thinking rewritten", answer({ edits: [[1, [thinking, { keep: 2 }, { keep: 3 }]]] })],
  ["tool call lost", answer({ edits: [[1, [{ keep: 1 }, { keep: 2 }]]] })],
  ["tool call renamed", answer({ edits: [[1, [{ keep: 2 }, call("c")]]] })],
  ["tool calls in another order", answer({ edits: [[1, [{ keep: 3 }, { keep: 2 }]]] })],
  [
    "arguments that are no object",
    answer({ edits: [[1, [{ ...call("a"), arguments: "x" }, { keep: 3 }]]] }),
  ],
  ["drop of a call alone", answer({ drops: [1] })],
  ["drop of one result", answer({ drops: [2] })],
  ["drop of a call and one result", answer({ drops: [1, 2] })],
  ["drop twice", answer({ drops: [0, 0] })],
  ["drop of everything", answer({ drops: [0, 1, 2, 3, 4] })],
  ["insert beyond the end", answer({ inserts: [[6, [user("x")]]] })],
  ["insert of nothing", answer({ inserts: [[0, []]] })],
  ["insert of a result without a call", answer({ inserts: [[0, [result("z", "Z")]]] })],
  ["insert of a second result", answer({ inserts: [[4, [result("a", "A again")]]] })],
  ["insert of a result after the turn", answer({ inserts: [[5, [result("a", "late")]]] })],
  [
    "insert of a result that names no call",
    answer({ inserts: [[4, [{ ...result("a", "A"), toolCallId: "" }]]] }),
  ],
  ["insert of a tool call", answer({ inserts: [[0, [assistant([call("z")])]]] })],
  ["insert of a system message", answer({ inserts: [[0, [{ role: "system", content: "x" }]]] })],
  ["insert between call and result", answer({ inserts: [[2, [user("x")]]] })],
  [
    "two inserts at one place",
    answer({
      inserts: [
        [0, [user("x")]],
        [0, [user("y")]],
      ],
    }),
  ],
];

for (const [name, value] of bad) {
  test(`refused: ${name}`, () => {
    assert.throws(() => checkAnswer(value, list, 0, new EditBook()), BadAnswerError);
  });
}

test("operations before `from` cannot be changed", () => {
  assert.throws(() => check({ from: 3, edits: [[2, [{ keep: 0 }]]] }, 4), BadAnswerError);
});

test("a refused answer leaves the operations in force as they were", () => {
  const held = new EditBook();
  held.merge({ from: 0, edits: [[2, [{ keep: 0 }]]], inserts: [], drops: [] });
  assert.throws(() => check({ drops: [1] }, 0, held), BadAnswerError);
  assert.deepEqual(held.editOf(2), [{ keep: 0 }]);
});

test("an answer that passes keeps every call with its result; a damaged one throws only BadAnswerError", () => {
  let passed = 0;
  forSeeds(2000, (random) => {
    const messages = conversation(random, 1 + random.below(8));
    const value = randomAnswer(random, messages);
    let book: EditBook;
    try {
      book = checkAnswer(value, messages, 0, new EditBook()).book;
    } catch (error) {
      assert.ok(error instanceof BadAnswerError, String(error));
      return;
    }
    passed += 1;
    assertPaired(applyEdits(structuredClone(messages), book));
  });
  assert.ok(passed > 100, `only ${passed} of the random answers were good`);
});

function randomAnswer(random: Random, messages: HostMessage[]): unknown {
  const index = () => random.below(messages.length + 1);
  const edits = messages.flatMap((message, i) => {
    if (!random.chance(0.2) || !Array.isArray(message.content)) return [];
    const kept = message.content.map((_, keep) => ({ keep })).filter(() => random.chance(0.9));
    return [[i, [{ type: "text", text: "@" }, ...kept]]];
  });
  return answer({
    edits,
    inserts: random.chance(0.3) ? [[index(), [user("inserted")]]] : [],
    drops: random.chance(0.3) ? [...new Set([index(), index()])] : [],
    ...(random.chance(0.1) ? { from: random.pick([1, -1, null, "0"]) } : {}),
  });
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
