/** A view to move in, as the engine describes it: rows, keys that run commands, texts to read. */

import type { ExtensionCommandContext, Theme, ThemeColor } from "@earendil-works/pi-coding-agent";
import {
  type Component,
  Input,
  type KeyId,
  matchesKey,
  type TUI,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
} from "@earendil-works/pi-tui";
import type { Answer, AskEngine } from "./command.ts";
import { isRecord } from "./context/messages.ts";
import { textOf } from "./engine/wire.ts";

/** What the engine has to be shown (docs/protocol.md, `command`), or nothing but a text to read. */
interface View {
  title: string;
  notes: string[];
  bar: [kind: string, size: number, legend: string][];
  heads: string[];
  rows: { name: string; cells: string[]; fill?: string; about?: string[] }[];
  keys: { key: KeyId; label: string; run: string; asks?: string; opens?: boolean }[];
  empty: string;
  text?: string;
}
type Row = View["rows"][number];
type ViewKey = View["keys"][number];

const NO_ROWS = { notes: [], bar: [], heads: [], rows: [], keys: [], empty: "" };

/** Longer texts are read in a view. */
const NOTICE_LINES = 3;
/** Lines below the rows, the keys left out. */
const MOST_SAID = 8;

/** By what a cell, or a part of the bar, says. */
const COLOURS: Record<string, ThemeColor> = {
  "system and tools": "warning",
  foredeck: "mdHeading",
  chat: "mdLink",
  "in view": "success",
  pinned: "accent",
  folded: "muted",
  free: "borderMuted",
  critical: "error",
  high: "warning",
  medium: "accent",
  low: "muted",
  info: "dim",
};

/** A text in place of the rows. */
type Page = { title: string; text: string; top: number };

/** What a screen needs of the command, and of Pi. */
interface Surroundings {
  ask: AskEngine;
  /** A text as it may be shown. */
  worded(text: string): string;
  tui: TUI;
  theme: Theme;
  done(): void;
}

/** Shows an answer until the user leaves it; false where it is short enough for a notice. */
export async function showAnswer(
  answer: Answer,
  title: string,
  around: Pick<Surroundings, "ask" | "worded"> & { typedKeys(): string[] },
  ctx: ExtensionCommandContext,
): Promise<boolean> {
  const text = around.worded(answer.text);
  const own = asView(answer.view, around.worded);
  const isShort = text.split("\n").length <= NOTICE_LINES && text.length <= NOTICE_LINES * 80;
  if (!own && isShort) return false;
  const view = own ?? { ...NO_ROWS, title, text };
  const overlayOptions = { width: "100%", maxHeight: "100%", anchor: "top-left" } as const;
  await ctx.ui.custom<void>(
    (tui, theme, _keys, done) => {
      const screen = new ViewScreen({ tui, theme, done, ...around }, view, answer.asked);
      const keys = around.typedKeys();
      // Once it is shown: a key may close it.
      setImmediate(() => {
        for (const key of keys) screen.handleInput(key);
      });
      return screen;
    },
    { overlay: true, overlayOptions },
  );
  return true;
}

/** An answer's `view`, each text in it on one line and as `worded` has it; null where none is. */
export function asView(view: unknown, worded: (text: string) => string): View | null {
  if (!isRecord(view)) return null;
  const clean = (_key: string, value: unknown) =>
    typeof value === "string" ? worded(value).replace(/\s+/g, " ") : value;
  return JSON.parse(JSON.stringify(view), clean);
}

/** A view on the screen: Pi draws it, and hands it what is typed. */
export class ViewScreen implements Component {
  focused = true;
  private readonly around: Surroundings;
  private view: View;
  /** The command that the view answers. */
  private origin: string;
  private at = 0;
  /** Names of the rows that a key for several rows is for. */
  private marked = new Set<string>();
  private top = 0;
  private room = 1;
  private readonly search = new Input();
  private message = "";
  /** A line that is being typed, below the view. */
  private typing: { label: string; line: Input } | null = null;
  private page: Page | null = null;

  constructor(around: Surroundings, view: View, origin: string) {
    this.around = around;
    this.view = view;
    this.origin = origin;
    if (view.text !== undefined) this.page = { title: view.title, text: view.text, top: 0 };
  }

  invalidate(): void {}

