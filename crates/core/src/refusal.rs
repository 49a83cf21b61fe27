//! A refusal: a typed "no" that changed nothing on disk, and carries what the caller needs to try again.
//! [`crate::render::refusal`] renders it as text.

use std::fmt;

use serde::Serialize;

use crate::{
    excerpt::Excerpt,
    forecast::Collision,
    hash::{Anchor, ContentHash},
    lines::{LineNo, LineRange, LineSet},
    outcome::undo::{NotUndone, UndoKind},
    path::RelPath,
    text::Unencodable,
    view::View,
};

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The file as the caller spelled it, or by its canonical path once that is known.
    pub path: Option<String>,
    /// Why the call was refused.
    pub cause: Cause,
    /// The edit of the batch that was refused.
    pub batch: Option<BatchPlace>,
    /// The session's view after it has read the refusal: the lines shown in it count as seen.
    pub view_after: Option<View>,
}

/// The place of an edit in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlace {
    /// The number of the edit or file in the batch, 1-based.
    pub edit: usize,
    /// The number of edits or files in the batch.
    pub of: usize,
    /// Whether the batch consists of edits or of files.
    pub kind: BatchKind,
}

/// The kind of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchKind {
    /// Replacements of text in one call.
    Edits,
    /// Files of a patch.
    Patch {
        /// The chunk of the file, 1-based; 0 means the file itself.
        chunk: usize,
    },
    /// Files that one undo restores.
    Undo,
}

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The session has not seen the file.
    Unread {
        /// The lines that the edit is about, if the refusal shows them.
        fresh: Excerpt,
    },
    /// The file has changed since the session saw it.
    Stale {
        /// The lines that are new, changed, or beside a removal, in current numbers.
        affected: LineSet,
        /// The text of those lines.
        fresh: Excerpt,
        /// For anchored edits: the anchors that do not name the lines that the session saw.
        mismatches: Vec<Mismatch>,
        /// For anchored edits: the current anchors of the lines that were meant.
        remaps: Vec<Remap>,
        /// Whether the lines are shown with anchors.
        anchors: bool,
        /// The number of lines in the file now.
        total_lines: usize,
    },
    /// The file was invalidated: it may have changed.
    Invalidated,
    /// The file was deleted after the session saw it.
    Deleted,
    /// The call would replace lines that were never seen.
    Partial {
        /// The lines that were never seen.
        unseen: LineSet,
        /// The text of those lines.
        fresh: Excerpt,
        /// How the call would have changed them.
        by: PartialUse,
    },
    /// The file does not exist.
    NoSuchFile,
    /// No file or directory has this path.
    NothingThere,
    /// The text to replace is not in the file.
    NotFound {
        /// The most similar lines.
        nearest: Option<Box<NearestLines>>,
        /// Where the replacement is already present.
        already_at: Option<LineNo>,
        /// The line numbers of a read, if the text has them in front of its lines.
        prefixed: Option<PrefixedText>,
    },
    /// The text to replace occurs more than once.
    Ambiguous {
        /// The lines on which the matches start.
        lines: Vec<LineNo>,
    },
    /// The edit would change nothing.
    NoChange,
    /// Anchors do not name the lines that the session saw.
    AnchorMismatch {
        /// Every anchor that does not fit, in the order of the edits.
        mismatches: Vec<Mismatch>,
        /// The lines around the anchors.
        fresh: Excerpt,
        /// The current anchors of the lines that were meant, as far as they are proven.
        remaps: Vec<Remap>,
    },
    /// Two edits of one call touch the same lines.
    Overlap {
        /// The earlier of the two, 1-based.
        first: usize,
        /// The later of the two, 1-based.
        second: usize,
    },
    /// A file exists where the call would create one.
    Exists {
        /// The operation that would have created it.
        by: CreatedBy,
    },
    /// The file is binary, so these tools cannot show or edit it.
    Binary {
        /// Size of the file in bytes.
        size: u64,
        /// The detected type of the content.
        kind: &'static str,
    },
    /// The bytes are not valid in the encoding that they claim.
    Encoding {
        /// Size of the file in bytes.
        size: u64,
        /// Offset of the first invalid byte.
        at: usize,
    },
    /// The call would replace a file that cannot be shown.
    Unshown {
        /// The reason: [`Cause::Binary`], [`Cause::Encoding`] or [`Cause::TooLarge`].
        why: Box<Cause>,
        /// The current version of the file.
        version: ContentHash,
        /// The effect of sending the same call again.
        if_repeated: IfRepeated,
    },
    /// The file is too large to be kept for undo.
    TooLargeToKeep {
        /// Size of the file in bytes.
        size: u64,
        /// The maximum size, in bytes.
        limit: u64,
    },
    /// The new text cannot be written in the encoding of the file.
    Unencodable {
        /// Why the text cannot be encoded.
        why: Unencodable,
        /// The name of the encoding.
        encoding: &'static str,
    },
    /// A patch with invalid syntax.
    BadPatch {
        /// The line of the patch, 1-based.
        line: usize,
        /// The syntax error, and how to fix it.
        why: String,
    },
    /// Nothing can be undone without overwriting later changes.
    ChangedSince {
        /// Whether the call was an undo or a redo.
        undo: UndoKind,
        /// The changes that would remain, for each file.
        left: Vec<NotUndone>,
    },
    /// No change can be undone, or its content is no longer stored.
    CannotUndo {
        /// Why the undo is not possible.
        why: String,
    },
    /// Something exceeds a limit.
    TooLarge {
        /// The unit of `size` and `limit`, such as bytes.
        unit: &'static str,
        /// The requested size, in this unit.
        size: u64,
        /// The largest size that is allowed, in this unit.
        limit: u64,
        /// The setting that defines the limit.
        setting: &'static str,
    },
    /// The path is outside the workspace.
    OutsideWorkspace,
    /// The path belongs to git or to Surehand.
    Protected,
    /// An invalid range of lines.
    BadRange {
        /// Why the range is invalid.
        why: String,
    },
    /// Arguments that do not fit the tool.
    BadArguments {
        /// Why the arguments are invalid.
        why: String,
    },
    /// An anchor is malformed.
    BadAnchor {
        /// The number of the edit in the call, 1-based.
        edit: usize,
        /// The text that is not an anchor.
        given: String,
    },
    /// An empty search pattern.
    EmptyPattern,
    /// The list has no task with this number.
    NoSuchTask {
        /// The number in the call.
        id: u32,
    },
    /// The task belongs to another run, session or story.
    TaskOfOthers {
        /// The number of the task.
        id: u32,
        /// The owner of the task, as shown to the model.
        whose: String,
    },
    /// The tool does not exist or is not offered.
    NoSuchTool {
        /// The name in the call.
        name: String,
    },
    /// Other programs kept changing the file during the attempts.
    Conflict {
        /// The last obstacle, for the model.
        why: String,
    },
    /// Another agent has claimed the path, and the user's settings say that claims are kept.
    Claimed {
        /// The pattern of the claimed paths.
        pattern: String,
        /// The short name of the other agent.
        by: String,
    },
    /// The edit would conflict with what another checkout has changed, and the user's settings refuse that.
    Collides {
        /// The other checkout's change, and the forecast of the merge.
        collision: Box<Collision>,
    },
    /// Not a regular file.
    NotAFile {
        /// The kind of the file, such as a directory.
        kind: &'static str,
    },
    /// A system call failed.
    Io {
        /// The attempted operation, and the system's error.
        why: String,
    },
}

