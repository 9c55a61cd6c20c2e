import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, afterEach, beforeEach, test } from "node:test";
import { readFailure, rememberFailure } from "../engine/failure.ts";
import { locateInstalled, parseCommand } from "../engine/locate.ts";
import { withLock } from "../engine/lock.ts";
import { engineKey } from "../engine/package.ts";
import { ProvisionError, provision } from "../engine/provision.ts";
import { findPython, hasForedeck, pythonAdvice } from "../engine/python.ts";
import { run } from "../engine/run.ts";
import { stateDir } from "../engine/state-dir.ts";
import { removeFolder } from "./support/processes.ts";

const PATH = process.env.PATH ?? "";
let folder: string;
// Nothing in the code under test keeps a process alive.
const hold = setInterval(() => {}, 1000);
after(() => clearInterval(hold));
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "foredeck-provision-"));
});
afterEach(async () => {
  process.env.PATH = PATH;
  await removeFolder(folder);
});

/** A package like this one whose wheel can be built without a network. */
function samplePackage(): string {
  const root = join(folder, "package");
  mkdirSync(join(root, "python", "foredeck", "cli"), { recursive: true });
  writeFileSync(join(root, "package.json"), '{"version": "1.2.3"}');
  writeFileSync(
    join(root, "pyproject.toml"),
    '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n' +
      '[project]\nname = "foredeck"\nversion = "1.2.3"\n',
  );
  writeFileSync(join(root, "backend.py"), BACKEND);
  for (const path of ["__init__.py", "cli/__init__.py"]) {
    writeFileSync(join(root, "python", "foredeck", path), "");
  }
  const main = join(root, "python", "foredeck", "cli", "main.py");
  writeFileSync(main, "import sys\n\ndef main():\n    print('engine', *sys.argv[1:])\n");
  return root;
}

const BACKEND = `
import os, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, info = "foredeck-1.2.3-py3-none-any.whl", "foredeck-1.2.3.dist-info/"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        for top, _, files in os.walk("python/foredeck"):
            for file in files:
                path = os.path.join(top, file)
                wheel.write(path, os.path.relpath(path, "python"))
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: foredeck\\nVersion: 1.2.3\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "entry_points.txt", "[console_scripts]\\nforedeck = foredeck.cli.main:main\\n")
        wheel.writestr(info + "RECORD", "")
    return name
`;

function options(root: string) {
  const logged: string[] = [];
  const builds: number[] = [];
  return {
    logged,
    builds,
    root,
    stateDir: join(folder, "state"),
    signal: new AbortController().signal,
    log: (text: string) => void logged.push(text),
    onBuild: () => void builds.push(1),
  };
}

const python = await findPython({ timeoutMs: 100_000 });
const needsPython = { skip: python ? false : "no Python >= 3.11 on this machine" };

test(
  "builds in place of what no longer starts, and finds it from then on",
  needsPython,
  async () => {
    const how = options(samplePackage());
    const engines = join(how.stateDir, "engines");
    const stale = join(engines, await engineKey(how.root), "venv");
    execFileSync(python as string, ["-m", "venv", "--without-pip", stale]);
    const command = await provision({ ...how, verify: true });
    const { code, output } = await run(command.file, [...command.args, "x"], {
      timeoutMs: 100_000,
      env: command.env,
    });
    assert.deepEqual([code, output.trim()], [0, "engine engine x"]);
    if (process.platform !== "win32") {
      const typed = join(engines, await engineKey(how.root), "venv", "bin", "foredeck");
      assert.match(execFileSync(typed, ["x"], { encoding: "utf8" }), / x\n$/);
    }
    assert.deepEqual(readdirSync(engines), [await engineKey(how.root)]);
    assert.deepEqual(await provision(how), command);
    assert.deepEqual(await provision({ ...how, verify: true }), command);
    assert.equal(how.builds.length, 1);
  },
);

test("a module in the working folder cannot take foredeck's place", needsPython, async () => {
  mkdirSync(join(folder, "foredeck", "cli"), { recursive: true });
  writeFileSync(join(folder, "foredeck", "__init__.py"), "");
  writeFileSync(join(folder, "foredeck", "cli", "main.py"), "");
  const bare = join(folder, "bare");
  execFileSync(python as string, ["-m", "venv", "--without-pip", bare]);
  const inside = join(bare, process.platform === "win32" ? "Scripts/python.exe" : "bin/python");
  const { ok } = await hasForedeck(inside, { timeoutMs: 100_000, cwd: folder });
  assert.equal(ok, false);
});

test("without Python the user gets a command to type; the failure is remembered unless they insist", async () => {
  process.env.PATH = join(folder, "empty");
  const how = options(samplePackage());
  await assert.rejects(provision(how), (error: unknown) => {
    assert.ok(error instanceof ProvisionError && !error.known);
    return error.message.includes("/foredeck setup");
  });
  await assert.rejects(provision(how), (error) => error instanceof ProvisionError && error.known);
  assert.equal(how.builds.length, 1);
  await assert.rejects(provision({ ...how, insist: true }));
  assert.equal(how.builds.length, 2);
  const left = readdirSync(join(how.stateDir, "engines"));
  assert.deepEqual(left, [`${await engineKey(how.root)}.failed`]);
});

test("a failed install says why and leaves no half-built engine", needsPython, async () => {
  const root = samplePackage();
  writeFileSync(join(root, "backend.py"), "raise RuntimeError('no such thing')");
  const how = options(root);
  await assert.rejects(provision(how), /could not be installed/);
  assert.match(how.logged.join("\n"), /no such thing/);
  assert.deepEqual(readdirSync(join(how.stateDir, "engines")), [`${await engineKey(root)}.failed`]);
});

