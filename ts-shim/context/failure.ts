/** Why a model call went out without the engine, for the engine's records and for the user. */

import type { EngineState } from "../engine/engine.ts";
import {
  AbortedError,
  DeadlineError,
  GoneError,
  MAX_LINE_BYTES,
  RpcError,
  TooLongError,
} from "../engine/wire.ts";
import { BadAnswerError } from "./plan.ts";

/** `aborted`: the user stopped the call. `reason` goes into the call record (docs/protocol.md). */
export interface Failure {
  kind: "fallback" | "aborted";
  reason: string;
}

const TOO_LARGE = "too large";

export function failureOf(error: unknown, state: EngineState): Failure {
  if (error instanceof AbortedError) return { kind: "aborted", reason: "user" };
  return { kind: "fallback", reason: reasonOf(error, state) };
}

function reasonOf(error: unknown, state: EngineState): string {
  if (error instanceof DeadlineError) return "timeout";
  if (error instanceof BadAnswerError) return "answer";
  if (error instanceof TooLongError) return TOO_LARGE;
  if (error instanceof RpcError) return `error ${error.code}`;
  if (error instanceof GoneError) return state === "setup" ? "setup" : "away";
  return "internal";
}

const FOR_THE_USER: Record<string, string> = {
  timeout: "the engine did not answer in time",
  answer: "the engine's answer did not fit the conversation",
  away: "the engine is not running",
  [TOO_LARGE]: "this chat is too large",
};

/** What the user is told of it. `text` is the error's own. */
export function toldOf(reason: string, text: string): string {
  if (reason === TOO_LARGE) {
    const most = MAX_LINE_BYTES / 1024 / 1024;
    return `This chat is larger than the ${most} MiB that foredeck takes in at once, so Pi goes on without it. /compact makes it smaller.`;
  }
  const why = inWords(reason, text);
  return `${why.charAt(0).toUpperCase()}${why.slice(1)}. Pi goes on with what foredeck last sent.`;
}

/** A reason in words, or `otherwise` where it says nothing to a user. */
export function inWords(reason: string, otherwise: string): string {
  return FOR_THE_USER[reason] ?? otherwise;
}
