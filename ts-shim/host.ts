/**
 * What the rest of the extension asks of Pi: messages to the user, the status line, and Pi's context
 * for the session at hand.
 *
 * Holds Pi's context object for one session and no longer: once a session is replaced, using its
 * objects throws.
 */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { CommandLine } from "./command-line.ts";
import type { NoticeLevel } from "./engine/protocol.ts";
import { visible } from "./visible.ts";

const STATUS_KEY = "foredeck";
const WIDGET_KEY = "foredeck-tasks";
const WORK_KEY = "foredeck-work";

/**
 * Pi for one session. No method throws, and no text that is shown steers the terminal: names of
 * files and titles in it are anybody's.
 */
export class Host {
  private ctx: ExtensionContext | null = null;
  private readonly notified = new Set<string>();
  /** What every status begins with. */
  private name = "foredeck";
  /** Short commands that belong to another extension: ours are typed behind /foredeck. */
  readonly taken = new Set<string>();
  readonly commandLine = new CommandLine();

  /** Uses this context from now on. */
  attach(ctx: ExtensionContext): void {
    this.ctx = ctx;
  }

  /** What was attached last; null where no session is open. Not to be kept. */
  context(): ExtensionContext | null {
    return this.ctx;
  }

  /** The session is over. */
  detach(): void {
    this.ctx = null;
  }

  /**
   * Shows a notice. Where Pi has no screen, warnings and errors go to stderr.
   * @param withoutScreen what to print there in place of `text`, whatever the level
   */
  notify(level: NoticeLevel, text: string, withoutScreen?: string): void {
    try {
      if (this.ctx?.hasUI) this.ctx.ui.notify(this.worded(text), level);
      else if (withoutScreen || level !== "info")
        console.error(`foredeck: ${this.worded(withoutScreen ?? text)}`);
    } catch {
      // The session has just been replaced: nobody is left to read it.
    }
  }

  /** Shows a notice once per key, in the life of this extension. */
  notifyOnce(key: string, level: NoticeLevel, text: string): void {
    if (this.notified.has(key)) return;
    this.notified.add(key);
    this.notify(level, text);
  }

  /** Shows what the user asked for. In print mode Pi keeps stdout for the model's answer. */
  show(text: string): void {
    try {
      if (this.ctx?.hasUI) this.ctx.ui.notify(this.worded(text), "info");
      else console.log(this.worded(text));
    } catch {
      // As above.
    }
  }

  /** Shows from now on that the session is private, where an answer says so. */
  takePrivate(isPrivate: unknown): void {
    if (isPrivate !== true) return;
    this.name = "foredeck (private)";
    this.status("foredeck");
  }

  /** Sets the status line; null removes it. */
  status(text: string | null): void {
    try {
      const shown = text?.replace(/^foredeck\b/, this.name);
      this.ctx?.ui.setStatus(STATUS_KEY, shown === undefined ? undefined : visible(shown));
    } catch {
      // As above.
    }
  }

  /** Shows lines above the editor; undefined removes them. */
  widget(lines: string[] | undefined): void {
    this.setWidget(WIDGET_KEY, lines);
  }

  /** Shows above the editor what foredeck does in the background; empty for nothing. */
  work(text: string): void {
    this.setWidget(WORK_KEY, text === "" ? undefined : [text]);
  }

  /** The text with every command as it is typed here. */
  worded(text: string): string {
    return this.commandLine
      .typed(visible(text))
      .replace(/(?<![\w./~-])\/([a-z]+)(?![\w./-])/g, (all, name) =>
        this.taken.has(name) ? `/foredeck ${name}` : all,
      );
  }

  private setWidget(key: string, lines: string[] | undefined): void {
    try {
      if (this.ctx?.hasUI) this.ctx.ui.setWidget(key, lines?.map(visible));
    } catch {
      // As above.
    }
  }
}
