/** Python on this machine: which interpreters there are, and what to type where none fits. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineCommand } from "./process.ts";
import { type RunOptions, run } from "./run.ts";

/**
 * Runs the engine with an interpreter. `-P` keeps the working directory off the import path: a
 * cloned repository must not be able to put a module of its own in foredeck's place.
 */
export function engineWith(python: string, env?: Record<string, string>): EngineCommand {
  const code = "from foredeck.cli.main import main; raise SystemExit(main())";
  const command: EngineCommand = { file: python, args: ["-P", "-c", code, "engine"] };
  return env ? { ...command, env } : command;
}

/** Whether an interpreter can import foredeck. */
export async function hasForedeck(
  python: string,
  options: RunOptions,
): Promise<{ ok: boolean; output: string }> {
  const { code, output } = await run(python, ["-P", "-c", "import foredeck.cli.main"], options);
  return { ok: code === 0, output };
}

/** An interpreter as it is called: `python3`, or `py -3`. */
export type Interpreter = [file: string, ...args: string[]];

const CANDIDATES: Interpreter[] = [
  ["python3"],
  ["python3.13"],
  ["python3.12"],
  ["python3.11"],
  ["python"],
];
const WINDOWS_CANDIDATES: Interpreter[] = [["py", "-3"], ["python"]];

/** What `find` runs in a candidate: its path, if it is new enough. */
const PROBE = "import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)";

/** The path of a Python >= 3.11, or null. */
export async function findPython(
  options: RunOptions,
  platform: NodeJS.Platform = process.platform,
): Promise<string | null> {
  for (const [file, ...args] of platform === "win32" ? WINDOWS_CANDIDATES : CANDIDATES) {
    const { code, output } = await run(file, [...args, "-c", PROBE], options);
    const path = output.trim();
    // The Store's python.exe is a stub that opens a shop window.
    if (code === 0 && path && !path.includes("WindowsApps")) return path;
  }
  return null;
}

/** The interpreter of a virtual environment. */
export function venvPython(folder: string, platform: NodeJS.Platform = process.platform): string {
  return platform === "win32"
    ? join(folder, "Scripts", "python.exe")
    : join(folder, "bin", "python");
}

/** One sentence with the command that brings a fitting Python to this system. */
export function pythonAdvice(
  platform: NodeJS.Platform = process.platform,
  osRelease: string = readOsRelease(),
): string {
  const uv = "curl -LsSf https://astral.sh/uv/install.sh | sh";
  if (platform === "win32") return need("winget install --id Python.Python.3.12");
  if (platform === "darwin") return need("brew install python@3.12");
  const like = /^ID(?:_LIKE)?=.*$/gm;
  const family = (osRelease.match(like) ?? []).join(" ");
  if (/debian|ubuntu/.test(family)) return need("sudo apt install python3 python3-venv");
  if (/fedora|rhel/.test(family)) return need("sudo dnf install python3.12");
  if (/arch/.test(family)) return need("sudo pacman -S python");
  if (/alpine/.test(family)) return need("sudo apk add python3 py3-pip");
  return need(uv);
}

function need(command: string): string {
  return `foredeck needs Python 3.11 or newer: run \`${command}\`, then type /foredeck setup.`;
}

function readOsRelease(): string {
  try {
    return readFileSync("/etc/os-release", "utf8");
  } catch {
    return "";
  }
}