  render(width: number): string[] {
    const { theme } = this.around;
    const head = [theme.bold(theme.fg("accent", (this.page ?? this.view).title))];
    const notes = this.view.notes.map((note) => theme.fg("muted", note));
    const heads = theme.fg("dim", `  ${this.aligned(this.view.heads, this.columns())}`);
    const table = this.view.rows.length > 0 ? heads : "";
    if (!this.page) head.push(...this.bar(width), ...notes, "", table);
    const foot = ["", ...this.footer(width)];
    this.room = Math.max(1, this.around.tui.terminal.rows - head.length - foot.length);
    const body = this.page ? this.read(this.page, width) : this.rows(width);
    while (body.length < this.room) body.push("");
    return [...head, ...body, ...foot].map((line) => filled(line, width));
  }

  handleInput(data: string): void {
    if (this.typing) {
      const before = this.search.getValue();
      this.typing.line.handleInput(data);
      if (this.search.getValue() !== before) this.at = 0;
    } else if (this.page) this.scroll(this.page, data);
    else this.press(data);
    this.around.tui.requestRender();
  }

  private bar(width: number): string[] {
    const { bar } = this.view;
    const total = bar.reduce((sum, [, size]) => sum + size, 0);
    if (total === 0) return [];
    let [drawn, sum] = [0, 0];
    const cells = bar.map(([kind, size]) => {
      sum += size;
      // What is there is seen, however little it is.
      const until = Math.max(Math.round((sum / total) * width), drawn + 1);
      const part = (kind === "free" ? "░" : "█").repeat(Math.min(until, width) - drawn);
      drawn = Math.min(until, width);
      return this.coloured(kind, part);
    });
    const legend = bar.map(([kind, , text]) => this.coloured(kind, "■ ") + text);
    return [cells.join(""), ...this.wrapped(legend, "  ", width)];
  }

  private rows(width: number): string[] {
    const rows = this.found();
    const query = this.search.getValue();
    if (rows.length === 0) return [query === "" ? this.view.empty : `Nothing matches ${query}.`];
    // Only here is it known how many rows there are, and how many have room: keys just count.
    this.at = Math.max(0, Math.min(this.at, rows.length - 1));
    this.top = Math.max(this.at - this.room + 1, Math.min(this.top, this.at));
    const widths = this.columns();
    return rows.slice(this.top, this.top + this.room).map((row, index) => {
      const isAt = this.top + index === this.at;
      const cells = this.aligned(row.cells, widths);
      const mark = this.marked.has(row.name) ? "*" : " ";
      const line = filled(`${isAt ? "→" : " "}${mark}${cells}`, width);
      return isAt ? this.around.theme.bg("selectedBg", line) : line;
    });
  }

  /** How wide each column is; the last takes what is left. */
  private columns(): number[] {
    const lines = [this.view.heads, ...this.view.rows.map(({ cells }) => cells)];
    return this.view.heads
      .slice(0, -1)
      .map((_, column) => Math.max(...lines.map((cells) => visibleWidth(cells[column] ?? ""))));
  }

  /** Cells in their columns, numbers to the right. */
  private aligned(cells: string[], widths: number[]): string {
    const padded = cells.map((cell, column) => {
      const gap = " ".repeat(Math.max(0, (widths[column] ?? 0) - visibleWidth(cell)));
      const text = this.coloured(cell, cell);
      return /^\d/.test(cell) && widths[column] ? gap + text : text + gap;
    });
    return padded.join("  ");
  }

  private read(page: Page, width: number): string[] {
    const source = page.text.replaceAll("\t", "    ").split("\n");
    const lines = source.flatMap((line) => wrapTextWithAnsi(line, width));
    page.top = Math.max(0, Math.min(page.top, lines.length - this.room));
    return lines.slice(page.top, page.top + this.room);
  }

  private footer(width: number): string[] {
    if (this.typing) return [this.typing.label, ...this.typing.line.render(width)];
    // As they are typed.
    const typed = (key: string) => key.replace(/^shift\+(.)/, (_, letter) => letter.toUpperCase());
    const own = this.view.keys.map(({ key, label }) => `${typed(key)} ${label}`);
    const keys = this.page
      ? ["↑↓ PgUp PgDn scroll", this.view.text === undefined ? "q back" : "q quit"]
      : [...own, ...(this.takesSeveral ? ["x mark"] : []), "/ search", "q quit"];
    const shown = this.wrapped(keys, " · ", width).map((line) => this.around.theme.fg("dim", line));
    const about = this.page ? [] : (this.found()[this.at]?.about ?? []);
    const said = [...about, this.message].flatMap((line) => wrapTextWithAnsi(line, width));
    return [...said.filter((line) => line !== "").slice(0, MOST_SAID), ...shown];
  }

  private get takesSeveral(): boolean {
    return this.view.keys.some(({ run }) => run.includes("{rows}"));
  }

  private mark(): void {
    const rows = this.found();
    const name = rows[this.at]?.name;
    if (name !== undefined && !this.marked.delete(name)) this.marked.add(name);
    this.at = Math.min(this.at + 1, rows.length - 1);
  }

