"""A workspace."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

from surehand import _native
from surehand._edit import to_json
from surehand._session import RepoState, Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from surehand._edit import StrPath


class Workspace:
    """A directory tree with its state.

    The state is in `.git/surehand`, or in `~/.local/state/surehand` without a git repository, and is shared with all
    processes on the same tree. One tree may be open several times.
    """

    __slots__ = ("__weakref__", "_close", "_native")

    def __init__(
        self,
        root: StrPath = ".",
        *,
        settings: Mapping[str, Any] | None = None,
        state_dir: StrPath | None = None,
        in_memory: bool = False,
        watch: bool = False,
    ) -> None:
        """Opens a workspace.

        `settings` has keys such as `policy.on_change`; they win over the user's settings file and the environment.
        `state_dir` is another directory for the state. With `in_memory`, views and changes end with the workspace, and
        no other process sees them. With `watch`, the tree is watched, for a long-running program.
        """
        given = to_json({} if settings is None else dict(settings))
        state = None if state_dir is None else os.fspath(state_dir)
        self._native = _native.Workspace(os.fspath(root), given, state, in_memory, watch)
        # Also at the end of the program, so that everything is written.
        self._close = weakref.finalize(self, self._native.close)

    @property
    def path(self) -> Path:
        """The root."""
        # A Path already: the native module makes it, and imports pathlib only for that.
        return self._native.path

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._native.closed

    def session(
        self,
        id: str | None = None,
        *,
        shared: bool = False,
        tools: Iterable[str] | Mapping[str, str] | None = None,
    ) -> Session:
        """Begins a session, or continues the one with this id.

        With `shared`, other processes may use the session at the same time; each call then reads from the store what
        they did. `tools` are the tools of Surehand that the model has, or a mapping to the names that the model knows,
        such as `{"read_file": "view"}`. No text for the model names another tool. By default it has all of them.
        """
        if isinstance(tools, str):
            raise TypeError("tools must be a list of names, or a mapping")
        if tools is None:
            pairs = None
        elif hasattr(tools, "items"):
            pairs = list(tools.items())
        else:
            pairs = [(name, name) for name in tools]
        return Session(self, self._native.session(id, shared, pairs))

    def repo_state(self) -> RepoState:
        """The state of the repository, as a person sees it."""
        return RepoState(self._native.repo_state())

    def close(self) -> None:
        """Ends all sessions, writes what is not yet stored, and releases the state.

        Waits for calls that are running; later ones raise `ClosedError`.
        """
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Workspace({str(self.path)!r})"
