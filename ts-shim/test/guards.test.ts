import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { refusal } from "../tool-calls.ts";
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
  assert.match(read(pathToFileURL(fifo).href) ?? "", /named pipe/);
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

const MARKER = "<activate @12: 4120 chars folded by foredeck>";
const OTHER_MARKERS = [
  "<activate @12: 4120 chars folded>",
  '<activate "@12 turn 3": 4120 chars folded>',
  "<activate @41: lines 31-877, 34942 chars folded>",
  "<@12: 4,120 chars, folded by foredeck>",
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
    "folded by foredeck",
    "<@12> folded by foredeck>",
    "<@x: 1 chars, folded by foredeck>",
    "<p>folded by foredeck></p>",
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
