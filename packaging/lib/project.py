"""What all packages say about Surehand, read from the workspace."""

import os
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "surehand"
SUMMARY = "The file-state layer for coding agents"
DESCRIPTION = """\
Surehand tracks what a coding agent has seen of each file, refuses edits that rest on stale content, commits atomically,
and brings lost work back. It guards the built-in tools of Claude Code, Codex, Gemini CLI, Cursor and opencode through
their hooks, and serves any other agent over MCP."""
# The name of the server in the MCP registry, whose first part is the account that publishes it. The registry wants it in each package.
REGISTRY_NAME = "io.github.surehand/surehand"
MAINTAINER = "The Surehand developers <maintainers@surehand.invalid>"
LICENSE_FILES = ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"]


def workspace() -> dict:
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


def version() -> str:
    return workspace()["version"]


def license_expression() -> str:
    return workspace()["license"]


def rust_version() -> str:
    return workspace()["rust-version"]


def moment() -> int:
    """The time that all packaged files get, so that two builds of a commit are the same."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    log = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(log.stdout) if log.returncode == 0 and log.stdout.strip() else 315532800  # 1980, where zip begins
