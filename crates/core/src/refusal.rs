//! A refusal: a typed "no" that changed nothing on disk, with what is needed to do better. [`crate::render::refusal`] puts it
//! into words.

use std::fmt;

use serde::Serialize;

use crate::{
    excerpt::Excerpt,
    hash::{Anchor, ContentHash},
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    short_diff::TextDiff,
    view::View,
};

/// A call that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The file as the caller named it, or in our spelling once that is known.
    pub path: Option<String>,
    /// What is true of the world.
    pub cause: Cause,
    /// Which edit of a batch it was.
    pub batch: Option<BatchPlace>,
    /// What the session knows of the file once it has been told: the lines in the refusal count as seen.
    pub view_after: Option<View>,
}

/// The place of an edit in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlace {
    /// 1-based.
    pub edit: usize,
    /// How many edits there were.
    pub of: usize,
    /// What it is a batch of.
    pub kind: BatchKind,
}

/// What a batch is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchKind {
    /// Replacements of text.
    Edits,
    /// Files of a patch.
    Patch {
        /// Which chunk of the file it was, 1-based; 0 when it was about the file itself.
        chunk: usize,
    },
    /// Files that are brought back.
    Undo,
}

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The session has not seen the file.
    Unread {
        /// The lines that the edit is about, where they are shown with the refusal.
        fresh: Excerpt,
    },
    /// The file is not the one that the session saw.
    Stale {
        /// The lines that are new, changed, or beside a removal, as they are numbered now.
        affected: LineSet,
        /// What those lines are.
        fresh: Excerpt,
        /// For anchored edits: the anchors that do not name the lines that the session saw.
        mismatches: Vec<Mismatch>,
        /// For anchored edits: the same lines under the anchors they have now.
        remaps: Vec<Remap>,
        /// Whether the lines are shown with anchors.
        anchors: bool,
        /// How many lines the file has now.
        total_lines: usize,
    },
    /// Somebody said that the file may have changed.
    Invalidated,
    /// The session saw the file; it is gone.
    Deleted,
    /// Lines that the call would replace were never seen.
    Partial {
        /// Those lines.
        unseen: LineSet,
        /// What they are.
        fresh: Excerpt,
        /// What the call would have done with them.
        by: PartialUse,
    },
    /// There is no such file.
    NoSuchFile,
    /// There is no such file or directory.
    NothingThere,
    /// The text to replace is not in the file.
    NotFound {
        /// The lines most like it.
        nearest: Option<Box<NearestLines>>,
        /// Where the replacement stands already.
        already_at: Option<LineNo>,
        /// Whether it was given with the line numbers of a read in front.
        prefixed: Option<PrefixedText>,
    },
    /// The text to replace is there more than once.
    Ambiguous {
        /// The lines on which the matches start.
        lines: Vec<LineNo>,
    },
    /// The edit would change nothing.
    NoChange,
    /// Anchors do not name the lines that the session saw.
    AnchorMismatch {
        /// All of them.
        mismatches: Vec<Mismatch>,
        /// The lines around them.
        fresh: Excerpt,
        /// Where the meant lines are now, if that is known.
        remaps: Vec<Remap>,
    },
    /// Two edits of one call touch the same lines.
    Overlap {
        /// The earlier of the two, 1-based.
        first: usize,
        /// The later of the two, 1-based.
        second: usize,
    },
    /// There is a file already where one was to be made.
    Exists {
        /// What would have made it.
        by: CreatedBy,
    },
    /// Not text.
    Binary {
        /// Size in bytes.
        size: u64,
        /// What it looks like.
        kind: &'static str,
    },
    /// Text in an encoding that it breaks.
    Encoding {
        /// Size in bytes.
        size: u64,
        /// The first byte that does not fit.
        at: usize,
    },
    /// The call would replace a file that cannot be shown.
    Unshown {
        /// Why not: [`Cause::Binary`], [`Cause::Encoding`] or [`Cause::TooLarge`].
        why: Box<Cause>,
        /// What it holds.
        version: ContentHash,
        /// What the same call does when it is sent again.
        if_repeated: IfRepeated,
    },
    /// The file is too large to be kept for undo.
    TooLargeToKeep {
        /// Size in bytes.
        size: u64,
        /// The largest that is kept.
        limit: u64,
    },
    /// The new text cannot be written in the encoding of the file.
    Unencodable {
        /// Why not.
        why: Unencodable,
        /// The encoding.
        encoding: &'static str,
    },
    /// A patch that cannot be understood.
    BadPatch {
        /// The line of the patch, 1-based.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Undoing would overwrite what has been done since.
    ChangedSince {
        /// From what is there now to what would come back; `None` where there is no text to compare.
        diff: Option<Box<TextDiff>>,
    },
    /// There is nothing to undo, or what it was is no longer kept.
    CannotUndo {
        /// Why.
        why: String,
    },
    /// Over a limit.
    TooLarge {
        /// What was counted.
        unit: &'static str,
        /// How much there was.
        size: u64,
        /// How much is allowed.
        limit: u64,
        /// The setting that says so.
        setting: &'static str,
    },
    /// The path leads out of the workspace.
    OutsideWorkspace,
    /// The path is somebody's internals (`.git`, `.surehand`).
    Protected,
    /// A range of lines that makes no sense.
    BadRange {
        /// What is wrong with it.
        why: String,
    },
    /// Arguments that do not fit the tool.
    BadArguments {
        /// What is wrong with them.
        why: String,
    },
    /// Something that is no anchor where one was to be.
    BadAnchor {
        /// Which edit of the call it was, 1-based.
        edit: usize,
        /// What was given.
        given: String,
    },
    /// A search for nothing.
    EmptyPattern,
    /// There is no task with this number.
    NoSuchTask {
        /// The number.
        id: u32,
    },
    /// This task is somebody else's.
    TaskOfOthers {
        /// The number.
        id: u32,
        /// A run, a session or a story.
        whose: String,
    },
    /// There is no such tool, or it is not offered.
    NoSuchTool {
        /// What was called.
        name: String,
    },
    /// Other programs kept changing the file while we tried.
    Conflict {
        /// What happened.
        why: String,
    },
    /// Not a regular file.
    NotAFile {
        /// What it is instead.
        kind: &'static str,
    },
    /// The system said no.
    Io {
        /// What was tried, and the system's words.
        why: String,
    },
}

