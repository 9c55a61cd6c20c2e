/** Reasoning that a provider has not given to its model, by what Pi notes with the answer. */

import { parsed } from "../files.ts";
import {
  type Block,
  blocksIn,
  blocksOf,
  type Fields,
  type HostMessage,
  isText,
  recordOf,
} from "./messages.ts";

/** A block of the host's messages: the index of the message, and that of the block in it. */
export type BlockSpot = [message: number, block: number];

/** Where Anthropic says that a block was, in the request. */
const PATH = /^messages\.(\d+)\.content\.(\d+)$/;

/**
 * The blocks of reasoning that were dropped from a request, which Pi's adapter has made of these
 * messages. A provider names all of them again with each later answer.
 */
export function droppedIn(
  answer: HostMessage,
  request: unknown,
  messages: readonly HostMessage[],
): BlockSpot[] {
  const names = new Set(namesIn(answer, recordOf(request)));
  if (names.size === 0) return [];
  return messages.flatMap((message, index) =>
    message.role === "assistant"
      ? blocksOf(message).flatMap((block, at): BlockSpot[] =>
          namesOf(block).some((name) => names.has(name)) ? [[index, at]] : [],
        )
      : [],
  );
}

/** What a provider says of reasoning that is dropped since what stands before it has changed. */
const MISMATCHES = new Set<unknown>(["prefix_mismatch", "prefix_binding_mismatch"]);

/** Whether something was dropped because of what stands before it. */
export function isBound({ diagnostics }: HostMessage): boolean {
  return records(diagnostics)
    .flatMap(({ details }) => records(recordOf(details).transformations))
    .some(
      ({ type, action, reason }) =>
        (type === "thinking_dropped" || action === "removed") && MISMATCHES.has(reason),
    );
}

/** The seals, or the ids, of what was dropped. */
function namesIn({ diagnostics }: HostMessage, request: Fields): string[] {
  return records(diagnostics).flatMap(({ type, details }) => {
    const changes = records(recordOf(details).transformations);
    if (type === "anthropic_input_transformations") {
      // `thinking_mismatch_allowed` names blocks that were used all the same.
      const dropped = changes.filter((change) => change.type === "thinking_dropped");
      return dropped.flatMap(({ path }) => namesOf(blockAt(request, String(path))));
    }
    if (type !== "openai_input_transformations") return [];
    // Whatever else ends with its turn is not lost: the model would not have used it.
    const removed = changes.filter(
      ({ action, reason }) => action === "removed" && reason !== "turn_boundary",
    );
    return removed.map(({ id }) => id).filter(isText);
  });
}

function blockAt(request: Fields, path: string): Block | undefined {
  const [, message, block] = PATH.exec(path) ?? [];
  const { content } = recordOf(records(request.messages)[Number(message)]);
  return blocksIn(content)[Number(block)];
}

/** What identifies a block of reasoning, in Pi's shape or Anthropic's. */
function namesOf(block: Block | undefined): string[] {
  const seal = block?.thinkingSignature ?? block?.signature ?? block?.data;
  if (!isText(seal)) return [];
  // Of the Responses API Pi keeps the whole item.
  return [seal.startsWith("{") ? parsed(seal).id : seal].filter(isText);
}

function records(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(recordOf) : [];
}
