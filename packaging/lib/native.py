"""Compiles for this processor: with the profile of packages against an old C library, or with another one as it is."""

import os
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

from .project import ROOT

# Pinned: another linker is another program.
TOOLS = ["cargo-zigbuild==0.24.0", "maturin==1.16.0", "ziglang==0.17.0"]
GLIBC = "2.28"


@dataclass(frozen=True)
class Compiler:
    profile: str

    @property
    def is_for_packages(self) -> bool:
        return self.profile == "dist"

    @property
    def locked(self) -> list[str]:
        """Packages are built from the versions in the lock files; while one works, those may be behind."""
        return ["--locked"] if self.is_for_packages else []

    @property
    def target(self) -> str:
        return f"{os.uname().machine}-unknown-linux-gnu"

    def cargo(self, manifest: Path, package: str, product: str) -> Path:
        """Builds a crate, and returns the path of its program or library."""
        options = [*self.locked, "--profile", self.profile, "--manifest-path", str(manifest), "-p", package]
        if self.is_for_packages:
            command = ["cargo-zigbuild", "zigbuild", *options, "--target", f"{self.target}.{GLIBC}"]
            directory = _build_directory() / self.target
        else:
            command, directory = ["cargo", "build", *options], _build_directory()
        _run(command, ROOT)
        return directory / _directory_of(self.profile) / product

    def maturin(self, project: Path, out: Path) -> None:
        """Builds a wheel with a native module."""
        command = ["maturin", "build", "--quiet", *self.locked, "--profile", self.profile, "--out", str(out.resolve())]
        if self.is_for_packages:
            tag = f"manylinux_{GLIBC.replace('.', '_')}"
            command += ["--zig", "--target", self.target, "--compatibility", tag]
        else:
            # For this machine only, which no tag of an old C library fits.
            command += ["--auditwheel", "skip"]
        _run(command, project)


def _directory_of(profile: str) -> str:
    return "debug" if profile == "dev" else profile


def _build_directory() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def _run(command: list[str], directory: Path) -> None:
    print(f"building with {command[0]} in {directory.relative_to(ROOT.parent)}", flush=True)
    # The bindings are a workspace of their own, and share what is built.
    environment = os.environ | {"PATH": f"{_tools()}:{os.environ['PATH']}", "CARGO_TARGET_DIR": str(_build_directory())}
    subprocess.run(command, cwd=directory, env=environment, check=True)


def _tools() -> Path:
    """The directory of the tools from PyPI, installed if they are missing or of another version."""
    tools = _build_directory() / "packaging-tools"
    installed = tools / "installed.txt"
    if not installed.exists() or installed.read_text() != "\n".join(TOOLS):
        venv.create(tools, with_pip=True, clear=True)
        subprocess.run([tools / "bin/pip", "install", "--quiet", *TOOLS], check=True)
        installed.write_text("\n".join(TOOLS))
    return tools / "bin"
