/**
 * Names that other extensions have, too. Pi does not start where two define the same tool, and gives
 * both of two commands a number (`/tasks:1`, `/tasks:2`). So foredeck's tools and short commands are
 * registered when the session begins, once all extensions are loaded, and only where the name is
 * free. That is before the first request, so what the model has stays the same from there on.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { register, SHORTS } from "./command.ts";
import { makePrivate, readText, stateDir } from "./files.ts";
import type { Shim } from "./shim.ts";
import { registerTools } from "./tools.ts";

/**
 * Registers tools and short commands when the session begins, and says once which are not free.
 * @param atOnce for a host that takes no tools once it has started
 */
export function registerNames(
  pi: ExtensionAPI,
  shim: Shim,
  facilities?: readonly string[],
  atOnce = false,
): void {
  let isDone = false;
  const registerAll = async () => {
    // Some of Pi's modes announce a session twice.
    if (isDone) return;
    isDone = true;
    const tools = namesIn(() => pi.getAllTools());
    // Two that have the same name have a number each.
    const commands = namesIn(() => pi.getCommands().map(({ name }) => ({ name: bare(name) })));
    const away = registerTools(pi, shim, facilities, tools);
    const theirs = SHORTS.filter((name) => commands.has(name));
    for (const name of SHORTS) if (!commands.has(name)) register(pi, shim, name);
    const text = describe(away, theirs);
    if (text !== "" && (await isNews(text))) shim.host.notify("warning", text);
    for (const name of theirs) shim.host.taken.add(name);
  };
  if (atOnce) void registerAll();
  else pi.on("session_start", registerAll);
}

function bare(name: string): string {
  return name.replace(/:\d+$/, "");
}

function namesIn(list: () => readonly { name: string }[]): Set<string> {
  try {
    return new Set(list().map(({ name }) => name));
  } catch {
    // A Pi that cannot say has no extension that could be found out about.
    return new Set();
  }
}

function describe(tools: readonly string[], commands: readonly string[]): string {
  const lines = commands.map(
    (name) => `/${name} belongs to another extension: type /foredeck ${name}.`,
  );
  if (tools.length > 0) {
    const [it, are] = tools.length === 1 ? ["it", "tool is"] : ["them", "tools are"];
    lines.push(`The ${are} another extension's: ${tools.join(", ")}. foredeck goes without ${it}.`);
  }
  return lines.join("\n");
}

/** Whether the user has not read these very words before. */
async function isNews(text: string): Promise<boolean> {
  try {
    const file = join(makePrivate(stateDir()), "names-told");
    if ((await readText(file).catch(() => "")) === text) return false;
    writeFileSync(file, text, { mode: 0o600 });
  } catch {
    // Then it is said again.
  }
  return true;
}
