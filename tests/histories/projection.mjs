// Prints what Pi shows the model of session files, a line of JSON for each: for every answer, by the
// number of its entry, what `buildSessionProjection` makes of the entries before it, and under "leaf"
// of all; each as pairs of an entry's id and its message.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [pi, ...files] = process.argv.slice(2);
const { buildSessionProjection, migrateSessionEntries, parseSessionEntries } = await import(
  pathToFileURL(pi).href
);

for (const file of files) {
  const all = parseSessionEntries(readFileSync(file, "utf8"));
  migrateSessionEntries(all);
  const entries = all.filter((entry) => entry.type !== "session");
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const shownAt = (leaf) =>
    buildSessionProjection(entries, leaf, byId).entries.flatMap(({ sourceEntry, messages }) =>
      messages.map((message) => [sourceEntry.id, message]),
    );
  const shown = { leaf: shownAt(undefined) };
  for (const [number, entry] of entries.entries()) {
    if (entry.type !== "message" || entry.message.role !== "assistant") continue;
    shown[number] = shownAt(entry.parentId);
  }
  console.log(JSON.stringify(shown));
}
