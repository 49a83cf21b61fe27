// The calls of a session: read, edit, refuse, judge, adopt, undo.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import * as sdk from "@surehand/sdk";
import { Edit, Refusal, StaleRefusal, UnreadRefusal } from "@surehand/sdk";

import { TEXT, place } from "./place.mjs";

const text = (path) => readFileSync(path, "utf8");

test("a stale edit is refused and repaired", async (t) => {
  const { session, file } = await place(t);
  await session.read("a.txt");
  writeFileSync(file("a.txt"), `zero\n${TEXT}`);
  const edit = Edit.replace("a.txt", "two", "2");
  const refusal = await session.edit(edit).catch((error) => error);
  assert(refusal instanceof StaleRefusal && refusal instanceof Refusal && refusal instanceof Error);
  const { code, name, path, repeat, affectedRanges } = refusal;
  assert.deepEqual({ code, name, path, repeat }, { code: "stale", name: "StaleRefusal", path: "a.txt", repeat: 1 });
  assert.deepEqual(affectedRanges, [{ start: 1, end: 1 }]);
  assert.match(refusal.text, /1\|zero/);
  assert.equal(refusal.message, refusal.text);
  assert.match(refusal.remedy, /read_file/);
  assert.equal(refusal.details.code, "stale");
  assert.equal(text(file("a.txt")), `zero\n${TEXT}`);

  const reply = await session.edit(edit);
  assert.equal(reply.refusal, undefined);
  assert.equal(reply.result.path, "a.txt");
  assert.equal(text(file("a.txt")), "zero\none\n2\nthree\n");
});

test("each refusal has its class", async (t) => {
  const { session, file } = await place(t);
  const refused = (kind, edit) => assert.rejects(session.edit(edit), kind);
  writeFileSync(file("binary"), Buffer.from([0, 1, 2]));
  await refused(UnreadRefusal, Edit.replace("a.txt", "one", "1"));
  await session.read("a.txt", { limit: 1 });
  await refused(sdk.PartialRefusal, Edit.write("a.txt", "new\n"));
  await session.read("a.txt");
  await refused(sdk.NotFoundRefusal, Edit.replace("a.txt", "four", "4"));
  await refused(sdk.AmbiguousRefusal, Edit.replace("a.txt", "e", "E"));
  await refused(sdk.NoChangeRefusal, Edit.replace("a.txt", "one", "one"));
  await refused(sdk.ExistsRefusal, Edit.move("a.txt", "binary"));
  await refused(sdk.BadPatchRefusal, Edit.patch("*** Begin Patch\nnonsense"));
  await refused(sdk.OutsideWorkspaceRefusal, Edit.write("../out.txt", ""));
  await refused(sdk.ProtectedRefusal, Edit.write("surehand.toml", ""));
  await refused(sdk.AnchorMismatchRefusal, Edit.lines("a.txt", [{ op: "delete", at: "1#zz" }]));
  await refused(sdk.BadArgumentsRefusal, new Edit("edit_lines", { path: "a.txt", edits: [{ op: "fly" }] }));
  await assert.rejects(session.read("binary"), sdk.BinaryRefusal);
  unlinkSync(file("a.txt"));
  await refused(sdk.DeletedRefusal, Edit.replace("a.txt", "one", "1"));
});

test("every kind of edit", async (t) => {
  const { session, file } = await place(t);
  const shown = (await session.read("a.txt", { anchors: true })).text;
  const at = shown.split("\n").find((line) => line.endsWith("|two")).split("|")[0];
  await session.edit(Edit.lines("a.txt", [{ op: "replace", at, text: "2" }]));
  const pairs = [["one", "1"], ["three", "3"]];
  await session.edit(Edit.replaceMany(pairs.map(([oldText, newText]) => ({ path: "a.txt", oldText, newText }))));
  assert.equal(text(file("a.txt")), "1\n2\n3\n");
  await session.edit(Edit.patch("*** Begin Patch\n*** Update File: a.txt\n@@\n-2\n+two\n*** End Patch\n"));
  await session.edit(Edit.move("a.txt", "b.txt"));
  await session.edit(Edit.replace(pathToFileURL(file("b.txt")), "1", "one", { all: true }));
  assert.equal(text(file("b.txt")), "one\ntwo\n3\n");
  await session.edit(Edit.write("sub/ü.txt", "ä 🦀\n"));
  assert.equal(text(file("sub/ü.txt")), "ä 🦀\n");
  await session.edit(Edit.delete("b.txt"));
  assert(!existsSync(file("b.txt")));
});

test("reading a part", async (t) => {
  const { session } = await place(t);
  const shown = async (options) => (await session.read("a.txt", options)).result.shown;
  assert.deepEqual(await shown({ offset: 2, limit: 1 }), [{ start: 2, end: 2 }]);
  assert.deepEqual(await shown({ offset: -1 }), [{ start: 3, end: 3 }]);
  const ranges = [{ start: 1, end: 1 }, { start: 3, end: 3 }];
  assert.deepEqual(await shown({ ranges }), ranges);
  await assert.rejects(session.read("a.txt", { offset: 0 }), sdk.BadRangeRefusal);
});

