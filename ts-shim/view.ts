/** A view to move in, as the engine describes it: rows, keys that run commands, texts to read. */

import type { ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import type { KeyId } from "@earendil-works/pi-tui";
import { isRecord } from "./context/messages.ts";

export interface Row {
  /** What keys call it. */
  name: string;
  cells: string[];
  /** What a line that is asked for begins with. */
  fill?: string;
  /** What else is shown while it is chosen. */
  about?: string[];
}

/** `run`: a command, in which the row's name and a typed line replace `{row}` and `{text}`. */
export interface ViewKey {
  key: KeyId;
  label: string;
  run: string;
  asks?: string;
  /** Whether the answer is a text to read. */
  opens?: boolean;
}

export interface View {
  title: string;
  notes: string[];
  /** Of each part of the bar: what it is, how large, and what the legend says. */
  bar: [string, number, string][];
  /** The names of the columns. */
  heads: string[];
  rows: Row[];
  keys: ViewKey[];
  /** What is said where there are no rows. */
  empty: string;
  /** Nothing but a text to read. */
  text?: string;
}

/** Asks the engine to run a command; a view may come beside the text. */
export type Ask = (name: string, args: string) => Promise<{ text: string; view: View | null }>;

/** Longer texts are read in a view. */
const NOTICE_LINES = 3;
/** An answer's `view`, each text in it on one line and as `worded` has it; null where none is. */
export function asView(view: unknown, worded: (text: string) => string): View | null {
  if (!isRecord(view) || !Array.isArray(view.rows) || !Array.isArray(view.keys)) return null;
  const clean = (_key: string, value: unknown) =>
    typeof value === "string" ? worded(value).replace(/\s+/g, " ") : value;
  return JSON.parse(JSON.stringify(view), clean);
}

/** A text as a view, where it is too long for a notice; else null. */
export function readable(title: string, text: string): View | null {
  if (text.split("\n").length <= NOTICE_LINES && text.length <= NOTICE_LINES * 80) return null;
  return { title, text, notes: [], bar: [], heads: [], rows: [], keys: [], empty: "" };
}

/**
 * Shows a view until the user leaves it. False where this host has no screen for one.
 * @param origin the command that the view answers, to be asked again once a key has changed things
 */
export async function showView(
  view: View,
  origin: [string, string],
  ask: Ask,
  ctx: ExtensionCommandContext,
): Promise<boolean> {
  if (ctx.mode !== "tui") return false;
  // Pi's screen library is not there in every host.
  const screen = await import("./view-screen.ts").catch(() => null);
  if (screen === null) return false;
  const overlayOptions = { width: "100%", maxHeight: "100%", anchor: "top-left" } as const;
  await ctx.ui.custom<void>(
    (tui, theme, _keys, done) => new screen.ViewScreen({ tui, theme, ask, done }, view, origin),
    { overlay: true, overlayOptions },
  );
  return true;
}