/// The effect of sending a call again that would replace a file that cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfRepeated {
    /// The call replaces the file, if it has not changed since.
    Replaces,
    /// The call is refused again.
    IsRefused,
}

/// The operation that would have created a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreatedBy {
    /// `edit_file` with an empty `old_string`.
    Creating,
    /// `move_file`, or a move in a patch.
    Moving,
    /// A patch that adds a file.
    Adding,
}

/// How a call would have changed lines that were never seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialUse {
    /// `write_file` would have replaced the whole file.
    Overwrite,
    /// `edit_lines` would have replaced them.
    Lines,
}

/// An anchor that does not fit its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The anchor from the call.
    pub anchor: Anchor,
    /// The line that the session was shown under this number, if any.
    pub expected: Option<String>,
    /// The text of the line that has this number now; `None` past the end.
    pub found: Option<String>,
    /// How the anchor and its line differ.
    pub why: MismatchKind,
}

/// How an anchor and its line differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MismatchKind {
    /// The file has no line with this number.
    PastEnd,
    /// The line has a different text.
    OtherText,
    /// The line that was shown under this number has moved since.
    Moved,
    /// Two lines fit: the line that has this number now, and the line that was last shown under it.
    TwoFit,
    /// The line that was shown under this number is gone; an equal line has the number now.
    Gone,
    /// The line was never shown.
    Unseen,
}

