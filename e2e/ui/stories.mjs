// The page in a real browser. Each story is a function, named after the behaviour that it checks.

import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { Stage, axePath, launch, live, open, story, view } from "./stage.mjs";

const [binary, ...wanted] = process.argv.slice(2);

const edit = (agents, session, path, old, text) => agents.call(session, "edit_file", { path, old_string: old, new_string: text });

async function an_edit_is_on_the_screen_by_itself(stage, browser) {
  const agents = await story(stage);
  const { url } = await stage.serve();
  const page = await open(browser, url);
  assert.equal(await page.locator(".map tbody th").count(), 4);
  await view(page, "#/timeline");
  const done = await edit(agents, "one", "src/part1.rs", "    1\n", "    11\n");
  assert.equal(done.success, true, JSON.stringify(done));
  await page.locator(".entry .kind.change").first().waitFor();
  // It is stale for the other session, which is refused, and then repairs its edit.
  assert.equal((await edit(agents, "two", "src/part1.rs", "    1\n", "    12\n")).success, false);
  await page.locator(".entry .kind.refusal").first().waitFor();
  assert.equal((await edit(agents, "two", "src/part1.rs", "    11\n", "    12\n")).success, true);
  await page.locator(".entry .kind.repair").first().waitFor();
  // No session records the editor's change; the map detects it.
  await view(page, "#/");
  stage.write("src/part3.rs", "// Another program wrote this.\n");
  await page.locator('.map td.stale[aria-label*="codex one"]').nth(1).waitFor();
  return [page];
}

async function a_change_is_undone_from_the_page(stage, browser) {
  const agents = await story(stage);
  await edit(agents, "one", "src/part1.rs", "    1\n", "    11\n");
  const { url } = await stage.serve();
  const page = await open(browser, url);
  await view(page, "#/timeline");
  await page.locator(".entry .kind.change").first().click();
  await page.locator(".detail .diff .added").waitFor();
  await page.getByRole("button", { name: "Undo this change" }).click();
  await page.locator("dialog .diff .removed").waitFor();
  assert.match(stage.read("src/part1.rs"), / 11\n/, "it asks first");
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.match(stage.read("src/part1.rs"), / 11\n/, "cancelled");
  await page.getByRole("button", { name: "Undo this change" }).click();
  await page.locator("dialog button.primary:enabled").click();
  await page.locator(".entry .kind.undo").waitFor();
  assert.match(stage.read("src/part1.rs"), / 1\n/);
  await page.getByRole("button", { name: "Redo the last undo" }).click();
  await page.locator("dialog button.primary:enabled").click();
  await page.locator(".entry .kind.undo").nth(1).waitFor();
  assert.match(stage.read("src/part1.rs"), / 11\n/);
  const log = JSON.parse(stage.surehand("log", "--json").stdout);
  assert.deepEqual(log.map((entry) => entry.tool).filter(Boolean), ["redo", "undo", "edit_file"]);
  return [page];
}

async function one_file_is_restored_from_the_page(stage, browser) {
  const agents = await story(stage);
  for (const [path, from, to] of [["src/part1.rs", "    1\n", "    11\n"], ["src/part2.rs", "    2\n", "    22\n"], ["src/part1.rs", "    11\n", "    111\n"]]) {
    const done = await edit(agents, "one", path, from, to);
    assert.equal(done.success, true, JSON.stringify(done));
  }
  const { url } = await stage.serve();
  const page = await open(browser, url);
  await view(page, "#/timeline");
  await page.locator(".entry .kind.change").last().click();
  await page.getByRole("button", { name: "Restore this file to right after this" }).click();
  await page.locator("dialog .preview", { hasText: "1 file will change" }).waitFor();
  assert.match(stage.read("src/part1.rs"), / 111\n/, "it asks first");
  await page.locator("dialog button.primary:enabled").click();
  await page.locator(".entry .kind.restore").waitFor();
  assert.match(stage.read("src/part1.rs"), / 11\n/);
  assert.match(stage.read("src/part2.rs"), / 22\n/, "other files stay");
  return [page];
}

