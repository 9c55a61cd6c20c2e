/** A JSON-RPC 2.0 peer over lines of JSON. It logs and skips what it cannot understand. */

import { StringDecoder } from "node:string_decoder";
import timers from "node:timers/promises";
import { type Fields, isRecord } from "../context/messages.ts";
import { parsed } from "../files.ts";

/** Longest line read or written, in bytes (docs/protocol.md, "Transport"). */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

export const ErrorCode = {
  methodNotFound: -32601,
  internal: -32603,
  outOfSync: -32010,
  unknownSession: -32011,
  tool: -32020,
  noModel: -32030,
  notAsked: -32031,
  cancelled: -32800,
} as const;

/** The other side answered with an error. */
export class RpcError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export class DeadlineError extends Error {}
export class AbortedError extends Error {}
/** The connection ended, or is not there. The message says why. */
export class GoneError extends Error {}
/** What is to be sent is longer than a line may be. Nothing was sent. */
export class TooLongError extends Error {}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export interface RequestOptions {
  /** Milliseconds until the request fails with `DeadlineError`. */
  deadlineMs: number;
  signal?: AbortSignal | undefined;
  /** Whether waiting keeps the process alive. Default true. */
  holdsProcess?: boolean;
}

export interface PeerHost {
  /** A request of the other side. What it returns is the result; what it throws, the error. */
  onRequest(method: string, params: unknown, signal: AbortSignal): Promise<unknown>;
  onNotification(method: string, params: unknown): void;
  log(text: string): void;
}

/** What is left of a time: at least a millisecond, so that a request is sent at all. */
export function remaining(until: number, signal: AbortSignal | undefined): RequestOptions {
  return { deadlineMs: Math.max(1, until - Date.now()), signal };
}

/** The promise's own result. @throws DeadlineError or AbortedError where that comes first */
export function within<T>(
  promise: Promise<T>,
  { deadlineMs, signal, holdsProcess = true }: RequestOptions,
  lacking = "not",
): Promise<T> {
  const over = new AbortController();
  const ended = AbortSignal.any(signal ? [over.signal, signal] : [over.signal]);
  const options = { ref: holdsProcess, signal: ended };
  const limit = timers.setTimeout(Math.max(0, deadlineMs), undefined, options).then(
    () => {
      throw new DeadlineError(`${lacking} in ${deadlineMs} ms`);
    },
    () => {
      throw new AbortedError("aborted");
    },
  );
  // A promise that rejects after its limit has its handler here, so nothing is left unhandled.
  return Promise.race([promise, limit]).finally(() => over.abort());
}

export class Peer {
  private readonly host: PeerHost;
  private readonly write: (line: Buffer) => void;
  /** Takes bytes from the other side. */
  readonly receive: (chunk: Buffer) => void;
  private readonly maxLineBytes: number;
  private readonly waiting = new Map<number, PromiseWithResolvers<unknown>>();
  private readonly serving = new Map<unknown, AbortController>();
  private nextId = 1;
  private closed: Error | null = null;

  /** @param write takes one line, newline included. Where it throws, the request fails */
  constructor(host: PeerHost, write: (line: Buffer) => void, maxLineBytes = MAX_LINE_BYTES) {
    this.host = host;
    this.write = write;
    this.maxLineBytes = maxLineBytes;
    this.receive = lineSplitter(
      (text) => this.onLine(text),
      maxLineBytes,
      (bytes) => host.log(`skipped a line of ${bytes} bytes`),
    );
  }

  /** The answer to a request. @throws RpcError, DeadlineError, AbortedError, GoneError, TooLongError */
  async request(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    if (options.signal?.aborted) throw new AbortedError(`${method} was aborted`);
    const id = this.nextId++;
    const answer = Promise.withResolvers<unknown>();
    this.waiting.set(id, answer);
    const failure = this.send({ id, method, params });
    if (failure) answer.reject(failure);
    try {
      return await within(answer.promise, options, `no answer to ${method}`);
    } catch (error) {
      const isGivenUp = error instanceof DeadlineError || error instanceof AbortedError;
      if (isGivenUp) this.send({ method: "$/cancel", params: { id } });
      throw error;
    } finally {
      // What is answered later finds nothing that waits for it.
      this.waiting.delete(id);
    }
  }

