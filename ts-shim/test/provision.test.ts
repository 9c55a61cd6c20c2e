import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, afterEach, beforeEach, test } from "node:test";
import {
  engineKey,
  engineWith,
  locateInstalled,
  PACKAGE_ROOT,
  ProvisionError,
  provision,
  pythonAdvice,
  runners,
} from "../engine/locate.ts";
import { run } from "../engine/process.ts";
import { stateDir } from "../files.ts";
import { removeFolder } from "./support/processes.ts";

const { HOME = "" } = process.env;
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
  process.env.HOME = HOME;
  await removeFolder(folder);
});

/** A package like this one that needs nothing: its set-up fetches nothing. */
function samplePackage(): string {
  const root = join(folder, "package");
  mkdirSync(join(root, "python", "foredeck", "cli"), { recursive: true });
  mkdirSync(join(root, "wheels"));
  mkdirSync(join(root, "ts-shim"));
  writeFileSync(join(root, "ts-shim", "tools.json"), "[]");
  cpSync(join(PACKAGE_ROOT, "python", "setup_engine.py"), join(root, "python", "setup_engine.py"));
  writeFileSync(join(root, "package.json"), '{"version": "1.2.3"}');
  writeFileSync(join(root, "requirements.lock"), "");
  writeFileSync(
    join(root, "pyproject.toml"),
    '[project]\nname = "foredeck"\nversion = "1.2.3"\nrequires-python = ">=3.11"\n' +
      '[project.scripts]\nforedeck = "foredeck.cli.main:main"\n' +
      '[tool.hatch.build.targets.wheel]\npackages = ["python/foredeck"]\n',
  );
  for (const path of ["__init__.py", "cli/__init__.py"]) {
    writeFileSync(join(root, "python", "foredeck", path), "");
  }
  const main = join(root, "python", "foredeck", "cli", "main.py");
  writeFileSync(main, "import sys\n\ndef main():\n    print('engine', *sys.argv[1:])\n");
  return root;
}

function options(root: string) {
  const logged: string[] = [];
  const progress: string[] = [];
  return {
    logged,
    progress,
    root,
    state: join(folder, "state"),
    signal: new AbortController().signal,
    insist: false,
    failedBefore: false,
    log: (text: string) => void logged.push(text),
    onSetUp: (text: string): void => void progress.push(text),
  };
}

const setUp = (how: ReturnType<typeof options>) => provision(how, how, how.root);

