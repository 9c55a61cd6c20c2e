/** What the user has typed, told from what Pi, files and other programs put into a prompt. */

/** Pi's `input` event: before skills and prompt templates are expanded. */
export interface Input {
  text: string;
  source: string;
}

/** A longer text was pasted: nothing in it counts as said by the user. */
const MOST_CHARS = 1000;
/** How Pi puts the `@file` arguments of its command line before the message. */
const FILE_BEGINS = '<file name="';
const FILE_ENDS = "</file>\n";
/** `/skill:name` or a prompt template: what follows is the user's. */
const COMMAND = /^\/\S+\s+/;

/**
 * What of an input the user typed; null for nothing. Of what came with Pi's command line one
 * argument of one line counts: files and standard input stand before it in the same text, and a
 * longer argument is most likely the text of a file (`pi "$(cat issue.md)"`).
 *
 * @param args the arguments of this process
 * @param hasUI whether somebody could type into this Pi
 */
export function typedIn({ text, source }: Input, args: readonly string[], hasUI: boolean) {
  if (source === "extension") return null;
  const files = text.includes(FILE_BEGINS) ? text.lastIndexOf(FILE_ENDS) : -1;
  const own = files < 0 ? text : text.slice(files + FILE_ENDS.length);
  const given = args.filter((arg) => own.endsWith(arg)).sort((a, b) => b.length - a.length)[0];
  const isArgument = source === "interactive" && (!hasUI || given === own);
  const typed = isArgument ? (given ?? "") : own;
  if (isArgument && typed.includes("\n")) return null;
  const said = typed.replace(COMMAND, "").trim();
  return said !== "" && said.length <= MOST_CHARS ? said : null;
}
