"""Files that go into several packages."""

import subprocess
import time
import zipfile

from . import project
from .archive import File
from .binary import Binary

SHELLS = {"bash": "surehand.bash", "zsh": "_surehand", "fish": "surehand.fish"}


def zip_entry(file: File) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(file.name, time.gmtime(project.moment())[:6])
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | file.mode) << 16
    return entry


def licenses(prefix: str = "") -> list[File]:
    return [File(prefix + name, (project.ROOT / name).read_bytes()) for name in project.LICENSE_FILES]


def readme(prefix: str = "") -> File:
    return File(prefix + "README.md", (project.ROOT / "README.md").read_bytes())


def manual(binary: Binary) -> bytes:
    return _said_by(binary, "man")


def completions(binary: Binary) -> dict[str, bytes]:
    return {shell: _said_by(binary, "completions", shell) for shell in SHELLS}


def _said_by(binary: Binary, *arguments: str) -> bytes:
    return subprocess.run([binary.path, *arguments], capture_output=True, check=True).stdout
