// Measures the page with 10,000 events and 100 sessions. Use a release build; compare only figures of one run. With a
// number, that many events of each session are edits, and the others refusals, which take less time to make.

import fs from "node:fs";

import { Stage, launch, live, open, view } from "./stage.mjs";
import { many } from "./stories.mjs";

const [binary, editsOfEach = "99"] = process.argv.slice(2);
const stage = new Stage(binary);
const browser = await launch();

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
const at = (numbers, part) => sorted(numbers)[Math.min(numbers.length - 1, Math.floor(numbers.length * part))];
const ms = (number) => `${number.toFixed(1)} ms`;
const say = (what, value) => console.log(`${what.padEnd(58)} ${value}`);

// Processor seconds that a process has used.
function used(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function edits(agents, session, file, from, count) {
  const times = [];
  for (let value = from; value < from + count; value++) {
    const began = performance.now();
    const done = await agents.call(session, "edit_file", { path: file, old_string: `value ${value}\n`, new_string: `value ${value + 1}\n` });
    times.push(performance.now() - began);
    if (done.success !== true) throw new Error(JSON.stringify(done));
  }
  return times;
}

try {
  const agents = await many(stage, Number(editsOfEach));
  const { url, child } = await stage.serve();
  const [first, paints] = [[], []];
  let page;
  for (let run = 0; run < 7; run++) {
    await page?.context().close();
    page = await open(browser, "");
    await page.addInitScript(() => {
      const look = () => (document.querySelector(".map tbody th") && document.querySelector(".card") ? requestAnimationFrame(() => (globalThis.painted ??= performance.now())) : requestAnimationFrame(look));
      look();
    });
    await page.goto(url);
    await live(page);
    paints.push(await page.waitForFunction(() => globalThis.painted).then((handle) => handle.jsonValue()));
    first.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
  }
  const bytes = await page.evaluate(() => performance.getEntriesByType("resource").filter((entry) => !entry.name.includes("/api/")).reduce((sum, entry) => sum + entry.decodedBodySize, performance.getEntriesByType("navigation")[0].decodedBodySize));
  say("page, all files", `${(bytes / 1000).toFixed(0)} kB`);
  say("first paint, by the browser: the first time, median of six", `${ms(first[0])}, ${ms(at(first.slice(1), 0.5))}`);
  say("map and sessions are complete, the first time", ms(paints[0]));
  say("  again, median of six", ms(at(paints.slice(1), 0.5)));

  await view(page, "#/timeline");
  await page.locator(".row").first().waitFor();
  await page.evaluate(() => {
    globalThis.seen = new Map();
    const look = () => document.querySelectorAll(".row .what").forEach((what) => {
      const id = what.textContent;
      if (!globalThis.seen.has(id)) globalThis.seen.set(id, Date.now());
    });
    new MutationObserver(look).observe(document.querySelector(".rows"), { childList: true, subtree: true });
  });
  const delays = [];
  for (let number = 0; number < 60; number++) {
    const name = `new/file${number}.txt`;
    const done = await agents.call("session000", "write_file", { path: name, content: "x\n" });
    const replied = Date.now();
    if (done.success !== true) throw new Error(JSON.stringify(done));
    const seen = await page.waitForFunction((name) => [...globalThis.seen].find(([what]) => what.startsWith(name))?.[1], name);
    delays.push((await seen.jsonValue()) - replied);
    await pause(300);
  }
  say("from the reply to the screen: median, 95 of 100, worst", `${at(delays, 0.5)}, ${at(delays, 0.95)}, ${Math.max(...delays)} ms`);

  await view(page, "#/");
  await pause(5000);
  const before = used(child.pid);
  await pause(30000);
  say("idle, page open: part of a core", `${(((used(child.pid) - before) / 30) * 100).toFixed(2)} %`);

  const [withPage, without] = [[], []];
  let value = Number(editsOfEach);
  for (let round = 0; round < 6; round++) {
    await page.goto("about:blank");
    await pause(1000);
    without.push(...(await edits(agents, "session001", "src/area1/file1.rs", value, 150)));
    value += 150;
    await page.goto(url);
    await page.reload();
    await live(page);
    await pause(1000);
    withPage.push(...(await edits(agents, "session001", "src/area1/file1.rs", value, 150)));
    value += 150;
  }
  say("an agent's edit without a page: median, 95 of 100", `${ms(at(without, 0.5))}, ${ms(at(without, 0.95))}`);
  say("  with a page open", `${ms(at(withPage, 0.5))}, ${ms(at(withPage, 0.95))}`);
} finally {
  await browser.close();
  await stage.end();
}
