//! What came of a call of the model, whichever tool it was of.

use surehand_engine::{Outcome, ToolNames, core::Lines, render};

/// What came of a call.
#[derive(Debug)]
pub struct CallOutcome {
    /// For a model that reads it in a conversation.
    pub text: String,
    /// The same for a model whose prompt shows the lines of files in another place.
    pub text_beside_files: String,
    /// What it was.
    pub kind: CallOutcomeKind,
    /// Whether the edit was refused first, and then made where it is proven which lines were meant.
    pub is_repaired: bool,
}

/// What came of a call.
#[derive(Debug)]
pub enum CallOutcomeKind {
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

impl CallOutcome {
    /// An answer of the workspace, for a model that knows its tools by these names.
    pub fn from_outcome(outcome: Outcome, names: &ToolNames) -> Self {
        Self {
            text: render::text(&outcome, names),
            text_beside_files: render::text_beside_files(&outcome, names),
            kind: CallOutcomeKind::Outcome(Box::new(outcome)),
            is_repaired: false,
        }
    }

    /// Something that shows no lines of files, or shows them in its own way.
    pub fn new(text: String, kind: CallOutcomeKind) -> Self {
        Self { text_beside_files: text.clone(), text, kind, is_repaired: false }
    }

    /// A call that the run refuses.
    pub fn refused(code: &'static str, text: &str) -> Self {
        Self::new(format!("{text}\n"), CallOutcomeKind::Refused { code, repeat: 1 })
    }

    /// What the workspace has answered, if it was asked.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.kind {
            CallOutcomeKind::Outcome(outcome) => Some(outcome),
            CallOutcomeKind::Command { .. } | CallOutcomeKind::Refused { .. } | CallOutcomeKind::Finished => None,
        }
    }

    /// Whether the call was refused.
    pub fn is_error(&self) -> bool {
        self.refusal().is_some()
    }

    /// Why it was refused, for programs, and how often the same call has been, if it was.
    pub fn refusal(&self) -> Option<(&'static str, u32)> {
        match &self.kind {
            CallOutcomeKind::Outcome(outcome) => {
                outcome.result.as_ref().err().map(|refused| (refused.refusal.code().as_str(), refused.repeat))
            }
            CallOutcomeKind::Refused { code, repeat } => Some((code, *repeat)),
            CallOutcomeKind::Command { .. } | CallOutcomeKind::Finished => None,
        }
    }

    /// Whether it did not do what the model wanted.
    pub fn has_failed(&self) -> bool {
        self.is_error() || matches!(self.kind, CallOutcomeKind::Command { succeeded: false, .. })
    }

    /// Whether it changed nothing because there was nothing to change.
    pub fn is_noop(&self) -> bool {
        self.outcome().is_some_and(Outcome::is_noop)
    }

    /// The lines of files that the model knows from it.
    pub fn shown(&self) -> Vec<Lines> {
        match &self.kind {
            CallOutcomeKind::Outcome(outcome) => outcome.shown(),
            CallOutcomeKind::Command { read, .. } => read.clone(),
            CallOutcomeKind::Refused { .. } | CallOutcomeKind::Finished => Vec::new(),
        }
    }
}
