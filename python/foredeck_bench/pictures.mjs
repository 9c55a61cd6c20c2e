// Takes pictures of pages of the inspector in a headless Chromium:
//   node shoot.mjs CHROMIUM ADDRESS FOLDER < [{"name", "path", "height", "find"}, ...]
// Each is taken light and dark, as NAME-light.png and NAME-dark.png; with `find`, from there on
// where a text first stands.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

// The pages keep room for a scroll bar, which a headless browser does not draw.
const GUTTER = 15;
const WIDTH = 1000;
const [executablePath, address, folder] = process.argv.slice(2);
const pages = JSON.parse(readFileSync(0, "utf8"));
const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
for (const colorScheme of ["light", "dark"]) {
  for (const { name, path, height, find } of pages) {
    const viewport = { width: WIDTH + GUTTER, height };
    const context = await browser.newContext({ colorScheme, reducedMotion: "reduce", viewport });
    const page = await context.newPage();
    await page.goto(address);
    await page.goto(new URL(path, address).href, { waitUntil: "load" });
    // What takes long says how far it is, and renews itself.
    await page.waitForFunction(() => !document.querySelector("progress"));
    if (find) {
      const place = page.getByText(find).filter({ visible: true }).first();
      await place.evaluate((element) => element.scrollIntoView({ block: "center" }));
    }
    const clip = { x: 0, y: 0, width: WIDTH, height };
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png`, clip });
    await context.close();
  }
}
await browser.close();
