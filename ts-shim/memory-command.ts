/** /memory: what is remembered, and what waits for the user's word, asked one after the other. */

import type { ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import { type CommandSpec, forward } from "./command.ts";
import { type Choice, choose, type Waiting, waitingIn } from "./memory-question.ts";
import type { Shim } from "./shim.ts";
import { visible } from "./visible.ts";

const VERBS: Record<string, string> = {
  list: "[TAG]: what is remembered of you, your projects and this session",
  inbox: "what waits for your word, as a list",
  findings: "[TAG]: what was found in this session's data; on, off: the model's tool for it",
  show: "NAME: one entry, with the prompt that it came from",
  add: "[preference|decision|fact|context] TEXT: remember this",
  accept: "NAME [TEXT]: keep what waits, or TEXT in its place",
  replace: "NAME OTHER: keep what waits, in place of another entry",
  edit: "NAME TEXT: make an entry say this",
  refuse: "NAME: do not keep it, and do not ask again",
  pin: "NAME preference|decision: keep an entry of this session beyond it",
  demote: "NAME: make it a matter of this session alone",
  scope: "NAME everywhere|here: where it holds",
  confirm: "NAME: it still holds, although the code that it rests on has changed",
  delete: "NAME: take it out, with all that was made from it",
  help: "this list",
};

const HELP = [
  "/memory                asks about what waits for your word, else lists",
  ...Object.entries(VERBS).map(([verb, text]) => `/memory ${verb.padEnd(14)} ${text}`),
].join("\n");

/** /memory. */
export function memory(shim: Shim): CommandSpec {
  return {
    name: "memory",
    description: "What foredeck remembers: asks about what is new; list, add, edit, delete",
    complete: (prefix) => (prefix in VERBS ? [] : Object.entries(VERBS)),
    run: async (args, ask, ctx) => {
      const verb = args.match(/^\S+/)?.[0] ?? "";
      if (verb === "help") return HELP;
      if (verb !== "" && !(verb in VERBS)) throw new Error(`There is no /memory ${verb}.\n${HELP}`);
      if (verb !== "") return ask("memory", args);
      const { text, questions } = await forward("memory", "", shim, ctx);
      const waiting = waitingIn(questions);
      return waiting.length > 0 && ctx.hasUI ? askAll(waiting, ask, ctx) : text;
    },
  };
}

async function askAll(
  waiting: Waiting[],
  ask: (name: string, args: string) => Promise<string>,
  ctx: ExtensionCommandContext,
): Promise<string> {
  const said: string[] = [];
  for (const [at, question] of waiting.entries()) {
    const choice = await choose(question, `${at + 1} of ${waiting.length}`, ctx);
    if (choice === "stop") break;
    const act = await actOf(choice, question, ctx);
    if (act === undefined) continue;
    try {
      said.push(await ask("memory", act));
    } catch (error) {
      // Of one: it may have expired, or been answered elsewhere. The others still wait.
      said.push(error instanceof Error ? error.message : String(error));
    }
  }
  return said.length > 0 ? said.join("\n") : "Nothing changed: it all still waits.";
}

/** What `/memory` is to do; undefined where nothing. */
async function actOf(
  choice: Exclude<Choice, "stop">,
  question: Waiting,
  ctx: ExtensionCommandContext,
): Promise<string | undefined> {
  switch (choice) {
    case "keep":
      return `accept ${question.name}`;
    case "instead":
      return `replace ${question.name} ${question.against}`;
    case "refuse":
      return `refuse ${question.name}`;
    case "edit": {
      const text = (
        await ctx.ui.editor("What shall be remembered?", visible(question.fact))
      )?.trim();
      return text ? `accept ${question.name} ${text}` : undefined;
    }
    default:
      return undefined;
  }
}