async function a_file_shows_its_authors_and_who_has_seen_it(stage, browser) {
  const agents = await story(stage);
  await edit(agents, "one", "src/part1.rs", "    1\n", "    11\n");
  const { url } = await stage.serve();
  const page = await open(browser, url);
  await page.locator(".map tbody tr", { hasText: "part1.rs" }).locator("td").first().click();
  const line = page.locator(".row.line", { hasText: "11" });
  await line.waitFor();
  assert.equal(await line.locator(".author").innerText(), "codex one");
  assert.equal(await page.locator(".row.line", { hasText: "Part 1" }).locator(".author").innerText(), "Ada");
  assert.deepEqual((await line.locator(".mark .sr").allInnerTexts()).map((text) => text.trim()).sort(), ["codex one: seen as it is now.", "codex two: not seen."]);
  await edit(agents, "one", "src/part1.rs", "    11\n", "    111\n");
  await page.locator(".row.line", { hasText: "111" }).waitFor();
  return [page];
}

async function rescued_text_is_compared_and_written_back(stage, browser) {
  const agents = await story(stage);
  const editor = fs.openSync(path.join(stage.root, "src/part4.rs"), "r+");
  assert.equal((await edit(agents, "one", "src/part4.rs", "    4\n", "    44\n")).success, true);
  fs.writeSync(editor, "// Typed meanwhile.\n", 0);
  fs.closeSync(editor);
  const { url } = await stage.serve();
  const page = await open(browser, url);
  await page.locator("nav a", { hasText: "Rescued 1" }).click();
  await page.locator(".box .diff .added", { hasText: "Typed meanwhile" }).waitFor();
  await page.getByRole("button", { name: "Write it to the file" }).click();
  await page.locator("dialog button.primary:enabled").click();
  await page.getByText("Nothing was rescued.").waitFor();
  assert.match(stage.read("src/part4.rs"), /Typed meanwhile/);
  return [page];
}

// A second worktree, whose agent changes the line that an agent here has changed, a shared task and a claim.
async function fleet(stage, branch) {
  const agents = await story(stage);
  const other = path.join(stage.home, "other");
  assert.equal(stage.git("worktree", "add", "-q", "-b", branch, other).status, 0);
  const theirs = await stage.agents(other);
  await theirs.call("three", "read_file", { path: "src/part1.rs" });
  for (const [connection, session, text] of [[agents, "one", "11"], [theirs, "three", "13"]]) {
    const done = await edit(connection, session, "src/part1.rs", "    1\n", `    ${text}\n`);
    assert.equal(done.success, true, JSON.stringify(done));
  }
  for (const words of [["add", "--story", CANARY[0], CANARY[1]], ["claim", "src/**"]]) {
    const done = stage.surehand("board", ...words);
    assert.equal(done.status, 0, done.stderr);
  }
  return agents;
}

async function the_board_shows_the_fleet_and_a_claim_is_cancelled(stage, browser) {
  const branch = "<img/src=x/onerror=globalThis.canary=1>";
  const { url } = await stage.serve();
  const page = await open(browser, url);
  await view(page, "#/board");
  await page.getByText("Nothing is on the board yet.").waitFor();
  await fleet(stage, branch);
  const part = (title) => page.locator("section.box", { has: page.getByRole("heading", { name: title }) });
  await part("Forecast of conflicts").locator("li", { hasText: "line 3 of src/part1.rs" }).waitFor();
  await part("Agents").locator("li.alive", { hasText: "three" }).filter({ hasText: `branch ${branch}` }).waitFor();
  await part("Agents").locator("li.alive", { hasText: "one" }).filter({ hasText: "here" }).waitFor();
  await part("Shared tasks of story").locator("li.pending", { hasText: CANARY[1] }).waitFor();
  await part("Changed here").locator("li", { hasText: /part1\.rs line 3/ }).waitFor();
  await part(/Changed in .*other/).locator("li", { hasText: "src/part1.rs line 3" }).waitFor();
  await part("Last headlines").locator("li", { hasText: /codex three changed src\/part1\.rs/ }).waitFor();
  assert.match(await page.locator("#board-status").innerText(), /this machine, read \d+ s ago/);
  assert.equal(await page.evaluate(() => globalThis.canary), undefined);
  assert.equal(await page.locator("main img, main script, [onerror]").count(), 0);
  const claims = () => JSON.parse(stage.surehand("board", "--json").stdout).claims.length;
  const cancel = part("Claims on paths").getByRole("button", { name: "Cancel claim" });
  await cancel.click();
  await page.locator("dialog .preview", { hasText: "has claimed src/**" }).waitFor();
  await page.getByRole("button", { name: "Keep claim" }).click();
  assert.equal(claims(), 1, "it asks first");
  await cancel.click();
  await page.locator("dialog button.primary:enabled").click();
  await part("Claims on paths").waitFor({ state: "detached" });
  assert.equal(claims(), 0);
  // The command line is seen by itself.
  stage.surehand("board", "claim", "README.md");
  await part("Claims on paths").locator("li", { hasText: "README.md" }).waitFor();
  // A board that cannot be opened is named, and is not taken for an empty one.
  const boards = path.join(stage.home, ".local/state/surehand/boards");
  const database = path.join(boards, fs.readdirSync(boards)[0], "board.db");
  for (const end of ["", "-wal", "-shm"]) fs.rmSync(database + end, { force: true });
  fs.mkdirSync(database);
  stage.surehand("helper", "--stop");
  await page.locator(".trouble", { hasText: "The board cannot be reached" }).waitFor();
  // The last known state stays, with its age.
  await part("Claims on paths").locator("li", { hasText: "README.md" }).waitFor();
  assert.match(await page.locator("#board-status").innerText(), /read \d+ s ago/);
  return [page];
}

