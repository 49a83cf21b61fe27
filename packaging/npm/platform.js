// Finds the program that npm has installed for this machine.
"use strict";

function program() {
  const name = `@surehand/${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/surehand`);
  } catch {
    throw new Error(
      `surehand: the package ${name} is not installed. ` +
        (process.platform === "linux" && ["x64", "arm64"].includes(process.arch)
          ? "Install again without --omit=optional (--no-optional)."
          : `There is no build for ${process.platform} on ${process.arch} yet: cargo install surehand builds one.`),
    );
  }
}

module.exports = { program };
