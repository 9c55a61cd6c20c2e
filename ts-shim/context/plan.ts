/** What becomes of each of the host's messages, system entries not counted: checked, and applied. */

import { textOf } from "../engine/wire.ts";
import {
  type Block,
  blocksOf,
  callIds,
  type HostMessage,
  hasContent,
  isSystem,
  sameMessage,
  UNSENT_STOPS,
} from "./messages.ts";

/** The engine's answer cannot be used as a whole: a provider would refuse the prompt. */
export class BadAnswerError extends Error {}

/** A block of a rewritten message: `{keep: k}` is block `k` of the message's own content. */
export type EditBlock = { keep: number } | Block;

/** What goes out before a message of the host's, and what becomes of that. */
interface Slot {
  says: HostMessage[];
  /** What it is rewritten to; null where it is not. */
  blocks: EditBlock[] | null;
  isOmitted: boolean;
}

/** An answer to `context/assemble`, as docs/protocol.md has it. */
interface SentAnswer {
  call: number;
  from: number;
  ops: [name: string, value: unknown][];
  marker?: string | null;
  status?: { text: string };
  notices?: unknown[];
}

/** A checked one, with the plan that is then in force. */
export type Answer = Omit<SentAnswer, "ops"> & { plan: Plan };

const KEPT: Slot = { says: [], blocks: null, isOmitted: false };

/** The last of its slots is that of the message after the list: it says what ends the prompt. */
export class Plan {
  private readonly slots: readonly Slot[];

  constructor(slots: readonly Slot[] = []) {
    this.slots = slots;
  }

  /** The slot of a message. One that no answer was about goes out as the host has it. */
  slot(index: number): Slot {
    return this.slots[index] ?? KEPT;
  }

  /** This plan with other slots from an index on. */
  with(from: number, slots: readonly Slot[]): Plan {
    // Not one by one: there are thousands before a few new ones, at each call.
    const before = this.slots.slice(0, from);
    while (before.length < from) before.push(KEPT);
    return new Plan(before.concat(slots));
  }

  get firstOmitted(): number {
    return this.slots.findIndex(({ isOmitted }) => isOmitted);
  }

  /** What goes out of the messages from an index on, none of them rewritten. */
  sent(messages: readonly HostMessage[], from = 0): HostMessage[] {
    const own = messages.slice(from).flatMap((message, index) => {
      const { says, isOmitted } = this.slot(from + index);
      return isOmitted ? says : [...says, message];
    });
    return [...own, ...this.slot(messages.length).says];
  }

  /** What goes out. Messages from `limit` on as they are; `ending`: after what is said there. */
  apply(list: readonly HostMessage[], limit = Infinity, ending = false): HostMessage[] {
    const result: HostMessage[] = [];
    let index = 0;
    const say = () => {
      const goes = index < limit || (ending && index === limit);
      // Copies, since Pi may change the list; one by one, since a copy of an empty list takes time.
      for (const said of goes ? this.slot(index).says : []) result.push(structuredClone(said));
    };
    for (const message of list) {
      if (isSystem(message)) {
        result.push(message);
        continue;
      }
      say();
      const { blocks, isOmitted } = index < limit ? this.slot(index) : KEPT;
      if (!isOmitted) result.push(blocks ? rewritten(message, blocks) : message);
      index += 1;
    }
    say();
    return result;
  }
}

function rewritten(message: HostMessage, blocks: readonly EditBlock[]): HostMessage {
  const content = resolved(blocks, blocksOf(message));
  if (!hasContent(message)) {
    // For these roles Pi ignores `content` and renders other fields; a user message it sends as is.
    return { role: "user", content, timestamp: message.timestamp };
  }
  // In place: Pi compares message objects by identity.
  message.content = content;
  return message;
}

function resolved(blocks: readonly EditBlock[], own: readonly Block[]): Block[] {
  return blocks.map((block) => (isKeep(block) ? (own[block.keep] as Block) : block));
}

