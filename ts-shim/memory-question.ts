/** One question about memory: answered by a key in a terminal, by choosing from a list elsewhere. */

import type { ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import { isRecord } from "./context/messages.ts";
import { visible } from "./visible.ts";

/** What waits for the user's word, as the engine tells it. */
export interface Waiting {
  name: string;
  lines: string[];
  fact: string;
  /** The entry in whose place it could stand. */
  against?: string;
}

export type Choice = "keep" | "instead" | "edit" | "refuse" | "later" | "stop";

interface Option {
  key: string;
  choice: Choice;
  label: string;
}

const OPTIONS: Option[] = [
  { key: "a", choice: "keep", label: "keep it" },
  { key: "i", choice: "instead", label: "keep it instead of" },
  { key: "e", choice: "edit", label: "edit it" },
  { key: "r", choice: "refuse", label: "do not keep it" },
  { key: "n", choice: "later", label: "later" },
];
const ESCAPE = "\u001b";
const CTRL_C = "\u0003";

/** The well-formed ones among an answer's `questions`. */
export function waitingIn(questions: unknown): Waiting[] {
  const found = Array.isArray(questions) ? questions.filter(isWaiting) : [];
  return found.map((question) => ({ ...question, lines: question.lines.map(visible) }));
}

/** Asks, and waits for the user. `place`: which of how many this is. */
export async function choose(
  question: Waiting,
  place: string,
  ctx: ExtensionCommandContext,
): Promise<Choice> {
  const options = optionsFor(question);
  const title = `Remember this? (${place})`;
  if (ctx.mode === "tui") {
    return ctx.ui.custom<Choice>(
      (_tui, _theme, _keys, done) => new QuestionView(title, question, options, done),
    );
  }
  const labels = options.map(({ label }) => label);
  const chosen = await ctx.ui.select([title, ...question.lines].join("\n"), labels);
  return options.find(({ label }) => label === chosen)?.choice ?? "stop";
}

function optionsFor({ against }: Waiting): Option[] {
  return OPTIONS.filter(({ choice }) => choice !== "instead" || against !== undefined).map(
    (option) =>
      option.choice === "instead"
        ? { ...option, label: visible(`${option.label} ${against}`) }
        : option,
  );
}

/** The question in a terminal; a key answers it. */
class QuestionView {
  private readonly text: string[];
  private readonly options: Option[];
  private readonly done: (choice: Choice) => void;

  constructor(title: string, question: Waiting, options: Option[], done: (choice: Choice) => void) {
    const keys = options.map(({ key, label }) => `[${key}] ${label}`).join("  ");
    this.text = [title, "", ...question.lines, "", `${keys}  [Esc] stop`];
    this.options = options;
    this.done = done;
  }

  render(width: number): string[] {
    return this.text.flatMap((line) => wrapped(line, width));
  }

  handleInput(data: string): void {
    const leaves = data === ESCAPE || data === CTRL_C;
    const option = this.options.find(({ key }) => key === data.toLowerCase());
    if (leaves || option) this.done(option?.choice ?? "stop");
  }

  invalidate(): void {}
}

/** Lines of at most `width` cells: a letter outside ASCII may take two. */
function wrapped(line: string, width: number): string[] {
  const lines = [""];
  let used = 0;
  for (const letter of line) {
    const cells = letter < "\u007f" ? 1 : 2;
    if (used + cells > width) {
      lines.push("");
      used = 0;
    }
    lines[lines.length - 1] += letter;
    used += cells;
  }
  return lines;
}

function isWaiting(value: unknown): value is Waiting {
  return (
    isRecord(value) &&
    typeof value.name === "string" &&
    typeof value.fact === "string" &&
    Array.isArray(value.lines) &&
    value.lines.every((line) => typeof line === "string")
  );
}
