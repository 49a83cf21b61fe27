"""A Debian package. Written by hand, because `dpkg-deb` is missing on other systems and the format is four files."""

import gzip
import hashlib
from pathlib import Path

from . import common, project
from .archive import File, tar_gz
from .binary import Binary

COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/surehand",
    "zsh": "usr/share/zsh/vendor-completions/_surehand",
    "fish": "usr/share/fish/vendor_completions.d/surehand.fish",
}


def build(binary: Binary, out: Path) -> list[Path]:
    moment = project.moment()
    installed = _installed(binary, moment)
    control = [
        File("./control", _control(binary, installed).encode()),
        File("./md5sums", _checksums(installed).encode()),
    ]
    data = [File(f"./{file.name}", file.content, file.is_program) for file in installed]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", tar_gz(control, moment)),
        ("data.tar.gz", tar_gz(data, moment, directories=True)),
    ]
    path = out / f"surehand_{project.version()}_{binary.machine.debian}.deb"
    path.write_bytes(b"!<arch>\n" + b"".join(_member(name, content, moment) for name, content in members))
    return [path]


def _installed(binary: Binary, moment: int) -> list[File]:
    copyright = f"Surehand is licensed under {project.license_expression()}.\n\n" + "\n\n".join(
        (project.ROOT / name).read_text() for name in project.LICENSE_FILES
    )
    return [
        File("usr/bin/surehand", binary.content, is_program=True),
        File("usr/share/man/man1/surehand.1.gz", gzip.compress(common.manual(binary), 9, mtime=moment)),
        File("usr/share/doc/surehand/copyright", copyright.encode()),
        common.readme("usr/share/doc/surehand/"),
        *(File(COMPLETIONS[shell], script) for shell, script in common.completions(binary).items()),
    ]


def _control(binary: Binary, installed: list[File]) -> str:
    libc = "" if binary.glibc is None else f"Depends: libc6 (>= {binary.glibc[0]}.{binary.glibc[1]}), libgcc-s1\n"
    kilobytes = sum(len(file.content) + 1023 for file in installed) // 1024
    description = "".join(f" {line}\n" for line in project.DESCRIPTION.splitlines())
    return (
        f"Package: {project.NAME}\nVersion: {project.version()}\nArchitecture: {binary.machine.debian}\n"
        f"Maintainer: {project.MAINTAINER}\nInstalled-Size: {kilobytes}\n{libc}Recommends: git\nSection: devel\n"
        f"Priority: optional\nDescription: {project.SUMMARY}\n{description}"
    )


def _checksums(files: list[File]) -> str:
    return "".join(f"{hashlib.md5(file.content).hexdigest()}  {file.name}\n" for file in files)


def _member(name: str, content: bytes, moment: int) -> bytes:
    header = f"{name:<16}{moment:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
    return header + content + (b"\n" if len(content) % 2 else b"")
