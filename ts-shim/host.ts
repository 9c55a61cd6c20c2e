/** What the user sees of foredeck: notices, the status line and lines above the editor. */

import { type ExtensionContext, VERSION } from "@earendil-works/pi-coding-agent";
import { type Fields, recordOf } from "./context/messages.ts";

const STATUS_KEY = "foredeck";
const WIDGET_KEY = "foredeck-tasks";
const WORK_KEY = "foredeck-work";

/** Commands of the command line that notices name, in backquotes. */
const NAMED = /(?<=`)foredeck(?= [a-z])/g;

type NoticeLevel = "info" | "warning" | "error";

/** Pi for one session. No method throws, and no text that is shown steers the terminal. */
export class Host {
  /** Pi's context of the session at hand. Kept nowhere else: that of a replaced session throws. */
  ctx: ExtensionContext | null = null;
  private readonly notified = new Set<string>();
  /** What every status begins with. */
  private name = "foredeck";
  /** Short commands that belong to another extension: ours are typed behind /foredeck. */
  readonly taken = new Set<string>();
  /** What to type in a shell for `foredeck`. */
  command = "foredeck";

  /** Shows a notice. Where Pi has no screen, `withoutScreen` or else warnings go to stderr. */
  notify(level: NoticeLevel, text: string, withoutScreen?: string): void {
    this.quietly(() => {
      if (this.ctx?.hasUI) this.ctx.ui.notify(this.worded(text), level);
      else if (withoutScreen || level !== "info")
        console.error(`foredeck: ${this.worded(withoutScreen ?? text)}`);
    });
  }

  /** Shows a notice of the engine's: `{level, text}`. */
  notice(notice: unknown): void {
    const { level, text } = recordOf(notice);
    if (typeof text !== "string") return;
    this.notify(level === "warning" || level === "error" ? level : "info", text);
  }

  notifyOnce(key: string, level: NoticeLevel, text: string): void {
    if (this.notified.has(key)) return;
    this.notified.add(key);
    this.notify(level, text);
  }

  /** Shows what the user asked for. In print mode Pi keeps stdout for the model's answer. */
  show(text: string): void {
    this.quietly(() => {
      if (this.ctx?.hasUI) this.ctx.ui.notify(this.worded(text), "info");
      else console.log(this.worded(text));
    });
  }

  /** Shows what an answer says of the session beside its text. What it leaves out has not changed. */
  showState({ tasks, private: isPrivate }: Fields): void {
    const { line } = recordOf(tasks);
    if (typeof line === "string") this.widget(WIDGET_KEY, line);
    if (isPrivate !== true) return;
    this.name = "foredeck (private)";
    this.status("foredeck");
  }

  status(text: string | null): void {
    const shown = text === null ? undefined : visible(text.replace(/^foredeck\b/, this.name));
    this.quietly(() => this.ctx?.ui.setStatus(STATUS_KEY, shown));
  }

  /** Shows above the editor what foredeck does in the background; empty for nothing. */
  work(text: string): void {
    this.widget(WORK_KEY, text);
  }

  /** The text with every command as it is typed here. */
  worded(text: string): string {
    return visible(text)
      .replace(NAMED, () => this.command)
      .replace(/(?<![\w./~-])\/([a-z]+)(?![\w./-])/g, (all, name) =>
        this.taken.has(name) ? `/foredeck ${name}` : all,
      );
  }

  private widget(key: string, line: string): void {
    this.quietly(() => {
      if (this.ctx?.hasUI) this.ctx.ui.setWidget(key, line === "" ? undefined : [visible(line)]);
    });
  }

  /** Pi's objects throw where the session has just been replaced, and with it who would read this. */
  private quietly(show: () => void): void {
    try {
      show();
    } catch {}
  }
}

/** Controls, and what turns text round or hides in it. Not what breaks lines or makes an emoji. */
const HIDDEN = /(?!\t|\n|\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** The text with all of these as escapes, as the engine's `printable` writes them. */
export function visible(text: string): string {
  const escaped = (unit: string) => {
    const code = unit.charCodeAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : `\\u${code.padStart(4, "0")}`;
  };
  // Without the flag `u`, each half of a surrogate pair by itself.
  return text.replace(HIDDEN, (sign) => sign.replace(/./gs, escaped));
}

/** The oldest Pi that is supported. Newer ones than are tested run; `foredeck doctor` says so. */
const OLDEST_PI = "1.5.2";

/** Whether foredeck runs in this version of Pi. */
export function isSupported(version: string): boolean {
  return version.localeCompare(OLDEST_PI, "en", { numeric: true }) >= 0;
}

export const TOO_OLD =
  `foredeck is off: it needs Pi ${OLDEST_PI} or newer, and this is Pi ${VERSION}. ` +
  "Update it (pi update, or npm install -g @earendil-works/pi-coding-agent) and start Pi again.";
