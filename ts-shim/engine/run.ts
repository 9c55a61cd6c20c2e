/** Runs a short command to completion, without a shell and without keeping Pi alive. */

import { type ChildProcess, spawn } from "node:child_process";
import { lineSplitter } from "./wire.ts";

interface RunResult {
  /** Exit code; null where the command could not be started, was ended or took too long. */
  code: number | null;
  /** Both outputs together, the last 64 KB. */
  output: string;
}

export interface RunOptions {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  env?: Record<string, string> | undefined;
  /** Working folder; that of Pi by default. */
  cwd?: string;
  /** Called with each line of its standard output. */
  onLine?(line: string): void;
}

const OUTPUT_LIMIT = 64 * 1024;

/** Runs `file args...`. Never rejects. */
export function run(file: string, args: string[], options: RunOptions): Promise<RunResult> {
  return new Promise((resolve) => {
    let output = "";
    const done = (code: number | null) => {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", end);
      resolve({ code, output });
    };
    const child = start(file, args, options);
    const end = () => killTree(child);
    const timer = setTimeout(end, options.timeoutMs);
    if (options.signal?.aborted) end();
    options.signal?.addEventListener("abort", end, { once: true });
    const onLine = (text: string) => options.onLine?.(text);
    child.stdout?.on("data", lineSplitter(onLine, OUTPUT_LIMIT));
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        output = (output + chunk.toString("utf8")).slice(-OUTPUT_LIMIT);
      });
      stream?.on("error", () => {});
    }
    unref(child);
    timer.unref();
    child.once("error", (error) => {
      output += error.message;
      done(null);
    });
    child.once("close", (code) => done(code));
  });
}

/** Lets Pi end while a process runs: neither that nor its pipes keep it alive. */
export function unref(child: ChildProcess): void {
  child.unref();
  for (const stream of child.stdio) (stream as { unref?: () => void } | null)?.unref?.();
}

function start(file: string, args: string[], options: RunOptions): ChildProcess {
  return spawn(file, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    windowsHide: true,
    // A process group of its own, so that killing an installer also kills what it started.
    detached: process.platform !== "win32",
  });
}

function killTree(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (process.platform === "win32") {
    // There are no process groups.
    const args = ["/pid", String(child.pid), "/t", "/f"];
    spawn("taskkill", args, { stdio: "ignore", windowsHide: true }).on("error", () => {});
    return;
  }
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
