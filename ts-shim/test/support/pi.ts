/** A stand-in for the side of Pi with which an extension registers, and a shim registered with it. */

import { afterEach } from "node:test";
import { register as registerCommand } from "../../command.ts";
import { registerCompaction } from "../../compaction.ts";
import { registerSessions } from "../../shim.ts";
import { registerToolCalls } from "../../tool-calls.ts";
import { DEFAULT_FACILITIES, registerNames } from "../../tools.ts";
import { Harness } from "./harness.ts";

type Handler = (...args: unknown[]) => unknown;
interface Tool {
  name: string;
  execute(id: string, input: unknown, ...more: unknown[]): Promise<Record<string, unknown>>;
}
interface Command {
  handler(args: string, ctx: unknown): Promise<void>;
  getArgumentCompletions(prefix: string): Promise<{ value: string }[] | null>;
}

/** Keeps what is registered. `fire` calls the first handler of an event. */
export function recorder() {
  const events: Record<string, Handler[]> = {};
  const tools: Record<string, Tool> = {};
  const commands: Record<string, Command> = {};
  const flags: Record<string, boolean | string> = {};
  const listeners: ((data: unknown) => void)[] = [];
  const pi = {
    events: {
      emit: (_channel: string, data: unknown) => {
        for (const listener of listeners) listener(data);
      },
      on: (_channel: string, listener: (data: unknown) => void) => listeners.push(listener),
    },
    on: (event: string, handler: Handler) => {
      events[event] = [...(events[event] ?? []), handler];
    },
    registerTool: (tool: Tool) => {
      tools[tool.name] = tool;
    },
    registerFlag: (name: string, options: { default?: boolean }) => {
      flags[name] = options.default ?? false;
    },
    getFlag: (name: string) => flags[name],
    getAllTools: () => Object.keys(tools).map((name) => ({ name })),
    getCommands: () => Object.keys(commands).map((name) => ({ name })),
    registerCommand: (name: string, command: Command) => {
      commands[name] = command;
    },
  };
  const fire = (event: string, ...args: unknown[]) => events[event]?.[0]?.(...args);
  return { pi: pi as never, events, tools, commands, flags, fire };
}

const open: Harness[] = [];
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close();
});

/**
 * A shim with an engine in this mode, whose session has begun, with all its parts registered.
 * Closed when the test ends.
 * @param others names that other extensions have registered before
 */
export function registered(mode: string, others: { tools?: string[]; commands?: string[] } = {}) {
  const harness = new Harness(mode);
  open.push(harness);
  harness.begin();
  const recorded = recorder();
  for (const name of others.tools ?? []) recorded.tools[name] = {} as Tool;
  for (const name of others.commands ?? []) recorded.commands[name] = {} as Command;
  registerNames(recorded.pi, harness.shim, DEFAULT_FACILITIES);
  const begun = recorded.fire("session_start");
  recorded.events.session_start = [];
  for (const register of [registerSessions, registerCompaction, registerToolCalls])
    register(recorded.pi, harness.shim);
  registerCommand(recorded.pi, harness.shim, "foredeck");
  /** Types `/foredeck ARGS`, or another command, and returns what was shown. */
  const command = async (args: string, name = "foredeck") => {
    const before = harness.notices.length;
    await recorded.commands[name]?.handler(args, harness.ctx);
    return harness.notices.slice(before).join("\n");
  };
  return { ...recorded, harness, command, begun };
}
