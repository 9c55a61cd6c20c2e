import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AbortedError,
  DeadlineError,
  GoneError,
  Peer,
  type PeerHost,
  RpcError,
} from "../engine/wire.ts";
import { forSeeds } from "./support/random.ts";

const LONG = { deadlineMs: 10_000 };

/** A peer whose other end is this test. */
function peer(
  handlers: Partial<PeerHost> & { write?: (line: Buffer) => void } = {},
  limit?: number,
) {
  const sent: Record<string, unknown>[] = [];
  const logged: string[] = [];
  const write = (bytes: Buffer) => {
    const line = bytes.toString();
    assert.ok(line.endsWith("\n") && !line.slice(0, -1).includes("\n"));
    sent.push(JSON.parse(line));
  };
  const it = new Peer(
    {
      onRequest: async (method) => ({ method }),
      onNotification: () => {},
      log: (text) => logged.push(text),
      ...handlers,
    },
    handlers.write ?? write,
    limit,
  );
  const say = (message: unknown) => it.receive(Buffer.from(`${JSON.stringify(message)}\n`));
  return { peer: it, sent, logged, say };
}

test("answers in any order reach their requests", async () => {
  const { peer: it, sent, say } = peer();
  const first = it.request("a", {}, LONG);
  const second = it.request("b", {}, LONG);
  say({ jsonrpc: "2.0", id: sent[1]?.id, result: "B" });
  say({ jsonrpc: "2.0", id: sent[0]?.id, result: "A" });
  assert.deepEqual(await Promise.all([first, second]), ["A", "B"]);
});

test("an error answer carries its code and text", async () => {
  const { peer: it, sent, say } = peer();
  const request = it.request("a", {}, LONG);
  say({ jsonrpc: "2.0", id: sent[0]?.id, error: { code: -32010, message: "out of sync" } });
  await assert.rejects(request, (error: unknown) => {
    assert.ok(error instanceof RpcError);
    assert.equal(error.code, -32010);
    return error.message === "out of sync";
  });
});

test("U+2028, U+0085, lone surrogates and emoji survive being split at any byte", () => {
  const text = "a\u2028b\u2029c\u0085d\ud800e 😀 \r f";
  const line = Buffer.from(
    `${JSON.stringify({ jsonrpc: "2.0", method: "m", params: { text } })}\n`,
  );
  forSeeds(100, (random) => {
    const seen: unknown[] = [];
    const { peer: it } = peer({ onNotification: (_, params) => seen.push(params) });
    const stream = Buffer.concat([line, line, Buffer.from("\n\n"), line]);
    for (let at = 0; at < stream.length; ) {
      const size = 1 + random.below(random.chance(0.5) ? 4 : 200);
      it.receive(stream.subarray(at, at + size));
      at += size;
    }
    assert.deepEqual(seen, [{ text }, { text }, { text }]);
  });
});

test("garbage is logged, and the next good line works", async () => {
  const { peer: it, sent, logged, say } = peer();
  const request = it.request("a", {}, LONG);
  for (const rubbish of [
    "{",
    "Traceback (most recent call last):",
    "\u0000\u0001",
    "7",
    '"x"',
    "[]",
    "null",
  ]) {
    it.receive(Buffer.from(`${rubbish}\n`));
  }
  it.receive(Buffer.from([0xff, 0xfe, 0x0a]));
  say({ id: 999, result: "nobody asked" });
  say({ id: null, error: { code: -32700, message: "x" } });
  say({ id: {}, method: 7 });
  say({ jsonrpc: "2.0", id: sent[0]?.id, result: "fine" });
  assert.equal(await request, "fine");
  assert.ok(logged.length >= 5);
});

test("a line over the limit is skipped without being held in memory", () => {
  const seen: string[] = [];
  const { peer: it, logged, say } = peer({ onNotification: (method) => seen.push(method) }, 1000);
  for (let i = 0; i < 50; i++) it.receive(Buffer.alloc(100, 0x61));
  it.receive(Buffer.from("\n"));
  say({ method: "next" });
  assert.deepEqual(seen, ["next"]);
  assert.match(logged.join(), /5000 bytes/);
});

