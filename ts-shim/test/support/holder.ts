/**
 * Stands in for a Pi process that starts the engine in FOREDECK_ENGINE. With a path as argument it
 * holds itself alive only until that file is there; without, for ever.
 */

import { existsSync } from "node:fs";
import { Shim } from "../../shim.ts";

const pi = { getActiveTools: () => [], getAllTools: () => [] };
const shim = new Shim(pi as never);
const ctx = { hasUI: false, ui: { setStatus: () => {} }, isProjectTrusted: () => false };
const cwd = process.cwd();
shim.begin({ session: "s", file: null, cwd, reason: "startup", parent: null }, ctx as never);
const sign = process.argv[2];
const hold = setInterval(() => {
  if (sign && existsSync(sign)) clearInterval(hold);
}, 20);
