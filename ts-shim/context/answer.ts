/**
 * Checks an answer to `context/assemble` before any of it is used.
 *
 * Pi sends what an extension returns unchecked, and a provider refuses a tool result without its
 * call, or altered signed thinking. So one mistake makes the whole answer unusable, and the hook
 * falls back.
 */

import type { ImageContent } from "@earendil-works/pi-ai";
import type { Answer, EditBlock, NoticeLevel } from "../engine/protocol.ts";
import { type EditBook, isKeep } from "./edits.ts";
import { type Block, blocksOf, callIds, type HostMessage, isRecord } from "./messages.ts";

/** The engine's answer cannot be used; the message says what is wrong with it. */
export class BadAnswerError extends Error {}

const LEVELS = new Set(["info", "warning", "error"]);
/** Roles that may be inserted; a tool result only for a call that has none. */
const INSERTABLE = new Set(["user", "custom", "assistant", "toolResult"]);

/**
 * Checks the answer to a request about `messages`, of which the engine knew the first `keep`, and
 * the operations that would then be in force.
 *
 * @param messages the host's list without system entries
 * @param held the operations in force before
 * @returns the answer, and the operations in force with it
 * @throws BadAnswerError
 */
export function checkAnswer(
  value: unknown,
  messages: readonly HostMessage[],
  keep: number,
  held: EditBook,
): { answer: Answer; book: EditBook } {
  if (!isRecord(value)) throw new BadAnswerError("the answer is not an object");
  const call = integer(value.call, 1, Number.MAX_SAFE_INTEGER, "call");
  // Operations are held for messages that the engine knows to be unchanged, and for no others.
  const from = integer(value.from, 0, keep, "from");
  const range: Range = { messages, from };
  const answer: Answer = {
    call,
    from,
    edits: pairs(value.edits, "edits").map((pair) => checkEdit(pair, range)),
    inserts: pairs(value.inserts, "inserts").map((pair) => checkInsert(pair, range)),
    drops: list(value.drops, "drops").map((index) => indexIn(index, range, "drop")),
    status:
      isRecord(value.status) && typeof value.status.text === "string" ? value.status.text : null,
    notices: checkNotices(value.notices),
    marker: typeof value.marker === "string" ? value.marker : null,
  };
  unique(answer.edits.map(([index]) => index).concat(answer.drops), "edits and drops");
  unique(
    answer.inserts.map(([index]) => index),
    "inserts",
  );
  const book = held.copy();
  book.merge(answer);
  checkCombined(answer, messages, book);
  return { answer, book };
}

interface Range {
  messages: readonly HostMessage[];
  from: number;
}

function checkEdit([at, value]: [unknown, unknown], range: Range): [number, EditBlock[]] {
  const index = indexIn(at, range, "edit");
  const message = range.messages[index] as HostMessage;
  const own = blocksOf(message);
  const blocks = list(value, `edit ${index}`).map((block) =>
    checkEditBlock(block, message.role, own, index),
  );
  if (message.role === "assistant") {
    const kept = callIds(
      blocks.map((block) => (isKeep(block) ? (own[block.keep] as Block) : block)),
    );
    if (kept.join("\n") !== callIds(own).join("\n")) {
      throw new BadAnswerError(`edit ${index} changes which tools the message calls`);
    }
  } else if (blocks.length === 0) {
    throw new BadAnswerError(`edit ${index} leaves no content`);
  }
  return [index, blocks];
}

function checkEditBlock(value: unknown, role: string, own: Block[], index: number): EditBlock {
  if (isRecord(value) && isKeep(value as EditBlock)) {
    return { keep: integer(value.keep, 0, own.length - 1, `edit ${index}: keep`) };
  }
  return checkBlock(value, role, `edit ${index}`);
}

/** Text, an image, or in an assistant message a tool call. Thinking can only be kept. */
function checkBlock(value: unknown, role: string, where: string): Block {
  const isAssistant = role === "assistant";
  if (isRecord(value)) {
    if (value.type === "text" && typeof value.text === "string") return value as Block;
    if (!isAssistant && isImage(value)) return value as Block;
    if (isAssistant && value.type === "toolCall" && isToolCall(value)) return value as Block;
  }
  throw new BadAnswerError(`${where} holds a block that does not belong in a ${role} message`);
}

/** Whether a block of the engine's is an image that Pi can send. */
export function isImage(value: unknown): value is ImageContent {
  return (
    isRecord(value) &&
    value.type === "image" &&
    typeof value.data === "string" &&
    typeof value.mimeType === "string"
  );
}

function isToolCall(value: Record<string, unknown>): boolean {
  return (
    typeof value.id === "string" && typeof value.name === "string" && isRecord(value.arguments)
  );
}

function checkInsert([at, value]: [unknown, unknown], range: Range): [number, HostMessage[]] {
  const index = integer(at, range.from, range.messages.length, "insert");
  const inserted = list(value, `insert ${index}`);
  if (inserted.length === 0) throw new BadAnswerError(`insert ${index} is empty`);
  return [index, inserted.map((message) => checkInserted(message, `insert ${index}`))];
}

