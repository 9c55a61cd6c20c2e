/** Python on this machine: what runs the engine and its set-up, and what to type where none does. */

import { homedir } from "node:os";
import { join } from "node:path";
import type { EngineCommand } from "./process.ts";
import { type RunOptions, run } from "./run.ts";

/**
 * Runs the engine with an interpreter. `-P` keeps the working directory off the import path: a
 * cloned repository must not be able to put a module of its own in foredeck's place.
 */
export function engineWith(python: string): EngineCommand {
  const code = "from foredeck.cli.main import main; raise SystemExit(main())";
  return { file: python, args: ["-P", "-c", code, "engine"] };
}

/** Whether an interpreter can import foredeck. */
export async function hasForedeck(
  python: string,
  options: RunOptions,
): Promise<{ ok: boolean; output: string }> {
  const { code, output } = await run(python, ["-P", "-c", "import foredeck.cli.main"], options);
  return { ok: code === 0, output };
}

/** The words before a Python script, and the uv among them. */
export interface ScriptRunner {
  words: [file: string, ...args: string[]];
  uv?: string;
}

/**
 * What may run the set-up here, the best first. uv also fetches a Python where there is none that
 * fits. Each can be missing, too old, or on Windows a stub that leads to a shop.
 */
export function runners(
  platform: NodeJS.Platform = process.platform,
  home: string = homedir(),
): ScriptRunner[] {
  const isWindows = platform === "win32";
  // Where uv's own installer puts it, which Pi's PATH may not have yet.
  const uvs = ["uv", join(home, ".local", "bin", isWindows ? "uv.exe" : "uv")];
  const pythons: ScriptRunner["words"][] = isWindows
    ? [["py", "-3"], ["python"]]
    : [["python3"], ["python3.14"], ["python3.13"], ["python3.12"], ["python3.11"], ["python"]];
  // No newer one than the packages have wheels for.
  const run = ["run", "--quiet", "--no-project", "--python", ">=3.11,<3.15", "python"];
  return [
    ...uvs.map((uv): ScriptRunner => ({ words: [uv, ...run], uv })),
    ...pythons.map((words) => ({ words })),
  ];
}

/**
 * One sentence with the command that brings what is needed to this system.
 * @param hasUv uv is there, and could not fetch a Python either
 */
export function pythonAdvice(hasUv: boolean, platform: NodeJS.Platform = process.platform): string {
  const need = "foredeck needs Python 3.11 or newer";
  if (hasUv) return `${need}, and uv could not fetch one: run \`uv python install 3.13\`, ${THEN}.`;
  const command =
    platform === "win32"
      ? "winget install --id=astral-sh.uv -e"
      : "curl -LsSf https://astral.sh/uv/install.sh | sh";
  return `${need}, or uv, which brings one: run \`${command}\`, ${THEN}.`;
}

const THEN = "then type /foredeck setup";
