/** What Pi's model records say about being asked beside the agent's own work. */

import { isRecord } from "../context/messages.ts";

const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\]|\[::ffff:7f.*\])$/;

/**
 * Whether a question would push the agent's own prompt out of a server's only slot: a model on this
 * machine, or one without a price, which a server of the user's own usually is.
 */
export function isSingleSlot(model: object): boolean {
  const { cost, baseUrl } = model as Record<string, unknown>;
  const prices = isRecord(cost) ? [cost.input, cost.output] : [];
  if (!prices.some((price) => typeof price === "number" && price > 0)) return true;
  try {
    return LOOPBACK.test(new URL(String(baseUrl)).hostname);
  } catch {
    return false; // Some providers have no address of their own.
  }
}

/** Milliseconds that the provider keeps a prompt of this model; null where Pi does not know. */
export function warmTime(model: object): number | null {
  const { promptCache } = model as Record<string, unknown>;
  const retention = process.env.PI_CACHE_RETENTION === "long" ? "long" : "short";
  const seconds = isRecord(promptCache) ? promptCache[retention] : undefined;
  return typeof seconds === "number" ? seconds * 1000 : null;
}