/** Whether a block of an answer's is one of the message's own. */
function isKeep(block: object): block is { keep: number } {
  return "keep" in block && !("type" in block);
}

/** Checks the answer to a request about `messages`, the first `keep` known. @throws BadAnswerError */
export function checkAnswer(...asked: Parameters<typeof answerOf>): Answer {
  try {
    return answerOf(...asked);
  } catch (error) {
    throw new BadAnswerError(textOf(error));
  }
}

function answerOf(
  value: unknown,
  messages: readonly HostMessage[],
  keep: number,
  held: Plan,
): Answer {
  const answer = value as SentAnswer;
  const { from } = answer;
  mustBeIn(answer.call, 1, Number.MAX_SAFE_INTEGER, "call");
  // Before `from` the plan in force stays. That is right only for messages that the engine had.
  mustBeIn(from, 0, keep, "from");
  const plan = held.with(from, slotsOf(answer.ops, messages, from));
  // Calls and results are paired from the newest assistant message before `from` on: results follow
  // their call, so no earlier pair can be torn apart by this answer, and earlier checks hold. Of the
  // whole of a long list this would take longer than all else in the hook.
  const start = Math.max(0, messages.slice(0, from).findLastIndex(isAnswer));
  // A message of ours right before it can be the result of a call that is not looked at here.
  const said = start > 0 ? plan.slot(start).says.length : 0;
  const sent = plan.sent(messages, start).slice(said);
  if (sent.length === 0 && messages.length > 0 && plan.sent(messages).length === 0)
    throw new Error("nothing would be left to send");
  // What the host's own list has torn apart already is not counted.
  const before = unpaired(messages.slice(start));
  const apart = [...unpaired(sent)].filter((each) => !before.has(each));
  if (apart.length > 0) throw new Error(`torn apart: ${apart.join(", ")}`);
  return { ...answer, plan };
}

/** The slots of the messages from an index on, and the one that ends the list. */
function slotsOf(ops: SentAnswer["ops"], messages: readonly HostMessage[], from: number): Slot[] {
  const slots: Slot[] = [];
  let says: HostMessage[] = [];
  const next = (blocks: Slot["blocks"], isOmitted: boolean) => {
    slots.push({ says, blocks, isOmitted });
    says = [];
  };
  for (const [name, value] of ops) {
    const index = from + slots.length;
    const message = messages[index];
    if (name === "say") says.push(checkSaid(value as HostMessage));
    else if (name === "rewrite" && message)
      next(checkBlocks(value as EditBlock[], message, index), false);
    else if (name === "keep" || name === "omit") {
      mustBeIn(value, 1, messages.length - index, `${name} at message ${index}`);
      for (let n = 0; n < value; n++) next(null, name === "omit");
    } else throw new Error(`${JSON.stringify(name)} is no operation on message ${index}`);
  }
  const done = from + slots.length;
  if (done === messages.length) return [...slots, { ...KEPT, says }];
  throw new Error(`operations for ${done} of ${messages.length} messages`);
}

/** Blocks are the engine's own, or the message's: its thinking stays as it is, and what it calls. */
function checkBlocks(blocks: EditBlock[], message: HostMessage, index: number): EditBlock[] {
  const own = blocksOf(message);
  const where = `the rewriting of message ${index}`;
  for (const block of blocks) {
    if (isKeep(block)) mustBeIn(block.keep, 0, own.length - 1, `${where}: keep`);
    else if (block.type === "thinking") throw new Error(`${where} holds thinking`);
  }
  if (blocks.length === 0) throw new Error(`${where} leaves no content`);
  const ids = callIds(resolved(blocks, own)).join("\n");
  if (ids !== callIds(own).join("\n")) throw new Error(`${where} changes which tools it calls`);
  return blocks;
}

/** A user's message, or the result of a call that has none. */
function checkSaid(message: HostMessage): HostMessage {
  if (message.role !== "user" && message.role !== "toolResult")
    throw new Error(`a message of ${message.role} is none of ours`);
  return message;
}