// The number of events and sessions of a long day of a team of agents. Refusals cost less than edits, and fill a list
// as well.
export async function many(stage, editsOfEach = 5) {
  const agents = await stage.agents();
  const [sessions, entries, shared] = [100, 100, 40];
  for (let file = 0; file < shared; file++) stage.write(`shared/module${file}.rs`, `// Module ${file}.\n`);
  for (let session = 0; session < sessions; session++) {
    const name = `session${String(session).padStart(3, "0")}`;
    const waiting = [];
    for (let file = 0; file < 10; file++) waiting.push(agents.call(name, "read_file", { path: `shared/module${(session + file * 3) % shared}.rs` }));
    const own = `src/area${session % 10}/file${session}.rs`;
    waiting.push(agents.call(name, "write_file", { path: own, content: "value 0\n" }));
    for (let edit = 0; edit < editsOfEach; edit++) {
      waiting.push(agents.call(name, "edit_file", { path: own, old_string: `value ${edit}\n`, new_string: `value ${edit + 1}\n` }));
    }
    for (let refusal = editsOfEach + 1; refusal < entries; refusal++) {
      waiting.push(agents.call(name, "edit_file", { path: `src/missing${session}-${refusal}.rs`, old_string: "x", new_string: "y" }));
    }
    await Promise.all(waiting);
  }
  return agents;
}

async function ten_thousand_events_stay_smooth(stage, browser) {
  const agents = await many(stage);
  const { url } = await stage.serve();
  const page = await open(browser, url);
  assert.equal(await page.locator(".card").count(), 100);
  await view(page, "#/timeline");
  await page.getByText("10,000 entries").waitFor();
  assert.ok((await page.locator(".row").count()) < 120, "only visible rows are in the page");
  const list = page.locator(".list");
  await list.focus();
  await page.keyboard.press("End");
  await page.locator('[aria-posinset="10000"]').waitFor();
  await page.keyboard.press("Home");
  await page.locator('[aria-posinset="1"][aria-selected="true"]').waitFor();
  await page.getByLabel("Session", { exact: true }).selectOption("codex-session042");
  await page.getByText("100 of 10,000 entries").waitFor();
  await page.getByLabel("File or directory").fill("area3");
  await page.getByText("No entry fits.").waitFor();
  await page.getByRole("button", { name: "Show everything" }).click();
  await page.getByText("10,000 entries").waitFor();
  // The visible entries stay in place while new ones arrive.
  await list.evaluate((list) => (list.scrollTop = 30 * 5000));
  const middle = page.locator('[aria-posinset="5003"]');
  const before = await middle.innerText();
  await agents.call("session000", "edit_file", { path: "src/area0/file0.rs", old_string: "value 5\n", new_string: "value 6\n" });
  await page.getByText("10,001 entries").waitFor();
  assert.equal(await page.locator('[aria-posinset="5004"]').innerText(), before);
  return [page];
}

