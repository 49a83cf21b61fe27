// Workspaces and sessions as handles: closing, promises, processes, bad input, memory.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import * as sdk from "@surehand/sdk";
import { Edit, Workspace } from "@surehand/sdk";

import { place } from "./place.mjs";

const HERE = import.meta.dirname ?? new URL(".", import.meta.url).pathname;

test("a closed workspace says so", async (t) => {
  const { root, workspace, session } = await place(t);
  const other = workspace.session();
  await other.close();
  await assert.rejects(other.read("a.txt"), { name: "ClosedError", code: "closed", message: "the session is closed" });
  await session.read("a.txt");
  const permit = await session.judge(Edit.write("a.txt", ""));
  await workspace.close();
  await workspace.close();
  assert.equal(workspace.path, root);
  await assert.rejects(session.read("a.txt"), sdk.ClosedError);
  await assert.rejects(permit.adopt(), sdk.ClosedError);
  await assert.rejects(workspace.repoState(), sdk.ClosedError);
  assert.throws(() => workspace.session(), sdk.ClosedError);
});

test("calls of one session run one after the other", async (t) => {
  const { session, file } = await place(t);
  const writes = Array.from({ length: 50 }, (_, number) => session.edit(Edit.write("b.txt", `${number}\n`)));
  const undone = session.undo();
  await Promise.all(writes);
  await undone;
  assert.equal(readFileSync(file("b.txt"), "utf8"), "48\n");
});

test("sessions run side by side, and a refused call does not stop the next", async (t) => {
  const { root, workspace, session } = await place(t);
  const edits = Array.from({ length: 40 }, (_, number) => workspace.session().edit(Edit.write(`${number}.new`, "x\n")));
  const settled = await Promise.allSettled([...edits, session.read("none"), session.read("a.txt")]);
  assert.deepEqual(settled.map((one) => one.status).filter((status) => status === "rejected").length, 1);
  assert.equal(readdirSync(root).filter((name) => name.endsWith(".new")).length, 40);
});

test("the event loop goes on during a call", async (t) => {
  const { session, file } = await place(t);
  // Long enough that the loop gets a processor, though the search uses them all.
  for (let number = 0; number < 20; number += 1) writeFileSync(file(`${number}.txt`), "line of text\n".repeat(100_000));
  for (let search = 0; search < 20; search += 1) {
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await session.call("search_files", { pattern: "t(e|x)+t never", glob: "*.txt" });
    isDone = true;
    if (turns > 20) return;
  }
  assert.fail("the event loop stood still");
});

test("a close waits for the calls that are under way", async (t) => {
  const { workspace, session, file } = await place(t);
  const first = session.edit(Edit.write("b.txt", "b\n"));
  const rest = Array.from({ length: 20 }, () => session.edit(Edit.write("b.txt", "c\n")));
  const [closed, ...settled] = await Promise.allSettled([workspace.close(), first, ...rest]);
  assert.equal(closed.status, "fulfilled");
  for (const one of settled) assert(one.status === "fulfilled" || one.reason instanceof sdk.ClosedError);
  await assert.rejects(session.read(file("a.txt")), sdk.ClosedError);
});

function inAnotherProcess(root, stateDir, code) {
  const program = `import { Edit, Workspace } from "@surehand/sdk";
const workspace = await Workspace.open(${JSON.stringify(root)}, { stateDir: ${JSON.stringify(stateDir)} });
${code}`;
  execFileSync(process.execPath, ["--input-type=module", "--eval", program], { cwd: HERE });
}

test("two processes have one state", async (t) => {
  const { root, stateDir, workspace, session } = await place(t);
  await session.read("a.txt");
  const shared = workspace.session({ id: "shared", shared: true });
  const code = `const other = workspace.session({ id: "theirs" });
await other.read("a.txt");
await other.edit(Edit.replace("a.txt", "two", "2"));
await workspace.session({ id: "shared", shared: true }).read("a.txt");
await workspace.close();`;
  inAnotherProcess(root, stateDir, code);
  const edit = Edit.replace("a.txt", "two", "zwei");
  await assert.rejects(session.edit(edit), (error) => error instanceof sdk.StaleRefusal && error.text.includes("2|2"));
  await shared.edit(Edit.replace("a.txt", "2", "two"));
});

test("a program that closes nothing loses nothing", async (t) => {
  const { root, stateDir, workspace, file } = await place(t);
  const code = `const session = workspace.session({ id: "story" });
await session.read("a.txt");
await session.edit(Edit.replace("a.txt", "two", "2"));`;
  inAnotherProcess(root, stateDir, code);
  const session = workspace.session({ id: "story" });
  await session.edit(Edit.replace("a.txt", "one", "1"));
  await session.undo({ all: true });
  assert.equal(readFileSync(file("a.txt"), "utf8"), "one\ntwo\nthree\n");
});

