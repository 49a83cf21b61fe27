//! Edits. [`Edit`] is the value that every caller builds: a model's call of our tools, a client's own tool, or a program that
//! uses the library. The modules below turn edits into splices of bytes, or a cause for refusal. Whether an edit is allowed is
//! left to the gate.

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

/// A change that somebody wants made, all of it or nothing. Paths are as the caller spells them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// Replace one exact text.
    Replace(TextReplacement),
    /// Replace several, in one file or in many. A later one sees what an earlier one has made of its file.
    ReplaceMany(Vec<TextReplacement>),
    /// Edit lines that are named by their anchors.
    Lines {
        /// The file.
        path: String,
        /// What to do; all of them speak of the numbers that were last shown.
        edits: Vec<LineEdit>,
    },
    /// Apply a patch: `*** Begin Patch` or a unified diff.
    Patch {
        /// The patch.
        patch: String,
    },
    /// Write a whole file.
    Write {
        /// The file.
        path: String,
        /// All of it.
        content: String,
    },
    /// Delete a file.
    Delete {
        /// The file.
        path: String,
    },
    /// Give a file another name.
    Move {
        /// The name it has.
        from: String,
        /// The name it gets.
        to: String,
    },
    /// Take changes back.
    Undo(UndoRequest),
}

/// One exact text of a file, and what comes in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextReplacement {
    /// The file.
    pub path: String,
    /// The text that goes. Empty to create the file.
    pub old: String,
    /// The text that comes.
    pub new: String,
    /// Whether to replace every occurrence.
    pub all: bool,
}

/// Which changes are to be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoRequest {
    /// Which of them.
    pub which: UndoTarget,
    /// Whose.
    pub by: WhoseChanges,
    /// Whether to overwrite what has been done since.
    pub force: bool,
}

/// Which changes are to be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoTarget {
    /// The last one.
    Last,
    /// The last one of this file, and of that change only this file.
    File(String),
    /// This one, with all its files.
    Change(ChangeId),
    /// All of a session; whoever means those of anyone takes back one at a time.
    All,
}

/// Whose changes are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhoseChanges {
    /// Those of the session that asks.
    Mine,
    /// Those of this session.
    Session(SessionId),
    /// Those of anyone.
    Anyone,
}

impl Edit {
    /// Replaces the one place in a file that holds this text.
    pub fn replace(path: impl Into<String>, old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::Replace(TextReplacement { path: path.into(), old: old.into(), new: new.into(), all: false })
    }

    /// Writes a whole file.
    pub fn write(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self::Write { path: path.into(), content: content.into() }
    }

    /// The tool of ours that makes such an edit.
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

    /// The files that it names, as they are spelled; an undo names those of other edits.
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

    /// The texts that it expects to find in its files.
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

    /// The texts that it puts into its files.
    pub fn writes(&self) -> Vec<String> {
        match self {
            Edit::Replace(replacement) => vec![replacement.new.clone()],
            Edit::ReplaceMany(all) => all.iter().map(|replacement| replacement.new.clone()).collect(),
            Edit::Write { content, .. } => vec![content.clone()],
            Edit::Patch { patch } => patch::rows_of_chunks(patch, |row| match row {
                PatchRow::Add(line) => Some((*line).to_owned()),
                PatchRow::Keep(_) | PatchRow::Remove(_) => None,
            }),
            Edit::Lines { edits, .. } => edits.iter().filter_map(|edit| edit.borrowed().text()).map(str::to_owned).collect(),
            Edit::Delete { .. } | Edit::Move { .. } | Edit::Undo(_) => Vec::new(),
        }
    }

    /// Several edits one after the other as one edit, where there is such an edit.
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

    /// The same edit of files that are spelled in another way.
    #[must_use]
    pub fn with_paths(mut self, spell: impl Fn(&str) -> String) -> Self {
        match &mut self {
            Edit::Replace(replacement) => replacement.path = spell(&replacement.path),
            Edit::ReplaceMany(all) => all.iter_mut().for_each(|replacement| replacement.path = spell(&replacement.path)),
            Edit::Lines { path, .. } | Edit::Write { path, .. } | Edit::Delete { path } => *path = spell(path),
            Edit::Move { from, to } => (*from, *to) = (spell(from), spell(to)),
            Edit::Undo(UndoRequest { which: UndoTarget::File(path), .. }) => *path = spell(path),
            // A patch holds its paths inside, and other undos have none.
            Edit::Patch { .. } | Edit::Undo(_) => {}
        }
        self
    }
}
