/** The inspector, opened from Pi: its pages are served by a process that ends with Pi. */

import { type ChildProcess, spawn } from "node:child_process";
import { lineSplitter } from "./engine/lines.ts";
import type { EngineCommand } from "./engine/process.ts";
import { unref } from "./engine/run.ts";

let pages: { child: ChildProcess; address: string } | null = null;

/** Opens the inspector in the browser, once. Gives its address. */
export async function openInspector(engine: EngineCommand | null): Promise<string> {
  if (engine === null) throw new Error("foredeck's engine is not running: type /foredeck setup.");
  if (pages && pages.child.exitCode === null) return pages.address;
  const child = spawn(engine.file, [...engine.args.slice(0, -1), "ui"], {
    env: { ...process.env, ...engine.env },
    stdio: ["ignore", "pipe", "pipe"],
    windowsHide: true,
  });
  process.once("exit", () => child.kill());
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString("utf8")).slice(-2000);
  });
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout?.on("data", lineSplitter(resolve, 10_000));
    child.once("error", reject);
    child.once("close", () => reject(new Error(said.trim() || "`foredeck ui` ended at once")));
  });
  unref(child);
  pages = { child, address };
  return address;
}
