//! What came of a call of the model, whichever tool it was of.

use surehand_engine::{Outcome, ToolNames, core::Lines, render};

/// What came of a call.
#[derive(Debug)]
pub struct ToolResult {
    /// For a model that reads it in a conversation.
    pub text: String,
    /// The same for a model whose prompt shows the lines of files in another place.
    pub text_beside_files: String,
    /// What it was.
    pub kind: ResultKind,
    /// Whether the edit was refused first, and then made where it is proven which lines were meant.
    pub is_repaired: bool,
}

/// What came of a call.
#[derive(Debug)]
pub enum ResultKind {
    /// The workspace has answered.
    Outcome(Box<Outcome>),
    /// A command has run.
    Command {
        /// Whether it ended well.
        succeeded: bool,
        /// How it ended, in words.
        ending: String,
        /// The lines that it printed of files.
        read: Vec<Lines>,
    },
    /// The run has refused the call.
    Refused {
        /// Why, for programs.
        code: &'static str,
        /// How often, this time included.
        repeat: u32,
    },
    /// The story is done.
    Finished,
}

impl ToolResult {
    /// An answer of the workspace, for a model that knows its tools by these names.
    pub fn of(outcome: Outcome, names: &ToolNames) -> Self {
        Self {
            text: render::text(&outcome, names),
            text_beside_files: render::text_beside_files(&outcome, names),
            kind: ResultKind::Outcome(Box::new(outcome)),
            is_repaired: false,
        }
    }

    /// Something that shows no lines of files, or shows them in its own way.
    pub fn new(text: String, kind: ResultKind) -> Self {
        Self { text_beside_files: text.clone(), text, kind, is_repaired: false }
    }

    /// A call that the run refuses.
    pub fn refused(code: &'static str, text: &str) -> Self {
        Self::new(format!("{text}\n"), ResultKind::Refused { code, repeat: 1 })
    }

    /// What the workspace has answered, if it was asked.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.kind {
            ResultKind::Outcome(outcome) => Some(outcome),
            ResultKind::Command { .. } | ResultKind::Refused { .. } | ResultKind::Finished => None,
        }
    }

    /// Whether the call was refused.
    pub fn is_error(&self) -> bool {
        self.refusal().is_some()
    }

    /// Why it was refused, for programs, and how often the same call has been, if it was.
    pub fn refusal(&self) -> Option<(&'static str, u32)> {
        match &self.kind {
            ResultKind::Outcome(outcome) => {
                outcome.result.as_ref().err().map(|refused| (refused.refusal.code().as_str(), refused.repeat))
            }
            ResultKind::Refused { code, repeat } => Some((code, *repeat)),
            ResultKind::Command { .. } | ResultKind::Finished => None,
        }
    }

    /// Whether it did not do what the model wanted.
    pub fn has_failed(&self) -> bool {
        self.is_error() || matches!(self.kind, ResultKind::Command { succeeded: false, .. })
    }

    /// Whether it changed nothing because there was nothing to change.
    pub fn is_noop(&self) -> bool {
        self.outcome().is_some_and(Outcome::is_noop)
    }

    /// The lines of files that the model knows from it.
    pub fn shown(&self) -> Vec<Lines> {
        match &self.kind {
            ResultKind::Outcome(outcome) => outcome.shown(),
            ResultKind::Command { read, .. } => read.clone(),
            ResultKind::Refused { .. } | ResultKind::Finished => Vec::new(),
        }
    }
}
