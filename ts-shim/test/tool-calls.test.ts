import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { refusal, registerToolCalls } from "../tool-calls.ts";
import { ASKING } from "../tools.ts";
import { user } from "./support/conversation.ts";
import { until } from "./support/harness.ts";
import { recorder, registered } from "./support/pi.ts";
import { removeFolder } from "./support/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "foredeck-guards-"));
after(() => removeFolder(folder));
const posix = { skip: process.platform === "win32" ? "no FIFOs on Windows" : false };

const cwd = () => folder;
const read = (path: string) => refusal("read", { path }, cwd);

test("reading a FIFO is refused, however its path is written", posix, () => {
  const fifo = join(folder, "a b.pipe");
  execFileSync("mkfifo", [fifo]);
  symlinkSync(fifo, join(folder, "link"));
  for (const path of [fifo, "a b.pipe", "./a b.pipe", "@a b.pipe", "a\u00A0b.pipe", "link"]) {
    assert.match(read(path) ?? "", /named pipe/, path);
  }
  assert.equal(refusal("bash", { command: `cat '${fifo}'` }, cwd), undefined);
});

test("reading a device or a socket is refused", posix, async () => {
  assert.match(read("/dev/zero") ?? "", /device/);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(folder, "s.sock"), resolve));
  assert.match(read("s.sock") ?? "", /socket/);
  server.close();
});

test("files, folders, missing paths and nonsense are left to Pi", () => {
  writeFileSync(join(folder, "file"), "x");
  mkdirSync(join(folder, "sub"));
  symlinkSync(join(folder, "loop"), join(folder, "loop"));
  for (const path of [
    "file",
    "sub",
    "missing",
    "loop",
    "",
    "file:///%zz",
    "a\0b",
    "~",
    "~nobody/x",
  ]) {
    assert.equal(read(path), undefined, path);
  }
  for (const input of [{}, { path: 7 }, { path: null }]) {
    assert.equal(refusal("read", input, cwd), undefined);
  }
});

const MARKER = "<activate @12: 4120 chars folded>";
const OTHER_MARKERS = [
  '<activate "@12 turn 3": 4120 chars folded>',
  "<activate @41: lines 31-877, 34942 chars folded>",
];

test("a fold marker in an argument is refused wherever it is, with advice", () => {
  for (const input of [
    { path: "a.ts", content: MARKER },
    { path: "a.ts", content: `function a() {}\n${MARKER}\n` },
    {
      path: "a.ts",
      edits: [
        { oldText: "x", newText: "y" },
        { oldText: MARKER, newText: "" },
      ],
    },
    { command: `cat <<'E'\n${MARKER}\nE` },
  ]) {
    const reason = refusal("write", input, cwd) ?? "";
    assert.ok(reason.includes(MARKER) && reason.includes("real text"), JSON.stringify(input));
  }
  for (const marker of OTHER_MARKERS) {
    assert.ok(refusal("write", { content: marker }, cwd)?.includes(marker));
  }
});

test("text that only resembles a marker passes; foredeck's own tools resolve markers themselves", () => {
  for (const content of [
    "chars folded",
    "<@12> chars folded>",
    "<activate @x: 1 chars folded>",
    "<p>4120 chars folded></p>",
    "<activate the paper: 12 chars folded>",
  ]) {
    assert.equal(refusal("write", { content }, cwd), undefined, content);
  }
  assert.equal(refusal("activate", { id: MARKER }, cwd), undefined);
});

test("odd arguments never throw", () => {
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  const hostile = {
    get content(): string {
      throw new Error("no");
    },
  };
  assert.equal(refusal("write", loop, cwd), undefined);
  assert.equal(refusal("write", hostile, cwd), undefined);
  assert.equal(refusal("read", null as never, cwd), undefined);
  const stale = () => {
    throw new Error("the session was replaced");
  };
  assert.equal(refusal("read", { path: "x" }, stale), undefined);
});

async function withEngine(mode = "good") {
  const { harness } = registered(mode);
  await harness.shim.engine.whenReady();
  const { pi, fire } = recorder();
  registerToolCalls(pi, harness.shim);
  const call = (toolName: string, input: object) =>
    fire("tool_call", { toolCallId: "c1", toolName, input });
  return { call, fire, asked: () => harness.requests("tool/prepare").length, harness };
}

test("what the engine refuses does not run, and the model reads why", async () => {
  const { call } = await withEngine();
  const refused = await call("write", { path: "a", verdict: { block: "it has changed" } });
  assert.deepEqual(refused, { block: true, reason: "it has changed" });
  assert.equal(await call("write", { path: "a" }), undefined);
});