test(
  "an aborted build leaves nothing behind and does not count as a failure",
  needsPython,
  async () => {
    const how = options(samplePackage());
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 300);
    await assert.rejects(provision({ ...how, signal: controller.signal }));
    assert.deepEqual(readdirSync(join(how.stateDir, "engines")), []);
  },
);

test("the engine's key changes with its sources and nothing else", async () => {
  const root = samplePackage();
  const key = await engineKey(root);
  assert.match(key, /^1\.2\.3-[0-9a-f]{12}$/);
  writeFileSync(join(root, "README.md"), "new");
  mkdirSync(join(root, "python", "foredeck", "__pycache__"));
  writeFileSync(join(root, "python", "foredeck", "__pycache__", "x.cpython-312.pyc"), "x");
  assert.equal(await engineKey(root), key);
  const copy = join(folder, "copy");
  cpSync(root, copy, { recursive: true });
  assert.equal(await engineKey(copy), key);
  writeFileSync(join(root, "python", "foredeck", "new.py"), "");
  assert.notEqual(await engineKey(root), key);
});

test("one process holds a lock at a time, and a dead one holds none", async () => {
  const path = join(folder, "lock");
  const { signal } = new AbortController();
  const order: string[] = [];
  const work = (name: string) => async () => {
    order.push(`${name} in`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    order.push(`${name} out`);
  };
  await Promise.all([withLock(path, signal, work("a")), withLock(path, signal, work("b"))]);
  assert.deepEqual(order, ["a in", "a out", "b in", "b out"]);
  const dead = execFileSync(process.execPath, ["-p", "process.pid"]).toString().trim();
  writeFileSync(path, dead);
  assert.equal(await withLock(path, signal, async () => "taken"), "taken");
  assert.ok(!existsSync(path));
});

test("waiting for a lock can be given up", async () => {
  const path = join(folder, "lock");
  writeFileSync(path, String(process.pid));
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 50);
  await assert.rejects(withLock(path, controller.signal, async () => 1));
});

test("failures are remembered for a day", async () => {
  const target = join(folder, "1.0");
  assert.equal(await readFailure(target), null);
  rememberFailure(target, "offline");
  assert.equal(await readFailure(target), "offline");
  assert.equal(await readFailure(target, Date.now() + 25 * 3_600_000), null);
  assert.equal(await readFailure(target, Date.now() - 3_600_000), null, "the clock went back");
  rememberFailure(target, null);
  assert.equal(await readFailure(target), null);
});

test("the engine is looked for in the documented order", async () => {
  const root = samplePackage();
  assert.equal(await locateInstalled({}, root), null);
  const scripts = join(root, ".venv", process.platform === "win32" ? "Scripts" : "bin");
  const script = join(scripts, process.platform === "win32" ? "foredeck.exe" : "foredeck");
  mkdirSync(scripts, { recursive: true });
  writeFileSync(script, "");
  assert.deepEqual(await locateInstalled({}, root), { file: script, args: ["engine"] });
  const env = { FOREDECK_ENGINE: "own engine", FOREDECK_PYTHON: "/nonexistent/python" };
  assert.deepEqual(await locateInstalled(env, root), { file: "own", args: ["engine"] });
  const { FOREDECK_PYTHON } = env;
  await assert.rejects(locateInstalled({ FOREDECK_PYTHON }, root), /FOREDECK_PYTHON/);
});

test("FOREDECK_ENGINE is a command line or a JSON array", () => {
  const words = (text: string) => {
    const { file, args } = parseCommand(text);
    return [file, ...args];
  };
  assert.deepEqual(words('["a b", "", "c\\"d"]'), ["a b", "", 'c"d']);
  assert.deepEqual(words(`uv run "my engine" 'x y'z --flag=""`), [
    "uv",
    "run",
    "my engine",
    "x yz",
    "--flag=",
  ]);
  for (const bad of ["[", "[1]", "[]", " "]) assert.throws(() => parseCommand(bad), bad);
});

test("the advice names this system's own installer", () => {
  assert.match(pythonAdvice("linux", 'ID=ubuntu\nID_LIKE="debian"'), /sudo apt install python3/);
  assert.match(pythonAdvice("linux", "ID=fedora"), /sudo dnf install/);
  assert.match(pythonAdvice("linux", "ID=nixos"), /astral\.sh\/uv/);
  assert.match(pythonAdvice("darwin"), /brew install/);
  assert.match(pythonAdvice("win32"), /winget install/);
});

test("the state folder is the platform's own, unless it is named", () => {
  assert.equal(stateDir({ FOREDECK_HOME: "/x" }, "linux", "/h"), "/x");
  assert.equal(stateDir({ FOREDECK_HOME: "~/x" }, "linux", "/h"), "/h/x");
  assert.equal(stateDir({ FOREDECK_HOME: "x" }, "linux", "/h"), resolve("x"));
  assert.equal(stateDir({}, "linux", "/h"), join("/h", ".local", "state", "foredeck"));
  assert.equal(stateDir({ XDG_STATE_HOME: "/s" }, "linux", "/h"), join("/s", "foredeck"));
  assert.equal(stateDir({ XDG_STATE_HOME: "/s" }, "darwin", "/h"), join("/s", "foredeck"));
  assert.equal(stateDir({ XDG_STATE_HOME: "s" }, "linux", "/h"), stateDir({}, "linux", "/h"));
  const mac = join("/h", "Library", "Application Support", "foredeck");
  assert.equal(stateDir({}, "darwin", "/h"), mac);
  assert.equal(stateDir({ LOCALAPPDATA: "C:\\L" }, "win32", "/h"), join("C:\\L", "foredeck"));
});
