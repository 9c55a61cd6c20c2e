import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { registerCommand } from "../command.ts";
import { registerCompaction } from "../compaction.ts";
import foredeck from "../index.ts";
import { registerObserver } from "../observe.ts";
import { registerSessions, sessionIdIn } from "../sessions.ts";
import { registerTools } from "../tools.ts";
import { user } from "./support/conversation.ts";
import { Harness, until } from "./support/harness.ts";

type Handler = (...args: unknown[]) => unknown;
interface Tool {
  name: string;
  execute(id: string, input: unknown, signal?: AbortSignal): Promise<Record<string, unknown>>;
}
interface Command {
  handler(args: string, ctx: unknown): Promise<void>;
  getArgumentCompletions(prefix: string): { value: string }[] | null;
}

/** Pi's registration side, recorded. */
function recorder() {
  const events: Record<string, Handler[]> = {};
  const tools: Record<string, Tool> = {};
  const commands: Record<string, Command> = {};
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
    registerCommand: (name: string, command: Command) => {
      commands[name] = command;
    },
  };
  const fire = (event: string, ...args: unknown[]) => events[event]?.[0]?.(...args);
  return { pi: pi as never, events, tools, commands, fire };
}

let harness: Harness | null = null;
afterEach(async () => {
  await harness?.close();
  harness = null;
});

function start(mode: string, env?: Record<string, string>) {
  const it = new Harness(mode, env);
  harness = it;
  it.begin();
  const recorded = recorder();
  const parts = [registerTools, registerObserver, registerSessions, registerCommand];
  for (const register of [...parts, registerCompaction]) register(recorded.pi, it.shim);
  const command = async (args: string) => {
    const before = it.notices.length;
    await recorded.commands.foredeck?.handler(args, it.ctx);
    return it.notices.slice(before).join("\n");
  };
  return { ...recorded, harness: it, command };
}

test("loading registers everything, once, and starts nothing", async () => {
  const { pi, events, tools, commands } = recorder();
  await foredeck(pi);
  assert.deepEqual(Object.keys(tools), ["activate", "deactivate", "pin", "unpin"]);
  assert.deepEqual(Object.keys(commands), ["foredeck"]);
  assert.equal(events.context_with_system?.length, 1);
  assert.equal(events.context, undefined);
  const twice = Object.keys(events).filter((name) => events[name]?.length !== 1);
  assert.deepEqual(twice, ["tool_call"]); // the guards, and who tells of tools that start
});

test("a second copy registers nothing, and says so once", async () => {
  const { pi, events } = recorder();
  await foredeck(pi);
  const registered = Object.keys(events).length;
  await foredeck(pi);
  assert.equal(Object.keys(events).length, registered);
  const [, second] = events.session_start ?? [];
  const told: string[] = [];
  const ctx = { hasUI: true, ui: { notify: (text: string) => told.push(text) } };
  for (const _ of [1, 2]) second?.({}, ctx);
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /loaded twice.*index\.ts does nothing beside .*index\.ts/);
});

test("a tool gives the engine's text and keeps its details", async () => {
  const { tools, harness } = start("good");
  assert.deepEqual(await tools.pin?.execute("toolu_1", { id: "@1" }), {
    content: [{ type: "text", text: "did pin" }],
    details: { foredeck: { object: "x" } },
  });
  const [request] = harness.requests("tool/call");
  assert.deepEqual(request?.params, {
    session: "s1",
    id: "toolu_1",
    tool: "pin",
    input: { id: "@1" },
  });
});

test("a tool that fails throws what the engine wrote for the model", async () => {
  const { tools } = start("good");
  await assert.rejects(async () => tools.activate?.execute("t", { id: "@404" }), {
    message: "there is no @404; nearest: @40",
  });
});

