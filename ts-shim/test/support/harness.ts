/** A shim with a real engine process (fake-engine.mjs) and as little of Pi as it touches. */

import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mock } from "node:test";
import { fileURLToPath } from "node:url";
import type { HostMessage } from "../../context/messages.ts";
import { Shim } from "../../shim.ts";
import { removeFolder } from "./processes.ts";

const SCRIPT = fileURLToPath(new URL("./fake-engine.mjs", import.meta.url));

/** A deadline that an engine on a busy machine can meet. */
export const PATIENT_MS = "20000";

export type Logged = { method?: string; params: Record<string, unknown>; pid: number } & Record<
  string,
  unknown
>;

export class Harness {
  readonly folder = mkdtempSync(join(tmpdir(), "foredeck-shim-"));
  readonly notices: string[] = [];
  /** The level of each of these. */
  readonly levels: string[] = [];
  readonly widgets: (string[] | undefined)[] = [];
  readonly statuses: (string | undefined)[] = [];
  /** What Pi makes of the session's file. */
  readonly projected: HostMessage[] = [];
  readonly shim: Shim;
  readonly ctx: never;
  private abort = new AbortController();
  /** Nothing in the shim keeps a process alive, so the test has to. */
  private readonly hold = setInterval(() => {}, 1000);

  constructor(mode: string, env: Record<string, string> = {}) {
    const argument = JSON.stringify({ mode, log: this.log });
    Object.assign(process.env, {
      FOREDECK_HOME: this.folder,
      FOREDECK_ENGINE: JSON.stringify([process.execPath, SCRIPT, argument]),
      FOREDECK_DEADLINE_MS: PATIENT_MS,
      ...env,
    });
    const pi = {
      getActiveTools: () => ["read"],
      getAllTools: () => [
        { name: "read", description: "reads", parameters: { type: "object" }, sourceInfo: {} },
        { name: "grep", description: "inactive", parameters: { type: "object" } },
      ],
    };
    this.shim = new Shim(pi as never);
    this.ctx = this.context() as never;
  }

  get log(): string {
    return join(this.folder, "requests.jsonl");
  }

  /** Opens a session as Pi's session_start does. */
  begin(session = "s1"): void {
    const params = { session, file: null, cwd: this.folder, reason: "startup", parent: null };
    this.shim.begin(params, this.ctx);
  }

  /** One model call: the list that would go out. */
  async call(list: HostMessage[]): Promise<HostMessage[]> {
    const copy = structuredClone(list);
    return this.shim.context.run(copy, this.ctx);
  }

  /** Presses Esc. */
  interrupt(): void {
    this.abort.abort();
    this.abort = new AbortController();
  }

  /** What the engine was sent, in order. */
  requests(method?: string): Logged[] {
    let text = "";
    try {
      text = readFileSync(this.log, "utf8");
    } catch {
      return [];
    }
    // The engine may be writing: what follows the last line break is not a whole line yet.
    const lines = text.split("\n").slice(0, -1);
    const all: Logged[] = lines.map((line) => JSON.parse(line));
    return method ? all.filter((message) => message.method === method) : all;
  }

  async close(): Promise<void> {
    mock.timers.reset();
    try {
      await this.shim.end("quit");
    } finally {
      clearInterval(this.hold);
      const engines = this.requests().map(({ pid }) => pid);
      await removeFolder(this.folder, engines);
    }
  }

  private context() {
    const harness = this;
    return {
      hasUI: true,
      ui: {
        notify: (text: string, level: string) => {
          this.notices.push(text);
          this.levels.push(level);
        },
        setWidget: (_key: string, lines: string[] | undefined) => this.widgets.push(lines),
        setStatus: (_key: string, text: string | undefined) => this.statuses.push(text),
      },
      cwd: this.folder,
      model: { provider: "p", id: "m", api: "x", contextWindow: 1000, cost: { input: 1 } },
      modelRegistry: {
        hasConfiguredAuth: () => true,
        streamSimple: () => ({
          result: async () => ({
            stopReason: "stop",
            content: [{ type: "text", text: "answer" }],
            usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, cost: { total: 5 } },
            provider: "p",
            model: "m",
          }),
        }),
      },
      sessionManager: {
        getSessionId: () => "s1",
        buildSessionProjection: () => ({ messages: harness.projected }),
      },
      getSystemPrompt: () => "prompt",
      isProjectTrusted: () => true,
      get signal() {
        return harness.abort.signal;
      },
    };
  }
}

/** The machine's own clock, whatever a test has put in its place. */
const { setTimeout: later } = globalThis;

/**
 * Stops the clock by which the shim waits, until the harness is closed: what takes seconds passes
 * when a test says so.
 */
export function stopClock(): void {
  mock.timers.enable({ apis: ["setTimeout"] });
}

/** Lets so many milliseconds pass at once. */
export function passTime(milliseconds: number): void {
  mock.timers.tick(milliseconds);
}

/** Waits until something holds; fails after a while. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  for (let i = 0; i < 6000; i++) {
    if (condition()) return;
    await new Promise((resolve) => later(resolve, 10));
  }
  throw new Error(`never: ${what}`);
}
