/** The user's command: /foredeck. */

import type { ExtensionAPI, ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import { isRecord } from "./context/messages.ts";
import { within } from "./engine/wait.ts";
import { GoneError } from "./engine/wire.ts";
import type { Shim } from "./shim.ts";

const DEADLINE_MS = 10_000;
/** Building a Python environment takes minutes on a slow connection. */
const SETUP_MS = 12 * 60_000;

const VERBS: Record<string, string> = {
  list: "the objects of this session and their state",
  name: "@N NAME: give an object a nickname",
  describe: "@N [TEXT]: what stands for an object while it is folded; sets it",
  why: "[@N]: why an object is in view or not; alone: the last rebase",
  cost: "what this session has cost so far, and would have without foredeck",
  off: "send everything as Pi has it, until switched on",
  on: "manage the context again",
  setup: "set the Python engine up now",
  help: "this list",
};

const HELP = [
  "/foredeck [list]      lists the objects of this session",
  ...Object.entries(VERBS)
    .filter(([verb]) => verb !== "list")
    .map(([verb, text]) => `/foredeck ${verb.padEnd(11)} ${text}`),
].join("\n");

/** Registers the command with its completions. */
export function registerCommand(pi: ExtensionAPI, shim: Shim): void {
  pi.registerCommand("foredeck", {
    description: "Objects in the model's context; on, off, setup, help",
    getArgumentCompletions: (prefix) => {
      // While a list is open, Enter picks from it instead of sending. A complete verb is sent.
      if (prefix in VERBS) return null;
      const matching = Object.entries(VERBS).filter(([verb]) => verb.startsWith(prefix));
      if (matching.length === 0) return null;
      return matching.map(([value, description]) => ({ value, label: value, description }));
    },
    handler: async (args, ctx) => {
      try {
        shim.host.attach(ctx);
        const text = await runCommand(args, shim, ctx);
        shim.host.show(text);
      } catch (error) {
        shim.host.notify("error", error instanceof Error ? error.message : String(error));
      }
    },
  });
}

async function runCommand(args: string, shim: Shim, ctx: ExtensionCommandContext): Promise<string> {
  const [, verb = "list", rest = ""] = args.trim().match(/^(\S+)\s*(.*)$/s) ?? [];
  switch (verb) {
    case "off":
      shim.switchOff();
      return "foredeck is off: the model sees everything as Pi has it. /foredeck on brings it back.";
    case "on":
      shim.switchOn();
      return "foredeck is on.";
    case "setup":
      return setUp(shim);
    case "help":
      return HELP;
    default:
      return forward(verb, rest, shim, ctx);
  }
}

async function setUp(shim: Shim): Promise<string> {
  shim.switchOn();
  if (shim.engine.state === "away") shim.engine.start(true);
  await within(shim.engine.whenReady(true), { deadlineMs: SETUP_MS });
  return "foredeck's engine is set up and running.";
}

async function forward(
  name: string,
  args: string,
  shim: Shim,
  ctx: ExtensionCommandContext,
): Promise<string> {
  if (!(name in VERBS)) throw new Error(`There is no /foredeck ${name}.\n${HELP}`);
  const limits = { deadlineMs: DEADLINE_MS, signal: ctx.signal };
  try {
    await within(shim.engine.whenReady(), limits);
    const params = { session: shim.sessionId(), name, args };
    const result = await shim.engine.request("command", params, limits);
    return isRecord(result) && typeof result.text === "string" ? result.text : "";
  } catch (error) {
    if (!(error instanceof GoneError)) throw error;
    throw new Error(`foredeck's engine is not running: ${error.message}`);
  }
}