test("a notice is added to the result, once", async () => {
  const { call, fire } = await withEngine();
  assert.equal(await call("edit", { path: "a", verdict: { notice: "look out" } }), undefined);
  const event = { toolCallId: "c1", content: [{ type: "text", text: "done" }] };
  const content = [...event.content, { type: "text", text: "look out" }];
  assert.deepEqual(await fire("tool_result", event), { content });
  assert.equal(await fire("tool_result", event), undefined);
});

test("a notice of a call that another extension has blocked is forgotten", async () => {
  const { call, fire } = await withEngine();
  await call("edit", { path: "a", verdict: { notice: "look out" } });
  await fire("tool_execution_end", { toolCallId: "c1" });
  assert.equal(await fire("tool_result", { toolCallId: "c1", content: [] }), undefined);
});

test("a tool runs where the engine is slow, fails, talks nonsense or is asked nonsense", async () => {
  const hasty = await withEngine("hasty");
  assert.equal(await hasty.call("write", { wait: true }), undefined);
  const { call, fire } = await withEngine();
  assert.equal(await call("write", { fail: true }), undefined);
  assert.equal(await call("write", { verdict: "?" }), undefined);
  assert.equal(await call("write", { verdict: { block: 7, notice: null } }), undefined);
  assert.equal(await fire("tool_result", null), undefined);
});

test("only tools that may write are asked about, while foredeck and its guard are on", async () => {
  const { call, asked, harness } = await withEngine();
  for (const tool of ["read", "grep", "find", "ls", "activate"]) await call(tool, {});
  assert.equal(asked(), 0);
  await call("bash", { command: "make" });
  assert.equal(asked(), 1);
  harness.shim.switchOff();
  await call("bash", { command: "make" });
  assert.equal(asked(), 1);
  harness.shim.switchOn();
});

test("without the guard nobody waits", async () => {
  const { call, asked } = await withEngine("no-guard");
  await call("write", { path: "a" });
  assert.equal(asked(), 0);
});

test("every tool result is reported, with its details and its parent; nothing is returned", async () => {
  const { fire, harness } = registered("good");
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
    took_ms: null,
  });
});

test("a result says how long its tool ran, from the moment that it could", async () => {
  const { call, fire, harness } = await withEngine();
  await call("bash", { command: "ls" });
  const event = { toolCallId: "c1", toolName: "bash", input: {}, content: [], isError: false };
  await fire("tool_result", event);
  await fire("tool_result", event);
  await until(() => harness.requests("tool/observed").length > 1, "observed");
  const [first, second] = harness.requests("tool/observed").map(({ params }) => params.took_ms);
  assert.ok(Number.isInteger(first) && Number(first) >= 0);
  assert.equal(second, null);
});

test("a read that only asks whether it may is not reported", async () => {
  const { fire, harness } = registered("good");
  await harness.shim.engine.whenReady();
  const read = { parentToolCallId: "a", toolName: "read", input: { path: "x" }, content: [] };
  ASKING.add("a");
  await fire("tool_call", { ...read, toolCallId: "a/1" });
  assert.equal(await fire("tool_result", { ...read, toolCallId: "a/1" }), undefined);
  ASKING.delete("a");
  await fire("tool_call", { ...read, toolCallId: "a/2" });
  await until(() => harness.requests("tool/started").length > 0, "started");
  assert.deepEqual(
    harness.requests("tool/started").map(({ params }) => params.id),
    ["a/2"],
  );
  assert.equal(harness.requests("tool/observed").length, 0);
});

test("a tool that names a file is reported before it runs", async () => {
  const { fire, harness } = registered("good");
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

test("an engine that takes another's place hears of tools that run and may write", async () => {
  const { fire, harness } = registered("good");
  const { engine } = harness.shim;
  await engine.whenReady();
  const input = { command: "make" };
  await fire("tool_call", { toolCallId: "t1", toolName: "bash", input });
  await fire("tool_call", { toolCallId: "t2", toolName: "read", input: { path: "a" } });
  await fire("tool_call", { toolCallId: "t3", toolName: "bash", input });
  await fire("tool_result", { toolCallId: "t3", toolName: "bash", input, content: [] });
  engine.process?.kill();
  await until(() => harness.requests("session/open").length === 2, "opened again");
  const [first, second] = harness.requests("session/open").map(({ params }) => params);
  assert.equal(first?.running, undefined);
  assert.deepEqual(second?.running, [{ id: "t1", tool: "bash", input }]);
});