/// What a call does when it is sent again, that would replace a file that cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfRepeated {
    /// It replaces the file, if that is still the same.
    Replaces,
    /// It is refused again.
    IsRefused,
}

/// Why a text cannot be written in an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unencodable {
    /// This character has no place in it.
    Character(char),
    /// The file as it is could not be written back as it is.
    Inexact,
    /// It would be taken for another encoding the next time it is read.
    Mistakable,
}

/// What would have made a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreatedBy {
    /// `edit_file` with an empty `old_string`.
    Creating,
    /// `move_file`, or a move in a patch.
    Moving,
    /// A file that a patch adds.
    Adding,
}

/// What would have happened to lines that were never seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialUse {
    /// `write_file` would have replaced the whole file.
    Overwrite,
    /// `edit_lines` would have replaced them.
    Lines,
}

/// An anchor and the line it does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// As the caller gave it.
    pub anchor: Anchor,
    /// The line that the session was shown under this number, if any.
    pub expected: Option<String>,
    /// The text of the line that has this number now; `None` past the end.
    pub found: Option<String>,
    /// What is wrong.
    pub why: MismatchKind,
}

/// What is wrong with an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MismatchKind {
    /// There is no such line.
    PastEnd,
    /// The line has another text.
    OtherText,
    /// The line was shown under this number, but has moved since.
    Moved,
    /// Two lines fit: the one that has this number now and the one that was last shown under it.
    TwoFit,
    /// The line that was shown under this number is gone; another one that reads the same has the number now.
    Gone,
    /// The line was never shown.
    Unseen,
}

/// The same line, by the anchor the caller gave and by the one it has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Remap {
    /// As given.
    pub from: Anchor,
    /// As it is now.
    pub to: Anchor,
}

/// A text to replace that has the prefixes of a read (`12|`, `12#ab|`) in front of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixedText {
    /// Where the text is without them.
    pub places: Vec<LineRange>,
    /// Whether the replacement has them too.
    pub also_new: bool,
}

/// The lines most like a text that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestLines {
    /// Where they are.
    pub lines: LineRange,
    /// What they are; of many, those around the first difference.
    pub fresh: Excerpt,
    /// What to use instead, if it looks the same.
    pub same_looks: Option<SameLooks>,
    /// Where they first differ.
    pub diverges: Option<Divergence>,
}

/// A text of the file that looks like the one that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SameLooks {
    /// The text, if it is not too long to show.
    pub exact: Option<String>,
    /// All ways in which it differs.
    pub differs_in: Vec<HiddenDifference>,
    /// How many other places look the same.
    pub others: usize,
}

/// A way to differ that is hard to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HiddenDifference {
    /// White space.
    WhiteSpace,
    /// Characters without width.
    Invisible,
    /// Characters that look like others.
    LookAlike,
    /// A letter and its mark as one character or as two.
    NormalForm,
}

/// The first place at which a text differs from what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Divergence {
    /// A line reads otherwise.
    Line {
        /// The line in the file.
        line: LineNo,
        /// The 1-based column, in characters.
        column: usize,
        /// That line as the caller gave it.
        expected: LinePiece,
        /// That line in the file.
        found: LinePiece,
    },
    /// The file has lines here that the caller left out.
    LeftOut {
        /// Those lines.
        lines: LineRange,
    },
    /// The caller gave a line here that the file does not have.
    Extra {
        /// As it was given.
        expected: String,
        /// The line of the file before which it would be; `None` at the end.
        before: Option<LineNo>,
    },
    /// The caller gave a newline at the end, and the file ends without one.
    NoFinalNewline,
}

/// A place in a line. Of a long line there is only what is around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePiece {
    /// The line, or the piece of it.
    pub text: String,
    /// How many characters come before the place.
    pub at: usize,
}

