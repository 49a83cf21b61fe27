"""Checks the manifests that no package manager reads while it installs."""

import json
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from . import project
from .install import only

VALIDATOR = "@anthropic-ai/mcpb@2.1.2"


def check_manifests(packages: Path) -> Iterator[str]:
    yield bundle(only(packages, "surehand-*.mcpb"))
    yield registry_entry(packages / "server.json")


def bundle(path: Path) -> str:
    with tempfile.TemporaryDirectory() as directory:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(directory)
            mode = archive.getinfo("server/surehand").external_attr >> 16
        assert mode & 0o111, "the program of the bundle cannot be started"
        command = ["npx", "--yes", VALIDATOR, "validate", f"{directory}/manifest.json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return "MCP bundle: its own validator takes it"


def registry_entry(path: Path) -> str:
    """What the registry's schema demands. The schema itself cannot be fetched by a test."""
    entry = json.loads(path.read_text())
    namespace, _, name = entry["name"].partition("/")
    assert namespace.count(".") >= 1 and name, entry["name"]
    assert 1 <= len(entry["description"]) <= 100 and len(entry["title"]) <= 100
    assert entry["version"] == project.version() and "latest" not in entry["version"]
    for package in entry["packages"]:
        assert package["registryType"] in {"npm", "pypi"} and package["transport"] == {"type": "stdio"}
        assert all(argument["type"] == "positional" and argument["value"] for argument in package["packageArguments"])
    return "MCP registry: the entry has what its schema demands"
