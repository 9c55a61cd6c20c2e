import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openInspector } from "../command.ts";
import { Host } from "../host.ts";
import { until } from "./support/harness.ts";

test("commands in notices are as they can be typed", () => {
  const host = new Host();
  host.command = "~/bin/foredeck";
  assert.equal(
    host.worded(
      "Run `foredeck doctor`; foredeck is off. `foredeck cost 0199` says (/foredeck cost).",
    ),
    "Run `~/bin/foredeck doctor`; foredeck is off. `~/bin/foredeck cost 0199` says (/foredeck cost).",
  );
});

// The process of the pages keeps none alive.
const hold = setInterval(() => {}, 1000);
after(() => clearInterval(hold));

test("the pages are opened once, and clean up when Pi ends", {
  skip: process.platform === "win32",
}, async () => {
  await assert.rejects(openInspector(undefined), /not running/);
  const failing = { file: "/bin/sh", args: ["-c", "echo nothing is stored >&2; exit 1", "engine"] };
  await assert.rejects(openInspector(failing), /nothing is stored/);
  const folder = mkdtempSync(join(tmpdir(), "foredeck-line-"));
  const file = join(folder, "foredeck");
  const page = join(folder, "page");
  const lines = [
    ...["#!/bin/sh", `trap 'rm "${page}"; exit' TERM`, `touch "${page}"`],
    ...["echo http://127.0.0.1:1/?token=x", "sleep 30 & wait", ""],
  ];
  writeFileSync(file, lines.join("\n"));
  chmodSync(file, 0o755);
  const address = "http://127.0.0.1:1/?token=x";
  const engine = { file, args: ["engine"] };
  assert.deepEqual([await openInspector(engine), await openInspector(engine)], [address, address]);
  assert.ok(existsSync(page));
  // What runs when Pi ends was registered last.
  (process.listeners("exit").at(-1) as () => void)();
  await until(() => !existsSync(page), "the page is removed");
  rmSync(folder, { recursive: true });
});
