"""The program that is packaged: for which machine it is, and which C library it needs."""

import re
import struct
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """A processor, as each package system calls it."""

    rust: str
    npm: str
    debian: str
    elf: int


MACHINES = [Machine("x86_64", "x64", "amd64", 62), Machine("aarch64", "arm64", "arm64", 183)]


@dataclass(frozen=True)
class Binary:
    path: Path
    machine: Machine
    # The newest symbol version of glibc that it needs, as (major, minor); none if it is static.
    glibc: tuple[int, int] | None

    @property
    def content(self) -> bytes:
        return self.path.read_bytes()

    @property
    def wheel_platform(self) -> str:
        if self.glibc is None:
            return f"manylinux_2_17_{self.machine.rust}.musllinux_1_1_{self.machine.rust}"
        return f"manylinux_{self.glibc[0]}_{self.glibc[1]}_{self.machine.rust}"


def inspect(path: Path) -> Binary:
    """Reads the header of an ELF file. Other formats are not packaged yet."""
    content = path.read_bytes()
    if content[:6] != b"\x7fELF\x02\x01":
        raise SystemExit(f"{path} is not a 64-bit little-endian ELF program; only Linux is packaged")
    (elf,) = struct.unpack_from("<H", content, 18)
    machine = next((machine for machine in MACHINES if machine.elf == elf), None)
    if machine is None:
        raise SystemExit(f"{path} is for a processor that is not packaged (ELF machine {elf})")
    versions = {(2, int(minor)) for minor in re.findall(rb"GLIBC_2\.(\d+)", content)}
    return Binary(path, machine, max(versions, default=None))
