// Loads the native module that npm has installed for this machine.
"use strict";

const name = `@surehand/sdk-${process.platform}-${process.arch}`;

function load() {
  try {
    return require(name);
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    throw new Error(
      process.platform === "linux" && ["x64", "arm64"].includes(process.arch)
        ? `@surehand/sdk: the package ${name} is not installed. Install again without --omit=optional (--no-optional).`
        : `@surehand/sdk: there is no build for ${process.platform} on ${process.arch} yet.`,
    );
  }
}

module.exports = load();