/// A line's anchor from the call, and its current anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Remap {
    /// The anchor from the call.
    pub from: Anchor,
    /// The anchor of the same line now.
    pub to: Anchor,
}

/// A text to replace that has the prefixes of a read (`12|`, `12#ab|`) in front of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixedText {
    /// The lines where the text occurs without the prefixes.
    pub places: Vec<LineRange>,
    /// Whether the replacement also has prefixes.
    pub also_new: bool,
}

/// The lines most similar to a text that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestLines {
    /// The range of the lines in the file.
    pub lines: LineRange,
    /// The text of the lines; if there are many, of those around the first difference.
    pub fresh: Excerpt,
    /// The exact text to use, if it looks the same.
    pub same_looks: Option<SameLooks>,
    /// The first difference from the text in the call; `None` if the lines match.
    pub diverges: Option<Divergence>,
}

/// A text of the file that looks like the text that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SameLooks {
    /// The text as the file has it, if it is not too long to show.
    pub exact: Option<String>,
    /// Every kind of difference between the two texts.
    pub differs_in: Vec<HiddenDifference>,
    /// The number of other places that look the same.
    pub others: usize,
}

/// A difference that is hard to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HiddenDifference {
    /// Spaces, TABs and line breaks.
    WhiteSpace,
    /// Characters without a visible shape.
    Invisible,
    /// Characters that look like other characters.
    LookAlike,
    /// A letter and its mark as one character or as two characters.
    NormalForm,
}

/// The first difference between a text in a call and the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Divergence {
    /// A line of the file differs from the line in the call.
    Line {
        /// The number of the differing line in the file.
        line: LineNo,
        /// The 1-based column, in characters.
        column: usize,
        /// The line from the call, around the difference.
        expected: LinePiece,
        /// The line in the file, around the difference.
        found: LinePiece,
    },
    /// The call left out lines of the file.
    LeftOut {
        /// The lines that only the file has.
        lines: LineRange,
    },
    /// The call has a line that the file does not have.
    Extra {
        /// The line that only the call has.
        expected: String,
        /// The line of the file that it would precede; `None` at the end.
        before: Option<LineNo>,
    },
    /// The text in the call ends with a newline, and the file does not.
    NoFinalNewline,
}

/// A position in a line. For a long line, only its surroundings are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePiece {
    /// The line, or the part of it around the position.
    pub text: String,
    /// The number of characters of `text` before the position.
    pub at: usize,
}

impl LinePiece {
    /// The position after this many characters of a line.
    pub fn of(line: &str, at: usize) -> Self {
        const AROUND: usize = 200;
        let start = at.saturating_sub(AROUND);
        Self { text: line.chars().skip(start).take(2 * AROUND).collect(), at: at - start }
    }
}

impl Divergence {
    /// The line of the file where the texts differ; `None` at the end of the file.
    pub fn line(&self) -> Option<LineNo> {
        match self {
            Divergence::Line { line, .. } => Some(*line),
            Divergence::LeftOut { lines } => Some(lines.start),
            Divergence::Extra { before, .. } => *before,
            Divergence::NoFinalNewline => None,
        }
    }
}

impl Refusal {
    /// A refusal about a file.
    pub fn of(path: &RelPath, cause: Cause) -> Self {
        Self { path: Some(path.to_string()), cause, batch: None, view_after: None }
    }

    /// A refusal about a path that could not be resolved.
    pub fn of_spelling(path: &str, cause: Cause) -> Self {
        Self { path: Some(path.chars().take(200).collect()), cause, batch: None, view_after: None }
    }

    /// A refusal of the call itself.
    pub fn of_call(cause: Cause) -> Self {
        Self { path: None, cause, batch: None, view_after: None }
    }

    /// This refusal with the session's view after it has read the refusal.
    pub fn teaching(self, view: View) -> Self {
        Self { view_after: Some(view), ..self }
    }

    /// This refusal for one edit of a batch; `edit` is 1-based.
    pub fn in_batch(self, edit: usize, of: usize) -> Self {
        self.at(BatchPlace { edit, of, kind: BatchKind::Edits })
    }

    /// This refusal at this place of a batch.
    pub fn at(self, place: BatchPlace) -> Self {
        Self { batch: Some(place), ..self }
    }

    /// The stable name of the cause, for programs.
    pub fn code(&self) -> RefusalCode {
        self.cause.code()
    }

