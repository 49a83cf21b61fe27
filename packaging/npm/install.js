// Puts the program in the place of the launcher, so that no Node is started for it. Whatever goes wrong, the launcher stays.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

function replaceLauncher() {
  const { program } = require("./platform.js");
  const launcher = path.join(__dirname, "bin", "surehand");
  const staged = `${launcher}.${process.pid}`;
  try {
    const native = program();
    try {
      fs.linkSync(native, staged);
    } catch {
      fs.copyFileSync(native, staged);
      fs.chmodSync(staged, 0o755);
    }
    fs.renameSync(staged, launcher);
  } catch {
    fs.rmSync(staged, { force: true });
  }
}

// Yarn keeps packages in archives, where only JavaScript can be started.
if (!process.versions.pnp && process.platform !== "win32") replaceLauncher();
