/** The Pi that this extension runs in, and what its module exports; a fork may export less. */

import type { Project } from "./context/compactions.ts";
import type { RunnerClass } from "./preparing.ts";

/** The first Pi that fires `context_with_system`. */
const WITH_SYSTEM = "0.87.1";

/** Both scopes that Pi was published under. Inside Pi either resolves to the running copy. */
const HOSTS = ["@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"];

/** What is used of Pi's own module. */
export interface PiModule {
  /** Such as "1.5.2". */
  VERSION?: string;
  buildSessionProjection?: Project;
  SettingsManager?: SettingsReader;
  ExtensionRunner?: RunnerClass;
}

/** Reads Pi's settings for a folder. */
interface SettingsReader {
  create(
    cwd: string,
    agentDir: undefined,
    options: { projectTrusted: boolean },
  ): CompactionSettings;
}

/** How Pi compacts by itself. */
export interface CompactionSettings {
  getCompactionSettings(model: unknown): { enabled: boolean; reserveTokens: number };
}

/** Pi's module; empty where it cannot be had. */
export async function piModule(): Promise<PiModule> {
  for (const host of HOSTS) {
    try {
      return await import(host);
    } catch {
      // Not this scope.
    }
  }
  return {};
}

/** Whether this is oh-my-pi, a fork with versions of its own: it hands over its exports as `pi.pi`. */
export function isOhMyPi(pi: object): boolean {
  return typeof (pi as { pi?: unknown }).pi === "object";
}

/**
 * Whether Pi fires `context_with_system`. If in doubt, no: `context` works everywhere, and waiting
 * for an event that never fires would disable the hook.
 */
export function firesContextWithSystem(version = ""): boolean {
  const isKnown = /^\d+\.\d+\.\d+/.test(version);
  return isKnown && version.localeCompare(WITH_SYSTEM, "en", { numeric: true }) >= 0;
}
