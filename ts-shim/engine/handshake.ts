/** `initialize`: what the engine says about itself. */

import { isRecord } from "../context/messages.ts";
import { type EngineInfo, ErrorCode, PROTOCOL_VERSION } from "./protocol.ts";
import { RpcError } from "./wire.ts";

/** How long a model call may wait where the engine does not say. */
export const DEFAULT_DEADLINE_MS = 3000;

/** @throws RpcError where the engine speaks another version of the protocol */
export function parseInfo(value: unknown): EngineInfo {
  const info = isRecord(value) ? value : {};
  if (info.protocol !== PROTOCOL_VERSION) {
    throw new RpcError(
      ErrorCode.protocol,
      `the engine speaks protocol ${String(info.protocol)}, this extension ${PROTOCOL_VERSION}`,
    );
  }
  const { deadline_ms: deadline, prepare_ms: prepare, warnings } = info;
  return {
    engine: String(info.engine ?? "?"),
    store: String(info.store ?? "?"),
    deadlineMs: typeof deadline === "number" && deadline > 0 ? deadline : DEFAULT_DEADLINE_MS,
    prepareMs: typeof prepare === "number" && prepare > 0 ? prepare : 0,
    warnings: Array.isArray(warnings) ? warnings.filter((text) => typeof text === "string") : [],
  };
}