impl LinePiece {
    /// The place that so many characters of a line come before.
    pub fn of(line: &str, at: usize) -> Self {
        const AROUND: usize = 200;
        let start = at.saturating_sub(AROUND);
        Self { text: line.chars().skip(start).take(2 * AROUND).collect(), at: at - start }
    }
}

impl Divergence {
    /// The line in the file, if there is one.
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

    /// A refusal about a file that could not even be found by this spelling.
    pub fn of_spelling(path: &str, cause: Cause) -> Self {
        Self { path: Some(path.chars().take(200).collect()), cause, batch: None, view_after: None }
    }

    /// A refusal of the call itself.
    pub fn of_call(cause: Cause) -> Self {
        Self { path: None, cause, batch: None, view_after: None }
    }

    /// The same, with what the session knows once it has been told.
    pub fn teaching(self, view: View) -> Self {
        Self { view_after: Some(view), ..self }
    }

    /// The same, for one edit of a batch.
    pub fn in_batch(self, edit: usize, of: usize) -> Self {
        self.at(BatchPlace { edit, of, kind: BatchKind::Edits })
    }

    /// The same, at this place of a batch.
    pub fn at(self, place: BatchPlace) -> Self {
        Self { batch: Some(place), ..self }
    }

    /// The stable name of the cause, for programs.
    pub fn code(&self) -> RefusalCode {
        self.cause.code()
    }

    /// The file in our spelling, if it is known by that.
    pub fn known_path(&self) -> Option<RelPath> {
        self.path.as_deref().and_then(|path| RelPath::new(path).ok())
    }

    /// The lines that the caller should look at, as they are numbered now.
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

    /// Where the lines meant by an anchored edit are now.
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
    /// The file is not the one that the session saw.
    Stale,
    /// The session saw the file; it is gone.
    Deleted,
    /// Lines that the call would replace were never seen.
    Partial,
    /// There is no such file, or no such text in it.
    NotFound,
    /// The text to replace is there more than once.
    Ambiguous,
    /// The call would change nothing.
    NoChange,
    /// Anchors do not name the lines that the session saw.
    AnchorMismatch,
    /// Two edits of one call touch the same lines.
    Overlap,
    /// There is a file already where one was to be made.
    Exists,
    /// Not text.
    Binary,
    /// Text in an encoding that it breaks, or that the new text does not fit.
    Encoding,
    /// A patch that cannot be understood.
    BadPatch,
    /// Over a limit.
    TooLarge,
    /// The path leads out of the workspace.
    OutsideWorkspace,
    /// The path belongs to git or to Surehand.
    Protected,
    /// A range of lines that makes no sense.
    BadRange,
    /// Arguments that do not fit the tool.
    BadArguments,
    /// Other programs kept changing the file.
    Conflict,
    /// The system said no.
    Io,
}

impl RefusalCode {
    /// As programs read it.
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
    /// The session has not seen the file, and is shown nothing of it.
    pub fn unread() -> Self {
        Self::Unread { fresh: Excerpt::default() }
    }

    /// The stable name of the cause, for programs.
    pub fn code(&self) -> RefusalCode {
        match self {
            Cause::Unread { .. } => RefusalCode::Unread,
            Cause::Stale { .. } | Cause::Invalidated => RefusalCode::Stale,
            Cause::Deleted => RefusalCode::Deleted,
            Cause::Partial { .. } => RefusalCode::Partial,
            Cause::NoSuchFile | Cause::NothingThere | Cause::NotFound { .. } => RefusalCode::NotFound,
            Cause::Ambiguous { .. } => RefusalCode::Ambiguous,
            Cause::NoChange => RefusalCode::NoChange,
            Cause::AnchorMismatch { .. } => RefusalCode::AnchorMismatch,
            Cause::Overlap { .. } => RefusalCode::Overlap,
            Cause::Exists { .. } => RefusalCode::Exists,
            Cause::Binary { .. } => RefusalCode::Binary,
            Cause::Encoding { .. } | Cause::Unencodable { .. } => RefusalCode::Encoding,
            Cause::BadPatch { .. } => RefusalCode::BadPatch,
            Cause::ChangedSince { .. } => RefusalCode::Stale,
            Cause::CannotUndo { .. } => RefusalCode::NoChange,
            Cause::TooLarge { .. } | Cause::TooLargeToKeep { .. } => RefusalCode::TooLarge,
            Cause::Unshown { why, .. } => why.code(),
            Cause::OutsideWorkspace => RefusalCode::OutsideWorkspace,
            Cause::Protected => RefusalCode::Protected,
            Cause::BadRange { .. } => RefusalCode::BadRange,
            Cause::BadArguments { .. }
            | Cause::BadAnchor { .. }
            | Cause::EmptyPattern
            | Cause::NoSuchTask { .. }
            | Cause::TaskOfOthers { .. }
            | Cause::NoSuchTool { .. } => RefusalCode::BadArguments,
            Cause::Conflict { .. } => RefusalCode::Conflict,
            Cause::NotAFile { .. } | Cause::Io { .. } => RefusalCode::Io,
        }
    }
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
