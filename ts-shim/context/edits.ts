/**
 * The engine's edits, inserts and drops: kept from call to call and applied to the host's messages.
 * Pure. Indexes count the host's messages without its system entries.
 */

import type { EditBlock, Operations } from "../engine/protocol.ts";
import { type Block, blocksOf, type HostMessage, hasContent, isSystem } from "./messages.ts";

/** Whether an edit's block stands for one of the message's own blocks. */
export function isKeep(block: EditBlock): block is { keep: number } {
  return "keep" in block && !("type" in block);
}

/** All operations in force: those of the last answer and the earlier ones that it kept. */
export class EditBook {
  private readonly edits = new Map<number, EditBlock[]>();
  private readonly inserts = new Map<number, HostMessage[]>();
  private readonly drops = new Set<number>();

  /** A book that starts with the same operations. */
  copy(): EditBook {
    const copy = new EditBook();
    for (const [index, blocks] of this.edits) copy.edits.set(index, blocks);
    for (const [index, messages] of this.inserts) copy.inserts.set(index, messages);
    for (const index of this.drops) copy.drops.add(index);
    return copy;
  }

  /** Takes in an answer: what it says replaces everything held at or after its `from`. */
  merge(operations: Operations): void {
    this.truncate(operations.from);
    for (const [index, blocks] of operations.edits) this.edits.set(index, blocks);
    for (const [index, messages] of operations.inserts) this.inserts.set(index, messages);
    for (const index of operations.drops) this.drops.add(index);
  }

  /** Forgets every operation at or after an index. */
  truncate(from: number): void {
    for (const held of [this.edits, this.inserts, this.drops]) {
      for (const index of held.keys()) if (index >= from) held.delete(index);
    }
  }

  editOf(index: number): EditBlock[] | undefined {
    return this.edits.get(index);
  }

  insertsBefore(index: number): HostMessage[] | undefined {
    return this.inserts.get(index);
  }

  /** All inserted messages, in no order. */
  inserted(): HostMessage[] {
    return [...this.inserts.values()].flat();
  }

  isDropped(index: number): boolean {
    return this.drops.has(index);
  }

  /** Indexes of the dropped messages, in no order. */
  dropped(): Iterable<number> {
    return this.drops;
  }

  /** How many messages the operations add (positive) or take away (negative). */
  balance(): number {
    let added = 0;
    for (const messages of this.inserts.values()) added += messages.length;
    return added - this.drops.size;
  }

  isEmpty(): boolean {
    return this.edits.size === 0 && this.inserts.size === 0 && this.drops.size === 0;
  }
}

/**
 * The list that goes to the model.
 *
 * Messages that are edited get a new `content` in place, because Pi compares message objects by
 * identity; `list` must therefore be the copy that the hook was given. System entries stay where
 * they are.
 *
 * @param list the host's messages, system entries included
 * @param limit edits and drops at or after this index are left out, and inserts after it
 * @param ending whether inserts at that index, which end what stands before it, go out
 */
export function applyEdits(
  list: readonly HostMessage[],
  book: EditBook,
  limit: number = Number.POSITIVE_INFINITY,
  ending = false,
): HostMessage[] {
  const result: HostMessage[] = [];
  const insert = (at: number) => {
    const ours = at < limit || (ending && at === limit) ? book.insertsBefore(at) : undefined;
    // Copies: whoever gets the list may change it, and the book is used again at the next call.
    if (ours) result.push(...structuredClone(ours));
  };
  let index = 0;
  for (const message of list) {
    if (isSystem(message)) {
      result.push(message);
      continue;
    }
    insert(index);
    if (index >= limit) result.push(message);
    else if (!book.isDropped(index)) result.push(edited(message, book.editOf(index)));
    index += 1;
  }
  insert(index);
  return result;
}

function edited(message: HostMessage, blocks: EditBlock[] | undefined): HostMessage {
  if (!blocks) return message;
  const own = blocksOf(message);
  const content = blocks.map((block) => (isKeep(block) ? (own[block.keep] as Block) : block));
  if (!hasContent(message)) {
    // For these roles Pi ignores `content` and renders other fields; a user message it sends as is.
    return { role: "user", content, timestamp: message.timestamp };
  }
  message.content = content;
  return message;
}
