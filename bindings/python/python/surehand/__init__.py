"""Guards the file edits of a coding agent.

Surehand tracks which lines of each file a model has seen. An edit that rests on stale content is refused, and the
refusal shows the model what it missed. Commits are atomic, and everything can be undone.

    import surehand

    with surehand.Workspace(".") as workspace, workspace.session() as session:
        session.read("src/app.py")
        session.edit(surehand.Edit.replace("src/app.py", "colour", "color"))

A `Workspace` is a directory tree with its state, which it shares with the program `surehand`, its hooks, and every
other process on the same tree. A `Session` is one model's context window. Both may be used by any thread, and every
call releases the GIL.
"""

from __future__ import annotations

from surehand._edit import Edit
from surehand._errors import (
    Ambiguous,
    AnchorMismatch,
    BadArguments,
    BadPatch,
    BadRange,
    Binary,
    BrokenSessionError,
    ClosedError,
    Conflict,
    Deleted,
    EncodingRefusal,
    Exists,
    ForkedError,
    InvalidArgumentError,
    IoFailure,
    LineRange,
    NoChange,
    NotFound,
    OpenError,
    OutsideWorkspace,
    Overlap,
    Partial,
    Protected,
    Refusal,
    SettingsError,
    Stale,
    SurehandError,
    TooLarge,
    Unread,
)
from surehand._native import VERSION as __version__
from surehand._session import Permit, Reply, RepoState, Session, ToolSpec
from surehand._workspace import Workspace

__all__ = [
    "Ambiguous",
    "AnchorMismatch",
    "BadArguments",
    "BadPatch",
    "BadRange",
    "Binary",
    "BrokenSessionError",
    "ClosedError",
    "Conflict",
    "Deleted",
    "Edit",
    "EncodingRefusal",
    "Exists",
    "ForkedError",
    "InvalidArgumentError",
    "IoFailure",
    "LineRange",
    "NoChange",
    "NotFound",
    "OpenError",
    "OutsideWorkspace",
    "Overlap",
    "Partial",
    "Permit",
    "Protected",
    "Refusal",
    "Reply",
    "RepoState",
    "Session",
    "SettingsError",
    "Stale",
    "SurehandError",
    "ToolSpec",
    "TooLarge",
    "Unread",
    "Workspace",
    "__version__",
]