function checkInserted(value: unknown, where: string): HostMessage {
  if (!isRecord(value) || typeof value.role !== "string" || !INSERTABLE.has(value.role)) {
    throw new BadAnswerError(`${where} holds something that cannot be inserted`);
  }
  const { role, content } = value;
  if (role === "toolResult" && !(isName(value.toolCallId) && isName(value.toolName))) {
    throw new BadAnswerError(`${where} holds a tool result that answers no call`);
  }
  const isText = typeof content === "string" && (role === "user" || role === "custom");
  const blocks = isText
    ? [{ type: "text", text: content }]
    : list(content, where).map((block) => checkBlock(block, role, where));
  if (blocks.length === 0) throw new BadAnswerError(`${where} has no content`);
  if (callIds(blocks).length > 0) throw new BadAnswerError(`${where} calls a tool`);
  return value as HostMessage;
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

/** Checks what only shows when all operations in force are taken together. */
function checkCombined(answer: Answer, messages: readonly HostMessage[], book: EditBook): void {
  if (messages.length > 0 && messages.length + book.balance() <= 0) {
    throw new BadAnswerError("nothing would be left to send");
  }
  for (const [index] of answer.inserts) {
    if (messages[index]?.role === "toolResult" && !book.isDropped(index)) {
      throw new BadAnswerError(`insert ${index} separates a tool result from its call`);
    }
  }
  checkPairs(messages, book);
}

/**
 * A call and its results stay or go together, and an inserted result answers a call without one.
 * Calls without results in the host's own list are not the answer's fault.
 */
function checkPairs(messages: readonly HostMessage[], book: EditBook): void {
  const dropped = droppedIds(messages, book);
  const answersCalls = book.inserted().some(({ role }) => role === "toolResult");
  if (dropped.size === 0 && !answersCalls) return;
  const open = new Set<string>();
  const close = () => {
    const torn = [...open].find((id) => dropped.has(id));
    if (torn) throw new BadAnswerError(`drops tear the tool call ${torn} from its result`);
    open.clear();
  };
  const visit = (message: HostMessage, isOurs: boolean) => {
    if (message.role === "toolResult") {
      const id = String(message.toolCallId);
      if (!open.delete(id) && (isOurs || dropped.has(id))) {
        throw new BadAnswerError(`the result of ${id} would stand without its call`);
      }
      return;
    }
    close();
    if (message.role !== "assistant" || UNSENT_STOPS.has(String(message.stopReason))) return;
    for (const id of callIds(blocksOf(message))) open.add(id);
  };
  for (let index = 0; index <= messages.length; index++) {
    for (const message of book.insertsBefore(index) ?? []) visit(message, true);
    const own = messages[index];
    if (own && isSent(own) && !book.isDropped(index)) visit(own, false);
  }
  close();
}

/** The roles that Pi sends to a model. It leaves out others, and what the user excluded. */
const SENT = new Set([
  ...["user", "assistant", "toolResult", "custom"],
  ...["bashExecution", "branchSummary", "compactionSummary"],
]);

function isSent(message: HostMessage): boolean {
  return SENT.has(message.role) && !message.excludeFromContext;
}

/** Pi's adapters leave out answers with these stop reasons, calls and all. */
const UNSENT_STOPS = new Set(["error", "aborted"]);

/** Ids of the calls that are dropped, or whose results are. */
function droppedIds(messages: readonly HostMessage[], book: EditBook): Set<string> {
  const ids = new Set<string>();
  for (const index of book.dropped()) {
    const message = messages[index];
    if (message?.role === "assistant") for (const id of callIds(blocksOf(message))) ids.add(id);
    if (message?.role === "toolResult") ids.add(String(message.toolCallId));
  }
  return ids;
}

function checkNotices(value: unknown): Answer["notices"] {
  if (!Array.isArray(value)) return [];
  return value
    .filter(isRecord)
    .flatMap(({ level, text }) =>
      typeof level === "string" && LEVELS.has(level) && typeof text === "string"
        ? [{ level: level as NoticeLevel, text }]
        : [],
    );
}

function indexIn(value: unknown, range: Range, what: string): number {
  return integer(value, range.from, range.messages.length - 1, what);
}

function integer(value: unknown, low: number, high: number, what: string): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < low || value > high) {
    throw new BadAnswerError(`${what} is ${JSON.stringify(value)}, not in ${low}..${high}`);
  }
  return value;
}

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw new BadAnswerError(`${what} is not a list`);
  return value;
}

function pairs(value: unknown, what: string): [unknown, unknown][] {
  return list(value, what).map((pair) => {
    if (!Array.isArray(pair) || pair.length !== 2) throw new BadAnswerError(`${what}: not a pair`);
    return [pair[0], pair[1]];
  });
}

function unique(indexes: number[], what: string): void {
  if (new Set(indexes).size !== indexes.length) {
    throw new BadAnswerError(`${what} name one message twice`);
  }
}
