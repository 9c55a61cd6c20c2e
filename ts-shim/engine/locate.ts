/**
 * Finds the command that runs the engine, in this order:
 *
 * 1. `FOREDECK_ENGINE`, a command line or a JSON array of strings: for tests and experiments.
 * 2. `FOREDECK_PYTHON`, an interpreter that has foredeck.
 * 3. `.venv` of a checkout of this package.
 * 4. an engine that was set up earlier for exactly these sources (provision.ts).
 *
 * Otherwise it has to be set up, outside the package: an update of the package removes everything
 * inside it that it did not bring.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "../context/messages.ts";
import { PACKAGE_ROOT } from "./package.ts";
import type { EngineCommand } from "./process.ts";
import { engineWith, hasForedeck } from "./python.ts";

type Env = Record<string, string | undefined>;

/** The engine's command where no set-up is needed, else null. @throws with a sentence for the user. */
export async function locateInstalled(
  env: Env = process.env,
  root: string = PACKAGE_ROOT,
  signal?: AbortSignal,
): Promise<EngineCommand | null> {
  if (env.FOREDECK_ENGINE) return parseCommand(env.FOREDECK_ENGINE);
  if (env.FOREDECK_PYTHON) return fromInterpreter(env.FOREDECK_PYTHON, signal);
  const script =
    process.platform === "win32"
      ? join(root, ".venv", "Scripts", "foredeck.exe")
      : join(root, ".venv", "bin", "foredeck");
  return existsSync(script) ? { file: script, args: ["engine"] } : null;
}

async function fromInterpreter(python: string, signal?: AbortSignal): Promise<EngineCommand> {
  const { ok, output } = await hasForedeck(python, { timeoutMs: 20_000, signal });
  if (ok) return engineWith(python);
  const lastLine = output.trim().split("\n").at(-1) ?? "";
  throw new Error(`FOREDECK_PYTHON (${python}) cannot run foredeck: ${lastLine}`);
}

/** Splits a command line at blanks, or takes a JSON array; quotes group, backslashes are literal. */
export function parseCommand(text: string): EngineCommand {
  const words = text.trimStart().startsWith("[") ? jsonWords(text) : plainWords(text);
  const [file, ...args] = words;
  if (!file) throw new Error("FOREDECK_ENGINE names no command");
  return { file, args };
}

function jsonWords(text: string): string[] {
  const words: unknown = JSON.parse(text);
  if (isRecord(words) || !Array.isArray(words) || words.some((word) => typeof word !== "string")) {
    throw new Error("FOREDECK_ENGINE is not a JSON array of strings");
  }
  return words;
}

function plainWords(text: string): string[] {
  const words = text.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}
