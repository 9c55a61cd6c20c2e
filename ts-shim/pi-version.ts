/** Which Pi this extension runs in, and what it lends. */

import type { Project } from "./context/put-away.ts";
import type { RunnerClass } from "./preparing.ts";

/** The first Pi that fires `context_with_system`. */
const WITH_SYSTEM: readonly number[] = [0, 87, 1];

/** Both scopes that Pi was published under. Inside Pi either resolves to the running copy. */
const HOSTS = ["@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"];

/** Pi's version, such as "1.5.2"; "unknown" where it does not say. */
export async function piVersion(): Promise<string> {
  const version = await lent("VERSION");
  return typeof version === "string" ? version : "unknown";
}

/** Pi's function from entries to messages; null where it has none. */
export async function piProjection(): Promise<Project | null> {
  const project = await lent("buildSessionProjection");
  return typeof project === "function" ? (project as Project) : null;
}

/** How Pi compacts by itself, by its settings for a folder. */
export interface CompactionSettings {
  getCompactionSettings(model: unknown): { enabled: boolean; reserveTokens: number };
}

/** Reads them for a folder. */
export interface SettingsReader {
  create(
    cwd: string,
    agentDir: undefined,
    options: { projectTrusted: boolean },
  ): CompactionSettings;
}

/** Pi's reader of its settings; null where it lends none. */
export async function piSettings(): Promise<SettingsReader | null> {
  return ((await lent("SettingsManager")) as SettingsReader | undefined) ?? null;
}

/** Pi's class that asks extensions before a tool runs; null where it lends none. */
export async function piRunner(): Promise<RunnerClass | null> {
  return ((await lent("ExtensionRunner")) as RunnerClass | undefined) ?? null;
}

/** What Pi's module exports under a name; undefined where it does not. */
async function lent(name: string): Promise<unknown> {
  for (const host of HOSTS) {
    try {
      const value = ((await import(host)) as Record<string, unknown>)[name];
      if (value !== undefined) return value;
    } catch {
      // Not this scope.
    }
  }
  return undefined;
}

/** Whether this is oh-my-pi, a fork with versions of its own: it lends its exports as `pi.pi`. */
export function isOhMyPi(pi: object): boolean {
  return typeof (pi as { pi?: unknown }).pi === "object";
}

/**
 * Whether Pi fires `context_with_system`. If in doubt, no: `context` works everywhere, and waiting
 * for an event that never fires would disable the hook.
 */
export function firesContextWithSystem(version: string): boolean {
  const parts = version
    .match(/^(\d+)\.(\d+)\.(\d+)/)
    ?.slice(1)
    .map(Number);
  if (!parts) return false;
  for (const [index, least] of WITH_SYSTEM.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}
