import assert from "node:assert/strict";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CommandLine } from "../command-line.ts";

/** A home folder in which Pi has set the engine up. */
function home(name = "foredeck") {
  const folder = mkdtempSync(join(tmpdir(), "foredeck-line-"));
  const bin = join(folder, "state", "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, name), "#!/bin/sh\necho http://127.0.0.1:1/?token=x\nexec sleep 30\n");
  chmodSync(join(bin, name), 0o755);
  const env = { FOREDECK_HOME: join(folder, "state"), PATH: join(folder, ".local", "bin") };
  return { folder, bin, env };
}

test("commands in notices are as they can be typed, and short once one is on the PATH", () => {
  const { folder, env } = home();
  const line = new CommandLine("linux", folder, env, folder);
  const typed = "~/state/bin/foredeck";
  assert.equal(
    line.typed(
      "Run `foredeck doctor`; foredeck is off. `foredeck cost 0199` says more (/foredeck cost).",
    ),
    `Run \`${typed} doctor\`; foredeck is off. \`${typed} cost 0199\` says more (/foredeck cost).`,
  );
  const put = join(folder, ".local", "bin", "foredeck");
  assert.equal(line.putOnPath(), `${put} runs foredeck's command line.`);
  assert.equal(realpathSync(put), realpathSync(join(env.FOREDECK_HOME, "bin", "foredeck")));
  assert.equal(line.typed("`foredeck cost 0199`"), "`foredeck cost 0199`");
  assert.equal(line.putOnPath(), `${put} runs foredeck's command line.`);
});

test("what is not foredeck's is never replaced, and a folder that is not on the PATH is named", () => {
  const { folder, env } = home();
  const line = new CommandLine("linux", folder, { ...env, PATH: "" }, folder);
  assert.match(line.putOnPath(), /Add .*bin to your PATH/);
  const other = home();
  mkdirSync(other.env.PATH, { recursive: true });
  writeFileSync(join(other.env.PATH, "foredeck"), "theirs");
  const second = new CommandLine("linux", other.folder, other.env, other.folder);
  assert.throws(() => second.putOnPath(), /is there already/);
  assert.equal(readFileSync(join(other.env.PATH, "foredeck"), "utf8"), "theirs");
  const empty = new CommandLine("linux", folder, { FOREDECK_HOME: join(folder, "no") }, folder);
  assert.throws(() => empty.putOnPath(), /\/foredeck setup first/);
});

test("on Windows it is a copy in a folder that is on the PATH there", () => {
  const { folder, env } = home("foredeck.cmd");
  const local = join(folder, "Local");
  const line = new CommandLine("win32", folder, { ...env, LOCALAPPDATA: local }, folder);
  const put = join(local, "Microsoft", "WindowsApps", "foredeck.cmd");
  assert.ok(line.putOnPath().startsWith(put));
  assert.match(readFileSync(put, "utf8"), /echo/);
});

test("the pages are opened once", { skip: process.platform === "win32" }, async () => {
  const { folder, bin, env } = home();
  const line = new CommandLine("linux", folder, env, folder);
  const engine = { file: join(bin, "foredeck"), args: ["engine"] };
  const address = "http://127.0.0.1:1/?token=x";
  assert.deepEqual([await line.open(engine), await line.open(engine)], [address, address]);
  await assert.rejects(line.open(null), /not running/);
  const failing = { file: "/bin/sh", args: ["-c", "echo nothing is stored >&2; exit 1", "engine"] };
  await assert.rejects(new CommandLine().open(failing), /nothing is stored/);
});
