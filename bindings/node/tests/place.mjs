// A tree with a file, and a workspace on it whose state is in the test's own directory.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Workspace } from "@surehand/sdk";

export const TEXT = "one\ntwo\nthree\n";

/** Lays out a place that is removed, with its workspace closed, when the test ends. */
export async function place(t, options = {}) {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "surehand-node-")));
  const root = join(directory, "tree");
  const stateDir = join(directory, "state");
  mkdirSync(root);
  writeFileSync(join(root, "a.txt"), TEXT);
  const workspace = await Workspace.open(root, { stateDir, ...options });
  t.after(async () => {
    await workspace.close();
    rmSync(directory, { recursive: true });
  });
  return { root, stateDir, workspace, session: workspace.session(), file: (name) => join(root, name) };
}
