/**
 * The engine's last answer: the conversation it was given for, its plan, and its call record.
 *
 * The engine is sent only what follows that conversation. A call that has to go out without the
 * engine goes by the same plan again, so that the provider's cache still finds its beginning.
 */

import { type HostMessage, sameMessage } from "./messages.ts";
import { type Answer, Plan } from "./plan.ts";

/** How far the plan in force still fits a list that the engine has not seen. */
interface Reusable {
  /** Messages before this index go out edited, the others as the host has them. */
  edited: number;
  /** Whether what was inserted at that index, the end of the last prompt, goes out too. */
  ending: boolean;
}

export class AnswerInForce {
  /** The messages that were answered. */
  private readonly answered: HostMessage[] = [];
  plan = new Plan();
  /** The call record that the plan belongs to, or null before the first answer. */
  call: number | null = null;
  /** The engine connection that knows the answered list; 0 where none is known to. */
  private connection = 0;

  /** How many messages at the start of a list the last answer was given for. */
  commonPrefix(list: readonly HostMessage[]): number {
    const at = this.answered.findIndex((message, index) => {
      const own = list[index];
      return own === undefined || !sameMessage(message, own);
    });
    return at < 0 ? this.answered.length : at;
  }

  /** The engine holds these messages, as the host has them: it was sent them ahead. */
  hold(list: readonly HostMessage[], connection: number): void {
    // Once a call was answered, the plan in force is of the messages of that call, and no others.
    if (this.call === null) this.keep(list, 0, connection);
  }

  /** How many messages of such a prefix an engine has: none if it is another engine. */
  knownTo(connection: number, prefix: number): number {
    return this.connection === connection ? prefix : 0;
  }

  /** The engine may hold an answer that never arrived: it has to be sent everything next time. */
  distrustEngine(): void {
    this.connection = 0;
  }

  /** Whether an answer leaves all that was sent before as it was. */
  isExtendedBy(answer: Answer, keep: number): boolean {
    const { length } = this.answered;
    return length > 0 && keep === length && answer.from >= length;
  }

  /** Takes a checked answer. Call it before the plan is applied: that changes the messages. */
  accept(list: readonly HostMessage[], keep: number, answer: Answer, connection: number): void {
    this.keep(list, keep, connection);
    this.plan = answer.plan;
    this.call = answer.call;
  }

  /**
   * What can go out again without the engine.
   * @param prefix what `commonPrefix(list)` gave
   */
  reusable(list: readonly HostMessage[], prefix: number): Reusable {
    // Nothing was ever answered: whatever the engine holds, all goes out as the host has it.
    if (this.call === null) return { edited: 0, ending: list[0]?.role !== "toolResult" };
    const isWhole = prefix === this.answered.length || list.length === 0;
    // Leaving out a call before `prefix` could leave the call's result behind.
    const edited = isWhole ? prefix : Math.min(prefix, this.plan.omitted()[0] ?? prefix);
    // What ended the last prompt stays where it was. Nothing may come between a call and its
    // result, though, and the result may be the next message.
    const ending = edited === this.answered.length && list[edited]?.role !== "toolResult";
    return { edited, ending };
  }

  /** The list to send, or undefined where it goes out as it is. */
  apply(
    all: readonly HostMessage[],
    { edited, ending }: Reusable = { edited: Number.POSITIVE_INFINITY, ending: true },
  ): HostMessage[] | undefined {
    if (edited === 0 || this.plan.isEmpty()) return undefined;
    return this.plan.apply(all, edited, ending);
  }

  /** Messages are copied one level deep: edits set a new `content` on the originals. */
  private keep(list: readonly HostMessage[], prefix: number, connection: number): void {
    this.answered.length = prefix;
    for (const message of list.slice(prefix)) this.answered.push({ ...message });
    this.connection = connection;
  }
}
