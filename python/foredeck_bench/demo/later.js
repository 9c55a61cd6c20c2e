// A Pi extension of the demo: `/later` puts Pi's clock forward by an hour, in which the provider's
// cache expires. It starts in the past, so that the end of the story is now.

const HOUR = 3_600_000;
const now = Date.now;
let ahead = -2 * HOUR;
Date.now = () => now() + ahead;

export default function later(pi) {
  pi.registerCommand("later", {
    description: "put the clock forward by an hour",
    handler: async () => {
      ahead += HOUR;
    },
  });
}
