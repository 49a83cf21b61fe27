//! The results of an undo: how far it went, and what it left unchanged, with the reasons.

use std::ops::Range;

use crate::{
    ids::ChangeId,
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    short_diff::ROW_CHARS,
    text::Text,
};

/// Whether changes are undone or restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoKind {
    /// Recorded changes are taken back.
    Undo,
    /// Undos are undone, so that the changes they took back are present again.
    Redo,
}

/// How much of a change was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoExtent {
    /// The whole change: its files are as they were before it.
    Whole,
    /// All lines that it wrote, in files in which later changes were kept.
    ByLines,
    /// Some of its lines or files.
    Partly,
}

/// A path that an undo restored, other than the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryOutcome {
    /// The path that was restored.
    pub path: RelPath,
    /// The state of the path after the undo.
    pub is: EntryState,
}

/// The state of a path after an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// The path does not exist.
    Nothing,
    /// A symbolic link to this target.
    Link(String),
    /// A directory, which may have been created.
    Directory,
    /// A file, whose content is reported separately.
    File,
    /// A file whose permissions were restored to this Unix mode.
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
    /// Why it was left.
    pub why: NotUndoneCause,
    /// The current lines; 0-based and half-open.
    pub now: Range<usize>,
    /// The lines with which the undo would replace them.
    pub wanted: Vec<String>,
}

/// Why an undo left something unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotUndoneCause {
    /// These lines or their neighbours have changed since.
    LinesChanged,
    /// The lines may still be present, but cannot be distinguished from equal lines.
    LinesInDoubt,
    /// The encoding of the file cannot represent the text to restore.
    Unencodable,
    /// The change gave the file another encoding or byte order mark, and the file has changed since.
    EncodingChanged,
    /// The file has been deleted or moved away since.
    Deleted,
    /// The file has changed since, and the old or the new content is not text.
    NotText,
    /// The file has changed since, and a version that is needed to undo by lines is no longer stored.
    NotKept,
    /// The file has been moved since, and keeps its name.
    Moved,
    /// Another file has its earlier name.
    NameTaken(RelPath),
    /// Its permissions have changed since, or it is not a file any more.
    EntryChanged,
    /// An error prevented the undo, with this message.
    Failed(String),
}

/// More hunks of a file are only counted.
const MAX_HUNKS: usize = 8;

/// More lines of a hunk are only counted.
const MAX_LINES: usize = 12;

impl NotUndone {
    /// A path that has changed its type or its permissions since.
    pub fn whole(path: &RelPath) -> Self {
        Self { path: path.clone(), text: None, hunks: Vec::new(), why: Some(NotUndoneCause::EntryChanged) }
    }

    /// A path for which the undo failed.
    pub fn failed(path: RelPath, why: String) -> Self {
        Self { path, text: None, hunks: Vec::new(), why: Some(NotUndoneCause::Failed(why)) }
    }

    /// The hunks that are shown.
    pub(crate) fn shown_hunks(&self) -> &[LeftHunk] {
        &self.hunks[..self.hunks.len().min(MAX_HUNKS)]
    }

    /// The present lines that are shown in full.
    pub fn shown(&self) -> LineSet {
        let Some(text) = &self.text else { return LineSet::new() };
        let lines = self.shown_hunks().iter().flat_map(|hunk| hunk.shown_lines()).map(LineNo::at_index);
        lines.filter(|line| text.line(*line).chars().count() <= ROW_CHARS).map(LineRange::line).collect()
    }
}

impl LeftHunk {
    /// The present lines that are shown.
    pub(crate) fn shown_lines(&self) -> Range<usize> {
        self.now.start..self.now.end.min(self.now.start + MAX_LINES)
    }

    /// The wanted lines that are shown.
    pub(crate) fn shown_wanted(&self) -> &[String] {
        &self.wanted[..self.wanted.len().min(MAX_LINES)]
    }
}
