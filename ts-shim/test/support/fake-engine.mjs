/**
 * A tiny engine that speaks docs/protocol.md, and misbehaves on demand.
 *
 * argv[2]: JSON {mode, log}. Every request and notification is appended to the file `log`. Modes:
 *   good      puts "@<index>" before every tool result
 *   hang      never answers context/assemble
 *   hang-once does not answer the first context/assemble of each process
 *   late      answers the first context/assemble when it is asked for the second
 *   crash     exits when a process is asked to assemble for the second time
 *   crash-twice exits at the second and third request to assemble of all processes
 *   crash-at-start, hang-at-start, refuse-start
 *   rubbish   talks nonsense before every answer
 *   bad       gives answers that do not fit the list
 *   forgetful says "out of sync" to every keep above 0
 *   unknown   knows no session until it was opened twice
 *   hasty     lets a tool wait no longer than it does by default
 *   no-guard  does not want to be asked about tools
 *   stubborn  ignores shutdown, the end of stdin and SIGTERM
 *   no-history refuses session/history
 *   slow-open takes a second to open a session, and reads nothing meanwhile
 *   reverse   asks host/complete and notifies while idle
 */
import { appendFileSync, readFileSync } from "node:fs";

const { mode, log } = JSON.parse(process.argv[2]);
const state = { assembled: 0, opened: 0, list: [], calls: 0 };

if (mode === "crash-at-start") process.exit(3);
if (mode === "stubborn") process.on("SIGTERM", () => {});

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
/** Stops this process, as an engine that reads a long session. */
const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const note = (message) => appendFileSync(log, `${JSON.stringify({ pid: process.pid, ...message })}\n`);

/** How often all processes together were asked to assemble. */
const asked = () => readFileSync(log, "utf8").split('"context/assemble"').length - 1;

function assemble(params) {
  state.list = [...state.list.slice(0, params.keep), ...params.messages];
  const ops = state.list.slice(params.keep).map(({ role }, n) => {
    if (role !== "toolResult") return ["keep", 1];
    return ["rewrite", [{ type: "text", text: `@${params.keep + n}` }, { keep: 0 }]];
  });
  state.calls += 1;
  const status = { text: `fd ${state.calls}` };
  return { call: state.calls, from: params.keep, ops, status, notices: [] };
}

function answerAssemble(id, params) {
  state.assembled += 1;
  if (mode === "hang" || (mode === "hang-once" && state.assembled === 1)) return;
  if (mode === "crash" && state.assembled > 1) process.exit(9);
  if (mode === "crash-twice" && [2, 3].includes(asked())) process.exit(9);
  if (mode === "forgetful" && params.keep > 0) {
    send({ id, error: { code: -32010, message: "out of sync" } });
    return;
  }
  if (mode === "unknown" && state.opened < 2) {
    send({ id, error: { code: -32011, message: "no such session" } });
    return;
  }
  if (mode === "rubbish") process.stdout.write('Warning: {"jsonrpc": nonsense\n\n\u0000\n[1,2]\n');
  const result = assemble(params);
  if (mode === "bad") result.ops.push(["rewrite", [{ keep: 0 }]]);
  if (mode === "late" && state.assembled === 1) {
    state.late = { id, result };
    return;
  }
  if (state.late) send(state.late);
  state.late = null;
  send({ id, result });
}

function answer({ id, method, params }) {
  switch (method) {
    case "initialize":
      if (mode === "hang-at-start") return;
      if (mode === "refuse-start") {
        send({ id, error: { code: -32002, message: "config.toml: unknown key \"stor\"" } });
        return;
      }
      send({
        id,
        result: {
          protocol: 2,
          engine: "0.0.1",
          store: "none",
          deadline_ms: 2000,
          prepare_ms: { "no-guard": 0, hasty: 50 }[mode] ?? 20_000,
          warnings: mode === "good" ? ["a warning"] : [],
        },
      });
      if (mode === "reverse") {
        send({ id: "e1", method: "host/complete", params: { system: "be brief", messages: [{ role: "user", content: "sum up" }], max_tokens: 50 } });
        send({ id: "e2", method: "host/unheard-of", params: {} });
        send({ method: "host/notify", params: { level: "warning", text: "from the engine" } });
        send({ method: "host/work", params: { text: "fd reverse" } });
      }
      return;
    case "session/open":
      state.opened += 1;
      if (mode === "slow-open") pause(1000);
      send({ id, result: { session: params.session, calls: 0, objects: 0, resumed: false } });
      return;
    case "session/history":
      if (mode === "no-history") {
        send({ id, error: { code: -32603, message: "internal error" } });
        return;
      }
      // As the real one: the newest answer is for the first call to take in.
      state.list = params.messages.slice(0, -1);
      send({ id, result: { messages: state.list.length } });
      return;
    case "context/assemble":
      answerAssemble(id, params);
      return;
    case "session/compact":
      send({ id, result: params.instructions ? JSON.parse(params.instructions) : {} });
      return;
    case "tool/call":
      if (params.input.id === "@404") {
        send({ id, error: { code: -32020, message: "there is no @404; nearest: @40" } });
      } else {
        send({ id, result: { text: `did ${params.tool}`, details: { foredeck: { object: "x" } } } });
      }
      return;
    case "tool/prepare":
      if (params.input.wait) return;
      if (params.input.fail) send({ id, error: { code: -32603, message: "no" } });
      else send({ id, result: params.input.verdict ?? {} });
      return;
    case "context/refused":
      if (params.message === "fail") send({ id, error: { code: -32603, message: "no" } });
      else send({ id, result: params.message === "nonsense" ? [] : { again: params.message === "again" } });
      return;
    case "command":
      if (params.name === "complete")
        return send({ id, result: { text: "", choices: [[`${params.args} x`, "an x"]] } });
      if (params.args === "wait") return;
      send({ id, result: { text: `command ${params.name} ${params.args}` } });
      return;
    case "shutdown":
      if (mode === "stubborn") return;
      send({ id, result: {} });
      process.exit(0);
      return;
    default:
      if (id !== undefined) send({ id, result: {} });
  }
}

let rest = Buffer.alloc(0);
process.stdin.on("data", (chunk) => {
  rest = Buffer.concat([rest, chunk]);
  for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
    const message = JSON.parse(rest.subarray(0, end).toString("utf8"));
    rest = rest.subarray(end + 1);
    note(message);
    answer(message);
  }
});
process.stdin.on("end", () => {
  if (mode !== "stubborn") process.exit(0);
});
if (mode === "stubborn") setInterval(() => {}, 1000);
