//! What an undo left unchanged, and why.

use std::ops::Range;

use crate::{
    ids::ChangeId,
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    short_diff::ROW_CHARS,
    text::Text,
};

/// Whether changes are taken back or brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoKind {
    /// Changes are taken back.
    Undo,
    /// Undos are taken back, so that what they undid is there again.
    Redo,
}

/// How much of a change an undo took back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoExtent {
    /// All of it: its files are what they were before.
    Whole,
    /// All that it wrote, out of files in which later changes were kept.
    ByLines,
    /// Some of its lines or files.
    Partly,
}

/// A path that an undo has made what it was, besides the content of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryOutcome {
    /// The path.
    pub path: RelPath,
    /// What it is now.
    pub is: EntryState,
}

/// What a path is after an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// Nothing is there.
    Nothing,
    /// A link to this target.
    Link(String),
    /// A directory.
    Directory,
    /// A file.
    File,
    /// The same file with these permissions.
    Permissions(u32),
}

/// The part of a file that an undo left unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUndone {
    /// The current path of the file.
    pub path: RelPath,
    /// Its current text, if lines of it were left.
    pub text: Option<Text>,
    /// The hunks, from top to bottom for each change.
    pub hunks: Vec<LeftHunk>,
    /// The reason, if the whole file or its name was left.
    pub why: Option<NotUndoneCause>,
}

/// A hunk of a change that an undo left unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftHunk {
    /// The id of the change.
    pub change: ChangeId,
    /// The reason.
    pub why: NotUndoneCause,
    /// The current lines; 0-based and half-open.
    pub now: Range<usize>,
    /// The lines that the undo would put in their place.
    pub wanted: Vec<String>,
}

/// Why an undo left something unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotUndoneCause {
    /// These lines or their neighbours have changed since.
    LinesChanged,
    /// The lines may still be there, but equal lines cannot be distinguished.
    LinesInDoubt,
    /// The encoding of the file cannot represent the text to restore.
    Unencodable,
    /// The change gave the file another encoding or byte order mark, and the file has changed since.
    EncodingChanged,
    /// The file has been deleted or moved away since.
    Deleted,
    /// The file has changed since, and it is not text or was not.
    NotText,
    /// The file has changed since, and a version that is needed to take its lines back is no longer kept.
    NotKept,
    /// The file has been moved since, and keeps its name.
    Moved,
    /// Another file has the name that it had.
    NameTaken(RelPath),
    /// Its permissions are others by now, or it is something else.
    EntryChanged,
    /// It could not be done, for this reason.
    Failed(String),
}

/// More hunks of a file are only counted.
const MAX_HUNKS: usize = 8;

/// More lines of a hunk are only counted.
const MAX_LINES: usize = 12;

impl NotUndone {
    /// A path that is something else by now, or has other permissions.
    pub fn whole(path: &RelPath) -> Self {
        Self { path: path.clone(), text: None, hunks: Vec::new(), why: Some(NotUndoneCause::EntryChanged) }
    }

    /// A path of which the undo failed.
    pub fn failed(path: RelPath, why: String) -> Self {
        Self { path, text: None, hunks: Vec::new(), why: Some(NotUndoneCause::Failed(why)) }
    }

    /// The hunks that are shown.
    pub(crate) fn shown_hunks(&self) -> &[LeftHunk] {
        &self.hunks[..self.hunks.len().min(MAX_HUNKS)]
    }

    /// The present lines that are shown whole.
    pub fn shown(&self) -> LineSet {
        let Some(text) = &self.text else { return LineSet::new() };
        let lines = self.shown_hunks().iter().flat_map(|hunk| hunk.shown_lines()).map(LineNo::at_index);
        lines.filter(|line| text.line(*line).chars().count() <= ROW_CHARS).map(LineRange::line).collect()
    }
}

impl LeftHunk {
    /// Its present lines that are shown.
    pub(crate) fn shown_lines(&self) -> Range<usize> {
        self.now.start..self.now.end.min(self.now.start + MAX_LINES)
    }

    /// The lines that would come, as far as they are shown.
    pub(crate) fn shown_wanted(&self) -> &[String] {
        &self.wanted[..self.wanted.len().min(MAX_LINES)]
    }
}
