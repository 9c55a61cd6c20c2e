/** The user's commands: /foredeck itself, /context, and what all of foredeck's commands share. */

import type { ExtensionAPI, ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import { isRecord } from "./context/messages.ts";
import { asStretch } from "./context/put-away.ts";
import { within } from "./engine/wait.ts";
import { GoneError, type RequestOptions } from "./engine/wire.ts";
import type { Shim } from "./shim.ts";
import { uncompact } from "./uncompact.ts";
import { visible } from "./visible.ts";

const DEADLINE_MS = 10_000;
/** Building a Python environment takes minutes on a slow connection. */
const SETUP_MS = 12 * 60_000;
/** A model may think for a while before its one word. */
const MODEL_MS = 120_000;

const VERBS: Record<string, string> = {
  list: "the objects of this session and their state",
  context: "what fills the window: by kind, the largest objects, what stands before the chat",
  tasks: "the project's tasks; /foredeck tasks help",
  memory: "what foredeck remembers; /foredeck memory help",
  search: "QUERY: what was said, done and read in this project's sessions",
  name: "@N NAME: give an object a nickname",
  describe: "@N [TEXT]: what stands for an object while it is folded; sets it",
  why: "[@N]: why an object is in view or not; alone: the last rebase",
  cost: "what this session has cost so far, and would have without foredeck",
  observe: "[status | reflect | mode NAME]: note down now what was said and done; how that stands",
  compact: "[--preview | --calls A-B]: what the newest compaction left out; puts calls away",
  uncompact: "take the newest compaction of this branch back",
  trace: "TEXT: at which calls the model could see a text, and where",
  private: "before the first message: nothing said in this session is kept or found outside it",
  rewind: "[N]: bring files back to what they were at call N; alone: the calls that changed files",
  doctor: "[ask]: whether a model can be asked for foredeck, at what price; ask: asks it one word",
  off: "send everything as Pi has it, until switched on",
  on: "manage the context again",
  setup: "set the Python engine up now",
  ui: "open the inspector in the browser: all that is stored; it ends with Pi",
  command: "put the foredeck command on your PATH",
  help: "this list",
};

const HELP = [
  "/foredeck [list]      lists the objects of this session",
  ...Object.entries(VERBS)
    .filter(([verb]) => verb !== "list")
    .map(([verb, text]) => `/foredeck ${verb.padEnd(11)} ${text}`),
].join("\n");

/** Asks the engine to run a command with arguments; the text that it answers. */
export type AskEngine = (name: string, args: string) => Promise<string>;

/** What the engine answers to a command: a text for the user, and what else the host shows. */
export type Answered = { text: string; [part: string]: unknown };

/** A slash command of ours. */
export interface CommandSpec {
  name: string;
  description: string;
  /** What the arguments could be, with a description each; those that begin as typed are offered. */
  complete(prefix: string): [string, string][];
  /** What the user reads. Throws what went wrong, in words for the user. */
  run(args: string, ask: AskEngine, ctx: ExtensionCommandContext): Promise<string>;
}

/** /context. */
export const context: CommandSpec = {
  name: "context",
  description: "What fills the window: by kind, the largest objects, what stands before the chat",
  complete: () => [],
  run: (args, ask) => {
    if (args !== "") throw new Error("/context takes nothing; /foredeck why @12 says more of one.");
    return ask("context", "");
  },
};

/** Registers /foredeck with its completions; the short commands are verbs of it, too. */
export function registerCommand(
  pi: ExtensionAPI,
  shim: Shim,
  shorts: readonly CommandSpec[],
): void {
  register(pi, shim, {
    name: "foredeck",
    description: "Objects in the model's context; on, off, setup, help",
    complete: (prefix) => {
      const [, verb, rest] = prefix.match(/^(\S+) (.*)$/s) ?? [];
      const short = shorts.find(({ name }) => name === verb);
      if (short)
        return short.complete(rest ?? "").map(([value, text]) => [`${verb} ${value}`, text]);
      // While a list is open, Enter picks from it instead of sending. A complete verb is sent.
      return prefix in VERBS ? [] : Object.entries(VERBS);
    },
    run: (args, ask, ctx) => {
      const [, verb, rest = ""] = args.match(/^(\S+)\s*(.*)$/s) ?? [];
      const short = shorts.find(({ name }) => name === verb);
      return short ? short.run(rest, ask, ctx) : runCommand(args, shim, ask, ctx);
    },
  });
}

/** Registers a slash command: whatever it throws is shown to the user, and harms nothing. */
export function register(pi: ExtensionAPI, shim: Shim, spec: CommandSpec): void {
  pi.registerCommand(spec.name, {
    description: spec.description,
    getArgumentCompletions: (prefix) => {
      const matching = spec.complete(prefix).filter(([value]) => value.startsWith(prefix));
      if (matching.length === 0) return null;
      return matching.map(([value, description]) => ({
        value,
        label: visible(value),
        description: visible(description),
      }));
    },
    handler: async (args, ctx) => {
      try {
        shim.host.attach(ctx);
        const ask: AskEngine = async (name, rest) => (await forward(name, rest, shim, ctx)).text;
        shim.host.show(await spec.run(args.trim(), ask, ctx));
      } catch (error) {
        shim.host.notify("error", error instanceof Error ? error.message : String(error));
      }
    },
  });
}

async function runCommand(
  args: string,
  shim: Shim,
  ask: AskEngine,
  ctx: ExtensionCommandContext,
): Promise<string> {
  const [, verb = "list", rest = ""] = args.match(/^(\S+)\s*(.*)$/s) ?? [];
  switch (verb) {
    case "off":
      shim.switchOff();
      return "foredeck is off: the model sees everything as Pi has it. /foredeck on brings it back.";
    case "on":
      shim.switchOn();
      return "foredeck is on.";
    case "setup":
      return setUp(shim);
    case "ui":
      if (!ctx.hasUI) throw new Error("Run `foredeck ui`: here the pages would end with this Pi.");
      return `The inspector is open at ${await shim.host.commandLine.open(shim.engine.command)}`;
    case "command":
      return shim.host.commandLine.putOnPath();
    case "doctor":
      if (rest !== "" && rest !== "ask") throw new Error("It is /foredeck doctor [ask].");
      return ask(verb, rest);
    case "uncompact":
      return uncompact(shim, ctx);
    case "help":
      return HELP;
    default:
      if (!(verb in VERBS)) throw new Error(`There is no /foredeck ${verb}.\n${HELP}`);
      return ask(verb, rest);
  }
}

async function setUp(shim: Shim): Promise<string> {
  shim.switchOn();
  if (shim.engine.state === "away") shim.engine.start(true);
  await within(shim.engine.whenReady(true), { deadlineMs: SETUP_MS });
  const { commandLine } = shim.host;
  const called = commandLine.called();
  const offer = called === "foredeck" ? "" : "; /foredeck command puts it on your PATH";
  return `foredeck's engine is set up and running. Its command line is ${called}${offer}.`;
}

/** The engine's answer to a command, with all that came beside the text. */
export async function forward(
  name: string,
  args: string,
  shim: Shim,
  ctx: ExtensionCommandContext,
): Promise<Answered> {
  const limits = { deadlineMs: shim.engine.patienceMs(DEADLINE_MS), signal: ctx.signal };
  try {
    await within(shim.engine.whenReady(), limits);
    const result = await request(name, args, shim, limits);
    if (!isRecord(result)) return { text: "" };
    shim.tasks.take(result.tasks);
    const stretch = asStretch(result.stretch);
    if (stretch) shim.putAway.keep(stretch);
    return { ...result, text: typeof result.text === "string" ? result.text : "" };
  } catch (error) {
    if (!(error instanceof GoneError)) throw error;
    throw new Error(`foredeck's engine is not running: ${error.message}`);
  }
}

/** Commands are answered one after the other: what may ask a model is none, or calls would wait. */
function request(name: string, args: string, shim: Shim, limits: RequestOptions): Promise<unknown> {
  if (name === "doctor") {
    const patient = { ...limits, deadlineMs: MODEL_MS };
    return shim.engine.request("doctor", { ask: args === "ask" }, patient);
  }
  return shim.engine.request("command", { session: shim.sessionId(), name, args }, limits);
}
