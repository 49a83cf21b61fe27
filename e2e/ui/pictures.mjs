// The pictures of the documentation, from the story that `surehand demo --ui` plays.

import fs from "node:fs";
import path from "node:path";

import { Stage, launch, open, view } from "./stage.mjs";

const [binary, folder = path.join(import.meta.dirname, "../../docs/pictures")] = process.argv.slice(2);
const stage = new Stage(binary);
const browser = await launch();
fs.mkdirSync(folder, { recursive: true });

async function picture(name, url, hash, options, prepare = async () => {}) {
  const page = await open(browser, url, { viewport: { width: 1180, height: 680 }, ...options });
  await page.locator("nav a", { hasText: "Rescued 1" }).waitFor();
  await view(page, hash);
  await prepare(page);
  await page.mouse.move(0, 0);
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
  await page.context().close();
}

try {
  const { url } = await stage.serve("demo", "--ui", "--json");
  await picture("overview-light", url, "#/", { colorScheme: "light" });
  await picture("timeline-dark", url, "#/timeline", { colorScheme: "dark" }, async (page) => {
    await page.locator(".entry .kind.repair").first().click();
    await page.locator(".detail .diff").waitFor();
  });
  await picture("phone-overview", url, "#/", { colorScheme: "light", viewport: { width: 390, height: 760 } });
} finally {
  await browser.close();
  await stage.end();
}