test("a worker thread has its own", async (t) => {
  const { root, stateDir } = await place(t);
  const code = `const { Workspace } = require("@surehand/sdk");
const { parentPort } = require("node:worker_threads");
(async () => {
  const workspace = await Workspace.open(${JSON.stringify(root)}, { stateDir: ${JSON.stringify(stateDir)} });
  parentPort.postMessage((await workspace.session().read("a.txt")).result.total_lines);
  await workspace.close();
})();`;
  const require = createRequire(import.meta.url);
  const path = JSON.stringify(require.resolve("@surehand/sdk"));
  const worker = new Worker(code.replace('"@surehand/sdk"', path), { eval: true });
  const lines = await new Promise((resolve, reject) => worker.on("message", resolve).on("error", reject));
  assert.equal(lines, 3);
  await worker.terminate();
});

test("settings come from the program and the environment", async (t) => {
  process.env.SUREHAND_LIMITS_READ_LINES = "1";
  t.after(() => delete process.env.SUREHAND_LIMITS_READ_LINES);
  const { root, stateDir, session } = await place(t);
  assert.deepEqual((await session.read("a.txt")).result.shown, [{ start: 1, end: 1 }]);
  const settings = { "limits.read_lines": 2 };
  const workspace = await Workspace.open(root, { stateDir, settings, inMemory: true, watch: true });
  assert.deepEqual((await workspace.session().read("a.txt")).result.shown, [{ start: 1, end: 2 }]);
  await workspace.close();
});

test("bad input is an error of its kind", async (t) => {
  const { root, stateDir, workspace, session, file } = await place(t);
  const invalid = (call) => assert.rejects(call, sdk.InvalidArgumentError);
  await assert.rejects(Workspace.open(file("none")), sdk.OpenError);
  await assert.rejects(Workspace.open(file("a.txt")), sdk.OpenError);
  await assert.rejects(Workspace.open(root, { stateDir, settings: { "policy.onchange": 1 } }), sdk.SettingsError);
  await invalid(() => Workspace.open(root, { settings: { "limits.read_lines": NaN } }));
  await invalid(() => Workspace.open(7));
  await invalid(() => Workspace.open(root, { stateDir, nonsense: true }));
  for (const options of [{ id: "" }, { id: 7 }, { shared: true }, { tools: ["fly"] }, { tools: "read_file" }]) {
    assert.throws(() => workspace.session(options), sdk.InvalidArgumentError);
  }
  await invalid(() => session.read());
  await invalid(() => session.read({}));
  await invalid(() => session.read("\ud800.txt"));
  await invalid(() => session.read("a.txt", { offset: "1" }));
  await invalid(() => session.read("a.txt", { offset: 1.5 }));
  await invalid(() => session.read("a.txt", { offset: 1e300 }));
  await invalid(() => session.read("a.txt", { offset: Infinity }));
  await invalid(() => session.read("a.txt", { limit: 10n }));
  await invalid(() => session.read("a.txt", { limit: -1 }));
  await invalid(() => session.read("a.txt", { lines: 1 }));
  await invalid(() => session.edit(Edit.write("b.txt", "lone \ud800 surrogate")));
  await invalid(() => session.edit({ tool: "write_file", arguments: { path: "b.txt", content: "" } }));
  await invalid(() => session.edit(new Edit("read_file", { path: "a.txt" })));
  await invalid(() => session.judge(new Edit("fly", {})));
  await invalid(() => session.adopt({}));
  await invalid(() => session.call(7));
  await invalid(() => session.call("read_file", { path: () => "a.txt" }));
  await invalid(() => session.shown("a.txt", "one", { start: -1 }));
  await invalid(() => session.forget("a.txt"));
  await assert.rejects(session.edit(Edit.write("b.txt", 7)), sdk.BadArgumentsRefusal);
  await assert.rejects(session.read("\0"), sdk.BadArgumentsRefusal);
  await assert.rejects(session.undo({ path: "a.txt", all: true }), sdk.BadArgumentsRefusal);
  await assert.rejects(session.undo({ change: "none" }), sdk.NoChangeRefusal);
  assert.throws(() => new sdk.Session(), TypeError);
  assert.throws(() => new Workspace(), TypeError);
  assert.throws(() => new sdk.Permit(), TypeError);
  const circular = {};
  circular.self = circular;
  await assert.rejects(session.call("read_file", circular), TypeError);
  // Not one of them has changed anything.
  assert.deepEqual(readdirSync(root).filter((name) => name !== ".surehand"), ["a.txt"]);
});

test("ten thousand calls leak nothing", async (t) => {
  const { session } = await place(t, { inMemory: true });
  await session.read("a.txt");
  const calls = async (number) => {
    for (let turn = 0; turn < number; turn += 1) {
      await session.read("a.txt");
      await session.judge(Edit.replace("a.txt", "two", "2"));
      await session.call("read_file", { path: "none.txt" });
      (await session.repoState()).formatForPrompt();
    }
    globalThis.gc();
  };
  await calls(1_000);
  const before = process.memoryUsage().rss;
  await calls(2_500);
  // A leak of 2 KB in each call would be 20 MB; the heap of JavaScript itself is not that steady.
  assert(process.memoryUsage().rss - before < 20_000_000);
});

test("the package is one for import and for require", () => {
  const required = createRequire(import.meta.url)("@surehand/sdk");
  assert.deepEqual(Object.keys(required).sort(), Object.keys(sdk).sort());
  assert.equal(required.Workspace, Workspace);
  assert.match(sdk.version, /^\d+\.\d+\.\d+/);
});
