//! The person who attends a run. They may answer a question of the model, give input at any time, and approve edits.

use surehand_engine::core::file_diff::FileDiff;

/// The person who attends a run, or a stand-in if none does.
pub trait Person {
    /// Whether a person would see a question.
    fn is_there(&self) -> bool;

    /// Takes the unasked input since the last call.
    fn take_words(&mut self) -> Vec<String>;

    /// The person's answer to a question of the model, which they have read in its text. `None` leaves the decision to
    /// the model.
    fn answer(&mut self, question: &str) -> Option<String>;

    /// Decides whether an edit may be made. Only asked with [`crate::RunSettings::ask_edits`].
    fn approve_edit(&mut self, request: &EditRequest<'_>) -> EditApproval;
}

/// An edit that the model wants to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditRequest<'a> {
    /// One diff for each file that the edit would change, redacted.
    pub diffs: &'a [FileDiff],
    /// Whether the edit was approved before, but a file has changed since, so that its diff is different now.
    pub has_changed: bool,
}

/// The decision about an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditApproval {
    /// The edit may be made.
    Yes,
    /// This and every further edit of this process may be made.
    Always,
    /// The edit may not be made. The model reads the reason, if there is one.
    No(Option<String>),
}

/// Stands in for a person where none attends the run: answers nothing and declines every edit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoPerson;

impl Person for NoPerson {
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
