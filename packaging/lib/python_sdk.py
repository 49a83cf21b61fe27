"""The wheel `surehand-sdk`, with the native module for Python."""

import os
import tempfile
from pathlib import Path

from . import project
from .native import Compiler


def build(compiler: Compiler, out: Path) -> list[Path]:
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(project.moment()))
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        compiler.maturin(project.ROOT / "bindings/python", Path(scratch))
        (wheel,) = Path(scratch).glob("*.whl")
        path = out / wheel.name
        wheel.replace(path)
    # Of an earlier build with another profile.
    for old in out.glob("surehand_sdk-*.whl"):
        if old != path:
            old.unlink()
    return [path]
