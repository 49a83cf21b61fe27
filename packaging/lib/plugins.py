"""What the clients' own installers take: plugins with the hooks that `surehand init` writes, an MCP bundle, and the entry of the
MCP registry. The hooks look for `surehand` on the PATH, and do nothing without it."""

import io
import json
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path

from . import common, npm, project
from .archive import File, tar_gz
from .binary import Binary

MARKETPLACE = "surehand"


def build(binary: Binary, out: Path) -> list[Path]:
    with tempfile.TemporaryDirectory() as directory:
        written = Path(directory)
        write_hooks(binary, written)
        return [marketplace(written, out), gemini_extension(written, out), opencode_plugin(written, out), bundle(binary, out), registry_entry(out)]


def write_hooks(binary: Binary, directory: Path) -> None:
    """Lets `init` write the files of a project, with the program on the PATH."""
    (directory / "bin").mkdir()
    (directory / "bin/surehand").symlink_to(binary.path.resolve())
    environment = {"HOME": str(directory), "PATH": f"{directory / 'bin'}:{os.defpath}"}
    command = ["surehand", "init", "claude", "codex", "gemini", "opencode", "--scope", "project", "--yes", "--root", directory]
    subprocess.run(command, env=environment, cwd=directory, check=True, stdout=subprocess.DEVNULL)


def hooks(settings: Path) -> bytes:
    return as_json({"hooks": json.loads(settings.read_text())["hooks"]})


def marketplace(written: Path, out: Path) -> Path:
    """One directory that Claude Code and Codex take as a marketplace."""
    root = f"surehand-plugins-{project.version()}"
    about = {
        "name": project.NAME,
        "version": project.version(),
        "description": f"{project.SUMMARY}: guards the built-in file tools. Needs the program surehand.",
        "author": {"name": "The Surehand developers"},
        "license": project.license_expression(),
        "keywords": ["hooks", "safety", "undo"],
    }
    entry = {"name": project.NAME, "description": about["description"], "version": project.version()}
    claude = {
        "name": MARKETPLACE,
        "owner": about["author"],
        "metadata": {"description": project.SUMMARY},
        "plugins": [entry | {"source": "./claude"}],
    }
    codex = {
        "name": MARKETPLACE,
        "interface": {"displayName": "Surehand"},
        "plugins": [
            {
                "name": project.NAME,
                "source": {"source": "local", "path": "./codex"},
                "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                "category": "Productivity",
            }
        ],
    }
    files = [
        File(f"{root}/.claude-plugin/marketplace.json", as_json(claude)),
        File(f"{root}/claude/.claude-plugin/plugin.json", as_json(about)),
        File(f"{root}/claude/hooks/hooks.json", hooks(written / ".claude/settings.json")),
        File(f"{root}/.agents/plugins/marketplace.json", as_json(codex)),
        File(f"{root}/codex/.codex-plugin/plugin.json", as_json(about | {"hooks": "./hooks/hooks.json"})),
        File(f"{root}/codex/hooks/hooks.json", hooks(written / ".codex/hooks.json")),
        *common.licenses(f"{root}/"),
    ]
    path = out / f"{root}.tar.gz"
    path.write_bytes(tar_gz(files, project.moment(), directories=True))
    return path


def gemini_extension(written: Path, out: Path) -> Path:
    root = f"surehand-gemini-extension-{project.version()}"
    about = {"name": project.NAME, "version": project.version(), "description": project.SUMMARY}
    files = [
        File(f"{root}/gemini-extension.json", as_json(about)),
        File(f"{root}/hooks/hooks.json", hooks(written / ".gemini/settings.json")),
        *common.licenses(f"{root}/"),
    ]
    path = out / f"{root}.tar.gz"
    path.write_bytes(tar_gz(files, project.moment(), directories=True))
    return path


def opencode_plugin(written: Path, out: Path) -> Path:
    """An npm package; `"plugin": ["@surehand/opencode"]` in opencode.json makes opencode install it."""
    about = npm.manifest("@surehand/opencode", "Guards the file tools of opencode with Surehand")
    about |= {"type": "module", "main": "surehand.js", "exports": "./surehand.js", "files": ["surehand.js"]}
    plugin = File("package/surehand.js", (written / ".opencode/plugins/surehand.js").read_bytes())
    return npm.pack("surehand-opencode", about, [plugin], out)


def bundle(binary: Binary, out: Path) -> Path:
    """An MCP bundle, which desktop programs install with a double click."""
    manifest = {
        "manifest_version": "0.3",
        "name": project.NAME,
        "display_name": "Surehand",
        "version": project.version(),
        "description": project.SUMMARY,
        "long_description": project.DESCRIPTION.replace("\n", " "),
        "author": {"name": "The Surehand developers"},
        "license": project.license_expression(),
        "server": {
            "type": "binary",
            "entry_point": "server/surehand",
            "mcp_config": {"command": "${__dirname}/server/surehand", "args": ["mcp", "--root", "${user_config.workspace}"]},
        },
        "user_config": {
            "workspace": {
                "type": "directory",
                "title": "Workspace",
                "description": "The directory whose files the model may read and edit",
                "required": True,
            }
        },
        "compatibility": {"platforms": ["linux"]},
    }
    path = out / f"surehand-{project.version()}-linux-{binary.machine.npm}.mcpb"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in [
            File("manifest.json", as_json(manifest)),
            File("server/surehand", binary.content, is_program=True),
            *common.licenses(),
        ]:
            archive.writestr(common.zip_entry(file), file.content)
    path.write_bytes(packed.getvalue())
    return path


def registry_entry(out: Path) -> Path:
    def package(kind: str) -> dict:
        return {
            "registryType": kind,
            "identifier": project.NAME,
            "version": project.version(),
            "transport": {"type": "stdio"},
            "packageArguments": [{"type": "positional", "value": "mcp"}],
        }

    entry = {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": project.REGISTRY_NAME,
        "title": "Surehand",
        "description": "Guards an agent's files: stale edits are refused, commits are atomic, everything can be undone.",
        "version": project.version(),
        "packages": [package("npm"), package("pypi")],
    }
    path = out / "server.json"
    path.write_bytes(as_json(entry))
    return path


def as_json(value: dict) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
