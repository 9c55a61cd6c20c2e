/**
 * What the context hook costs per model call, without the engine's own time.
 *
 *   node ts-shim/bench/roundtrip.ts [--json]
 *
 * A session of each size grows by one tool call at a time; the hook runs against a real child
 * process over real pipes, with Pi's own session manager. Pi copies the whole list for every hook,
 * even an empty one: that is not counted but printed beside it (`copy`), though collecting its garbage
 * is partly counted.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as module from "@earendil-works/pi-coding-agent";
import { registerContextHook } from "../context/hook.ts";
import { Shim } from "../shim.ts";

const SIZES: [string, number][] = [
  ["10 KB", 10_000],
  ["1 MB", 1_000_000],
  ["5 MB", 5_000_000],
];
const CALLS = 60;
/** Characters of one tool result, at most: 5 MB are then about 4,000 messages. */
const RESULT_CHARS = 2_400;

interface Row {
  size: string;
  messages: number;
  hook_ms: { median: number; p95: number; first: number };
  copy_ms: number;
  engine_ms: number;
}

async function measure(label: string, chars: number): Promise<Row> {
  let engineMs = 0;
  const session = module.SessionManager.inMemory(process.cwd());
  const ctx = {
    hasUI: true,
    ui: { notify() {}, setStatus: (_key: string, text: string) => (engineMs = Number(text)) },
    model: undefined,
    sessionManager: session,
    getSystemPrompt: () => "prompt",
    isProjectTrusted: () => false,
    signal: undefined,
  } as never;
  let hook: (event: object, ctx: object) => Promise<unknown> = async () => {};
  const on = (event: string, handler: typeof hook) => {
    if (event === "context_with_system") hook = handler;
  };
  const pi = {
    getActiveTools: () => [],
    getAllTools: () => [],
    getSettings: () => ({}),
    on,
  } as never;
  const shim = new Shim(pi);
  registerContextHook(pi, shim);
  const cwd = process.cwd();
  shim.begin({ session: "bench", file: null, cwd, reason: "startup", parent: null }, ctx);
  await shim.engine.whenReady();
  const each = Math.min(RESULT_CHARS, chars / 20);
  for (let size = 0; size < chars; size += each) addCall(session, each);
  const own: number[] = [];
  const copy: number[] = [];
  const engine: number[] = [];
  for (let i = 0; i <= CALLS; i++) {
    const projected = session.buildSessionProjection().messages;
    const copied = performance.now();
    const messages = structuredClone(projected);
    const began = performance.now();
    copy.push(began - copied);
    await hook({ messages }, ctx);
    own.push(performance.now() - began - engineMs);
    engine.push(engineMs);
    addCall(session, each);
  }
  await shim.end("quit");
  const [first = 0, ...rest] = own;
  return {
    size: label,
    messages: session.buildSessionProjection().messages.length,
    hook_ms: { median: quantile(rest, 0.5), p95: quantile(rest, 0.95), first },
    copy_ms: quantile(copy, 0.5),
    engine_ms: quantile(engine.slice(1), 0.5),
  };
}

let serial = 0;

function addCall(session: module.SessionManager, chars: number): void {
  const id = `call_${++serial}`;
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const usage = { input: 9, output: 9, cacheRead: 0, cacheWrite: 0, totalTokens: 18, cost };
  const command = `sed -n '${serial},+40p' src/module_${serial % 97}.ts`;
  session.appendMessage({
    role: "assistant",
    content: [
      { type: "text", text: "Let me look." },
      { type: "toolCall", id, name: "bash", arguments: { command } },
    ],
    ...{ api: "anthropic-messages", provider: "p", model: "m", usage, stopReason: "toolUse" },
    timestamp: serial,
  });
  session.appendMessage({
    ...{ role: "toolResult", toolCallId: id, toolName: "bash", isError: false, timestamp: serial },
    content: [{ type: "text", text: `${serial}: line of source text\n`.repeat(chars / 26) }],
  });
}

function quantile(values: number[], at: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? 0;
}

const folder = mkdtempSync(join(tmpdir(), "foredeck-bench-"));
process.env.FOREDECK_HOME = folder;
const script = fileURLToPath(new URL("./engine.mjs", import.meta.url));
process.env.FOREDECK_ENGINE = JSON.stringify([process.execPath, script]);
const hold = setInterval(() => {}, 1000);
const rows: Row[] = [];
for (const [label, chars] of SIZES) rows.push(await measure(label, chars));
clearInterval(hold);
rmSync(folder, { recursive: true, force: true });

if (process.argv.includes("--json")) {
  console.log(JSON.stringify(rows));
} else {
  for (const { size, messages, hook_ms: own, copy_ms: copy, engine_ms: engine } of rows) {
    console.log(
      `${size.padStart(6)}  ${String(messages).padStart(5)} messages  hook ${own.median.toFixed(2)} ms` +
        `  p95 ${own.p95.toFixed(2)}  first ${own.first.toFixed(1)}  (copy ${copy.toFixed(1)}, engine ${engine.toFixed(2)})`,
    );
  }
}