test("without an engine, or switched off, a tool tells the model to go on without", async () => {
  const { tools, harness } = start("refuse-start");
  await assert.rejects(async () => tools.activate?.execute("t", { id: "@1" }), /use read or bash/);
  harness.shim.switchOff();
  await assert.rejects(async () => tools.activate?.execute("t", { id: "@1" }), /switched/);
  harness.shim.switchOn();
});

test("every tool result is told, with its details and its parent; nothing is returned", async () => {
  const { fire, harness } = start("good");
  await harness.shim.engine.whenReady();
  const event = {
    toolCallId: "a/1",
    parentToolCallId: "a",
    toolName: "bash",
    input: { command: "ls" },
    content: [{ type: "text", text: "x" }],
    details: { fullOutputPath: "/tmp/out" },
    isError: false,
  };
  assert.equal(await fire("tool_result", event), undefined);
  assert.equal(await fire("tool_result", { ...event, content: [{ text: 1n }] }), undefined);
  const huge = [{ type: "text", text: "x".repeat(17 * 1024 * 1024) }];
  assert.equal(await fire("tool_result", { ...event, content: huge }), undefined);
  assert.equal(await fire("tool_result", null), undefined);
  await until(() => harness.requests("tool/observed").length > 0, "observed");
  await harness.call([user("x")]);
  const observed = harness.requests("tool/observed");
  assert.equal(observed.length, 1);
  assert.deepEqual(observed[0]?.params, {
    session: "s1",
    id: "a/1",
    parent: "a",
    tool: "bash",
    input: { command: "ls" },
    content: [{ type: "text", text: "x" }],
    details: { fullOutputPath: "/tmp/out" },
    is_error: false,
  });
});

test("a tool that names a file is told before it runs", async () => {
  const { fire, harness } = start("good");
  await harness.shim.engine.whenReady();
  await fire("tool_call", { toolCallId: "a", toolName: "edit", input: { path: "x", edits: [] } });
  await fire("tool_call", { toolCallId: "b", toolName: "bash", input: { command: "ls" } });
  await until(() => harness.requests("tool/started").length > 0, "started");
  await harness.call([user("x")]);
  assert.deepEqual(
    harness.requests("tool/started").map(({ params }) => params),
    [{ session: "s1", id: "a", tool: "edit", path: "x" }],
  );
});

test("session events are told", async () => {
  const { fire, harness } = start("good");
  await harness.shim.engine.whenReady();
  await fire("session_tree", { newLeafId: "b", oldLeafId: "a" });
  await fire("session_compact", { compactionEntry: { id: "c", summary: "s" }, reason: "manual" });
  await fire("model_select", { model: { provider: "p", id: "m2" } });
  await until(() => harness.requests("session/event").length === 3, "told");
  assert.deepEqual(
    harness.requests("session/event").map(({ params }) => params),
    [
      { session: "s1", kind: "tree", new_leaf: "b", old_leaf: "a" },
      { session: "s1", kind: "compact", entry: "c", reason: "manual", summary: "s", by: "model" },
      { session: "s1", kind: "model", provider: "p", id: "m2" },
    ],
  );
});

test("a compaction that another extension has cancelled or written is told of", async () => {
  const { fire, harness } = start("good");
  await harness.shim.engine.whenReady();
  const preparation = { firstKeptEntryId: "e7", messagesToSummarize: [], turnPrefixMessages: [] };
  const { signal } = new AbortController();
  const asked = { preparation, reason: "manual", signal };
  const compact = async (compactionEntry: object) => {
    await fire("session_before_compact", asked, harness.ctx);
    await fire("session_compact", { compactionEntry, reason: "manual", fromExtension: true });
  };
  await compact({ id: "a", firstKeptEntryId: "e7", details: { foredeck: {} } });
  await fire("session_compact_failed", { aborted: false });
  assert.doesNotMatch(harness.notices.join("\n"), /another extension/);
  await compact({ id: "b", firstKeptEntryId: "e7", summary: "theirs" });
  await compact({ id: "c", firstKeptEntryId: "e8", summary: "of other messages" });
  assert.match(harness.notices.at(-1) ?? "", /^another extension has written the summary/);
  await until(() => harness.requests("session/event").length === 3, "told");
  assert.deepEqual(
    harness
      .requests("session/event")
      .map(({ params }) => [params.entry, params.summary, params.by]),
    [
      ["a", undefined, undefined],
      ["b", "theirs", "extension"],
      ["c", undefined, undefined],
    ],
  );
  await fire("session_before_compact", asked, harness.ctx);
  await fire("session_compact_failed", { aborted: true });
  assert.match(harness.notices.at(-1) ?? "", /^another extension \(or you\) has cancelled/);
});

