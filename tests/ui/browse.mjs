// Opens pages of the inspector in a headless Chromium, and says what it found as JSON:
//   node browse.mjs CHROMIUM BASE TOKEN [PICTURES] < [{"path", "scheme", "width"}, ...]
// A path is one of the server's, or the address of a file.
// Per page: what axe-core objects to, which tables stood open, errors on the console, and requests to anywhere else.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [executablePath, base, token, pictures] = process.argv.slice(2);
const pages = JSON.parse(readFileSync(0, "utf8"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--expose-gc",
    "--enable-precise-memory-info",
  ],
});

// The content policy lets no script in: axe runs in a world of its own, by the debugger.
async function objections(page) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", {
    frameId: frameTree.frame.id,
    worldName: "axe",
  });
  const run = async (expression, awaitPromise) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression,
      awaitPromise,
      contextId: executionContextId,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
    return result.value;
  };
  await run(`${axe}; 0`, false);
  const found = await run(
    `axe.run(document, { resultTypes: ["violations"] }).then((r) => JSON.stringify(r.violations.map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " :: " + n.failureSummary)])))`,
    true,
  );
  return JSON.parse(found);
}

// One window for each way to look, let in once: the pages of a user share one, too.
const windows = new Map();
async function windowFor(scheme, width) {
  const key = `${scheme} ${width}`;
  if (!windows.has(key)) {
    const viewport = { width, height: 900 };
    const context = await browser.newContext({ colorScheme: scheme, reducedMotion: "reduce", viewport });
    windows.set(key, context);
    const door = await context.newPage();
    await door.goto(`${base}/?token=${token}`);
    await door.close();
  }
  return windows.get(key);
}

const found = [];
for (const { path, scheme, width } of pages) {
  const context = await windowFor(scheme, width);
  const page = await context.newPage();
  const errors = [];
  const elsewhere = [];
  const dialogs = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("dialog", (dialog) => dialogs.push(dialog.message()) && dialog.dismiss());
  const isFile = path.startsWith("file:");
  const home = isFile ? path.split("#")[0] : base;
  page.on("request", (request) => request.url().startsWith(home) || elsewhere.push(request.url()));
  const started = performance.now();
  await page.goto(isFile ? path : base + path, { waitUntil: "load" });
  const loaded = performance.now() - started;
  // What takes long says how far it is, and renews itself.
  await page.waitForFunction(() => !document.querySelector("progress"));
  const memory = await page.evaluate(() => performance.memory.usedJSHeapSize);
  const wider = await page.evaluate(
    () => document.documentElement.scrollWidth > document.documentElement.clientWidth,
  );
  const open = await page.evaluate(() => document.querySelectorAll("details[open]").length);
  if (isFile) await page.evaluate(() => {
    for (const each of document.querySelectorAll("details")) each.open = true;
  });
  if (pictures) {
    const name = `${path.replaceAll(/[^a-zA-Z0-9]+/g, "-").slice(0, 60)}-${scheme}-${width}.png`;
    await page.screenshot({ path: `${pictures}/${name}` });
  }
  const violations = await objections(page);
  found.push({ path, scheme, width, errors, elsewhere, dialogs, violations, loaded, memory, wider, open });
  await page.close();
}
await browser.close();
console.log(JSON.stringify(found));
