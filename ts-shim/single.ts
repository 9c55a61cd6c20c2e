/**
 * Makes sure that only one copy of foredeck works in a Pi: two would edit the same messages, and Pi
 * refuses to start when two extensions register the same tools.
 */

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { visible } from "./visible.ts";

/** A copy asks here who was first, with a function that takes the path of that one. */
const CHANNEL = "foredeck:loaded";

/**
 * Claims to be the working copy, unless another one has done so.
 * @param path where this copy was loaded from
 * @returns the path of the copy that was loaded before, or null
 */
export function firstCopy(pi: ExtensionAPI, path: string): string | null {
  let first: string | null = null;
  pi.events.emit(CHANNEL, (other: string) => {
    first ??= other;
  });
  if (first === null) {
    pi.events.on(CHANNEL, (answer) => {
      if (typeof answer === "function") answer(path);
    });
  }
  return first;
}

/** Tells the user, once, that this copy does nothing. */
export function stepAside(pi: ExtensionAPI, path: string, first: string): void {
  let notified = false;
  pi.on("session_start", (_event, ctx) => {
    if (notified) return;
    notified = true;
    const text = `foredeck is loaded twice: ${path} does nothing beside ${first}. Remove one of them (pi list, pi remove).`;
    if (ctx.hasUI) ctx.ui.notify(visible(text), "warning");
    else console.error(visible(text));
  });
}