test("what the user has cancelled is nobody else's doing", async () => {
  const { fire, harness } = start("good");
  await harness.shim.engine.whenReady();
  const preparation = { messagesToSummarize: [], turnPrefixMessages: [] };
  const signal = AbortSignal.abort();
  await fire("session_before_compact", { preparation, reason: "manual", signal }, harness.ctx);
  await fire("session_compact_failed", { aborted: true });
  assert.doesNotMatch(harness.notices.join("\n"), /another extension/);
});

test("session_start opens with file and parent; session_shutdown closes", async () => {
  const { fire, harness } = start("good");
  const parent = join(harness.folder, "parent.jsonl");
  writeFileSync(parent, '{"type":"session","id":"p1"}\n{"type":"message"}\n');
  const sessionManager = {
    getSessionId: () => "s2",
    getSessionFile: () => "/s2.jsonl",
    getHeader: () => ({ parentSession: parent }),
  };
  await harness.shim.engine.whenReady();
  const ctx = { ...(harness.ctx as object), sessionManager };
  await fire("session_start", { reason: "fork" }, ctx);
  await fire("session_start", { reason: "fork" }, ctx);
  await fire("session_shutdown", { reason: "quit" });
  const opened = harness.requests("session/open").map(({ params }) => params);
  assert.equal(opened.length, 2);
  assert.deepEqual(opened[1], {
    session: "s2",
    file: "/s2.jsonl",
    cwd: harness.folder,
    reason: "fork",
    parent: "p1",
    started_by: null,
  });
  assert.deepEqual(harness.requests("session/close")[0]?.params, { session: "s2", reason: "quit" });
});

test("a parent that cannot be read is no parent", () => {
  assert.equal(sessionIdIn("/nonexistent"), null);
  assert.equal(sessionIdIn(process.execPath), null);
  assert.equal(sessionIdIn("/"), null);
});

test("/foredeck lists, forwards, switches, explains", async () => {
  const { command, harness } = start("good");
  assert.match(await command(""), /command list $/m);
  assert.match(await command("name @12 parser"), /command name @12 parser/);
  assert.match(await command("why  @12"), /command why @12/);
  assert.match(await command("off"), /is off/);
  assert.ok(harness.shim.isOff());
  assert.match(await command("on"), /is on/);
  assert.ok(!harness.shim.isOff());
  assert.match(await command("setup"), /running/);
  assert.match(await command("help"), /\/foredeck why/);
  assert.match(await command("nonsense"), /There is no \/foredeck nonsense/);
});

test("/foredeck without an engine says what is wrong", async () => {
  const { command } = start("refuse-start");
  assert.match(await command(""), /not running.*unknown key/);
  assert.match(await command("setup"), /unknown key/);
});

test("/foredeck completes its verbs", () => {
  const { commands } = start("good");
  const complete = (prefix: string) =>
    commands.foredeck?.getArgumentCompletions(prefix)?.map(({ value }) => value);
  assert.deepEqual(complete("o"), ["off", "on"]);
  assert.equal(complete("off"), undefined);
  assert.deepEqual(complete("wh"), ["why"]);
  assert.equal(complete("x"), undefined);
});
