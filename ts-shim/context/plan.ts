/**
 * What the engine has said becomes of each of the host's messages: kept from call to call, checked
 * and applied. Pure. Indexes count the host's messages without its system entries.
 *
 * Pi sends what an extension returns unchecked, and a provider refuses a tool result without its
 * call, or altered signed thinking. So one mistake makes the whole answer unusable, and the hook
 * falls back.
 */

import type { ImageContent } from "@earendil-works/pi-ai";
import type { Answer, EditBlock, NoticeLevel } from "../engine/protocol.ts";
import {
  type Block,
  blocksOf,
  callIds,
  type HostMessage,
  hasContent,
  isRecord,
  isSystem,
} from "./messages.ts";

/** The engine's answer cannot be used; the message says what is wrong with it. */
export class BadAnswerError extends Error {}

/** What goes out before a message of the host's, and what becomes of that. */
interface Slot {
  says: HostMessage[];
  /** What it is rewritten to; null where it is not. */
  blocks: EditBlock[] | null;
  isOmitted: boolean;
}

const KEPT: Slot = { says: [], blocks: null, isOmitted: false };

/** The last of its slots is that of the message after the list: it says what ends the prompt. */
export class Plan {
  private readonly slots: readonly Slot[];

  constructor(slots: readonly Slot[] = []) {
    this.slots = slots;
  }

  /** That of a message; what no answer knew goes out as the host has it. */
  slot(index: number): Slot {
    return this.slots[index] ?? KEPT;
  }

  /** The plan of the messages before an index. */
  before(index: number): Plan {
    return new Plan(this.slots.slice(0, index));
  }

  /** With the slots of all messages from an index on. */
  with(from: number, slots: readonly Slot[]): Plan {
    const before = Array.from({ length: from }, (_, index) => this.slot(index));
    return new Plan([...before, ...slots]);
  }

  /** Indexes of the messages that are left out, in their order. */
  omitted(): number[] {
    return this.slots.flatMap((slot, index) => (slot.isOmitted ? [index] : []));
  }

  /** All messages of ours. */
  said(): HostMessage[] {
    return this.slots.flatMap((slot) => slot.says);
  }

  /** Whether all goes out as the host has it. */
  isEmpty(): boolean {
    return this.slots.every((slot) => !slot.says.length && !slot.blocks && !slot.isOmitted);
  }

  /**
   * The list that goes to the model.
   *
   * Messages that are rewritten get a new `content` in place, because Pi compares message objects by
   * identity; `list` must therefore be the copy that the hook was given. System entries stay where
   * they are.
   *
   * @param list the host's messages, system entries included
   * @param limit messages at or after this index go out as they are, and nothing of ours after it
   * @param ending whether what is said at that index, which ends what stands before it, goes out
   */
  apply(
    list: readonly HostMessage[],
    limit: number = Number.POSITIVE_INFINITY,
    ending = false,
  ): HostMessage[] {
    const result: HostMessage[] = [];
    const say = (index: number) => {
      const goes = index < limit || (ending && index === limit);
      // Copies: whoever gets the list may change it, and the plan is used again at the next call.
      if (goes) result.push(...structuredClone(this.slot(index).says));
    };
    let index = 0;
    for (const message of list) {
      if (isSystem(message)) {
        result.push(message);
        continue;
      }
      say(index);
      const slot = index < limit ? this.slot(index) : KEPT;
      if (!slot.isOmitted) result.push(slot.blocks ? rewritten(message, slot.blocks) : message);
      index += 1;
    }
    say(index);
    return result;
  }
}

function rewritten(message: HostMessage, blocks: readonly EditBlock[]): HostMessage {
  const content = resolved(blocks, blocksOf(message));
  if (!hasContent(message)) {
    // For these roles Pi ignores `content` and renders other fields; a user message it sends as is.
    return { role: "user", content, timestamp: message.timestamp };
  }
  message.content = content;
  return message;
}

function resolved(blocks: readonly EditBlock[], own: readonly Block[]): Block[] {
  return blocks.map((block) => (isKeep(block) ? (own[block.keep] as Block) : block));
}

/** Whether an edit's block stands for one of the message's own blocks. */
function isKeep(block: EditBlock): block is { keep: number } {
  return "keep" in block && !("type" in block);
}

/**
 * Checks the answer to a request about `messages`, of which the engine knew the first `keep`, and
 * the plan that would then be in force.
 *
 * @param messages the host's list without system entries
 * @param held the plan in force before
 * @returns the answer, and the plan in force with it
 * @throws BadAnswerError
 */
export function checkAnswer(
  value: unknown,
  messages: readonly HostMessage[],
  keep: number,
  held: Plan,
): { answer: Answer; plan: Plan } {
  if (!isRecord(value)) throw new BadAnswerError("the answer is not an object");
  const call = integer(value.call, 1, Number.MAX_SAFE_INTEGER, "call");
  // What was said before holds for messages that the engine knows to be unchanged, and no others.
  const from = integer(value.from, 0, keep, "from");
  const slots = slotsOf(list(value.ops, "ops"), messages, from);
  const plan = held.with(from, slots);
  const [omitted, said] = [plan.omitted(), plan.said()];
  checkPairs(messages, plan, omittedIds(messages, omitted), said);
  const sent = messages.length - omitted.length + said.length;
  if (messages.length > 0 && sent === 0) throw new BadAnswerError("nothing would be left to send");
  const answer: Answer = {
    call,
    from,
    status:
      isRecord(value.status) && typeof value.status.text === "string" ? value.status.text : null,
    notices: checkNotices(value.notices),
    marker: typeof value.marker === "string" ? value.marker : null,
  };
  return { answer, plan };
}

