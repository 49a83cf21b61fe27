"""A session, and the results of its calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from surehand._edit import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from surehand import _native
    from surehand._edit import Edit, StrPath
    from surehand._errors import Refusal
    from surehand._workspace import Workspace


class Reply:
    """The reply to a call."""

    __slots__ = ("_json", "_result", "refusal", "text")

    text: str
    """The text for the model."""
    refusal: Refusal | None
    """Why the call was refused. Only `Session.call` returns it; the other calls raise it."""

    def __init__(self, text: str, result: str, refusal: Refusal | None) -> None:
        self.text = text
        self.refusal = refusal
        self._json = result
        self._result: dict[str, Any] | None = None

    @property
    def result(self) -> dict[str, Any]:
        """The result as an object. The reference of the tools lists its fields."""
        import json

        if self._result is None:
            self._result = json.loads(self._json)
        return self._result

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Reply(result={self._json})"


class ToolSpec(NamedTuple):
    """A tool as a model gets it."""

    name: str
    """The name that the model calls."""
    description: str
    """What it does and when to use it."""
    input_schema: dict[str, Any]
    """The JSON schema of its arguments."""


class RepoState:
    """The state of a repository at one moment: open tasks, and the files that sessions touched."""

    __slots__ = ("_native",)

    def __init__(self, native: _native.RepoState) -> None:
        self._native = native

    def format_for_prompt(self) -> str:
        """The state in fewer than 500 tokens, for a prompt. Everything left out is counted."""
        return self._native.format_for_prompt()

    def to_json(self) -> str:
        """The whole state as a JSON document, as in `.surehand/repostate.json`."""
        return self._native.to_json()

    def to_dict(self) -> dict[str, Any]:
        """The whole state: `work_dir`, `story_id`, `files`, `open_tasks` and `last_updated`."""
        import json

        state: dict[str, Any] = json.loads(self._native.to_json())
        return state

    def __str__(self) -> str:
        return self.format_for_prompt()


class Permit:
    """The permission for an edit that your own code makes.

    Use it in a `with` statement: the edit is adopted at the end, and `note` then has everything that the model should
    know. The edit counts as running until it is adopted or the permit is garbage. Adopting an edit that was not made
    records nothing, so that is done after an exception as well.

        with session.judge(Edit.write(path, text)) as permit:
            path.write_text(text)
        answer = "Written.\\n" + permit.note
    """

    __slots__ = ("_native", "_session", "note")

    note: str
    """What the model should know; empty if nothing. At first: what else changed in the file since it was read. Give it
    to the model even if the edit fails, because the lines in it count as read."""

    def __init__(self, session: Session, native: _native.Permit) -> None:
        self._session = session
        self._native = native
        self.note = native.note

    def adopt(self) -> str:
        """Records the edit that was made. Returns what the model should know about it, and adds that to `note`."""
        told = self._session._native.adopt(self._native)
        self.note += told
        return told

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.adopt()


class Session:
    """One model's context window in a workspace. `Workspace.session` makes it.

    Any thread may use it; its calls run one after the other. From `asyncio`, call it with `asyncio.to_thread`.
    """

    __slots__ = ("__weakref__", "_native", "_workspace")

    def __init__(self, workspace: Workspace, native: _native.Session) -> None:
        # A workspace without references is closed.
        self._workspace = workspace
        self._native = native

    @property
    def id(self) -> str:
        """Its id, under which it can be continued."""
        return self._native.id

    @property
    def closed(self) -> bool:
        """Whether it, or its workspace, was closed. Waits for a call that is running."""
        return self._native.closed

    def tools(self) -> list[ToolSpec]:
        """The tools to give to the model. `call` takes their calls."""
        import json

        return [ToolSpec(name, description, json.loads(schema)) for name, description, schema in self._native.tools()]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Reply:
        """Carries out a tool call of the model.

        A refusal is not raised: it is in the reply, whose `text` goes to the model in either case.
        """
        return Reply(*self._native.call(tool, to_json(dict(arguments))))

    def read(
        self,
        path: StrPath,
        *,
        offset: int | None = None,
        limit: int | None = None,
        ranges: Iterable[tuple[int, int]] | None = None,
        anchors: bool = False,
    ) -> Reply:
        """Reads a file. The lines in the reply's `text` count as read, so give it to the model.

        `offset` is the first line, from 1, or from the end if it is negative; `limit` the number of lines. `ranges` are
        several ranges instead, both ends included. With `anchors`, each line comes as `LINE#HASH|text`, for
        `Edit.lines`.
        """
        pairs = None if ranges is None else [(start, end) for start, end in ranges]
        return Reply(*self._native.read(os.fspath(path), offset, limit, pairs, anchors))

    def edit(self, edit: Edit) -> Reply:
        """Makes an edit, or raises the `Refusal`.

        The file is replaced atomically, and only if it is as the session saw it.
        """
        return Reply(*self._native.edit(edit.tool, edit._arguments))

    def judge(self, edit: Edit) -> Permit:
        """Judges an edit that your own code is about to make, or raises the `Refusal`.

        It refuses only what the gate knows: that a file was not read, is stale, was deleted, or was seen in part.
        Whether a text matches is up to your code.
        """
        return Permit(self, self._native.judge(edit.tool, edit._arguments))

    def adopt(self, permit: Permit) -> str:
        """Records an edit that your own code has made: the same as `permit.adopt()`."""
        if permit._session is not self:
            # The native module reports the error.
            return self._native.adopt(permit._native)
        return permit.adopt()

    def shown(self, path: StrPath, content: str, *, start: int = 1) -> int:
        """Records lines that your own code has shown to the model, beginning with line `start`.

        Only lines that are in the file count. Returns their number.
        """
        return self._native.shown(os.fspath(path), content, start)

    def forget(self, paths: Iterable[StrPath] | None = None) -> Reply:
        """Records that the model has lost these files from its context, or everything: after a compaction, say."""
        if isinstance(paths, (str, os.PathLike)):
            raise TypeError("paths must be a list of paths")
        return Reply(*self._native.forget(None if paths is None else [os.fspath(path) for path in paths]))

    def undo(
        self,
        path: StrPath | None = None,
        *,
        change: str | None = None,
        all: bool = False,
        redo: bool = False,
        force: bool = False,
    ) -> Reply:
        """Takes back the last change of this session.

        Or the last one of a file (`path`), a named one with all its files (`change`), everything (`all`), or the last
        undo (`redo`). What others wrote since is kept, unless `force`.
        """
        return Reply(*self._native.undo(None if path is None else os.fspath(path), change, all, redo, force))

    def changed_since_read(self, path: StrPath) -> bool:
        """Whether a file has changed since the session saw it. One that it never saw counts as unchanged."""
        return self._native.changed_since_read(os.fspath(path))

    def instructions_if_new(self, path: StrPath) -> str | None:
        """The instructions of the repository (`AGENTS.md`) for a file or directory, each given once to a session."""
        return self._native.instructions_if_new(os.fspath(path))

    def repo_state(self) -> RepoState:
        """The state of the repository, with the tasks that this session sees."""
        return RepoState(self._native.repo_state())

    def close(self) -> None:
        """Ends the session after a call that is running. A session with the same id can continue it."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session(id={self.id!r})"
