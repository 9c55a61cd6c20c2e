// A server for the Model Context Protocol with one tool, `numbers`: lines that count up to `to`.

import { createInterface } from "node:readline";

const send = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "counter", version: "1.0.0" },
  }),
  "tools/list": () => ({
    tools: [
      {
        name: "numbers",
        description: "Counts.",
        inputSchema: { type: "object", properties: { to: { type: "number" } } },
      },
    ],
  }),
  "tools/call": ({ arguments: { to } }) => ({
    content: [{ type: "text", text: Array.from({ length: to }, (_, n) => `number ${n}`).join("\n") }],
  }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) send({ id, result: answers[method]?.(params) ?? {} });
});
