// A workspace with agents, its page, and a browser, shared by the stories, the numbers and the pictures.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";

const require = createRequire(path.join(process.env.SUREHAND_E2E_PACKAGES, "x.js"));
export const { chromium } = require("playwright-core");
export const axePath = require.resolve("axe-core/axe.min.js");

const ARGUMENTS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP attacker.example 127.0.0.1",
];

export const launch = () => chromium.launch({ executablePath: process.env.SUREHAND_E2E_BROWSER, args: ARGUMENTS });

export class Stage {
  constructor(binary) {
    this.binary = binary;
    this.home = fs.mkdtempSync(path.join(os.tmpdir(), "surehand-ui-"));
    this.root = path.join(this.home, "project");
    fs.mkdirSync(this.root);
    this.environment = { PATH: process.env.PATH, HOME: this.home, LANG: "C.UTF-8", GIT_CONFIG_GLOBAL: "/dev/null" };
    this.children = [];
    this.git("init", "-q");
  }

  git(...words) {
    return this.exec("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", ...words]);
  }

  exec(program, words, input) {
    const done = spawnSync(program, words, { cwd: this.root, env: this.environment, input, encoding: "utf8" });
    if (done.error) throw done.error;
    return done;
  }

  // Runs a command of the program.
  surehand(...words) {
    return this.exec(this.binary, words);
  }

  write(name, content) {
    const place = path.join(this.root, name);
    fs.mkdirSync(path.dirname(place), { recursive: true });
    fs.writeFileSync(place, content);
  }

  read(name) {
    return fs.readFileSync(path.join(this.root, name), "utf8");
  }

  start(words, cwd = this.root) {
    const child = spawn(this.binary, words, { cwd, env: this.environment, stdio: ["pipe", "pipe", "inherit"] });
    this.children.push(child);
    return child;
  }

  // Serves the page, and returns its address.
  async serve(...words) {
    const child = this.start(words.length ? words : ["ui", "--json"]);
    const line = await new Promise((resolve, reject) => {
      readline.createInterface({ input: child.stdout }).once("line", resolve);
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
    return { ...JSON.parse(line), child };
  }

  // Agents, all over one connection: every call names its session.
  async agents(cwd) {
    const agents = new Agents(this.start(["mcp"], cwd));
    await agents.begin();
    return agents;
  }

  // Ends the helper, which no agent starts again, and waits until it has written everything.
  async endHelper() {
    const { helper } = JSON.parse(this.surehand("helper", "--status", "--json").stdout);
    if (!helper) return;
    this.surehand("helper", "--stop");
    for (const until = Date.now() + 5000; Date.now() < until; await new Promise((resolve) => setTimeout(resolve, 20))) {
      try {
        process.kill(helper.process, 0);
      } catch {
        return;
      }
    }
  }

  async end() {
    const ended = this.children.filter((child) => child.exitCode === null && child.signalCode === null).map((child) => new Promise((resolve) => child.once("exit", resolve).kill("SIGTERM")));
    await Promise.all(ended);
    await this.endHelper();
    fs.rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Agents {
  constructor(child) {
    this.child = child;
    this.waiting = new Map();
    this.next = 1;
    readline.createInterface({ input: child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    });
  }

  ask(method, params) {
    const id = this.next++;
    const answer = new Promise((resolve) => this.waiting.set(id, resolve));
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return answer;
  }

  async begin() {
    await this.ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "codex-mcp-client", version: "1" } });
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  }

  // Makes a call as a session; the result object is in `_meta`.
  async call(session, name, args) {
    const answer = await this.ask("tools/call", { name, arguments: args, _meta: { sessionId: session, "surehand/result": true } });
    return answer.result?._meta?.["surehand/result"] ?? answer.result;
  }
}

// Opens the page in a tab that reports errors.
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.trouble = [];
  await page.addInitScript(() => {
    globalThis.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  page.on("pageerror", (error) => page.trouble.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && page.trouble.push(`console: ${message.text()}`));
  page.on("dialog", (dialog) => (page.trouble.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  if (url) {
    await page.goto(url);
    await live(page);
  }
  return page;
}

// Waits until the page follows the server, and has drawn its first view.
export async function live(page) {
  await page.locator("#connection.live").waitFor();
  await page.locator("main > div").first().waitFor();
}

export const view = (page, hash) => page.evaluate((hash) => (location.hash = hash), hash);

// Two agents and an editor in a small project, as in most stories.
export async function story(stage) {
  for (let number = 1; number <= 6; number++) stage.write(`src/part${number}.rs`, `// Part ${number}.\nfn part() -> u32 {\n    ${number}\n}\n`);
  stage.write("README.md", "# Project\n\nWhat it does.\n");
  stage.git("add", "-A");
  stage.git("commit", "-qm", "first");
  const agents = await stage.agents();
  for (let number = 1; number <= 4; number++) await agents.call("one", "read_file", { path: `src/part${number}.rs` });
  await agents.call("two", "read_file", { path: "src/part1.rs" });
  await agents.call("two", "read_file", { path: "src/part2.rs", ranges: [[1, 2]] });
  return agents;
}