    /// The canonical path, if it is known.
    pub fn known_path(&self) -> Option<RelPath> {
        self.path.as_deref().and_then(|path| RelPath::new(path).ok())
    }

    /// The lines that the caller should read, in current numbers.
    pub fn affected_ranges(&self) -> LineSet {
        match &self.cause {
            Cause::Stale { affected, .. } => affected.clone(),
            Cause::Partial { unseen, .. } => unseen.clone(),
            Cause::Ambiguous { lines } => lines.iter().copied().collect(),
            Cause::NotFound { nearest: Some(nearest), .. } => [nearest.lines].into_iter().collect(),
            Cause::NotFound { prefixed: Some(prefixed), .. } => prefixed.places.iter().copied().collect(),
            Cause::AnchorMismatch { fresh, .. } => fresh.rows.iter().map(|(line, _)| *line).chain(fresh.omitted.iter()).collect(),
            _ => LineSet::new(),
        }
    }

    /// The anchors of an edit that do not name the lines that the session saw.
    pub fn mismatches(&self) -> &[Mismatch] {
        match &self.cause {
            Cause::Stale { mismatches, .. } | Cause::AnchorMismatch { mismatches, .. } => mismatches,
            _ => &[],
        }
    }

    /// The current anchors of the lines that an anchored edit means.
    pub fn remaps(&self) -> &[Remap] {
        match &self.cause {
            Cause::Stale { remaps, .. } | Cause::AnchorMismatch { remaps, .. } => remaps,
            _ => &[],
        }
    }
}

/// The stable name of a cause, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalCode {
    /// The session has not seen the file.
    Unread,
    /// The file has changed since the session saw it.
    Stale,
    /// The file was deleted after the session saw it.
    Deleted,
    /// The call would replace lines that were never seen.
    Partial,
    /// The file, or the text in it, does not exist.
    NotFound,
    /// The text to replace occurs more than once.
    Ambiguous,
    /// The call would change nothing.
    NoChange,
    /// Anchors do not name the lines that the session saw.
    AnchorMismatch,
    /// Two edits of one call touch the same lines.
    Overlap,
    /// A file exists where the call would create one.
    Exists,
    /// The file is binary, so these tools cannot show or edit it.
    Binary,
    /// The bytes are not valid in the encoding that they claim, or the new text does not fit the encoding.
    Encoding,
    /// A patch with invalid syntax.
    BadPatch,
    /// Something exceeds a limit.
    TooLarge,
    /// The path is outside the workspace.
    OutsideWorkspace,
    /// The path belongs to git or to Surehand.
    Protected,
    /// An invalid range of lines.
    BadRange,
    /// Arguments that do not fit the tool.
    BadArguments,
    /// Other programs kept changing the file.
    Conflict,
    /// Another agent has claimed the path.
    Claimed,
    /// The edit would conflict with a change in another checkout.
    Collision,
    /// A system call failed.
    Io,
}