const CANARY = ["<img src=x onerror=globalThis.canary=1>", "</script><script>globalThis.canary=1</script>", "\"' onmouseover=globalThis.canary=1 x='", "javascript:globalThis.canary=1", "{{constructor.constructor('globalThis.canary=1')()}}"];

// Names, contents, sessions, stories and commands that want to run, to hide or to turn text around.
async function hostile(stage) {
  const names = [...CANARY.map((text) => text.replaceAll("/", "∕")), "a\u202etxt.exe", "bell\u0007\u001b[2J", "new\nline", "\u05d0\u05d1\u05d2.txt", "long".repeat(60), "#", "?", "%2e%2e", "~"];
  const content = [...CANARY, "a\u202eb", "\u001b]0;title\u0007", "x".repeat(500_000)].join("\n") + "\n";
  const agents = await stage.agents();
  for (const [index, name] of names.entries()) {
    stage.write(name, content);
    const session = index % 2 ? CANARY[1] : "<b>bold</b>";
    await agents.call(session, "read_file", { path: name, ranges: [[1, 7]] });
    await edit(agents, session, name, CANARY[4], "{{globalThis.canary=1}}");
    await edit(agents, "unread", name, CANARY[0], "z");
  }
  stage.write("binary", Buffer.from([0xff, 0xfe, 0x00, 0xd8, 0x80]));
  await agents.call("one", "read_file", { path: "binary" });
  stage.surehand("board", "add", "--story", CANARY[0], CANARY[1]);
  stage.surehand("board", "claim", "<img src=x onerror=globalThis.canary=1>/**");
  await agents.call("one", "update_tasks", { add: CANARY.map((description) => ({ description })), story: CANARY[0] });
  stage.write("turns.jsonl", [
    JSON.stringify({ text: CANARY[0], calls: [{ tool: "update_tasks", arguments: { add: [{ description: CANARY[1] }] } }] }),
    JSON.stringify({ text: CANARY[1], calls: [{ tool: "write_file", arguments: { path: "from-run.txt", content: CANARY[0] } }] }),
  ].join("\n"));
  stage.surehand("run", CANARY.join(" "), "--script", "turns.jsonl", "--yes", "--record-prompts", "--max-turns", "3");
  return names;
}