test("a deadline ends the wait and cancels the request; a late answer does no harm", async () => {
  const { peer: it, sent, say } = peer();
  await assert.rejects(it.request("slow", {}, { deadlineMs: 5 }), DeadlineError);
  assert.deepEqual(sent[1], { jsonrpc: "2.0", method: "$/cancel", params: { id: sent[0]?.id } });
  say({ jsonrpc: "2.0", id: sent[0]?.id, result: "late" });
  say({ jsonrpc: "2.0", id: sent[0]?.id, error: { code: -32800, message: "cancelled" } });
  const next = it.request("quick", {}, LONG);
  say({ jsonrpc: "2.0", id: sent.at(-1)?.id, result: "ok" });
  assert.equal(await next, "ok");
});

test("an abort ends the wait and cancels; one that came earlier sends nothing", async () => {
  const { peer: it, sent } = peer();
  const controller = new AbortController();
  const request = it.request("a", {}, { ...LONG, signal: controller.signal });
  controller.abort();
  await assert.rejects(request, AbortedError);
  assert.equal(sent[1]?.method, "$/cancel");
  await assert.rejects(it.request("b", {}, { ...LONG, signal: controller.signal }), AbortedError);
  assert.equal(sent.length, 2);
});

test("closing fails all requests, waiting and later ones", async () => {
  const { peer: it } = peer();
  const request = it.request("a", {}, LONG);
  it.close(new GoneError("it crashed"));
  await assert.rejects(request, /it crashed/);
  await assert.rejects(it.request("b", {}, LONG), GoneError);
  it.notify("c", {});
});

test("a failed write fails its request", async () => {
  const { peer: it } = peer({
    write: () => {
      throw new Error("EPIPE");
    },
  });
  await assert.rejects(it.request("a", {}, LONG), /EPIPE/);
});

test("a request that is not JSON fails alone", async () => {
  const { peer: it, sent, say } = peer();
  await assert.rejects(it.request("a", { big: 1n }, LONG), GoneError);
  it.notify("b", { big: 1n });
  const next = it.request("c", {}, LONG);
  say({ id: sent[0]?.id, result: 1 });
  assert.equal(await next, 1);
});

test("the engine's requests get results and errors", async () => {
  const { sent, say } = peer({
    onRequest: async (method, params) => {
      if (method === "fail") throw new RpcError(-32601, "no such method");
      if (method === "throw") throw new Error("broken");
      return params;
    },
  });
  say({ jsonrpc: "2.0", id: "e1", method: "echo", params: { x: 1 } });
  say({ jsonrpc: "2.0", id: "e2", method: "fail" });
  say({ jsonrpc: "2.0", id: "e3", method: "throw" });
  await settled();
  assert.deepEqual(sent, [
    { jsonrpc: "2.0", id: "e1", result: { x: 1 } },
    { jsonrpc: "2.0", id: "e2", error: { code: -32601, message: "no such method" } },
    { jsonrpc: "2.0", id: "e3", error: { code: -32603, message: "broken" } },
  ]);
});

test("the engine can cancel its own request", async () => {
  const { sent, say } = peer({
    onRequest: (_method, _params, signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stop")))),
  });
  say({ jsonrpc: "2.0", id: "e1", method: "host/complete" });
  say({ jsonrpc: "2.0", method: "$/cancel", params: { id: "e1" } });
  say({ jsonrpc: "2.0", method: "$/cancel", params: { id: "e9" } });
  say({ jsonrpc: "2.0", method: "$/cancel" });
  await settled();
  assert.deepEqual(sent, [
    { jsonrpc: "2.0", id: "e1", error: { code: -32800, message: "cancelled" } },
  ]);
});

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
