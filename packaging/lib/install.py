"""Installs the packages as their users do, each into a prefix of its own."""

import os
import subprocess
import sys
import tarfile
import time
import venv
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from .registry import NpmRegistry


@dataclass(frozen=True)
class Installed:
    """An installed program, and the environment in which its user runs it."""

    command: list[str]
    environment: dict[str, str]
    # What `surehand self` must say.
    installer: str

    def run(self, *arguments: str, cwd: Path | None = None, input: str | None = None, fails: bool = False) -> str:
        done = subprocess.run(
            [*self.command, *arguments], cwd=cwd, env=self.environment, input=input, capture_output=True, text=True, check=False
        )
        if (done.returncode != 0) != fails:
            raise SystemExit(f"{self.command} {arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def milliseconds(self) -> float:
        """How long a start takes, the best of several."""

        def once() -> float:
            begin = time.perf_counter()
            self.run("--version")
            return (time.perf_counter() - begin) * 1000

        return min(once() for _ in range(5))


def environment(home: Path, *paths: Path) -> dict[str, str]:
    # The tests themselves need git, sh and, for npm, Node; nothing of the person's own.
    system = [directory for directory in os.defpath.split(":") if directory] + ["/usr/local/bin", "/usr/bin", "/bin"]
    return {"HOME": str(home), "PATH": ":".join([*map(str, paths), *system]), "LANG": "C.UTF-8"}


def tarball(packages: Path, prefix: Path, home: Path) -> Installed:
    with tarfile.open(only(packages, "surehand-*-linux.tar.gz")) as tar:
        tar.extractall(prefix, filter="data")
    (root,) = prefix.iterdir()
    return Installed(["surehand"], environment(home, root), "hand")


def deb(packages: Path, prefix: Path, home: Path) -> Installed:
    package = only(packages, "surehand_*.deb")
    for directory in ["var/lib/dpkg/info", "var/lib/dpkg/updates"]:
        (prefix / directory).mkdir(parents=True)
    (prefix / "var/lib/dpkg/status").touch()
    # The prefix has no C library that could satisfy the dependency; that it is right is checked on its own.
    dpkg = ["dpkg", f"--root={prefix}", "--force-not-root", "--force-depends", "--install", package]
    quiet(dpkg, os.environ | {"HOME": str(home)})
    for name in ["usr/share/man/man1/surehand.1.gz", "usr/share/bash-completion/completions/surehand"]:
        assert (prefix / name).stat().st_size > 0, name
    return Installed(["surehand"], environment(home, prefix / "usr/bin"), "hand")


def npm_global(packages: Path, prefix: Path, home: Path) -> Installed:
    with registry(packages, home) as settings:
        quiet(["npm", "install", "--global", f"--prefix={prefix}", "surehand"], settings)
    with open(prefix / "bin/surehand", "rb") as program:
        assert program.read(4) == b"\x7fELF", "the launcher was not replaced by the program"
    return Installed(["surehand"], environment(home, prefix / "bin"), "npm")


def npm_without_scripts(packages: Path, prefix: Path, home: Path) -> Installed:
    with registry(packages, home) as settings:
        quiet(["npm", "install", "--global", "--ignore-scripts", f"--prefix={prefix}", "surehand"], settings)
    return Installed(["surehand"], environment(home, prefix / "bin"), "npm")


def npx(packages: Path, prefix: Path, home: Path) -> Installed:
    with registry(packages, home) as settings:
        quiet(["npx", "--yes", "surehand", "--version"], settings)
    # From here on the registry is gone: npx runs what it has kept.
    return Installed(["npx", "--yes", "--offline", "surehand"], settings, "npx")


def pip(packages: Path, prefix: Path, home: Path) -> Installed:
    venv.create(prefix, with_pip=True)
    quiet([prefix / "bin/pip", "install", "--no-index", only(packages, "surehand-*.whl")], environment(home))
    return Installed(["surehand"], environment(home, prefix / "bin"), "pip")


def uvx(packages: Path, prefix: Path, home: Path) -> Installed:
    venv.create(prefix, with_pip=True)
    quiet([prefix / "bin/pip", "install", "uv==0.13.8"], os.environ | {"HOME": str(home)})
    wheel = str(only(packages, "surehand-*.whl"))
    command = [str(prefix / "bin/uvx"), "--offline", "--quiet", "--python", sys.executable, "--from", wheel, "surehand"]
    return Installed(command, environment(home), "uvx")


INSTALLERS = {
    "tarball": tarball,
    "deb": deb,
    "npm install": npm_global,
    "npm install --ignore-scripts": npm_without_scripts,
    "npx": npx,
    "pip": pip,
    "uvx": uvx,
}


@contextmanager
def registry(packages: Path, home: Path):
    """An npm registry on loopback that has our packages, and the environment of an npm that asks it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), NpmRegistry.of(packages))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        npm = {"npm_config_registry": address, "npm_config_update_notifier": "false", "npm_config_cache": str(home / "npm-cache")}
        yield environment(home) | npm
    finally:
        server.shutdown()


def only(packages: Path, pattern: str) -> Path:
    found = list(packages.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{packages} has {len(found)} files {pattern}, not one; packaging/release makes them")
    return found[0]


def quiet(command: list, environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
