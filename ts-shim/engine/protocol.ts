/** The shapes that cross the wire, as docs/protocol.md describes them. */

import type { Block } from "../context/messages.ts";

export const PROTOCOL_VERSION = 2;

/** JSON-RPC and foredeck error codes. */
export const ErrorCode = {
  parse: -32700,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  protocol: -32001,
  config: -32002,
  store: -32003,
  outOfSync: -32010,
  unknownSession: -32011,
  tool: -32020,
  noModel: -32030,
  notAsked: -32031,
  cancelled: -32800,
} as const;

/** The answer to `initialize`, as far as it matters here. */
export interface EngineInfo {
  protocol: number;
  deadline_ms: number;
  prepare_ms: number;
  warnings: string[];
}

/** Parameters of `session/open`. */
export interface SessionParams {
  session: string;
  file: string | null;
  cwd: string;
  reason: string;
  parent: string | null;
  /** The host's file of that session, where only this is known. */
  parent_file?: string | null;
  /** The session whose agent started this Pi, by a command or as a subagent. */
  started_by?: string | null;
  /** Whether a new session keeps to itself what is said in it. */
  private?: boolean;
  /** Calls that the session had when this Pi first opened it; left out that first time. */
  calls?: number;
}

/** A block of an edit: `{keep: k}` stands for block `k` of the message's own content. */
export type EditBlock = { keep: number } | Block;

export type NoticeLevel = "info" | "warning" | "error";

/** A checked answer to `context/assemble`, but for what it says of the messages. */
export interface Answer {
  call: number;
  /** What it says is of the messages from here on. */
  from: number;
  status: string | null;
  notices: { level: NoticeLevel; text: string }[];
  /** Id of the tool call whose result gets one more cache marker. */
  marker: string | null;
}

/** What became of a model call, reported to the engine with the next request. */
export type Outcome =
  | { call: number; kind: "applied"; reason?: string }
  | {
      call: number | null;
      kind: "fallback" | "aborted" | "off";
      edited: number;
      ending?: boolean;
      messages: number;
      time_ms: number;
      reason: string;
    };
