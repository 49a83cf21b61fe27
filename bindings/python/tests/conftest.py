"""A tree with a file, and a workspace on it whose state is in the test's own directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import surehand

TEXT = "one\ntwo\nthree\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    tree = tmp_path / "tree"
    home.mkdir()
    tree.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ["SUREHAND_STATE_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"]:
        monkeypatch.delenv(name, raising=False)
    (tree / "a.txt").write_text(TEXT)
    return tree


@pytest.fixture
def workspace(root: Path) -> Iterator[surehand.Workspace]:
    with surehand.Workspace(root) as workspace:
        yield workspace


@pytest.fixture
def session(workspace: surehand.Workspace) -> Iterator[surehand.Session]:
    with workspace.session() as session:
        yield session
