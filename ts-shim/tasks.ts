/** What the user sees of the project's tasks: a line above the editor. */

import { isRecord } from "./context/messages.ts";
import type { Host } from "./host.ts";

/** The open tasks as the engine last had them, shown by the host. */
export class TaskView {
  private readonly host: Host;

  constructor(host: Host) {
    this.host = host;
  }

  /**
   * Takes an answer's `tasks`: `{line}`. Without it nothing has changed; an empty line is that
   * of a project without tasks, of which nothing is shown.
   */
  take(tasks: unknown): void {
    if (!isRecord(tasks)) return;
    const { line } = tasks;
    if (typeof line === "string") this.host.widget(line === "" ? undefined : [line]);
  }
}
