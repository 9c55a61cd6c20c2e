/** The user's commands: /foredeck itself, /context, and what all of foredeck's commands share. */

import type { ExtensionAPI, ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import definitions from "./commands.json" with { type: "json" };
import { uncompact } from "./compaction.ts";
import type { Fields } from "./context/messages.ts";
import { type EngineCommand, run } from "./engine/process.ts";
import { GoneError, textOf, within } from "./engine/wire.ts";
import { visible } from "./host.ts";
import type { Shim } from "./shim.ts";

const DEADLINE_MS = 10_000;
/** Building a Python environment takes minutes on a slow connection. */
const SETUP_MS = 12 * 60_000;
const MODEL_MS = 120_000;
const COMPLETION_MS = 2000;

/** Whether a verb takes something: its text then begins with that. */
const TAKES = /^(?:[[@]|[A-Z]{2})/;

/** Has the engine do a command, given as one line. */
export type AskEngine = (line: string) => Promise<Answer>;

/** What came of a command. */
export interface Answer {
  text: string;
  /** What a screen shows in place of the text, as the engine describes it (view.ts). */
  view?: unknown;
  /** The command, to be asked again once a key of the view has changed things. */
  asked: string;
}

/** Of each command what a list of commands says, and its verbs with what they take and do. */
const COMMANDS: Record<string, { description: string; verbs: Record<string, string> }> =
  definitions;
/** Commands of their own, where no other extension has the name: /foredeck takes them as verbs. */
export const SHORTS = Object.keys(COMMANDS).slice(1);

/** Registers a slash command. Whatever it throws is shown to the user. */
export function register(pi: ExtensionAPI, shim: Shim, command: string): void {
  pi.registerCommand(command, {
    description: COMMANDS[command]?.description ?? "",
    getArgumentCompletions: async (prefix) => {
      const found = await completions(command, prefix, shim);
      // While a list is open, Enter picks from it instead of sending: what is complete is sent.
      if (found.length === 0 || found.some(([value]) => value === prefix)) return null;
      return found.map(([value, text]) => {
        return { value, label: visible(value.trim()), description: visible(text) };
      });
    },
    handler: async (args, ctx) => {
      let held: TakeKeys | null = null;
      const leaving = new AbortController();
      try {
        shim.host.ctx = ctx;
        const ask: AskEngine = (line) => {
          // What is typed from here on is meant for the answer, and Enter would send it.
          // A model that is asked may take minutes.
          if (ctx.mode === "tui" && !line.startsWith("doctor")) held ??= holdKeys(ctx, leaving);
          return forward(line, shim, ctx, leaving.signal);
        };
        const done = await perform(command, args.trim(), shim, ask, ctx);
        const answer = typeof done === "string" ? { text: done, asked: "" } : done;
        const screen = ctx.mode === "tui" ? await import("./view.ts") : null;
        const worded = (text: string) => shim.host.worded(text);
        const around = { ask, worded, typedKeys: () => held?.() ?? [] };
        const isShown = await screen?.showAnswer(answer, `/${command} ${args}`, around, ctx);
        if (!isShown) shim.host.show(answer.text);
      } catch (error) {
        if (leaving.signal.aborted) shim.host.show(`/${command} was interrupted.`);
        else shim.host.notify("error", textOf(error));
      } finally {
        giveBack(held, ctx);
      }
    },
  });
}

/** As terminals send it; in Kitty's form also with Caps Lock, Num Lock, or both. */
const CTRL_C = ["\x03", ...[5, 69, 133, 197].map((modifiers) => `\x1b[99;${modifiers}u`)];

/** Ends the keeping of keys from Pi, and gives them. */
type TakeKeys = () => string[];

/** Ctrl-C is not held: it says through `leaving` that the answer is no longer waited for. */
function holdKeys(ctx: ExtensionCommandContext, leaving: AbortController): TakeKeys {
  const keys: string[] = [];
  const release = ctx.ui.onTerminalInput((data) => {
    if (CTRL_C.includes(data)) leaving.abort();
    else keys.push(data);
    return { consume: true };
  });
  return () => {
    release();
    return keys.splice(0);
  };
}

/** Words typed while a short answer was awaited are the next prompt's: only Enter is not. */
function giveBack(held: TakeKeys | null, ctx: ExtensionCommandContext): void {
  const words = held?.().filter((key) => /^\P{Cc}+$/u.test(key)) ?? [];
  if (words.length > 0) ctx.ui.pasteToEditor(words.join(""));
}

type Completion = [value: string, description: string];

/** What could follow a command: verbs, then what the engine knows. */
async function completions(command: string, prefix: string, shim: Shim): Promise<Completion[]> {
  const [, verb, rest = ""] = prefix.match(/^(\S+) (.*)$/s) ?? [];
  if (verb === undefined) {
    return [...Object.entries(verbsOf(command)), ...shortsOf(command)]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, text]) => [name === prefix || !TAKES.test(text) ? name : `${name} `, text]);
  }
  if (command === "foredeck" && SHORTS.includes(verb)) {
    const found = await completions(verb, rest, shim);
    return found.map(([value, text]) => [`${verb} ${value}`, text]);
  }
  const asked = { name: "complete", args: `${command} ${prefix}` };
  const { choices } = await shim.ask("command", asked, { deadlineMs: COMPLETION_MS });
  return Array.isArray(choices) ? choices : [];
}

