/** Child processes, none of which keeps Pi alive: the engine with its peer, and other commands. */

import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import type { Writable } from "node:stream";
import { openLog } from "../files.ts";
import type { Shim } from "../shim.ts";
import { GoneError, lineSplitter, Peer, within } from "./wire.ts";

export interface EngineCommand {
  file: string;
  args: string[];
}

/** Bytes that may wait for an engine that does not read, before it counts as gone. */
const MAX_UNREAD_BYTES = 128 * 1024 * 1024;
/** Milliseconds that the engine gets to end by itself, and then after a signal. */
export const GRACE_MS = 2000;
const SIGNAL_MS = 500;

/** A running engine. `peer` is closed as soon as the process is gone. */
export class EngineProcess {
  readonly peer: Peer;
  readonly command: EngineCommand;
  readonly child: ChildProcess;
  private readonly exited: Promise<void>;
  private exitReason: string | null = null;

  /** @param onExit called once, when the process has ended, or (`started` false) did not start */
  constructor(
    command: EngineCommand,
    host: Shim,
    onExit: (reason: string, started: boolean) => void,
  ) {
    this.command = command;
    this.child = start(command, host);
    this.peer = new Peer(host, (line) => this.write(line));
    this.exited = new Promise((resolve) => {
      const ended = (reason: string) => {
        if (this.exitReason !== null) return;
        this.exitReason = reason;
        this.peer.close(new GoneError(reason));
        resolve();
        onExit(reason, this.child.pid !== undefined);
      };
      this.child.once("error", (error) =>
        ended(`the engine could not be started: ${error.message}`),
      );
      this.child.once("exit", (code, signal) => ended(`the engine ended (${signal ?? code})`));
    });
    this.child.stdout?.on("data", (chunk: Buffer) => this.peer.receive(chunk));
    // A broken pipe says only that the process is gone, which "exit" reports.
    for (const stream of [this.child.stdin, this.child.stdout]) stream?.on("error", () => {});
    unref(this.child);
  }

  /** Asks the engine to end, and makes it. Never rejects. */
  async stop(): Promise<void> {
    if (this.exitReason !== null) return;
    this.peer.request("shutdown", {}, { deadlineMs: GRACE_MS }).catch(() => {});
    // Says the same to an engine that is busy with something else.
    this.child.stdin?.end();
    if (await this.endsWithin(GRACE_MS)) return;
    this.child.kill("SIGTERM");
    if (await this.endsWithin(SIGNAL_MS)) return;
    this.kill();
    await this.endsWithin(SIGNAL_MS);
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }

  private write(line: Buffer): void {
    const stdin = this.child.stdin as Writable;
    if (this.exitReason !== null || !stdin.writable) throw new GoneError("the engine is gone");
    if (stdin.writableLength > MAX_UNREAD_BYTES) {
      this.kill();
      throw new GoneError("the engine has stopped reading");
    }
    stdin.write(line);
  }

  /** Keeps Pi alive while it waits: the process itself does not. */
  private endsWithin(deadlineMs: number): Promise<boolean> {
    const ended = this.exited.then(() => true);
    return within(ended, { deadlineMs }).catch(() => false);
  }
}

function start(command: EngineCommand, { cwd, state }: Shim): ChildProcess {
  const log = openLog(state);
  const stdio: StdioOptions = ["pipe", "pipe", log ?? "ignore"];
  const child = spawn(command.file, command.args, { cwd, stdio, windowsHide: true });
  if (log !== null) closeSync(log);
  return child;
}

interface RunOptions {
  /** Ends it before its time, with all that it has started. */
  signal?: AbortSignal;
  /** Working folder; that of Pi by default. */
  cwd?: string;
  /** Called with each line of its standard output. */
  onLine?(line: string): void;
}

/** Of both its outputs together only the end is kept. */
const OUTPUT_LIMIT = 64 * 1024;

/** Runs a command to its end. Never rejects: the code is null where it was not started, or ended. */
export function run(
  file: string,
  args: string[],
  { signal, cwd, onLine = () => {} }: RunOptions = {},
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    let output = "";
    const done = (code: number | null) => {
      signal?.removeEventListener("abort", end);
      resolve({ code, output });
    };
    const child = spawn(file, args, {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      windowsHide: true,
      // A process group of its own, so that killing an installer also kills what it started.
      detached: process.platform !== "win32",
    });
    const end = () => endTree(child);
    if (signal?.aborted) end();
    signal?.addEventListener("abort", end, { once: true });
    child.stdout.on("data", lineSplitter(onLine, OUTPUT_LIMIT));
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output = (output + chunk.toString("utf8")).slice(-OUTPUT_LIMIT);
      });
      stream.on("error", () => {});
    }
    unref(child);
    child.once("error", (error) => {
      output += error.message;
      done(null);
    });
    child.once("close", done);
  });
}

/** Lets Pi end while a process runs: neither that nor its pipes keep it alive. */
function unref(child: ChildProcess): void {
  child.unref();
  for (const stream of child.stdio) (stream as { unref?: () => void } | null)?.unref?.();
}

/** By a signal on which they can remove their own files. */
function endTree(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (process.platform === "win32") {
    // There are no process groups.
    const args = ["/pid", String(child.pid), "/t", "/f"];
    spawn("taskkill", args, { stdio: "ignore", windowsHide: true }).on("error", () => {});
    return;
  }
  try {
    process.kill(-child.pid, "SIGTERM");
  } catch {
    // It has ended by itself.
  }
}
