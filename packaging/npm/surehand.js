#!/usr/bin/env node
// Starts the program for this machine. Where npm runs install scripts, install.js has put the program itself in the place of
// this file, which saves the start of Node for every hook.
"use strict";

const { spawn } = require("node:child_process");
const { program } = require("../platform.js");

function start() {
  let path;
  try {
    path = program();
  } catch (error) {
    console.error(error.message);
    process.exit(127);
  }
  const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) => {
    console.error(`surehand: ${path} does not start: ${error.message}`);
    process.exit(126);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

start();
