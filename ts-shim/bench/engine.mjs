/** An engine that does as little as the protocol allows, and says how long that took it. */

let rest = Buffer.alloc(0);
let calls = 0;
let count = 0;

function answer({ id, method, params }, began) {
  let result = {};
  if (method === "initialize") {
    result = { protocol: 2, engine: "bench", store: "none", deadline_ms: 10_000, warnings: [] };
  } else if (method === "context/assemble") {
    count = params.keep + params.messages.length;
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

process.stdin.on("data", (chunk) => {
  const began = process.hrtime.bigint();
  rest = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
  for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
    const line = rest.subarray(0, end).toString("utf8");
    rest = rest.subarray(end + 1);
    answer(JSON.parse(line), began);
  }
});
process.stdin.on("end", () => process.exit(count >= 0 ? 0 : 1));
