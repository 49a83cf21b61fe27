"""The code in the guide."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import surehand

GUIDE = Path(os.environ.get("SUREHAND_GUIDE", Path(__file__).parents[3] / "docs/guide/embed.md"))


def test_the_tools_of_the_guide_are_guarded(root: Path, session: surehand.Session) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        compile(block, str(GUIDE), "exec")
    (tools,) = (block for block in blocks if "def write" in block)
    names: dict[str, Any] = {}
    exec(tools, names)
    file = str(root / "a.txt")
    assert "was not read this session" in names["write"](session, file, "new\n")
    session.forget()
    assert names["view"](session, file) == "one\ntwo\nthree\n"
    (root / "a.txt").write_text("theirs\n")
    assert "was modified since last read" in names["write"](session, file, "new\n")
    assert names["write"](session, file, "new\n") == "Written.\n"
    assert (root / "a.txt").read_text() == "new\n"
