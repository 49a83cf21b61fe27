"""Edits as values."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self

    StrPath = str | os.PathLike[str]


class Edit:
    """An edit, for `Session.edit` or `Session.judge`. It is the call of one of the edit tools.

    Paths are relative to the workspace, or absolute.
    """

    __slots__ = ("_arguments", "tool")

    tool: str
    """The tool that makes this edit."""

    def __init__(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """The edit that a call of an edit tool means, such as `edit_lines` with its arguments."""
        self.tool = tool
        self._arguments = to_json(arguments)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool."""
        import json

        arguments: dict[str, Any] = json.loads(self._arguments)
        return arguments

    @classmethod
    def replace(cls, path: StrPath, old: str, new: str, *, all: bool = False) -> Self:
        """Replaces the only occurrence of an exact text, or every one with `all`."""
        call = {"path": os.fspath(path), "old_string": old, "new_string": new, "replace_all": all}
        return cls("edit_file", call)

    @classmethod
    def replace_many(cls, replacements: Iterable[tuple[StrPath, str, str]]) -> Self:
        """Replaces several texts, as (path, old, new), in one file or more: all or none of them."""
        edits = [{"path": os.fspath(path), "old_string": old, "new_string": new} for path, old, new in replacements]
        return cls("multi_edit", {"edits": edits})

    @classmethod
    def lines(cls, path: StrPath, edits: Iterable[Mapping[str, str]]) -> Self:
        """Edits lines by their anchors, as `Session.read(path, anchors=True)` shows them.

        Each edit has `op` (`replace`, `delete`, `insert_before`, `insert_after`, `append` or `prepend`), `at`, `to` for
        the last line of several, and `text`.
        """
        return cls("edit_lines", {"path": os.fspath(path), "edits": [dict(edit) for edit in edits]})

    @classmethod
    def patch(cls, patch: str) -> Self:
        """Applies a patch: `*** Begin Patch`, or a unified diff."""
        return cls("apply_patch", {"patch": patch})

    @classmethod
    def write(cls, path: StrPath, content: str) -> Self:
        """Writes a whole file."""
        return cls("write_file", {"path": os.fspath(path), "content": content})

    @classmethod
    def delete(cls, path: StrPath) -> Self:
        """Deletes a file."""
        return cls("delete_file", {"path": os.fspath(path)})

    @classmethod
    def move(cls, source: StrPath, target: StrPath) -> Self:
        """Moves or renames a file."""
        return cls("move_file", {"from": os.fspath(source), "to": os.fspath(target)})

    def __repr__(self) -> str:
        return f"Edit({self.tool!r}, {self._arguments})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Edit):
            return NotImplemented
        return (self.tool, self.arguments) == (other.tool, other.arguments)

    def __hash__(self) -> int:
        return hash(self.tool)


def to_json(value: object) -> str:
    # Here and elsewhere, json is imported when it is needed: to load it takes longer than to load this package.
    import json

    # With a value that JSON does not have, such as NaN, this raises ValueError or TypeError.
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
