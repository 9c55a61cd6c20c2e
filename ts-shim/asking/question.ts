/** The parameters of `host/complete`, checked. */

import { isRecord } from "../context/messages.ts";
import { ErrorCode } from "../engine/protocol.ts";
import { RpcError } from "../engine/wire.ts";

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const RETENTIONS = ["none", "short", "long"];

/** One question for a model, as docs/protocol.md describes it. */
export interface Question {
  messages: Record<string, unknown>[];
  system: string | undefined;
  maxTokens: number;
  model: { provider: string; id: string } | undefined;
  reasoning: string | undefined;
  tools: Record<string, unknown>[] | undefined;
  sessionId: string | undefined;
  retention: string | undefined;
  /** The call whose prompt is asked again, with the messages at its end. */
  warm: number | undefined;
  /** The user wants this question asked. */
  wanted: boolean;
}

/** @throws RpcError that names the member at fault */
export function readQuestion(params: unknown): Question {
  const given = isRecord(params) ? params : {};
  const { messages, max_tokens: maxTokens, tools, model, warm } = given;
  if (!isRecordList(messages) || messages.length === 0) throw wrong("messages");
  if (!isCount(maxTokens)) throw wrong("max_tokens");
  if (tools !== undefined && !isRecordList(tools)) throw wrong("tools");
  if (warm !== undefined && !isCount(warm)) throw wrong("warm");
  if (warm !== undefined && messages.length !== 1) throw wrong("messages (one, with warm)");
  const question: Question = {
    messages,
    system: textOf(given, "system"),
    maxTokens,
    model: model === undefined ? undefined : nameOf(model),
    reasoning: oneOf(given, "reasoning", LEVELS),
    tools,
    sessionId: textOf(given, "session_id"),
    retention: oneOf(given, "retention", RETENTIONS),
    warm,
    wanted: given.wanted === true,
  };
  const { system, reasoning, sessionId, retention } = question;
  const fixed = { system, reasoning, tools, session_id: sessionId, retention, model };
  const clash = Object.entries(fixed).find(([, value]) => warm !== undefined && value);
  if (clash) throw wrong(`${clash[0]} (with warm it is that of the prompt)`);
  return question;
}

/**
 * The model that `host/model` asks about; undefined for the selected one.
 * @throws RpcError that names the member at fault
 */
export function readModel(params: unknown): Question["model"] {
  const { model } = isRecord(params) ? params : {};
  return model === undefined ? undefined : nameOf(model);
}

function nameOf(model: unknown): { provider: string; id: string } {
  const { provider, id } = isRecord(model) ? model : {};
  if (typeof provider !== "string" || typeof id !== "string") throw wrong("model");
  return { provider, id };
}

function textOf(given: Record<string, unknown>, name: string): string | undefined {
  const value = given[name];
  if (value !== undefined && typeof value !== "string") throw wrong(name);
  return value;
}

function oneOf(given: Record<string, unknown>, name: string, allowed: string[]) {
  const value = textOf(given, name);
  if (value !== undefined && !allowed.includes(value)) throw wrong(name);
  return value;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

function isRecordList(value: unknown): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.every(isRecord);
}

function wrong(member: string): RpcError {
  return new RpcError(ErrorCode.invalidParams, `Invalid params: ${member}`);
}
