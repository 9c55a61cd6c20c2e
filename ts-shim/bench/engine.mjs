/** An engine that does as little as the protocol allows, and says how long that took it. */

import { lineSplitter } from "../engine/wire.ts";

let began = 0n;
let calls = 0;

function answer({ id, method, params }) {
  let result = {};
  if (method === "initialize") {
    result = { protocol: 2, engine: "bench", store: "none", deadline_ms: 10_000, warnings: [] };
  } else if (method === "context/assemble") {

    const ops = params.messages.map(({ role }, i) => {
      if (role !== "toolResult") return ["keep", 1];
      return ["rewrite", [{ type: "text", text: `@${params.keep + i}` }, { keep: 0 }]];
    });
    const spent = Number(process.hrtime.bigint() - began) / 1e6;
    const status = { text: String(spent) };
    result = { call: ++calls, from: params.keep, ops, status, notices: [] };
  }
  if (id !== undefined) process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  if (method === "shutdown") process.exit(0);
}

const takeIn = lineSplitter((line) => answer(JSON.parse(line)), 64 * 1024 * 1024);
process.stdin.on("data", (chunk) => {
  began = process.hrtime.bigint();
  takeIn(chunk);
});
process.stdin.on("end", () => process.exit(0));
