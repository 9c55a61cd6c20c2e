import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { declaredFacilities, folderKey, keepFacilities } from "../tools.ts";
import { removeFolder } from "./support/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "foredeck-switches-"));
after(() => removeFolder(folder));

function made(name: string): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  return path;
}

async function left(state: string, cwd: string, text: string): Promise<void> {
  mkdirSync(join(state, "switches"), { recursive: true });
  writeFileSync(join(state, "switches", `${await folderKey(cwd)}.json`), text);
}

test("what the engine has left is declared; without that, or with half of it, the default", async () => {
  const [state, cwd] = [made("state"), made("project")];
  const standard = ["context", "search"];
  assert.deepEqual(await declaredFacilities(state, cwd), standard);
  await left(state, cwd, '{"facilities": ["context", "tasks"]}');
  assert.deepEqual(await declaredFacilities(state, cwd), ["context", "tasks"]);
  assert.deepEqual(await declaredFacilities(state, made("other")), standard);
  for (const torn of ['{"facilities": ["con', "", "[]", "null", '{"facilities": "search"}']) {
    await left(state, cwd, torn);
    assert.deepEqual(await declaredFacilities(state, cwd), standard, torn);
  }
});

test("a folder has its own file, whichever link leads there", async () => {
  const [state, cwd] = [made("state3"), made("project3")];
  symlinkSync(cwd, join(folder, "link"));
  await left(state, cwd, '{"facilities": ["tasks"]}');
  assert.deepEqual(await declaredFacilities(state, join(folder, "link")), ["tasks"]);
  assert.deepEqual(await declaredFacilities(state, made("project3/deep")), ["context", "search"]);
});

test("a pipe or a device in the file's place is not waited for", async () => {
  const [state, cwd] = [made("state4"), made("project4")];
  const file = join(made("state4/switches"), `${await folderKey(cwd)}.json`);
  execFileSync("mkfifo", [file]);
  assert.deepEqual(await declaredFacilities(state, cwd), ["context", "search"]);
  rmSync(file);
  symlinkSync("/dev/zero", file);
  assert.deepEqual(await declaredFacilities(state, cwd), ["context", "search"]);
});

test("a session that is reloaded or forked keeps its tools, a new one does not", async () => {
  const [state, cwd] = [made("state2"), made("project2")];
  for (const [reason, expected] of [
    ["reload", ["tasks"]],
    ["fork", ["tasks"]],
    ["new", ["context"]],
    ["quit", ["context"]],
  ] as const) {
    await left(state, cwd, '{"facilities": ["context"]}');
    keepFacilities(reason, ["tasks"]);
    assert.deepEqual(await declaredFacilities(state, cwd), expected, reason);
    assert.deepEqual(await declaredFacilities(state, cwd), ["context"], `after ${reason}`);
  }
});
