import assert from "node:assert/strict";
import { test } from "node:test";
import { applyEdits, EditBook } from "../context/edits.ts";
import type { HostMessage } from "../context/messages.ts";
import { isSystem } from "../context/messages.ts";
import type { EditBlock, Operations } from "../engine/protocol.ts";
import { assistant, call, conversation, result, user } from "./support/conversation.ts";
import { forSeeds, type Random } from "./support/random.ts";

const text = (value: string): EditBlock => ({ type: "text", text: value });

test("an edit reuses the host's own blocks and its own message object", () => {
  const list = [user("hello"), result("a", "long")];
  const own = list[1]?.content as object[];
  const book = new EditBook();
  book.merge({ from: 0, edits: [[1, [text("@1"), { keep: 0 }]]], inserts: [], drops: [] });
  const out = applyEdits(list, book);
  assert.equal(out[1], list[1]);
  assert.equal((out[1]?.content as object[] | undefined)?.[1], own[0]);
  assert.deepEqual(out[1]?.content, [text("@1"), text("long")]);
});

test("a string content is one text block, number 0", () => {
  const book = new EditBook();
  book.merge({ from: 0, edits: [[0, [{ keep: 0 }, text("more")]]], inserts: [], drops: [] });
  assert.deepEqual(applyEdits([user("hello")], book)[0]?.content, [text("hello"), text("more")]);
});

test("inserts, drops and the end of the list", () => {
  const list = [user("a"), user("b"), user("c")];
  const book = new EditBook();
  const inserts: Operations["inserts"] = [
    [0, [user("head")]],
    [3, [user("tail")]],
  ];
  book.merge({ from: 0, edits: [], inserts, drops: [1] });
  const contents = applyEdits(list, book).map((message) => message.content);
  assert.deepEqual(contents, ["head", "a", "c", "tail"]);
});

test("an edit of a message without content makes a user message of it", () => {
  const shell: HostMessage = { role: "bashExecution", command: "ls", output: "x", timestamp: 7 };
  const book = new EditBook();
  book.merge({ from: 0, edits: [[0, [text("ran ls")]]], inserts: [], drops: [] });
  const expected = [{ role: "user", content: [text("ran ls")], timestamp: 7 }];
  assert.deepEqual(applyEdits([shell], book), expected);
});

test("system entries keep their place and do not count", () => {
  const system: HostMessage = { role: "system", content: "prompt" };
  const update: HostMessage = { role: "system", content: "update" };
  const list = [system, user("a"), update, user("b")];
  const book = new EditBook();
  const inserts: Operations["inserts"] = [[0, [user("head")]]];
  book.merge({ from: 0, edits: [[1, [text("B")]]], inserts, drops: [] });
  const out = applyEdits(list, book);
  assert.deepEqual(
    out.map((message) => message.role),
    ["system", "user", "user", "system", "user"],
  );
  assert.equal(out[0], system);
  assert.equal(out[1]?.content, "head");
  assert.deepEqual(out[4]?.content, [text("B")]);
});

test("an answer replaces everything at or after its `from` and leaves the rest alone", () => {
  const book = new EditBook();
  const inserts: Operations["inserts"] = [[2, [user("x")]]];
  book.merge({
    from: 0,
    edits: [
      [0, [text("0")]],
      [2, [text("2")]],
    ],
    inserts,
    drops: [3],
  });
  book.merge({ from: 2, edits: [[3, [text("3")]]], inserts: [], drops: [] });
  assert.deepEqual(book.editOf(0), [text("0")]);
  assert.equal(book.editOf(2), undefined);
  assert.equal(book.insertsBefore(2), undefined);
  assert.equal(book.isDropped(3), false);
  assert.deepEqual(book.editOf(3), [text("3")]);
});

test("merging answers gives the same as one answer with everything", () => {
  forSeeds(300, (random) => {
    const list = conversation(random, 1 + random.below(12));
    const model = new Map<number, EditBlock[]>();
    const book = new EditBook();
    for (let round = 0; round < 5; round++) {
      const from = random.below(list.length + 1);
      const edits = randomEdits(random, list, from, round);
      for (const index of [...model.keys()]) if (index >= from) model.delete(index);
      for (const [index, blocks] of edits) model.set(index, blocks);
      book.merge({ from, edits, inserts: [], drops: [] });
    }
    const once = new EditBook();
    once.merge({ from: 0, edits: [...model], inserts: [], drops: [] });
    const [a, b] = [structuredClone(list), structuredClone(list)];
    assert.deepEqual(applyEdits(a, book), applyEdits(b, once));
  });
});

test("operations at or after the limit are left out, the others are not", () => {
  forSeeds(300, (random) => {
    const list = conversation(random, 1 + random.below(12));
    const book = new EditBook();
    const inserts: Operations["inserts"] = [[random.below(list.length + 1), [user("inserted")]]];
    book.merge({ from: 0, edits: randomEdits(random, list, 0, 0), inserts, drops: [] });
    const limit = random.below(list.length + 1);
    const out = applyEdits(structuredClone(list), book, limit);
    const all = applyEdits(structuredClone(list), book);
    const newer = list.slice(limit);
    assert.deepEqual(out.slice(out.length - newer.length), newer);
    const older = out.slice(0, out.length - newer.length);
    assert.deepEqual(older, all.slice(0, older.length));
    const ended = applyEdits(structuredClone(list), book, limit, true);
    const ending = book.insertsBefore(limit) ?? [];
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
    const book = new EditBook();
    book.merge({ from: 0, edits: randomEdits(random, list, 0, 0), inserts: [], drops: [0] });
    const out = applyEdits(mixed, book);
    assert.ok(out.filter(isSystem).every((message, index) => message === system[index]));
    assert.equal(out.length, mixed.length - 1);
  });
});

test("inserted messages are copied each time, since others may change what went out", () => {
  const book = new EditBook();
  book.merge({ from: 0, edits: [], inserts: [[0, [user("head")]]], drops: [] });
  const first = applyEdits([user("a")], book)[0] as HostMessage;
  first.content = "changed";
  assert.equal(applyEdits([user("a")], book)[0]?.content, "head");
});

function randomEdits(
  random: Random,
  list: HostMessage[],
  from: number,
  round: number,
): [number, EditBlock[]][] {
  const edits: [number, EditBlock[]][] = [];
  for (let index = from; index < list.length; index++) {
    const own = list[index]?.content;
    if (!random.chance(0.4) || own === undefined) continue;
    const kept = Array.from(
      { length: own.length && Array.isArray(own) ? own.length : 1 },
      (_, k) => ({
        keep: k,
      }),
    );
    edits.push([index, [text(`@${index}.${round}`), ...kept]]);
  }
  return edits;
}

test("a folded argument takes the place of the call's own", () => {
  const list = [assistant([call("a", "write", { path: "x", content: "long" })])];
  const folded = { ...call("a", "write", { path: "x", content: "<@1: ...>" }) } as EditBlock;
  const book = new EditBook();
  book.merge({ from: 0, edits: [[0, [folded]]], inserts: [], drops: [] });
  assert.deepEqual(applyEdits(list, book)[0]?.content, [folded]);
});