/** Has a command done here, or by the engine. */
async function perform(
  command: string,
  args: string,
  shim: Shim,
  ask: AskEngine,
  ctx: ExtensionCommandContext,
): Promise<Answer | string> {
  const [verb, rest] = firstWord(args);
  const verbs = verbsOf(command);
  if (verb === "help" && verb in verbs) return helpOf(command);
  if (command === "foredeck" && SHORTS.includes(verb)) return perform(verb, rest, shim, ask, ctx);
  if (verb !== "" && Object.keys(verbs).length > 0 && !(verb in verbs))
    throw new Error(`There is no /${command} ${verb}. /${command} help lists what there is.`);
  if (command !== "foredeck") return ask(`${command} ${args}`);
  switch (verb) {
    case "off":
      return switchOff(shim, ctx);
    case "on":
      shim.switchOn();
      return ON;
    case "setup":
      if (rest === "path") return ask(rest);
      if (rest !== "") throw new Error("It is /foredeck setup [path].");
      return setUp(shim);
    case "ui":
      if (!ctx.hasUI) throw new Error("Run `foredeck ui`: here the pages would end with this Pi.");
      if (shim.engine.state === "setup") return shim.engine.reason;
      return `The inspector is open at ${await openInspector(shim.engine.process?.command)}`;
    case "doctor":
      if (rest !== "" && rest !== "ask") throw new Error("It is /foredeck doctor [ask].");
      return ask(args);
    case "uncompact":
      return uncompact(shim, ctx);
    default:
      return ask(args || "view");
  }
}

function firstWord(line: string): [word: string, rest: string] {
  const [, word = "", rest = ""] = line.match(/^(\S+)\s*(.*)$/s) ?? [];
  return [word, rest];
}

/** The verbs of a command with what they take and do, for a person to read. */
function helpOf(command: string): string {
  const verbs = Object.entries(verbsOf(command));
  const width = Math.max(...verbs.map(([verb]) => verb.length));
  const bare = `/${command}`.padEnd(`/${command} `.length + width);
  return [
    `${bare} opens a view; ↑ ↓ move in it, and it says its other keys`,
    ...verbs.map(([verb, text]) => `/${command} ${verb.padEnd(width)} ${text}`),
    ...shortsOf(command).map(([name, text]) => `/${name}`.padEnd(bare.length + 1) + text),
  ].join("\n");
}

function verbsOf(command: string): Record<string, string> {
  return COMMANDS[command]?.verbs ?? {};
}

/** The short commands that a command takes as verbs, each with what it is for. */
function shortsOf(command: string): Completion[] {
  const names = command === "foredeck" ? SHORTS : [];
  return names.map((name) => [name, COMMANDS[name]?.description ?? ""]);
}

const ON =
  "foredeck is on. What has gone out stays as it is, and in the cache, until the prompt is next rewritten.";

/** Says what it costs, before it happens where that is much. */
async function switchOff(shim: Shim, ctx: ExtensionCommandContext): Promise<string> {
  const { engine } = shim;
  let cost: Fields = {};
  // Without an engine nothing of foredeck's is in the prompt that is known of here.
  if (engine.state === "ready" && !shim.isOff()) {
    const limits = { deadlineMs: Math.max(DEADLINE_MS, engine.deadlineMs), signal: ctx.signal };
    cost = await shim.ask("command", { name: "off", args: "" }, limits);
  }
  const text = String(cost.text ?? "");
  if (cost.asks === true && ctx.hasUI && !(await ctx.ui.confirm("Switch foredeck off?", text)))
    return "foredeck stays on.";
  shim.switchOff();
  const off = "foredeck is off: the model sees everything as Pi has it.";
  return [off, text, "/foredeck on brings it back."].filter((part) => part !== "").join(" ");
}

async function setUp(shim: Shim): Promise<string> {
  shim.switchOn();
  if (shim.engine.state === "away") shim.engine.start(true);
  await within(shim.engine.whenReady(true), { deadlineMs: SETUP_MS });
  const { command } = shim.host;
  const offer = command === "foredeck" ? "" : "; /foredeck setup path puts it on your PATH";
  return `foredeck's engine is set up and running. Its command line is ${command}${offer}.`;
}

/** The engine's answer to a command. */
async function forward(
  asked: string,
  shim: Shim,
  ctx: ExtensionCommandContext,
  left: AbortSignal,
): Promise<Answer> {
  const { engine, host } = shim;
  const [name, args] = firstWord(asked);
  if (engine.state === "setup") return { text: engine.reason, asked };
  shim.safely("session/history", () => shim.context.bringHistory(ctx));
  try {
    // Commands are answered one after the other: what may ask a model is none, or calls would wait.
    const isDoctor = name === "doctor";
    const deadlineMs = isDoctor ? MODEL_MS : Math.max(DEADLINE_MS, engine.deadlineMs);
    const signal = ctx.signal ? AbortSignal.any([ctx.signal, left]) : left;
    const params = isDoctor ? { ask: args === "ask" } : { name, args };
    const result = await engine.ask(isDoctor ? name : "command", params, { deadlineMs, signal });
    host.showState(result);
    return { text: String(result.text ?? ""), view: result.view, asked };
  } catch (error) {
    if (!(error instanceof GoneError)) throw error;
    throw new Error(`foredeck's engine is not running: ${error.message}`);
  }
}

/** The address of the inspector's pages, which a process of their own serves until Pi ends. */
let pages: Promise<string> | null = null;

/** Opens the inspector in the browser, once. Gives its address. */
export async function openInspector(engine: EngineCommand | undefined): Promise<string> {
  if (!engine) throw new Error("foredeck's engine is not running: type /foredeck setup.");
  pages ??= new Promise<string>((resolve, reject) => {
    const ending = new AbortController();
    process.once("exit", () => ending.abort());
    const args = [...engine.args.slice(0, -1), "ui"];
    // The first line that it prints is the address; later ones resolve nothing more.
    const options = { signal: ending.signal, onLine: resolve };
    void run(engine.file, args, options).then(({ output }) => {
      pages = null;
      reject(new Error(output.trim() || "`foredeck ui` ended at once"));
    });
  });
  return pages;
}
