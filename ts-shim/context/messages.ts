/** The host's messages. Pi validates none of them, so nothing beyond `role` is taken for granted. */

export type Fields = Record<string, unknown>;

/** One content block: `text`, `thinking`, `image`, `toolCall`, or something newer. */
export type Block = { type: string } & { [key: string]: unknown };

/** One message of the host's list. `content` is missing on bashExecution and the summaries. */
export type HostMessage = {
  role: string;
  content?: string | Block[];
  [key: string]: unknown;
};

/** Pi's adapters leave out answers with these stop reasons, calls and all. */
export const UNSENT_STOPS: ReadonlySet<string> = new Set(["error", "aborted"]);

/** Roles whose `content` is what the model gets. The others Pi turns into text of its own. */
const CONTENT_ROLES = new Set(["user", "assistant", "toolResult", "custom"]);

/** Whether the model gets this message's `content` as it is. */
export function hasContent(message: HostMessage): boolean {
  return CONTENT_ROLES.has(message.role);
}

/** Whether the message is one of Pi's own system entries, which protocol indexes do not count. */
export function isSystem(message: HostMessage): boolean {
  return message.role === "system";
}

export function blocksOf(message: HostMessage): Block[] {
  return hasContent(message) ? blocksIn(message.content) : [];
}

/** The blocks of a content, Pi's or a provider's; a string is one text block. */
export function blocksIn(content: unknown): Block[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

/** Characters of all texts in a value. */
export function charsOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, item) => sum + charsOf(item), 0);
}

/** Ids of the tool calls in an assistant message, in order. */
export function callIds(blocks: readonly Block[]): string[] {
  return blocks.filter(({ type }) => type === "toolCall").map(({ id }) => String(id));
}

/** What identifies a message within its session. The engine makes the same of it (`name_of`). */
export function nameOf({ role, timestamp, toolCallId }: HostMessage): string {
  return `${role} ${String(timestamp)} ${typeof toolCallId === "string" ? toolCallId : ""}`.trim();
}

export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** The value where it is an object, else an empty one. */
export function recordOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

/** Exact equality of all that the model can see of two messages. */
export function sameMessage(a: HostMessage, b: HostMessage | undefined): boolean {
  return a === b || (b !== undefined && sameFields(a, b, true));
}

/** Exact equality of two JSON-like values. An undefined field counts as missing. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (!Array.isArray(a)) return !Array.isArray(b) && sameFields(a as Fields, b as Fields, false);
  // By index: of thousands of messages the keys of each list of blocks would take longer.
  const same = Array.isArray(b) && a.length === b.length;
  for (let at = 0; same && at < a.length; at++) if (!sameValue(a[at], b[at])) return false;
  return same;
}

// Runs over the whole conversation at every model call, hence plain loops and no list of names.
function sameFields(a: Fields, b: Fields, isMessage: boolean): boolean {
  let more = 0;
  for (const key in a) {
    const value = a[key];
    if (value === undefined || (isMessage && isUnseen(key))) continue;
    if (value !== b[key] && !sameValue(value, b[key])) return false;
    more += 1;
  }
  for (const key in b) if (b[key] !== undefined && !(isMessage && isUnseen(key))) more -= 1;
  return more === 0;
}

/** What the model cannot see of a message. */
function isUnseen(field: string): boolean {
  return field === "details" || field === "usage";
}
