/** Which Pi this extension runs in. */

/** The first Pi that fires `context_with_system`. */
const WITH_SYSTEM: readonly number[] = [0, 87, 1];

/** Both scopes that Pi was published under. Inside Pi either resolves to the running copy. */
const HOSTS = ["@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"];

/** Pi's version, such as "1.5.2"; "unknown" where it does not say. */
export async function piVersion(): Promise<string> {
  for (const name of HOSTS) {
    try {
      const { VERSION } = (await import(name)) as { VERSION?: unknown };
      if (typeof VERSION === "string") return VERSION;
    } catch {
      // Not this scope.
    }
  }
  return "unknown";
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