  /** Sends a notification, which is lost when the connection is closed. */
  notify(method: string, params: unknown): void {
    this.send({ method, params });
  }

  /** Fails everything that waits, aborts everything being served, and sends nothing more. */
  close(reason: Error): void {
    if (this.closed) return;
    this.closed = reason;
    for (const waiting of this.waiting.values()) waiting.reject(reason);
    for (const controller of this.serving.values()) controller.abort();
  }

  private send(message: Fields): Error | null {
    if (this.closed) return this.closed;
    try {
      this.write(lineOf(message, this.maxLineBytes));
      return null;
    } catch (error) {
      const text = textOf(error);
      this.host.log(`could not send: ${text}`);
      return error instanceof TooLongError ? error : new GoneError(text);
    }
  }

  private onLine(text: string): void {
    const message = parsed(text);
    if (typeof message.method === "string") this.onCall(message.method, message);
    else if ("id" in message) this.onResponse(message);
    else this.host.log(`not a message: ${text.slice(0, 200)}`);
  }

  private onResponse(message: Fields): void {
    const waiting = typeof message.id === "number" ? this.waiting.get(message.id) : undefined;
    if (!waiting) {
      // Either the late answer to a request that timed out, or an error about a line that we sent.
      if (isRecord(message.error)) this.host.log(`error: ${JSON.stringify(message.error)}`);
      return;
    }
    if (!isRecord(message.error)) waiting.resolve(message.result);
    else waiting.reject(new RpcError(Number(message.error.code), String(message.error.message)));
  }

  private onCall(method: string, message: Fields): void {
    const { id, params } = message;
    if (method === "$/cancel") {
      if (isRecord(params)) this.serving.get(params.id)?.abort();
    } else if (typeof id === "string" || typeof id === "number") {
      void this.serve(id, method, params);
    } else this.host.onNotification(method, params);
  }

  private async serve(id: string | number, method: string, params: unknown): Promise<void> {
    const controller = new AbortController();
    this.serving.set(id, controller);
    try {
      const result = await this.host.onRequest(method, params, controller.signal);
      this.send({ id, result: result ?? {} });
    } catch (error) {
      const code = error instanceof RpcError ? error.code : ErrorCode.internal;
      // Whatever it failed with: a request that was taken back is answered with this one error.
      const failure = controller.signal.aborted
        ? { code: ErrorCode.cancelled, message: "cancelled" }
        : { code, message: textOf(error) };
      this.send({ id, error: failure });
    } finally {
      this.serving.delete(id);
    }
  }
}

/** A message as bytes. @throws TooLongError: the other side would read all of it only to skip it */
function lineOf(message: Fields, limit: number): Buffer {
  try {
    const line = Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    if (line.length <= limit + 1) return line;
  } catch (error) {
    // A RangeError: longer than any string can be.
    if (!(error instanceof RangeError)) throw error;
  }
  throw new TooLongError(`${message.method ?? "an answer"}: over ${limit} bytes`);
}

/** Gives the lines of a stream but for empty ones and those that are longer than `limit` bytes. */
export function lineSplitter(
  onLine: (text: string) => void,
  limit: number,
  onTooLong: (bytes: number) => void = () => {},
): (chunk: Buffer) => void {
  // Holds back a character that the end of a chunk cuts in two. To `node:readline` U+2028 ends a line.
  const decoder = new StringDecoder("utf8");
  let [line, bytes] = ["", 0];
  return (chunk) => {
    for (const [at, part] of decoder.write(chunk).split("\n").entries()) {
      if (at > 0) {
        const [whole, length] = [line, bytes];
        [line, bytes] = ["", 0];
        if (length > limit) onTooLong(length);
        else if (length > 0) onLine(whole);
      }
      bytes += Buffer.byteLength(part);
      line = bytes > limit ? "" : line + part;
    }
  };
}
