/** Message lists in Pi's shape. */

import type { HostMessage } from "../../context/messages.ts";
import type { Random } from "./random.ts";

const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 };

export function user(text: string, timestamp = 1): HostMessage {
  return { role: "user", content: text, timestamp };
}

export function assistant(content: Record<string, unknown>[], timestamp = 2): HostMessage {
  const blocks = content as HostMessage["content"];
  const base = { api: "anthropic-messages", provider: "p", model: "m", usage, stopReason: "stop" };
  return { role: "assistant", content: blocks as never, ...base, timestamp };
}

export function call(id: string, name = "bash", args: object = { command: "ls" }) {
  return { type: "toolCall", id, name, arguments: args };
}

export function result(id: string, text: string, timestamp = 3): HostMessage {
  const content = [{ type: "text", text }];
  return {
    role: "toolResult",
    toolCallId: id,
    toolName: "bash",
    content,
    isError: false,
    timestamp,
  };
}

/** A valid conversation of about `turns` model calls. */
export function conversation(random: Random, turns: number): HostMessage[] {
  const list: HostMessage[] = [user("begin", 0)];
  for (let turn = 1; turn <= turns; turn++) {
    const ids = Array.from({ length: random.below(3) }, (_, i) => `call_${turn}_${i}`);
    const blocks: Record<string, unknown>[] = [];
    if (random.chance(0.3))
      blocks.push({ type: "thinking", thinking: "hm", thinkingSignature: "s" });
    if (ids.length === 0 || random.chance(0.5)) blocks.push({ type: "text", text: `turn ${turn}` });
    list.push(assistant([...blocks, ...ids.map((id) => call(id))], turn * 10));
    for (const id of ids) list.push(result(id, `output of ${id}`, turn * 10 + 1));
    if (ids.length === 0 || random.chance(0.2)) list.push(user(`go on ${turn}`, turn * 10 + 2));
  }
  return list;
}