test("an own write is judged and adopted", async (t) => {
  const { session, file } = await place(t);
  const edit = Edit.write(file("a.txt"), "new\n");
  await assert.rejects(session.judge(edit), UnreadRefusal);
  // The refusal has shown the file.
  const { note, value } = await session.guard(edit, () => writeFileSync(file("a.txt"), "new\n"));
  assert.deepEqual({ note, value }, { note: "", value: undefined });
  assert.equal(await session.changedSinceRead("a.txt"), false);
  await session.edit(Edit.replace("a.txt", "new", "newer"));
  await session.undo({ all: true });
  assert.equal(text(file("a.txt")), TEXT);
});

test("what the model should know is in the note", async (t) => {
  const { session, file } = await place(t);
  mkdirSync(file("sub"));
  writeFileSync(file("sub/AGENTS.md"), "Use tabs.\n");
  const permit = await session.judge(Edit.write("sub/b.txt", "b\n"));
  assert.equal(permit.note, "");
  writeFileSync(file("sub/b.txt"), "b\n// formatted\n");
  const told = await permit.adopt();
  assert.match(told, /\/\/ formatted[^]*Use tabs\./);
  assert.equal(permit.note, told);
  assert.equal(await session.instructionsIfNew("sub"), undefined);
});

test("an edit that failed is not recorded", async (t) => {
  const { session } = await place(t);
  await session.read("a.txt");
  const failing = session.guard(Edit.write("a.txt", "new\n"), () => Promise.reject(new RangeError("full")));
  await assert.rejects(failing, RangeError);
  await assert.rejects(session.undo(), sdk.NoChangeRefusal);
  await session.edit(Edit.replace("a.txt", "one", "1"));
});

test("an edit beside another's is rebased, and the note says so", async (t) => {
  const { session, workspace, file } = await place(t, { settings: { "policy.on_change": "rebase" } });
  await session.read("a.txt");
  writeFileSync(file("a.txt"), `zero\n${TEXT}`);
  const permit = await session.judge(Edit.replace("a.txt", "two", "2"));
  assert.match(permit.note, /zero/);
  writeFileSync(file("a.txt"), "zero\none\n2\nthree\n");
  await assert.rejects(workspace.session().adopt(permit), sdk.InvalidArgumentError);
  assert.equal(await session.adopt(permit), "");
});

test("lines that were shown count until they are forgotten", async (t) => {
  const { session, file } = await place(t);
  assert.equal(await session.shown("a.txt", "two\nnever", { start: 2 }), 1);
  assert.equal(await session.shown(pathToFileURL(file("a.txt")), TEXT), 3);
  await session.forget(["a.txt"]);
  await assert.rejects(session.edit(Edit.replace("a.txt", "two", "2")), UnreadRefusal);
  await session.read("a.txt");
  await session.forget();
  await assert.rejects(session.judge(Edit.write("a.txt", "")), UnreadRefusal);
});

test("undo takes back what was asked for", async (t) => {
  const { session, file } = await place(t);
  await session.read("a.txt");
  const { change } = (await session.edit(Edit.replace("a.txt", "one", "1"))).result;
  await session.edit(Edit.write("b.txt", "b\n"));
  await session.undo({ path: "a.txt" });
  assert.equal(text(file("a.txt")), TEXT);
  await session.undo({ redo: true });
  await session.undo({ change });
  assert.equal(text(file("a.txt")), TEXT);
  writeFileSync(file("b.txt"), "theirs\n");
  await assert.rejects(session.undo({ path: "b.txt" }), StaleRefusal);
  await session.undo({ path: "b.txt", force: true });
  assert(!existsSync(file("b.txt")));
});

test("a model's call is always answered", async (t) => {
  const { workspace } = await place(t);
  const session = workspace.session({ tools: { read_file: "view", edit_file: "edit" } });
  assert.deepEqual(session.tools().map((tool) => tool.name), ["view", "edit"]);
  const { properties } = session.tools()[1].inputSchema;
  assert.deepEqual(Object.keys(properties).sort(), ["new_string", "old_string", "path", "replace_all"]);
  const edit = { path: "a.txt", old_string: "two", new_string: "2" };
  const refused = await session.call("edit", edit);
  assert(refused.refusal instanceof UnreadRefusal);
  assert.match(refused.text, /view first/);
  await session.call("view", { path: "a.txt" });
  assert.equal((await session.call("edit", edit)).refusal, undefined);
  assert((await session.call("fly")).refusal instanceof sdk.BadArgumentsRefusal);
  assert.deepEqual(workspace.session({ tools: ["read_file"] }).tools().map((tool) => tool.name), ["read_file"]);
});

test("the state is for a prompt and for programs", async (t) => {
  const { session, workspace } = await place(t);
  await session.call("update_tasks", { add: [{ description: "Write it" }] });
  await session.edit(Edit.write("b.txt", "b\n"));
  const state = await session.repoState();
  assert.match(state.formatForPrompt(), /Write it/);
  assert.equal(`${state}`, state.formatForPrompt());
  const { files, open_tasks: tasks } = JSON.parse(JSON.stringify(state));
  assert.deepEqual([files[0].path, tasks[0].description], ["b.txt", "Write it"]);
  assert.match((await workspace.repoState()).formatForPrompt(), /b\.txt/);
});
