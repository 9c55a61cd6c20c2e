/** The `foredeck` command line: how it is called here, put on the PATH if the user asks, and its pages. */

import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, existsSync, lstatSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { lineSplitter } from "./engine/lines.ts";
import { PACKAGE_ROOT } from "./engine/package.ts";
import type { EngineCommand } from "./engine/process.ts";
import { unref } from "./engine/run.ts";
import { stateDir } from "./engine/state-dir.ts";

/** Commands that notices name, in backquotes. */
const NAMED = /(?<=`)foredeck(?= [a-z])/g;

export class CommandLine {
  private pages: { child: ChildProcess; address: string } | null = null;
  private readonly platform: NodeJS.Platform;
  private readonly home: string;
  private readonly env: Record<string, string | undefined>;
  private readonly root: string;

  constructor(
    platform: NodeJS.Platform = process.platform,
    home: string = homedir(),
    env: Record<string, string | undefined> = process.env,
    root: string = PACKAGE_ROOT,
  ) {
    this.platform = platform;
    this.home = home;
    this.env = env;
    this.root = root;
  }

  /** The text with each `foredeck COMMAND` as it can be typed here. */
  typed(text: string): string {
    return text.replace(NAMED, () => this.called());
  }

  /** What to type in a shell: the name where it is on the PATH, else a path. */
  called(): string {
    const file = this.file();
    if (this.isOnPath() || file === null) return "foredeck";
    const short = file.startsWith(this.home) ? `~${file.slice(this.home.length)}` : file;
    return /[^\w@%+=:,./~\\-]/.test(short) ? `"${file}"` : short;
  }

  /** Puts the command on the PATH, since the user asks. Throws where something else has its name. */
  putOnPath(): string {
    const file = this.file();
    if (file === null) throw new Error("There is no command line yet: type /foredeck setup first.");
    const isWindows = this.platform === "win32";
    const local = this.env.LOCALAPPDATA ?? join(this.home, "AppData", "Local");
    const folder = isWindows
      ? join(local, "Microsoft", "WindowsApps")
      : join(this.home, ".local", "bin");
    const target = join(folder, basename(file));
    if (lstatSync(target, { throwIfNoEntry: false })) {
      if (isWindows || realpathSync(target) !== realpathSync(file))
        throw new Error(
          `${target} is there already; remove it, then type /foredeck command again.`,
        );
    } else {
      mkdirSync(folder, { recursive: true });
      if (isWindows) copyFileSync(file, target);
      else symlinkSync(file, target);
    }
    const found = `${target} runs foredeck's command line.`;
    return this.isOnPath() ? found : `${found} Add ${folder} to your PATH to type just foredeck.`;
  }

  /** Opens the inspector in the browser, once; it ends with Pi. Gives its address. */
  async open(engine: EngineCommand | null): Promise<string> {
    if (engine === null) throw new Error("foredeck's engine is not running: type /foredeck setup.");
    if (this.pages && this.pages.child.exitCode === null) return this.pages.address;
    const child = spawn(engine.file, [...engine.args.slice(0, -1), "ui"], {
      env: { ...process.env, ...engine.env },
      stdio: ["ignore", "pipe", "pipe"],
      windowsHide: true,
    });
    process.once("exit", () => child.kill());
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString("utf8")).slice(-2000);
    });
    const address = await new Promise<string>((resolve, reject) => {
      child.stdout?.on("data", lineSplitter(resolve, 10_000));
      child.once("error", reject);
      child.once("close", () => reject(new Error(said.trim() || "`foredeck ui` ended at once")));
    });
    unref(child);
    this.pages = { child, address };
    return address;
  }

  /** Where the command is: of a checkout, or of the newest engine that was set up. */
  private file(): string | null {
    const [folder, own, set] =
      this.platform === "win32"
        ? ["Scripts", "foredeck.exe", "foredeck.cmd"]
        : ["bin", "foredeck", "foredeck"];
    const state = stateDir(this.env, this.platform, this.home);
    const places = [join(this.root, ".venv", folder, own), join(state, "bin", set)];
    return places.find((path) => existsSync(path)) ?? null;
  }

  private isOnPath(): boolean {
    const names = this.platform === "win32" ? ["foredeck.exe", "foredeck.cmd"] : ["foredeck"];
    const folders = (this.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
    return folders.some((folder) => names.some((name) => existsSync(join(folder, name))));
  }
}
