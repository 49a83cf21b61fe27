"""A wheel that carries the program as a script, as `pip`, `pipx` and `uvx` install it."""

import base64
import hashlib
import io
import zipfile
from pathlib import Path

from . import common, project
from .archive import File
from .binary import Binary


def build(binary: Binary, out: Path) -> list[Path]:
    tag = f"py3-none-{binary.wheel_platform}"
    stem = f"surehand-{project.version()}"
    info = f"{stem}.dist-info"
    files = [
        File(f"{stem}.data/scripts/surehand", binary.content, is_program=True),
        File(f"{info}/METADATA", _metadata().encode()),
        File(f"{info}/WHEEL", _wheel(tag).encode()),
        *common.licenses(f"{info}/licenses/"),
    ]
    record = File(f"{info}/RECORD", _record(files, f"{info}/RECORD").encode())
    path = out / f"{stem}-{tag}.whl"
    path.write_bytes(_zip([*files, record]))
    return [path]


def _metadata() -> str:
    licenses = "".join(f"License-File: {name}\n" for name in project.LICENSE_FILES)
    readme = (project.ROOT / "README.md").read_text()
    return (
        f"Metadata-Version: 2.4\nName: {project.NAME}\nVersion: {project.version()}\nSummary: {project.SUMMARY}\n"
        f"License-Expression: {project.license_expression()}\n{licenses}Requires-Python: >=3.8\n"
        f"Description-Content-Type: text/markdown\n\n{readme}\n<!-- mcp-name: {project.REGISTRY_NAME} -->\n"
    )


def _wheel(tag: str) -> str:
    _, _, platforms = tag.split("-")
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms.split("."))
    return f"Wheel-Version: 1.0\nGenerator: surehand-packaging\nRoot-Is-Purelib: false\n{tags}"


def _record(files: list[File], own_name: str) -> str:
    def line(file: File) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.content).digest()).rstrip(b"=").decode()
        return f"{file.name},sha256={digest},{len(file.content)}\n"

    return "".join(map(line, files)) + f"{own_name},,\n"


def _zip(files: list[File]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in files:
            archive.writestr(common.zip_entry(file), file.content)
    return packed.getvalue()
