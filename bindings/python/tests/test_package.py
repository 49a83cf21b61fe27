"""The package: its types, its documentation, and its version."""

from __future__ import annotations

import importlib.metadata
import inspect
import subprocess
import sys
from pathlib import Path

import surehand

HERE = Path(__file__).parent


def test_everything_public_is_documented() -> None:
    for name in surehand.__all__:
        thing = getattr(surehand, name)
        if not inspect.isclass(thing):
            continue
        assert (thing.__doc__ or "").strip(), name
        for attribute, member in vars(thing).items():
            is_method = inspect.isfunction(member) or isinstance(member, (property, classmethod))
            if is_method and not attribute.startswith("_"):
                assert (member.__doc__ or "").strip(), f"{name}.{attribute}"


def test_the_version_is_that_of_the_package() -> None:
    assert surehand.__version__ == importlib.metadata.version("surehand-sdk")


def test_a_refusal_of_every_code_has_a_class() -> None:
    classes = {cls for cls in surehand.Refusal.__subclasses__()}
    assert len(classes) == 20
    assert all(cls.__name__ in surehand.__all__ for cls in classes)


def test_types_are_complete() -> None:
    """The package and these tests pass mypy, and the stub matches the native module."""
    package = Path(surehand.__file__).parent
    assert (package / "py.typed").exists()
    for command in (
        ["mypy", "--strict", "--python-version", "3.10", "-p", "surehand"],
        ["mypy", "--strict", "--python-version", "3.10", *map(str, sorted(HERE.glob("*.py")))],
        ["mypy.stubtest", "surehand._native", "--ignore-disjoint-bases"],
    ):
        done = subprocess.run([sys.executable, "-m", *command], cwd=HERE, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
