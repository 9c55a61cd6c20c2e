/** The messages of a request to a provider: which of them is the last. */

import { blocksIn, type Fields, isRecord, recordOf } from "./messages.ts";

/** The field that holds the messages, in one or another of the APIs that Pi speaks. */
const MESSAGE_FIELDS = ["messages", "input", "contents"];

/** The messages of a request. */
export function listOf(payload: Fields): unknown[] {
  return MESSAGE_FIELDS.map((name) => payload[name]).find(Array.isArray) ?? [];
}

/**
 * Whether this only says with which effort the next answer is made: a message of the system without
 * content (Anthropic), or an item of its own kind (OpenAI). It moves where no answer has come.
 */
export function isEffort(message: unknown): boolean {
  const { type, role, content, output_config } = recordOf(message);
  if (type === "configuration_update") return true;
  return role === "system" && isRecord(output_config) && blocksIn(content).length === 0;
}

/** The last message: the newest that is no effort. -1 for none. */
export function lastOf(messages: readonly unknown[]): number {
  return messages.findLastIndex((message) => !isEffort(message));
}

/**
 * The messages that stay where they are in the next request, efforts left out. Changes of the system
 * prompt or the tools behind the newest message move, too, as long as no answer has come.
 */
export function settled(messages: readonly unknown[]): unknown[] {
  const end = messages.findLastIndex((message) => recordOf(message).role !== "system");
  return messages.slice(0, end + 1).filter((message) => !isEffort(message));
}
