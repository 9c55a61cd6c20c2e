/** What the user sees of the project's tasks: a line above the editor, and names to choose from. */

import { isRecord } from "./context/messages.ts";
import type { Host } from "./host.ts";

/** The open tasks as the engine last had them, shown by the host. */
export class TaskView {
  private readonly host: Host;
  private named: [string, string][] = [];

  constructor(host: Host) {
    this.host = host;
  }

  /** Name and title of each open task, the first to be done first. */
  get open(): readonly [string, string][] {
    return this.named;
  }

  /**
   * Takes an answer's `tasks`: `{line, open}`. Without it nothing has changed; an empty line is that
   * of a project without tasks, of which nothing is shown.
   */
  take(tasks: unknown): void {
    if (!isRecord(tasks)) return;
    const { line, open } = tasks;
    if (typeof line === "string") this.host.widget(line === "" ? undefined : [line]);
    if (Array.isArray(open)) this.named = open.filter(isNamed);
  }
}

function isNamed(value: unknown): value is [string, string] {
  return (
    Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === "string")
  );
}