  /** Pieces side by side, each whole on one line. */
  private wrapped(pieces: string[], between: string, width: number): string[] {
    const lines: string[] = [];
    for (const piece of pieces) {
      const longer = lines.at(-1) + between + piece;
      if (lines.length > 0 && visibleWidth(longer) <= width) lines[lines.length - 1] = longer;
      else lines.push(piece);
    }
    return lines;
  }

  private found(): Row[] {
    const words = this.search.getValue().toLowerCase().split(" ");
    return this.view.rows.filter(({ cells }) => {
      const text = cells.join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  private press(data: string): void {
    this.message = "";
    const move = this.moved(data);
    if (move !== 0) this.at += move;
    else if (matchesKey(data, "/"))
      this.readLine("Search; Enter keeps it, Esc shows all:", this.search);
    else if (matchesKey(data, "x") && this.takesSeveral) this.mark();
    else if (matchesKey(data, "escape") && this.search.getValue() !== "") this.search.setValue("");
    else if (this.leaves(data)) this.around.done();
    else {
      const key = this.view.keys.find((each) => matchesKey(data, each.key));
      if (key) this.start(key);
    }
  }

  private scroll(page: Page, data: string): void {
    if (!this.leaves(data)) page.top += this.moved(data);
    else if (this.view.text === undefined) this.page = null;
    else this.around.done();
  }

  /** By how many lines a key moves. */
  private moved(data: string): number {
    // Beyond any list, and still exact when it is added to where one is.
    const far = Number.MAX_SAFE_INTEGER / 4;
    const page = { pageUp: -this.room, pageDown: this.room, space: this.room };
    const steps = { up: -1, k: -1, down: 1, j: 1, home: -far, end: far, ...page };
    return Object.entries(steps).find(([key]) => matchesKey(data, key as KeyId))?.[1] ?? 0;
  }

  private leaves(data: string): boolean {
    return (["q", "escape", "ctrl+c"] as const).some((key) => matchesKey(data, key));
  }

  private start(key: ViewKey): void {
    const row = this.found()[this.at];
    // Keys that need no row work in an empty list, too.
    if (!row && key.run.includes("{row")) return;
    if (key.asks === undefined) return void this.run(key, row, "");
    const line = new Input();
    line.setValue(row?.fill ?? "");
    this.readLine(key.asks, line, (text) => void this.run(key, row, text));
  }

  private readLine(label: string, line: Input, submit = (_text: string): void => {}): void {
    this.typing = { label, line };
    line.focused = true;
    line.onSubmit = (value) => {
      this.typing = null;
      if (value.trim() !== "") submit(value.trim());
    };
    line.onEscape = () => {
      this.typing = null;
      line.setValue("");
    };
  }

  private async run(key: ViewKey, row: Row | undefined, text: string): Promise<void> {
    const chosen = row?.name ?? "";
    // Nothing happens to a row that a search hides.
    const marked = this.found().filter(({ name }) => this.marked.has(name));
    const names = marked.map(({ name }) => name).join(" ") || chosen;
    if (key.run.includes("{rows}")) this.marked.clear();
    const line = key.run
      .replace("{rows}", () => names)
      .replace("{row}", () => chosen)
      .replace("{text}", () => text);
    const { ask, worded } = this.around;
    try {
      const answer = await ask(line);
      const view = asView(answer.view, worded);
      if (view) this.take(view, answer.asked);
      else if (key.opens) {
        const title = row && key.run.includes("{row}") ? row.cells.join("  ") : key.label;
        this.page = { title, text: worded(answer.text), top: 0 };
      } else {
        // What the command has changed is seen at once.
        this.take(asView((await ask(this.origin)).view, worded) ?? this.view, this.origin);
        this.message = worded(answer.text);
      }
    } catch (error) {
      this.message = worded(textOf(error));
    }
    this.around.tui.requestRender();
  }

  /** Shows another state of things. */
  private take(view: View, origin: string): void {
    const name = this.found()[this.at]?.name;
    this.view = view;
    this.origin = origin;
    const at = this.found().findIndex((row) => row.name === name);
    // The chosen row is followed up. Where it has moved down, the next one is at hand.
    if (at >= 0) this.at = Math.min(at, this.at);
  }

  private coloured(kind: string, text: string): string {
    const colour = COLOURS[kind];
    return colour ? this.around.theme.fg(colour, text) : text;
  }
}

/** A line cut to this width, or with blanks up to it. */
function filled(line: string, width: number): string {
  return truncateToWidth(line, width, "...", true);
}
