//! Edits. [`Edit`] is the value that every caller builds: a model's call of our tools, a client's own tool, or a
//! program that uses the library. The modules below turn edits into splices of bytes, or a cause for refusal. Whether
//! an edit is allowed is left to the gate.

pub mod find;
pub mod lines;
mod look_alikes;
mod not_found;
pub mod patch;
pub mod replace;
mod similar_lines;
pub mod write;

use serde::{Deserialize, Serialize};

use self::{lines::LineEdit, patch::PatchRow};
use crate::{
    ids::{ChangeId, SessionId},
    tool::Tool,
};

/// A requested change, which is carried out completely or not at all. Paths are as the caller spells them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// Replace one exact text.
    Replace(TextReplacement),
    /// Replace several texts, in one file or more. Later edits see the result of earlier ones on the same file.
    ReplaceMany(Vec<TextReplacement>),
    /// Edit lines that are named by their anchors.
    Lines {
        /// The file to edit.
        path: String,
        /// The edits; all refer to the line numbers that were last shown.
        edits: Vec<LineEdit>,
    },
    /// Apply a patch: `*** Begin Patch` or a unified diff.
    Patch {
        /// The text of the patch.
        patch: String,
    },
    /// Write a whole file.
    Write {
        /// The file to create or overwrite.
        path: String,
        /// The new content of the whole file.
        content: String,
    },
    /// Delete one file, not a directory.
    Delete {
        /// The file to delete.
        path: String,
    },
    /// Move or rename a file.
    Move {
        /// The current path of the file.
        from: String,
        /// The new path, which must be free.
        to: String,
    },
    /// Undo one or more changes.
    Undo(UndoRequest),
}

/// One exact text of a file and its replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextReplacement {
    /// The file to edit.
    pub path: String,
    /// The text to replace. Empty to create the file.
    pub old: String,
    /// The text to put in its place.
    pub new: String,
    /// Whether to replace every occurrence. If `false`, `old` must occur once.
    pub all: bool,
}

/// A request to undo changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoRequest {
    /// The changes to undo.
    pub which: UndoTarget,
    /// The session whose changes count.
    pub by: WhoseChanges,
    /// Whether to overwrite later changes.
    pub force: bool,
}

/// Selects the changes to undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoTarget {
    /// The last change of that author.
    Last,
    /// The last undo: a redo.
    LastUndo,
    /// The last change of this file, and only this file.
    File(String),
    /// This change, with all its files.
    Change(ChangeId),
    /// Every change of a session. Not allowed for [`WhoseChanges::Anyone`].
    All,
}

/// Selects the author of the changes to undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhoseChanges {
    /// Changes of the calling session.
    Mine,
    /// Changes of the session with this id.
    Session(SessionId),
    /// Changes of any session.
    Anyone,
}

impl Edit {
    /// Replaces the only occurrence of a text in a file.
    pub fn replace(path: impl Into<String>, old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::Replace(TextReplacement { path: path.into(), old: old.into(), new: new.into(), all: false })
    }

    /// Writes a whole file.
    pub fn write(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self::Write { path: path.into(), content: content.into() }
    }

    /// The tool that makes this edit.
    pub fn tool(&self) -> Tool {
        match self {
            Edit::Replace(_) => Tool::EditFile,
            Edit::ReplaceMany(_) => Tool::MultiEdit,
            Edit::Lines { .. } => Tool::EditLines,
            Edit::Patch { .. } => Tool::ApplyPatch,
            Edit::Write { .. } => Tool::WriteFile,
            Edit::Delete { .. } => Tool::DeleteFile,
            Edit::Move { .. } => Tool::MoveFile,
            Edit::Undo(_) => Tool::Undo,
        }
    }

    /// The paths in the edit, as the caller spells them. An undo has a path only if it names a file.
    pub fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = match self {
            Edit::Replace(replacement) => vec![replacement.path.clone()],
            Edit::ReplaceMany(all) => all.iter().map(|replacement| replacement.path.clone()).collect(),
            Edit::Lines { path, .. } | Edit::Write { path, .. } | Edit::Delete { path } => vec![path.clone()],
            Edit::Move { from, to } => vec![from.clone(), to.clone()],
            Edit::Patch { patch } => patch::named_files(patch),
            Edit::Undo(_) => Vec::new(),
        };
        paths.dedup();
        paths
    }

    /// The texts that the edit expects in its files.
    pub fn quotes(&self) -> Vec<String> {
        match self {
            Edit::Replace(replacement) => vec![replacement.old.clone()],
            Edit::ReplaceMany(all) => all.iter().map(|replacement| replacement.old.clone()).collect(),
            Edit::Patch { patch } => patch::rows_of_chunks(patch, |row| match row {
                PatchRow::Keep(line) | PatchRow::Remove(line) => Some((*line).to_owned()),
                PatchRow::Add(_) => None,
            }),
            Edit::Lines { .. } | Edit::Write { .. } | Edit::Delete { .. } | Edit::Move { .. } | Edit::Undo(_) => Vec::new(),
        }
    }

    /// The texts that the edit writes into its files.
    pub fn writes(&self) -> Vec<String> {
        match self {
            Edit::Replace(replacement) => vec![replacement.new.clone()],
            Edit::ReplaceMany(all) => all.iter().map(|replacement| replacement.new.clone()).collect(),
            Edit::Write { content, .. } => vec![content.clone()],
            Edit::Patch { patch } => patch::rows_of_chunks(patch, |row| match row {
                PatchRow::Add(line) => Some((*line).to_owned()),
                PatchRow::Keep(_) | PatchRow::Remove(_) => None,
            }),
            Edit::Lines { edits, .. } => edits.iter().filter_map(|edit| edit.text()).map(str::to_owned).collect(),
            Edit::Delete { .. } | Edit::Move { .. } | Edit::Undo(_) => Vec::new(),
        }
    }

    /// Joins several edits into one with the same effect, if such an edit exists.
    pub fn joined(edits: &[&Edit]) -> Option<Edit> {
        if let [only] = edits {
            return Some((*only).clone());
        }
        let mut replacements = Vec::new();
        for edit in edits {
            match edit {
                Edit::Replace(replacement) => replacements.push(replacement.clone()),
                Edit::ReplaceMany(all) => replacements.extend_from_slice(all),
                Edit::Patch { .. } => return patch::joined(edits),
                Edit::Lines { .. } | Edit::Write { .. } | Edit::Delete { .. } | Edit::Move { .. } | Edit::Undo(_) => return None,
            }
        }
        Some(Edit::ReplaceMany(replacements))
    }

    /// This edit with other spellings of its paths.
    #[must_use]
    pub fn with_paths(mut self, spell: impl Fn(&str) -> String) -> Self {
        match &mut self {
            Edit::Replace(replacement) => replacement.path = spell(&replacement.path),
            Edit::ReplaceMany(all) => all.iter_mut().for_each(|replacement| replacement.path = spell(&replacement.path)),
            Edit::Lines { path, .. } | Edit::Write { path, .. } | Edit::Delete { path } => *path = spell(path),
            Edit::Move { from, to } => (*from, *to) = (spell(from), spell(to)),
            Edit::Undo(UndoRequest { which: UndoTarget::File(path), .. }) => *path = spell(path),
            // A patch has its paths in its text, and other undos have none.
            Edit::Patch { .. } | Edit::Undo(_) => {}
        }
        self
    }
}
