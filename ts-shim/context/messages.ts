/**
 * The host's messages, as far as this extension looks into them, and what can be asked of a list.
 *
 * Pi validates neither session files nor what extensions return, so nothing beyond `role` is taken
 * for granted.
 */

/** One content block: `text`, `thinking`, `image`, `toolCall`, or something newer. */
export type Block = { type: string } & { [key: string]: unknown };

/** One message of the host's list. `content` is missing on bashExecution and the summaries. */
export type HostMessage = {
  role: string;
  content?: string | Block[];
  [key: string]: unknown;
};

/** Roles whose `content` is what the model gets. The others Pi turns into text of its own. */
const CONTENT_ROLES = new Set(["user", "assistant", "toolResult", "custom"]);

/** Whether the model gets this message's `content` as it stands. */
export function hasContent(message: HostMessage): boolean {
  return CONTENT_ROLES.has(message.role);
}

/** Whether the message is one of Pi's own system entries, which protocol indexes do not count. */
export function isSystem(message: HostMessage): boolean {
  return message.role === "system";
}

/** The message's own blocks; a string content is one text block. */
export function blocksOf(message: HostMessage): Block[] {
  if (!hasContent(message)) return [];
  const { content } = message;
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

/** Ids of the tool calls in an assistant message, in order. */
export function callIds(blocks: readonly Block[]): string[] {
  const ids: string[] = [];
  for (const block of blocks) {
    if (block.type === "toolCall" && typeof block.id === "string") ids.push(block.id);
  }
  return ids;
}

/** Whether a value is an object with string keys (not null, not an array). */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
