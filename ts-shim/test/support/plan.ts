import type { HostMessage } from "../../context/messages.ts";
import { type EditBlock, Plan } from "../../context/plan.ts";

/** A plan in short, by the indexes of the messages that something is said of. */
export interface Brief {
  from?: number;
  rewrites?: [number, EditBlock[]][];
  says?: [number, unknown[]][];
  omits?: number[];
}

/** Its operations, for a list of so many messages. */
export function opsOf({ from = 0, rewrites = [], says = [], omits = [] }: Brief, length: number) {
  const [blocks, said] = [new Map(rewrites), new Map(says)];
  const ops: [string, unknown][] = [];
  for (let index = from; index <= length; index++) {
    for (const message of said.get(index) ?? []) ops.push(["say", message]);
    if (index === length) break;
    const own = blocks.get(index);
    if (own) ops.push(["rewrite", own]);
    else ops.push([omits.includes(index) ? "omit" : "keep", 1]);
  }
  return ops;
}

/** The answer to a request about a list. */
export function answerOf(brief: Brief, list: readonly HostMessage[]) {
  return { call: 1, from: brief.from ?? 0, ops: opsOf(brief, list.length) };
}

/** The plan, unchecked; `held`: what is in force of the messages before. */
export function planOf(brief: Brief, length: number, held = new Plan()): Plan {
  const { from = 0, rewrites = [], says = [], omits = [] } = brief;
  const [blocks, said] = [new Map(rewrites), new Map(says)];
  const slots = Array.from({ length: length - from + 1 }, (_, n) => ({
    says: (said.get(from + n) ?? []) as HostMessage[],
    blocks: blocks.get(from + n) ?? null,
    isOmitted: omits.includes(from + n),
  }));
  return held.with(from, slots);
}