async function nothing_that_a_file_contains_runs_or_deceives(stage, browser) {
  const names = await hostile(stage);
  const { url } = await stage.serve();
  const page = await open(browser, url);
  const check = async (where) => {
    assert.equal(await page.evaluate(() => globalThis.canary), undefined, where);
    assert.deepEqual(await page.evaluate(() => globalThis.violations), [], where);
    // eslint-disable-next-line no-control-regex
    const text = await page.evaluate(() => document.documentElement.innerText + document.title);
    assert.doesNotMatch(text, /[\u0000-\u0008\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/u, where);
    assert.equal(await page.locator("main img, main script, main iframe, main object, main form, [onerror], [onmouseover], a[href^='javascript']").count(), 0, where);
  };
  const views = {
    "#/": ".map tbody th",
    "#/timeline": ".row .what",
    "#/files": ".file-row",
    "#/rescued": ".empty",
    "#/tasks": ".tasks li",
    "#/board": ".rows-of-board li",
    "#/runs": ".turns a",
    "#/<img src=x onerror=globalThis.canary=1>": ".map tbody th",
    "#/runs?run=<b>&turn=<b>": ".turns a",
    "#/timeline?id=<b>&session=<b>&path=<b>&kind=<b>": ".nothing .empty",
  };
  for (const [hash, drawn] of Object.entries(views)) {
    await view(page, hash);
    await page.locator(`main ${drawn}`).first().waitFor();
    await check(hash);
  }
  for (const name of names) {
    await view(page, `#/file/${encodeURIComponent(name)}`);
    await page.locator(".row.line").first().waitFor();
    await check(name);
  }
  await view(page, "#/timeline");
  const rows = page.locator(".row");
  for (let index = 0; index < Math.min(12, await rows.count()); index++) {
    await rows.nth(index).click();
    await page.locator(".detail h2").waitFor();
    await check(`entry ${index}`);
  }
  await view(page, "#/runs");
  await page.locator(".turns a").first().click();
  await page.locator(".fold").first().waitFor();
  await check("turn");
  await view(page, `#/file/${encodeURIComponent(names[0])}`);
  await page.getByRole("button", { name: "Undo its last change" }).click();
  await page.locator("dialog .preview .diff, dialog .preview .answer").first().waitFor();
  await check("preview");
  return [page];
}

async function the_desktop_is_asked_to_open_the_page(stage, browser) {
  await story(stage);
  // A desktop whose browser records the address.
  const [bin, noted] = [path.join(stage.home, "bin"), path.join(stage.home, "address")];
  fs.mkdirSync(bin);
  for (const opener of ["xdg-open", "open"]) fs.writeFileSync(path.join(bin, opener), `#!/bin/sh\nprintf %s "$1" >'${noted}.new' && mv '${noted}.new' '${noted}'\n`, { mode: 0o755 });
  stage.environment.PATH = `${bin}:${stage.environment.PATH}`;
  const { url } = await stage.serve("ui", "--open", "--json");
  for (const until = Date.now() + 30_000; !fs.existsSync(noted) && Date.now() < until; ) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(fs.readFileSync(noted, "utf8"), url);
  return [await open(browser, fs.readFileSync(noted, "utf8"))];
}

async function a_wrong_token_shows_nothing(stage, browser) {
  await story(stage);
  const { url } = await stage.serve();
  for (const address of [url.replace(/#.*/, ""), url.replace(/token=../, "token=zz")]) {
    const page = await open(browser, "");
    await page.goto(address);
    await page.getByText("This page needs its address with the token.").waitFor();
    assert.doesNotMatch(await page.evaluate(() => document.body.innerText), /part1|codex/);
    await page.context().close();
  }
  const page = await open(browser, url);
  assert.doesNotMatch(page.url(), /token/, "the token leaves the address");
  assert.equal(await page.evaluate(() => document.cookie), "");
  await page.reload();
  await live(page);
  return [page];
}

async function other_sites_get_nothing(stage, browser) {
  await story(stage);
  const { url } = await stage.serve();
  const { port } = new URL(url);
  const token = url.split("token=")[1];
  const site = http.createServer((_, response) => response.setHeader("content-type", "text/html").end("<p>Another site.</p>")).listen(0, "127.0.0.1");
  await new Promise((resolve) => site.once("listening", resolve));
  const page = await open(browser, "");
  await page.goto(`http://127.0.0.1:${site.address().port}/`);
  const tried = await page.evaluate(
    async ([port, token]) => {
      const attempt = (promise) => promise.then((response) => `status ${response.status} ${response.type}`, () => "refused");
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      return [
        await attempt(fetch(`http://127.0.0.1:${port}/api/start`, { headers })),
        await attempt(fetch(`http://127.0.0.1:${port}/api/act`, { method: "POST", headers, body: '{"act":"redo"}' })),
        await attempt(import(`http://127.0.0.1:${port}/app.js`).then(() => ({ status: 0, type: "imported" }))),
        await new Promise((resolve) => {
          const frame = document.createElement("iframe");
          frame.onload = () => resolve(frame.contentDocument === null ? "refused" : frame.contentDocument.body.innerText);
          frame.src = `http://127.0.0.1:${port}/`;
          document.body.append(frame);
        }),
      ];
    },
    [port, token],
  );
  assert.deepEqual(tried, ["refused", "refused", "refused", "refused"]);
  // A name that an attacker lets point here.
  const rebound = await page.goto(`http://attacker.example:${port}/`);
  assert.equal(rebound.status(), 421);
  site.close();
  page.trouble = [];
  return [];
}

async function the_keyboard_is_enough(stage, browser) {
  const agents = await story(stage);
  await edit(agents, "one", "src/part1.rs", "    1\n", "    11\n");
  const { url } = await stage.serve();
  const page = await open(browser, url);
  await page.locator(".map").focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowUp", "ArrowRight"]) await page.keyboard.press(key);
  assert.match(await page.locator("#map-active").getAttribute("aria-label"), /codex/);
  await page.keyboard.press("Enter");
  await page.locator(".row.line").first().waitFor();
  await page.locator("nav a", { hasText: "Timeline" }).focus();
  await page.keyboard.press("Enter");
  // The view before has a list, too.
  await page.locator(".list .entry").first().waitFor();
  await page.locator(".list").focus();
  await page.keyboard.press("ArrowDown");
  await page.locator(".detail .diff").waitFor();
  for (let steps = 0; steps < 20 && !(await page.evaluate(() => document.activeElement.textContent === "Undo this change")); steps++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator("dialog button.primary:enabled").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.className), "primary");
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "hidden" });
  assert.match(stage.read("src/part1.rs"), / 11\n/);
  await page.getByRole("button", { name: "Undo this change" }).press("Enter");
  await page.locator("dialog button.primary:enabled").press("Enter");
  await page.locator(".entry .kind.undo").waitFor();
  assert.match(stage.read("src/part1.rs"), / 1\n/);
  return [page];
}