/** The slots of the messages from an index on, and the one that ends the list. */
function slotsOf(ops: unknown[], messages: readonly HostMessage[], from: number): Slot[] {
  const slots: Slot[] = [];
  let says: HostMessage[] = [];
  const next = (slot: Pick<Slot, "blocks" | "isOmitted">) => {
    slots.push({ says, ...slot });
    says = [];
  };
  for (const op of ops) {
    if (!Array.isArray(op) || op.length !== 2) throw new BadAnswerError("an operation: not a pair");
    const [name, value] = op as [unknown, unknown];
    const index = from + slots.length;
    const left = messages.length - index;
    if (name === "say") {
      says.push(checkSaid(value, `what is said before message ${index}`));
    } else if (name === "keep" || name === "omit") {
      const count = integer(value, 1, left, `${name} at message ${index}`);
      for (let n = 0; n < count; n++) next({ blocks: null, isOmitted: name === "omit" });
    } else if (name === "rewrite") {
      if (left < 1) throw new BadAnswerError(`operations for more than ${index} messages`);
      next({ blocks: checkBlocks(value, messages[index] as HostMessage, index), isOmitted: false });
    } else {
      throw new BadAnswerError(`${JSON.stringify(name)} is no operation`);
    }
  }
  if (slots.length !== messages.length - from) {
    throw new BadAnswerError(
      `operations for ${from + slots.length} of ${messages.length} messages`,
    );
  }
  slots.push({ ...KEPT, says });
  slots.forEach((slot, n) => {
    if (slot.says.length && !slot.isOmitted && messages[from + n]?.role === "toolResult") {
      throw new BadAnswerError(`a result is separated from its call at message ${from + n}`);
    }
  });
  return slots;
}

function checkBlocks(value: unknown, message: HostMessage, index: number): EditBlock[] {
  const own = blocksOf(message);
  const where = `the rewriting of message ${index}`;
  const blocks = list(value, where).map((block): EditBlock => {
    if (isRecord(block) && isKeep(block as EditBlock)) {
      return { keep: integer(block.keep, 0, own.length - 1, `${where}: keep`) };
    }
    return checkBlock(block, message.role, where);
  });
  if (blocks.length === 0) throw new BadAnswerError(`${where} leaves no content`);
  const ids = callIds(resolved(blocks, own)).join("\n");
  if (message.role === "assistant" && ids !== callIds(own).join("\n")) {
    throw new BadAnswerError(`${where} changes which tools it calls`);
  }
  return blocks;
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

/** A user's message, or the result of a call that has none. */
function checkSaid(value: unknown, where: string): HostMessage {
  if (!isRecord(value) || (value.role !== "user" && value.role !== "toolResult")) {
    throw new BadAnswerError(`${where} is no message of ours`);
  }
  const { role } = value;
  if (role === "toolResult" && !(isName(value.toolCallId) && isName(value.toolName))) {
    throw new BadAnswerError(`${where} is a tool result that answers no call`);
  }
  const blocks = blocksOf(value as HostMessage).map((block) => checkBlock(block, role, where));
  if (blocks.length === 0) throw new BadAnswerError(`${where} has no content`);
  return value as HostMessage;
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

/**
 * A call and its results stay or go together, and a result of ours answers a call without one.
 * Calls without results in the host's own list are not the answer's fault.
 */
function checkPairs(
  messages: readonly HostMessage[],
  plan: Plan,
  gone: ReadonlySet<string>,
  said: readonly HostMessage[],
): void {
  if (gone.size === 0 && !said.some(({ role }) => role === "toolResult")) return;
  const open = new Set<string>();
  const close = () => {
    const torn = [...open].find((id) => gone.has(id));
    if (torn) throw new BadAnswerError(`the tool call ${torn} would be torn from its result`);
    open.clear();
  };
  const visit = (message: HostMessage, isOurs: boolean) => {
    if (message.role === "toolResult") {
      const id = String(message.toolCallId);
      if (!open.delete(id) && (isOurs || gone.has(id))) {
        throw new BadAnswerError(`the result of ${id} would stand without its call`);
      }
      return;
    }
    close();
    if (message.role !== "assistant" || UNSENT_STOPS.has(String(message.stopReason))) return;
    for (const id of callIds(blocksOf(message))) open.add(id);
  };
  for (let index = 0; index <= messages.length; index++) {
    const slot = plan.slot(index);
    for (const message of slot.says) visit(message, true);
    const own = messages[index];
    if (own && isSent(own) && !slot.isOmitted) visit(own, false);
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

/** Ids of the calls that are left out, or whose results are. */
function omittedIds(messages: readonly HostMessage[], omitted: readonly number[]): Set<string> {
  const ids = new Set<string>();
  for (const index of omitted) {
    const message = messages[index];
    if (message?.role === "assistant") for (const id of callIds(blocksOf(message))) ids.add(id);
    if (message?.role === "toolResult") ids.add(String(message.toolCallId));
  }
  return ids;
}

const LEVELS = new Set(["info", "warning", "error"]);

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
