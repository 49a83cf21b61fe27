//! The person at a run. They may answer a question of the model, say something at any time, and judge edits.

use surehand_engine::core::file_diff::FileDiff;

/// The person at a run, if there is one.
pub trait Person {
    /// Whether they would see a question.
    fn is_there(&self) -> bool;

    /// What they have said since the last call, without being asked.
    fn take_words(&mut self) -> Vec<String>;

    /// Their answer to a question of the model, which they have read in its text; `None` if they leave it to the model.
    fn answer(&mut self, question: &str) -> Option<String>;

    /// Decides whether an edit may be made. Only asked with [`crate::RunSettings::ask_edits`].
    fn approve_edit(&mut self, request: &EditRequest<'_>) -> EditApproval;
}

/// An edit that the model wants to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditRequest<'a> {
    /// What it would change, redacted; one for each file.
    pub diffs: &'a [FileDiff],
    /// Whether it was approved before, and a file has changed since, so that the edit is another one.
    pub has_changed: bool,
}

/// The decision about an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditApproval {
    /// It may be made.
    Yes,
    /// It may be made, and so may every other edit of this process.
    Always,
    /// It may not be made. The model reads the words, if there are any.
    No(Option<String>),
}

/// No one is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nobody;

impl Person for Nobody {
    fn is_there(&self) -> bool {
        false
    }

    fn take_words(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn answer(&mut self, _: &str) -> Option<String> {
        None
    }

    fn approve_edit(&mut self, _: &EditRequest<'_>) -> EditApproval {
        EditApproval::No(Some("there is no one to ask".to_owned()))
    }
}
