"""Exceptions: a `Refusal` with a class for each code, and other errors apart from it."""

from __future__ import annotations

from typing import Any, NamedTuple


class LineRange(NamedTuple):
    """A range of lines, both ends included; the first line of a file is 1."""

    start: int
    end: int


class SurehandError(Exception):
    """The base of all exceptions of this package."""

    code: str
    """The stable name of the error."""


class Refusal(SurehandError):
    """A call was refused: nothing was changed, and `text` tells the model what to do.

    The lines that `text` shows count as read, so give it to the model.
    """

    path: str | None
    """The file, relative to the workspace, if the refusal is about one."""
    affected_ranges: list[LineRange]
    """The lines to look at, in current numbers."""
    remaps: dict[str, str]
    """For an edit by anchors: the current anchor for each that is out of date."""
    remedy: str
    """What to do next, in a few words."""
    repeat: int
    """How often this exact call has been refused, including this time."""
    text: str
    """The text for the model."""
    details: dict[str, Any]
    """The whole refusal, as `--json` gives it."""

    def __init__(
        self,
        code: str,
        path: str | None,
        affected_ranges: list[tuple[int, int]],
        remaps: dict[str, str],
        remedy: str,
        repeat: int,
        text: str,
        details: str,
    ) -> None:
        import json

        super().__init__(code, path, affected_ranges, remaps, remedy, repeat, text, details)
        self.code = code
        self.path = path
        self.affected_ranges = [LineRange(*ends) for ends in affected_ranges]
        self.remaps = remaps
        self.remedy = remedy
        self.repeat = repeat
        self.text = text
        self.details = json.loads(details)

    def __str__(self) -> str:
        return self.text


class Unread(Refusal):
    """The session has not seen the file."""


class Stale(Refusal):
    """The file has changed since the session saw it."""


class Deleted(Refusal):
    """The file was deleted after the session saw it."""


class Partial(Refusal):
    """The call would replace lines that were never seen."""


class NotFound(Refusal):
    """The file, or the text in it, does not exist."""


class Ambiguous(Refusal):
    """The text to replace occurs more than once."""


class NoChange(Refusal):
    """The call would change nothing."""


class AnchorMismatch(Refusal):
    """Anchors do not name the lines that the session saw."""


class Overlap(Refusal):
    """Two edits of one call touch the same lines."""


class Exists(Refusal):
    """A file exists where the call would create one."""


class Binary(Refusal):
    """The file is binary."""


class EncodingRefusal(Refusal):
    """The bytes are not valid in their encoding, or the new text does not fit it."""


class BadPatch(Refusal):
    """The patch has invalid syntax."""


class TooLarge(Refusal):
    """Something exceeds a limit."""


class OutsideWorkspace(Refusal):
    """The path is outside the workspace."""


class Protected(Refusal):
    """The path belongs to git or to Surehand."""


class BadRange(Refusal):
    """The range of lines is invalid."""


class BadArguments(Refusal):
    """The arguments do not fit the tool."""


class Conflict(Refusal):
    """Other programs kept changing the file during the attempts."""


class IoFailure(Refusal):
    """A system call failed."""


class ClosedError(SurehandError):
    """The workspace or the session was closed."""


class ForkedError(SurehandError):
    """The workspace was opened before this process was forked. Open it again in the child."""


class BrokenSessionError(SurehandError):
    """An earlier call of the session failed half-way. Open a new session."""


class InvalidArgumentError(SurehandError, ValueError):
    """An argument that no call could use."""


class SettingsError(SurehandError, ValueError):
    """A setting that does not exist, or a value that does not fit."""


class OpenError(SurehandError, OSError):
    """The workspace cannot be opened."""


_REFUSALS: dict[str, type[Refusal]] = {
    "unread": Unread,
    "stale": Stale,
    "deleted": Deleted,
    "partial": Partial,
    "not_found": NotFound,
    "ambiguous": Ambiguous,
    "no_change": NoChange,
    "anchor_mismatch": AnchorMismatch,
    "overlap": Overlap,
    "exists": Exists,
    "binary": Binary,
    "encoding": EncodingRefusal,
    "bad_patch": BadPatch,
    "too_large": TooLarge,
    "outside_workspace": OutsideWorkspace,
    "protected": Protected,
    "bad_range": BadRange,
    "bad_arguments": BadArguments,
    "conflict": Conflict,
    "io": IoFailure,
}

_ERRORS: dict[str, type[SurehandError]] = {
    "bad_argument": InvalidArgumentError,
    "bad_settings": SettingsError,
    "broken": BrokenSessionError,
    "cannot_open": OpenError,
    "closed": ClosedError,
    "forked": ForkedError,
}


def of_refusal(code: str, *rest: Any) -> Refusal:
    # A newer native module may have codes that this file does not know.
    return _REFUSALS.get(code, Refusal)(code, *rest)


def of_error(code: str, message: str) -> SurehandError:
    error = _ERRORS.get(code, SurehandError)(message)
    error.code = code
    return error
