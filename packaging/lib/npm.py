"""Two npm packages: the program for one kind of machine, and `surehand`, which depends on those and starts the one that fits."""

import json
from pathlib import Path

from . import common, project
from .archive import File, tar_gz
from .binary import MACHINES, Binary

SOURCES = project.ROOT / "packaging/npm"


def build(binary: Binary, out: Path) -> list[Path]:
    return [_platform(binary, out), _launcher(out)]


def _platform(binary: Binary, out: Path) -> Path:
    libc = {} if binary.glibc is None else {"libc": ["glibc"]}
    about = manifest(_platform_name(binary.machine.npm), "The program of the package surehand for Linux") | {
        "os": ["linux"],
        "cpu": [binary.machine.npm],
        **libc,
        "files": ["bin"],
    }
    program = File("package/bin/surehand", binary.content, is_program=True)
    return pack(f"surehand-linux-{binary.machine.npm}", about, [program], out)


def _launcher(out: Path) -> Path:
    about = manifest(project.NAME, project.SUMMARY) | {
        "mcpName": project.REGISTRY_NAME,
        "bin": {"surehand": "bin/surehand"},
        "scripts": {"postinstall": "node install.js"},
        "files": ["bin", "install.js", "platform.js"],
        "engines": {"node": ">=18"},
        "optionalDependencies": {_platform_name(machine.npm): project.version() for machine in MACHINES},
        "keywords": ["agent", "mcp", "mcp-server", "claude-code", "codex", "gemini-cli", "hooks"],
    }
    files = [
        common.readme("package/"),
        File("package/bin/surehand", (SOURCES / "surehand.js").read_bytes(), is_program=True),
        *(File(f"package/{name}", (SOURCES / name).read_bytes()) for name in ["install.js", "platform.js"]),
    ]
    return pack(project.NAME, about, files, out)


def _platform_name(machine: str) -> str:
    return f"@surehand/linux-{machine}"


def manifest(name: str, description: str) -> dict:
    return {
        "name": name,
        "version": project.version(),
        "description": description,
        "license": project.license_expression(),
    }


def pack(stem: str, about: dict, files: list[File], out: Path) -> Path:
    head = File("package/package.json", (json.dumps(about, indent=2) + "\n").encode())
    path = out / f"{stem}-{project.version()}.tgz"
    path.write_bytes(tar_gz([head, *files, *common.licenses("package/")], project.moment()))
    return path
