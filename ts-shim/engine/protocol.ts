/** The shapes that cross the wire, as docs/protocol.md describes them. */

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
