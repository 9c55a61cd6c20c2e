/** The user's commands about what was done and what is to be done: /tasks and /search. */

import type { CommandSpec } from "./command.ts";
import type { Shim } from "./shim.ts";

const VERBS: Record<string, string> = {
  list: "the project's tasks",
  new: "TITLE: make a task",
  claim: "TASK: take it for this session; what is said from now on belongs to it",
  close: "TASK SUMMARY: it is done, and this came of it",
  show: "TASK: all about one",
  on: "the model has its task tools in this project, from the next session on",
  off: "it has them no longer",
  help: "this list",
};
/** Those that are about one of the open tasks. */
const ABOUT_ONE = new Set(["claim", "close", "show"]);

const HELP = Object.entries(VERBS)
  .map(([verb, text]) => `/tasks ${verb.padEnd(6)} ${text}`)
  .join("\n");

/** /tasks. */
export function tasks(shim: Shim): CommandSpec {
  return {
    name: "tasks",
    description:
      "The project's tasks: list, new, claim, close, show; on, off for the model's tools",
    complete: (prefix) => {
      const [, verb = "", rest] = prefix.match(/^(\S*)(?:\s+(\S*))?$/) ?? [];
      if (rest === undefined) return prefix in VERBS ? [] : Object.entries(VERBS);
      if (!ABOUT_ONE.has(verb)) return [];
      return shim.tasks.open.map(([name, title]) => [`${verb} ${name}`, title]);
    },
    run: async (args, ask) => {
      const verb = args.match(/^\S+/)?.[0] ?? "list";
      if (verb === "help") return HELP;
      if (!(verb in VERBS)) throw new Error(`There is no /tasks ${verb}.\n${HELP}`);
      return ask("tasks", args || verb);
    },
  };
}

/** /search. */
export const search: CommandSpec = {
  name: "search",
  description: "Find what was said, done and read in this project's sessions",
  complete: () => [],
  run: async (args, ask) => {
    if (args === "") throw new Error("/search QUERY: words, names, paths, in any order");
    return ask("search", args);
  },
};
