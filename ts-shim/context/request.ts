/** Builds the parameters of `context/assemble` from Pi's state. */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

/** Fields of Pi's model record that prices, windows and caches are computed from. */
const MODEL_FIELDS = [
  "provider",
  "id",
  "api",
  "contextWindow",
  "input",
  "cost",
  "promptCache",
  "reasoning",
] as const;

/** The model in use, as the protocol describes it; null where none is selected. */
export function describeModel(ctx: ExtensionContext): Record<string, unknown> | null {
  const model = ctx.model as Record<string, unknown> | undefined;
  if (!model) return null;
  const fields = MODEL_FIELDS.filter((field) => model[field] !== undefined);
  // Pi asks providers for the long retention where its environment says so.
  const retention = process.env.PI_CACHE_RETENTION === "long" ? { retention: "long" } : {};
  return { ...Object.fromEntries(fields.map((field) => [field, model[field]])), ...retention };
}

/** The definitions of the active tools: `{name, description, parameters}`, in Pi's order. */
export function describeTools(pi: ExtensionAPI): Record<string, unknown>[] {
  const active = new Set(pi.getActiveTools());
  return pi
    .getAllTools()
    .filter((tool) => active.has(tool.name))
    .map(({ name, description, parameters }) => ({ name, description, parameters }));
}