impl RefusalCode {
    /// The code in `snake_case`, as programs read it.
    pub fn as_str(self) -> &'static str {
        match self {
            RefusalCode::Unread => "unread",
            RefusalCode::Stale => "stale",
            RefusalCode::Deleted => "deleted",
            RefusalCode::Partial => "partial",
            RefusalCode::NotFound => "not_found",
            RefusalCode::Ambiguous => "ambiguous",
            RefusalCode::NoChange => "no_change",
            RefusalCode::AnchorMismatch => "anchor_mismatch",
            RefusalCode::Overlap => "overlap",
            RefusalCode::Exists => "exists",
            RefusalCode::Binary => "binary",
            RefusalCode::Encoding => "encoding",
            RefusalCode::BadPatch => "bad_patch",
            RefusalCode::TooLarge => "too_large",
            RefusalCode::OutsideWorkspace => "outside_workspace",
            RefusalCode::Protected => "protected",
            RefusalCode::BadRange => "bad_range",
            RefusalCode::BadArguments => "bad_arguments",
            RefusalCode::Conflict => "conflict",
            RefusalCode::Claimed => "claimed",
            RefusalCode::Collision => "collision",
            RefusalCode::Io => "io",
        }
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Cause {
    /// The session has not seen the file, and the refusal shows none of it.
    pub fn unread() -> Self {
        Self::Unread { fresh: Excerpt::default() }
    }

    /// The stable name of the cause, for programs.
    pub fn code(&self) -> RefusalCode {
        self.class().0
    }

    /// Whether and when the same call may succeed.
    pub(crate) fn retry(&self) -> Retry {
        self.class().1
    }

    /// Whether the next call will probably be about the same file, after the caller has read or corrected something.
    pub fn leads_back_to_file(&self) -> bool {
        self.class().2 == FollowUp::SameFile
    }

    /// The table in which each cause has its code, its retry rule and its follow-up.
    fn class(&self) -> (RefusalCode, Retry, FollowUp) {
        use FollowUp::{Elsewhere, SameFile};
        use Retry::{AfterReading, Corrected, Later};
        match self {
            Cause::Unread { .. } => (RefusalCode::Unread, AfterReading, SameFile),
            Cause::Stale { .. } | Cause::Invalidated => (RefusalCode::Stale, AfterReading, SameFile),
            Cause::Deleted => (RefusalCode::Deleted, AfterReading, Elsewhere),
            Cause::Partial { .. } => (RefusalCode::Partial, AfterReading, SameFile),
            Cause::NoSuchFile | Cause::NothingThere => (RefusalCode::NotFound, Corrected, Elsewhere),
            Cause::NotFound { .. } => (RefusalCode::NotFound, AfterReading, SameFile),
            Cause::Ambiguous { .. } => (RefusalCode::Ambiguous, AfterReading, SameFile),
            Cause::NoChange => (RefusalCode::NoChange, AfterReading, SameFile),
            Cause::AnchorMismatch { .. } => (RefusalCode::AnchorMismatch, AfterReading, SameFile),
            Cause::Overlap { .. } => (RefusalCode::Overlap, AfterReading, SameFile),
            Cause::Exists { .. } => (RefusalCode::Exists, AfterReading, SameFile),
            Cause::Binary { .. } => (RefusalCode::Binary, Corrected, Elsewhere),
            Cause::Encoding { .. } => (RefusalCode::Encoding, Corrected, Elsewhere),
            Cause::Unencodable { .. } => (RefusalCode::Encoding, Corrected, SameFile),
            Cause::BadPatch { .. } => (RefusalCode::BadPatch, Corrected, Elsewhere),
            Cause::ChangedSince { .. } => (RefusalCode::Stale, Corrected, SameFile),
            Cause::CannotUndo { .. } => (RefusalCode::NoChange, Corrected, Elsewhere),
            Cause::TooLarge { .. } | Cause::TooLargeToKeep { .. } => (RefusalCode::TooLarge, Corrected, Elsewhere),
            Cause::Unshown { why, if_repeated: IfRepeated::Replaces, .. } => (why.code(), Later, SameFile),
            Cause::Unshown { why, if_repeated: IfRepeated::IsRefused, .. } => (why.code(), Corrected, SameFile),
            Cause::OutsideWorkspace => (RefusalCode::OutsideWorkspace, Corrected, Elsewhere),
            Cause::Protected => (RefusalCode::Protected, Corrected, Elsewhere),
            Cause::BadRange { .. } => (RefusalCode::BadRange, Corrected, Elsewhere),
            Cause::BadArguments { .. } | Cause::BadAnchor { .. } | Cause::EmptyPattern | Cause::NoSuchTool { .. } => {
                (RefusalCode::BadArguments, Corrected, Elsewhere)
            }
            Cause::NoSuchTask { .. } | Cause::TaskOfOthers { .. } => (RefusalCode::BadArguments, Corrected, Elsewhere),
            Cause::Conflict { .. } => (RefusalCode::Conflict, Later, SameFile),
            Cause::Claimed { .. } => (RefusalCode::Claimed, Later, Elsewhere),
            Cause::Collides { .. } => (RefusalCode::Collision, Corrected, SameFile),
            Cause::NotAFile { .. } => (RefusalCode::Io, Corrected, Elsewhere),
            Cause::Io { .. } => (RefusalCode::Io, Later, Elsewhere),
        }
    }
}

/// Whether and when a refused call may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// After a read of the file.
    AfterReading,
    /// Only with other arguments.
    Corrected,
    /// At once, or after someone else has acted, as the refusal says.
    Later,
}

#[derive(PartialEq, Eq)]
enum FollowUp {
    SameFile,
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_same_to_all_programs() {
        let codes = [RefusalCode::Unread, RefusalCode::NotFound, RefusalCode::AnchorMismatch, RefusalCode::OutsideWorkspace];
        for code in codes {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
