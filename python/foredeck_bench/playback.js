// Puts Pi into the time of a recorded session, call by call, and has its tools return what they
// returned then. PLAYBACK names a file with `times` (milliseconds, one for each call), `results` (by
// call id) and `tools` (names).
import { readFileSync } from "node:fs";

const { times, results, tools } = JSON.parse(readFileSync(process.env.PLAYBACK, "utf8"));
const now = Date.now;
let ahead = times[0] - now();
Date.now = () => now() + ahead;

export default function playback(pi) {
  let calls = 0;
  // Before any other handler of a call asks for the time: this extension is loaded first.
  pi.on("context", () => {
    const time = times[Math.min(calls, times.length - 1)];
    calls += 1;
    // Only forward: a second on this machine may be longer than it was in the recording.
    ahead = Math.max(ahead, time - now());
  });
  for (const name of tools) {
    pi.registerTool({
      name,
      label: name,
      description: `What ${name} returned.`,
      parameters: { type: "object", properties: {}, additionalProperties: true },
      execute: async (id) => {
        // Pi joins two ids over the Responses API.
        const { content, isError } = results[id.split("|")[0]];
        if (!isError) return { content, details: {} };
        throw new Error(content.map(({ text }) => text ?? "").join("\n"));
      },
    });
  }
}