const python = ["python3", "python3.13", "python3.12", "python3.11"].find((name) => {
  try {
    const code = "import sys, ensurepip; sys.exit(sys.version_info < (3, 11))";
    execFileSync(name, ["-c", code], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
});
const needsPython = { skip: python ? false : "no Python >= 3.11 on this machine" };

test(
  "sets the engine up, finds it from then on, and again where it no longer starts",
  needsPython,
  async () => {
    const how = options(samplePackage());
    const command = await setUp(how);
    const { code, output } = await run(command.file, [...command.args, "x"]);
    assert.deepEqual([code, output.trim()], [0, "engine engine x"]);
    assert.ok(how.progress.includes("starting it for the first time"), how.progress.join());
    how.progress.length = 0;
    assert.deepEqual(await setUp(how), command);
    assert.deepEqual(await setUp({ ...how, failedBefore: true }), command);
    assert.deepEqual(how.progress, [], "a second set-up");
    await removeFolder(join(command.file, "..", "..", "lib"));
    assert.deepEqual(await setUp({ ...how, failedBefore: true }), command);
    assert.notDeepEqual(how.progress, []);
    if (process.platform !== "win32") {
      const typed = join(how.state, "bin", "foredeck");
      assert.equal(execFileSync(typed, ["x"], { encoding: "utf8" }), "engine x\n");
    }
  },
);

test("a module in the working folder cannot take foredeck's place", needsPython, async () => {
  mkdirSync(join(folder, "foredeck", "cli"), { recursive: true });
  writeFileSync(join(folder, "foredeck", "__init__.py"), "");
  writeFileSync(join(folder, "foredeck", "cli", "main.py"), "");
  const bare = join(folder, "bare");
  execFileSync(python as string, ["-m", "venv", "--without-pip", bare]);
  const inside = join(bare, process.platform === "win32" ? "Scripts/python.exe" : "bin/python");
  const { file, args } = engineWith(inside);
  const { output } = await run(file, args, { cwd: folder });
  assert.match(output, /No module named/);
});

test("without Python the user gets a command to type; the failure is remembered unless they insist", async () => {
  process.env.PATH = join(folder, "empty");
  process.env.HOME = folder;
  const how = options(samplePackage());
  await assert.rejects(setUp(how), (error: unknown) => {
    assert.ok(error instanceof ProvisionError && !error.known);
    return error.message === pythonAdvice(false);
  });
  await assert.rejects(setUp(how), (error) => error instanceof ProvisionError && error.known);
  await assert.rejects(setUp({ ...how, insist: true }), (error) => {
    return error instanceof ProvisionError && !error.known;
  });
  const marker = join(how.state, "engines", `${await engineKey(how.root)}.failed`);
  const { text } = JSON.parse(readFileSync(marker, "utf8"));
  writeFileSync(marker, JSON.stringify({ time: Date.now() - 25 * 3_600_000, text }));
  await assert.rejects(setUp(how), (error) => error instanceof ProvisionError && !error.known);
});

test("what fails is said and logged", needsPython, async () => {
  const root = samplePackage();
  writeFileSync(join(root, "requirements.lock"), `missing==1.0 --hash=sha256:${"0".repeat(64)}\n`);
  const how = options(root);
  await assert.rejects(setUp(how), /its packages cannot be fetched.*\/foredeck setup/);
  assert.match(how.logged.join("\n"), /missing==1\.0/);
});

test(
  "an aborted set-up leaves no engine, and does not count as a failure",
  needsPython,
  async () => {
    const how = options(samplePackage());
    const controller = new AbortController();
    const onSetUp = () => controller.abort();
    await assert.rejects(setUp({ ...how, onSetUp, signal: controller.signal }), /interrupted/);
    const target = join(how.state, "engines", await engineKey(how.root));
    assert.deepEqual(
      [existsSync(join(target, "engine.json")), existsSync(`${target}.failed`)],
      [false, false],
    );
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
  for (const path of ["python/foredeck/new.py", "ts-shim/tools.json"]) {
    const before = await engineKey(root);
    writeFileSync(join(root, path), " ");
    assert.notEqual(await engineKey(root), before, path);
  }
});

test("the engine is looked for in the documented order", async () => {
  const root = samplePackage();
  assert.equal(locateInstalled({}, root), null);
  const scripts = join(root, ".venv", process.platform === "win32" ? "Scripts" : "bin");
  const script = join(scripts, process.platform === "win32" ? "foredeck.exe" : "foredeck");
  mkdirSync(scripts, { recursive: true });
  writeFileSync(script, "");
  assert.deepEqual(locateInstalled({}, root), { file: script, args: ["engine"] });
  const env = { FOREDECK_ENGINE: "own engine", FOREDECK_PYTHON: "/nonexistent/python" };
  assert.deepEqual(locateInstalled(env, root), { file: "own", args: ["engine"] });
  env.FOREDECK_ENGINE = '["my own", "--engine"]';
  assert.deepEqual(locateInstalled(env, root), { file: "my own", args: ["--engine"] });
  const { FOREDECK_PYTHON } = env;
  assert.equal(locateInstalled({ FOREDECK_PYTHON }, root)?.file, FOREDECK_PYTHON);
});

test("what each system runs, and what it is told where nothing runs", () => {
  const words = (platform: NodeJS.Platform) =>
    runners(platform, "/h").map(([file, first]) => [file, first]);
  assert.deepEqual(words("win32"), [
    ["uv", "run"],
    [join("/h", ".local", "bin", "uv.exe"), "run"],
    ["py", "-3"],
    ["python", undefined],
  ]);
  assert.deepEqual(words("darwin").slice(0, 3), [
    ["uv", "run"],
    [join("/h", ".local", "bin", "uv"), "run"],
    ["python3", undefined],
  ]);
  assert.match(pythonAdvice(false, "linux"), /run `curl .*astral.*`, then type \/foredeck setup/);
  assert.match(pythonAdvice(false, "win32"), /run `winget install [^`]*uv[^`]*`/);
  assert.match(pythonAdvice(true, "darwin"), /run `uv python install/);
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
