"""Two npm packages: `@surehand/sdk`, and its native module for one kind of machine."""

from pathlib import Path

from . import project
from .archive import File
from .binary import MACHINES, Binary, inspect
from .native import Compiler
from .npm import manifest, pack

SOURCES = project.ROOT / "bindings/node"
NAME = "@surehand/sdk"
FILES = ["index.js", "index.mjs", "native.js", "index.d.ts", "index.d.mts", "README.md"]


def build(compiler: Compiler, out: Path) -> list[Path]:
    library = compiler.cargo(project.ROOT / "bindings/Cargo.toml", "surehand-node", "libsurehand_node.so")
    return [_platform(inspect(library), out), _main(out)]


def _platform(library: Binary, out: Path) -> Path:
    module = "surehand.node"
    about = manifest(_platform_name(library.machine.npm), f"The native module of {NAME} for Linux") | {
        "os": ["linux"],
        "cpu": [library.machine.npm],
        "libc": ["glibc"],
        "main": module,
        "files": [module],
    }
    return pack(f"surehand-sdk-linux-{library.machine.npm}", about, [File(f"package/{module}", library.content)], out)


def _main(out: Path) -> Path:
    description = "Guards the file edits of a coding agent: stale edits are refused, everything can be undone"
    about = manifest(NAME, description) | {
        "main": "index.js",
        "types": "index.d.ts",
        "exports": {
            ".": {
                "import": {"types": "./index.d.mts", "default": "./index.mjs"},
                "require": {"types": "./index.d.ts", "default": "./index.js"},
            },
            "./package.json": "./package.json",
        },
        "files": FILES,
        "engines": {"node": ">=20"},
        "optionalDependencies": {_platform_name(machine.npm): project.version() for machine in MACHINES},
        "keywords": ["agent", "llm", "files", "editing", "undo"],
    }
    files = [File(f"package/{name}", (SOURCES / name).read_bytes()) for name in FILES]
    return pack("surehand-sdk", about, files, out)


def _platform_name(machine: str) -> str:
    return f"{NAME}-linux-{machine}"