/** Calls whose results do not follow them, and results that follow no call of theirs. */
function unpaired(messages: readonly HostMessage[]): Set<string> {
  const apart = new Set<string>();
  let open = new Set<string>();
  for (const message of messages.filter(isSent)) {
    if (message.role === "toolResult") {
      const id = String(message.toolCallId);
      if (!open.delete(id)) apart.add(`a result of ${id}`);
      continue;
    }
    for (const id of open) apart.add(`the call ${id}`);
    const isRead = isAnswer(message) && !UNSENT_STOPS.has(String(message.stopReason));
    open = new Set(isRead ? callIds(blocksOf(message)) : []);
  }
  for (const id of open) apart.add(`the call ${id}`);
  return apart;
}

/** Of these Pi renders other fields than `content`. */
const RENDERED_ROLES = new Set(["bashExecution", "branchSummary", "compactionSummary"]);

/** Whether Pi sends a message to a model. It leaves out other roles, and what the user excluded. */
function isSent(message: HostMessage): boolean {
  return (hasContent(message) || RENDERED_ROLES.has(message.role)) && !message.excludeFromContext;
}

function isAnswer({ role }: HostMessage): boolean {
  return role === "assistant";
}

function mustBeIn(
  value: unknown,
  low: number,
  high: number,
  what: string,
): asserts value is number {
  if (!Number.isInteger(value) || Number(value) < low || Number(value) > high)
    throw new Error(`${what} is ${JSON.stringify(value)}, not in ${low}..${high}`);
}

/** How far the plan in force still fits a list that the engine has not seen. */
export interface Reusable {
  /** Messages before this index go out edited, the others as the host has them. */
  edited: number;
  /** Whether what was inserted at that index, the end of the last prompt, goes out too. */
  ending: boolean;
}

/** The engine's last answer, by which a call without the engine goes, too: the cache finds its start. */
export class AnswerInForce {
  readonly messages: HostMessage[] = [];
  plan = new Plan();
  /** The call record that the plan belongs to, or null before the first answer. */
  call: number | null = null;
  /** The engine connection that knows the messages; 0 where none is known to. */
  connection = 0;

  /** How many messages at the start of a list the last answer was given for. */
  commonPrefix(list: readonly HostMessage[]): number {
    const at = this.messages.findIndex((message, index) => !sameMessage(message, list[index]));
    return at < 0 ? this.messages.length : at;
  }

  /** The engine holds these messages, as the host has them: it was sent them ahead. */
  hold(list: readonly HostMessage[], connection: number): void {
    // Once a call was answered, the plan in force is of the messages of that call, and no others.
    if (this.call === null && list.length > 0) this.keep(list, 0, connection);
  }

  /** Takes a checked answer. Call it before the plan is applied: that changes the messages. */
  accept(list: readonly HostMessage[], keep: number, answer: Answer, connection: number): void {
    this.keep(list, keep, connection);
    this.plan = answer.plan;
    this.call = answer.call;
  }

  /** What can go out again without the engine; `prefix` is the list's `commonPrefix`. */
  reusable(list: readonly HostMessage[], prefix: number): Reusable {
    // Nothing was ever answered: whatever the engine holds, all goes out as the host has it.
    if (this.call === null) return { edited: 0, ending: list[0]?.role !== "toolResult" };
    const isWhole = prefix === this.messages.length || list.length === 0;
    const { firstOmitted } = this.plan;
    // Leaving out a call before `prefix` could leave the call's result behind.
    const edited = isWhole || firstOmitted < 0 ? prefix : Math.min(prefix, firstOmitted);
    // What ended the last prompt stays where it was. Nothing may come between a call and its
    // result, though, and the result may be the next message.
    const ending = edited === this.messages.length && list[edited]?.role !== "toolResult";
    return { edited, ending };
  }

  /** Messages are copied one level deep: edits set a new `content` on the originals. */
  private keep(list: readonly HostMessage[], prefix: number, connection: number): void {
    this.messages.length = prefix;
    for (const message of list.slice(prefix)) this.messages.push({ ...message });
    this.connection = connection;
  }
}
