/** Stands in for a Pi process: connects to the engine in FOREDECK_ENGINE and leaves, or stays. */

import { Shim } from "../../shim.ts";

const shim = new Shim({ getActiveTools: () => [], getAllTools: () => [] } as never, "1.5.2");
const ctx = { hasUI: false, ui: { setStatus: () => {} }, isProjectTrusted: () => false };
const cwd = process.cwd();
shim.begin({ session: "s", file: null, cwd, reason: "startup", parent: null }, ctx as never);
if (process.argv[2] === "stay") setInterval(() => {}, 1000);
// Long enough for the engine to be asked; the process then has nothing left that holds it.
else setTimeout(() => {}, 1000);
