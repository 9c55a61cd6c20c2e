/**
 * One copy of foredeck for each Pi: two would edit the same messages, and Pi does not start when two
 * extensions register the same tools.
 */

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

/** Copies ask here, with a function that takes the path of the one that was first. */
const CHANNEL = "foredeck:loaded";

/**
 * Takes the place of the one copy, unless another has it.
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

/** Tells the user, once in a session, that this copy does nothing. */
export function standBack(pi: ExtensionAPI, path: string, first: string): void {
  let said = false;
  pi.on("session_start", (_event, ctx) => {
    if (said) return;
    said = true;
    const text = `foredeck is loaded twice: ${path} does nothing beside ${first}. Remove one of them (pi list, pi remove).`;
    if (ctx.hasUI) ctx.ui.notify(text, "warning");
    else console.error(text);
  });
}
