// The code in the guide, which is compiled from docs/guide/embed.md.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import { view, write } from "./guide.mjs";
import { TEXT, place } from "./place.mjs";

test("the tools of the guide are guarded", async (t) => {
  const { session, file } = await place(t);
  const path = file("a.txt");
  assert.match(await write(session, path, "new\n"), /was not read this session/);
  await session.forget();
  assert.equal(await view(session, path), TEXT);
  writeFileSync(path, "theirs\n");
  assert.match(await write(session, path, "new\n"), /was modified since last read/);
  assert.equal(await write(session, path, "new\n"), "Written.\n");
  assert.equal(readFileSync(path, "utf8"), "new\n");
});