async function axe_finds_nothing_in_light_and_dark(stage, browser) {
  const agents = await fleet(stage, "other");
  await edit(agents, "two", "src/part1.rs", "    1\n", "    12\n");
  stage.write("turns.jsonl", JSON.stringify({ text: "hello", calls: [{ tool: "list_files", arguments: {} }] }));
  stage.surehand("run", "a story", "--script", "turns.jsonl", "--yes", "--record-prompts", "--max-turns", "2");
  stage.surehand("tasks", "add", "a task of a person");
  const { url } = await stage.serve();
  for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["light", 390]]) {
    const page = await open(browser, url, { colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
    // It is of no run, and open all the same.
    await page.locator("nav a", { hasText: "Tasks 1" }).waitFor();
    await page.addScriptTag({ path: axePath });
    for (const hash of ["#/", "#/timeline", "#/files", `#/file/${encodeURIComponent("src/part1.rs")}`, "#/rescued", "#/tasks", "#/board", "#/runs?turn=1"]) {
      await view(page, hash);
      await page.locator({ "#/": ".map tbody th", "#/timeline": ".row", "#/files": ".row", "#/rescued": ".empty", "#/tasks": ".tasks", "#/board": ".rows-of-board button", "#/runs?turn=1": ".fold" }[hash] ?? ".row.line").first().waitFor();
      if (hash === "#/timeline") {
        await page.locator(".entry .kind.change, .entry .sign.change").first().click();
        await page.locator(".detail .diff").waitFor();
      }
      await noViolations(page, `${hash} ${colorScheme} ${width}`);
      const link = await page.locator("nav [aria-current]").boundingBox();
      assert.ok(link.x >= 0 && link.x + link.width <= width, `${hash}: its link is out of view`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${hash} is wider than the screen`);
    }
    await view(page, "#/board");
    await page.getByRole("button", { name: "Cancel claim" }).click();
    await page.locator("dialog button.primary:enabled").waitFor();
    await noViolations(page, `dialog of a claim ${colorScheme} ${width}`);
    await page.keyboard.press("Escape");
    await view(page, "#/timeline");
    await page.locator(".row").first().waitFor();
    await page.locator(".entry .sign.change").first().click();
    await page.getByRole("button", { name: "Undo this change" }).click();
    await page.locator("dialog .diff").waitFor();
    await noViolations(page, `dialog ${colorScheme} ${width}`);
    await page.context().close();
  }
  return [];
}

async function noViolations(page, where) {
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const found = violations.map((violation) => `${violation.id}: ${violation.help}: ${violation.nodes.slice(0, 3).map((node) => node.html).join(" ")}`);
  assert.deepEqual(found, [], where);
}

async function a_page_says_when_the_server_is_gone(stage, browser) {
  await story(stage);
  const { url, child } = await stage.serve();
  const page = await open(browser, url);
  child.kill("SIGINT");
  await page.locator("#connection.lost").waitFor();
  assert.equal(await new Promise((resolve) => (child.exitCode === null ? child.once("exit", resolve) : resolve(child.exitCode))), 0);
  page.trouble = [];
  return [page];
}

async function the_demo_shows_a_refusal_a_repair_and_rescued_work(stage, browser) {
  const { url } = await stage.serve("demo", "--ui", "--json");
  const page = await open(browser, url);
  await page.locator("nav a", { hasText: "Rescued 1" }).waitFor();
  await view(page, "#/timeline");
  for (const kind of ["refusal", "repair", "outside"]) {
    await page.locator(`.chip[data-kind="${kind}"]`).click();
    await page.locator(`.entry .kind.${kind}`).first().waitFor();
    await page.locator(`.chip[data-kind="${kind}"]`).click();
  }
  await view(page, "#/runs");
  await page.locator(".plot rect").first().waitFor();
  await page.locator(".turns a").first().click();
  await page.locator(".fold", { hasText: "Prompt: system" }).waitFor();
  return [page];
}

async function a_run_that_is_looked_at_stays_as_it_is(stage, browser) {
  stage.write("turns.jsonl", JSON.stringify({ text: "hello", calls: [{ tool: "list_files", arguments: {} }] }));
  const run = (story) => stage.surehand("run", story, "--script", "turns.jsonl", "--yes", "--record-prompts", "--max-turns", "2");
  run("first");
  const { url } = await stage.serve();
  const page = await open(browser, url);
  await view(page, "#/runs");
  await page.locator(".turns a").first().click();
  await page.locator("#turn .fold summary", { hasText: "Prompt: system" }).click();
  await page.locator(".turns summary").click();
  const before = await page.locator("#turn").innerText();
  // The list changes, so all of it is drawn again.
  await page.locator(".plot").evaluate((plot) => (plot.dataset.before = "yes"));
  run("second");
  await page.locator(".plot[data-before]").waitFor({ state: "detached" });
  await page.locator(".runs .card").nth(1).waitFor();
  assert.equal(await page.locator(".turns").evaluate((turns) => turns.open), false);
  assert.equal(await page.locator("#turn").innerText(), before);
  await page.locator('.card [aria-current="true"]', { hasText: "first" }).waitFor();
  return [page];
}

async function a_report_opens_without_a_server(stage, browser) {
  await hostile(stage);
  const file = path.join(stage.home, "report.html");
  const made = stage.surehand("ui", "--export", file, "--session", "codex-<b>bold</b>");
  assert.equal(made.status, 0, made.stderr);
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  const again = stage.surehand("ui", "--export", file);
  assert.equal(again.status, 2, "it is not written over a file");
  const page = await open(browser, "", { colorScheme: "dark" });
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(file).href);
  await page.getByRole("heading", { name: "What happened" }).waitFor();
  assert.ok(await page.locator("article").count());
  assert.equal(await page.evaluate(() => globalThis.canary), undefined);
  assert.equal(await page.locator("script, img, link, iframe, a").count(), 0);
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector("dl")).display), "grid", "its style applies");
  assert.equal(requests.length, 1);
  const check = await open(browser, "", { bypassCSP: true });
  await check.goto(pathToFileURL(file).href);
  await check.addScriptTag({ path: axePath });
  await noViolations(check, "report");
  return [page];
}

const STORIES = [
  an_edit_is_on_the_screen_by_itself,
  a_change_is_undone_from_the_page,
  one_file_is_restored_from_the_page,
  a_file_shows_its_authors_and_who_has_seen_it,
  rescued_text_is_compared_and_written_back,
  the_board_shows_the_fleet_and_a_claim_is_cancelled,
  nothing_that_a_file_contains_runs_or_deceives,
  the_desktop_is_asked_to_open_the_page,
  a_wrong_token_shows_nothing,
  other_sites_get_nothing,
  the_keyboard_is_enough,
  axe_finds_nothing_in_light_and_dark,
  a_page_says_when_the_server_is_gone,
  the_demo_shows_a_refusal_a_repair_and_rescued_work,
  a_run_that_is_looked_at_stays_as_it_is,
  a_report_opens_without_a_server,
  ten_thousand_events_stay_smooth,
];

async function play(browser, story) {
  const stage = new Stage(binary);
  const began = Date.now();
  try {
    for (const page of await story(stage, browser)) {
      assert.deepEqual(page.trouble, []);
      assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    }
    console.log(`PASS ${story.name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    return true;
  } catch (error) {
    console.log(`FAIL ${story.name}: ${error.stack}`);
    return false;
  } finally {
    await Promise.all(browser.contexts().map((context) => context.close()));
    await stage.end();
  }
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const browser = await launch();
  let failed = 0;
  const chosen = STORIES.filter((story) => !wanted.length || wanted.includes(story.name));
  for (const story of chosen) failed += (await play(browser, story)) ? 0 : 1;
  await browser.close();
  console.log(`${chosen.length - failed} passed, ${failed} failed`);
  process.exit(failed || !chosen.length ? 1 : 0);
}
