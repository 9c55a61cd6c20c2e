import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { declaredFacilities, keepFacilities, projectKey } from "../switches.ts";
import { removeFolder } from "./support/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "foredeck-switches-"));
after(() => removeFolder(folder));

function made(name: string): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  return path;
}

function left(state: string, cwd: string, text: string): void {
  mkdirSync(join(state, "switches"), { recursive: true });
  writeFileSync(join(state, "switches", `${projectKey(cwd)}.json`), text);
}

const git = (cwd: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd });

test("what the engine has left is declared; without that, or with half of it, the default", () => {
  const [state, cwd] = [made("state"), made("project")];
  const standard = ["context", "search"];
  assert.deepEqual(declaredFacilities(state, cwd), standard);
  left(state, cwd, '{"facilities": ["context", "tasks"]}');
  assert.deepEqual(declaredFacilities(state, cwd), ["context", "tasks"]);
  assert.deepEqual(declaredFacilities(state, made("other")), standard);
  for (const torn of ['{"facilities": ["con', "", "[]", "null", '{"facilities": "search"}']) {
    left(state, cwd, torn);
    assert.deepEqual(declaredFacilities(state, cwd), standard, torn);
  }
});

test("a repository with its folders, links and worktrees is one project", () => {
  const repo = made("repo");
  git(repo, "init", "-q");
  git(repo, "commit", "-q", "--allow-empty", "-m", "begin");
  git(repo, "worktree", "add", "-q", join(folder, "tree"));
  symlinkSync(repo, join(folder, "link"));
  const key = projectKey(repo);
  for (const same of [made("repo/src/deep"), join(folder, "tree"), join(folder, "link")])
    assert.equal(projectKey(same), key, same);
  assert.notEqual(projectKey(folder), key);
});

test("a session that is reloaded or forked keeps its tools, a new one does not", () => {
  const [state, cwd] = [made("state2"), made("project2")];
  for (const [reason, expected] of [
    ["reload", ["tasks"]],
    ["fork", ["tasks"]],
    ["new", ["context"]],
    ["quit", ["context"]],
  ] as const) {
    left(state, cwd, '{"facilities": ["context"]}');
    keepFacilities(reason, ["tasks"]);
    assert.deepEqual(declaredFacilities(state, cwd), expected, reason);
    assert.deepEqual(declaredFacilities(state, cwd), ["context"], `after ${reason}`);
  }
});
