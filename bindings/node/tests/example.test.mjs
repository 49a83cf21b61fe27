// The example with the Vercel AI SDK: a scripted model whose edit becomes stale, is refused, and is repaired.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

import { place } from "./place.mjs";
import { work } from "./guarded-agent.mjs";

/** Lets a model play these steps: the results of its tools so far become the next call, or its last words. */
async function play(t, workspace, steps) {
  const server = createServer(async (request, response) => {
    const { messages } = JSON.parse(Buffer.concat(await request.toArray()));
    const results = messages.filter((message) => message.role === "tool").map((message) => message.content);
    let message;
    try {
      const said = steps[results.length](results);
      message = { role: "assistant", content: typeof said === "string" ? said : null };
      if (typeof said !== "string") {
        const [name, toolArguments] = said;
        const call = { name, arguments: JSON.stringify(toolArguments) };
        message.tool_calls = [{ id: `call_${results.length}`, type: "function", function: call }];
      }
    } catch (error) {
      message = { role: "assistant", content: `the script failed: ${error.message}` };
    }
    const answer = { id: "1", object: "chat.completion", created: 0, model: "m" };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const choices = [{ index: 0, message, finish_reason: message.tool_calls ? "tool_calls" : "stop" }];
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ ...answer, usage, choices }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
  return work(workspace, createOpenAICompatible({ name: "scripted", baseURL })("m"), "Do it.");
}

test("a stale edit is refused and repaired by the agent", async (t) => {
  const { workspace, file } = await place(t);
  const path = "a.ts";
  writeFileSync(file(path), "export function hello() {\n  return 'hello';\n}\n");
  const said = await play(t, workspace, [
    () => ["read_file", { path }],
    ([read]) => {
      assert.match(read, /2\| {2}return 'hello';/);
      writeFileSync(file(path), "export function hello() {\n  return 'hello, world';\n}\n");
      return ["edit_file", { path, old_string: "return 'hello';", new_string: "return 'hi';" }];
    },
    ([, refused]) => {
      assert.match(refused, /was modified since last read; nothing was written/);
      assert.match(refused, /2\| {2}return 'hello, world';/);
      return ["edit_file", { path, old_string: "'hello, world'", new_string: "'hi, world'" }];
    },
    ([, , edited]) => `Done: ${edited}`,
  ]);
  assert.match(said, /^Done: /);
  assert.equal(readFileSync(file(path), "utf8"), "export function hello() {\n  return 'hi, world';\n}\n");
});

test("a tool of one's own is guarded", async (t) => {
  const { workspace, file } = await place(t);
  const path = "b.ts";
  writeFileSync(file(path), 'import b from "b";\nimport a from "a";\nexport { a, b };\n');
  const said = await play(t, workspace, [
    () => ["sort_imports", { path }],
    ([refused]) => {
      assert.match(refused, /was not read this session/);
      return ["sort_imports", { path }];
    },
    ([, sorted]) => sorted,
  ]);
  assert.equal(said, "Sorted.\n");
  assert.equal(readFileSync(file(path), "utf8"), 'import a from "a";\nimport b from "b";\nexport { a, b };\n');
});
