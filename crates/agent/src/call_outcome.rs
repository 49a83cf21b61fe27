//! The outcome of a call made by the model, for workspace tools and the agent's own alike.

use surehand_engine::{Outcome, ToolNames, core::KnownLines, render};

#[derive(Debug)]
pub(crate) struct CallOutcome {
    /// The reply in a conversation.
    pub text: String,
    /// The reply without file lines, for a prompt that shows those among the open files.
    pub text_beside_files: String,
    pub kind: CallOutcomeKind,
    /// Whether the edit was refused at first and then repaired by the loop.
    pub is_repaired: bool,
}

#[derive(Debug)]
pub(crate) enum CallOutcomeKind {
    Outcome(Box<Outcome>),
    Command {
        succeeded: bool,
        /// The exit code or signal, as text.
        ending: String,
        /// File lines that the command printed.
        read: Vec<KnownLines>,
    },
    /// The run itself refused the call.
    Refused {
        code: &'static str,
        /// How often this call was refused, including now.
        repeat: u32,
    },
    /// An accepted call of `done`.
    Finished {
        summary: String,
    },
}

impl CallOutcome {
    pub(crate) fn from_outcome(outcome: Outcome, names: &ToolNames) -> Self {
        Self {
            text: render::text(&outcome, names),
            text_beside_files: render::text_beside_files(&outcome, names),
            kind: CallOutcomeKind::Outcome(Box::new(outcome)),
            is_repaired: false,
        }
    }

    /// An outcome with the same reply in both modes.
    pub(crate) fn new(text: String, kind: CallOutcomeKind) -> Self {
        Self { text_beside_files: text.clone(), text, kind, is_repaired: false }
    }

    pub(crate) fn refused(code: &'static str, text: &str) -> Self {
        Self::new(format!("{text}\n"), CallOutcomeKind::Refused { code, repeat: 1 })
    }

    /// The outcome of a workspace tool; `None` for `run_command`, `done` and calls that the run refused.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.kind {
            CallOutcomeKind::Outcome(outcome) => Some(outcome),
            CallOutcomeKind::Command { .. } | CallOutcomeKind::Refused { .. } | CallOutcomeKind::Finished { .. } => None,
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.refusal().is_some()
    }

    /// The code of the refusal and how often this call was refused.
    pub(crate) fn refusal(&self) -> Option<(&'static str, u32)> {
        match &self.kind {
            CallOutcomeKind::Outcome(outcome) => {
                outcome.result.as_ref().err().map(|refused| (refused.refusal.code().as_str(), refused.repeat))
            }
            CallOutcomeKind::Refused { code, repeat } => Some((code, *repeat)),
            CallOutcomeKind::Command { .. } | CallOutcomeKind::Finished { .. } => None,
        }
    }

    /// Whether the call was refused or the command failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.is_error() || matches!(self.kind, CallOutcomeKind::Command { succeeded: false, .. })
    }

    /// Whether nothing changed because nothing had to.
    pub(crate) fn is_noop(&self) -> bool {
        self.outcome().is_some_and(Outcome::is_noop)
    }

    /// File lines that the model has seen in this outcome.
    pub(crate) fn shown(&self) -> Vec<KnownLines> {
        match &self.kind {
            CallOutcomeKind::Outcome(outcome) => outcome.shown(),
            CallOutcomeKind::Command { read, .. } => read.clone(),
            CallOutcomeKind::Refused { .. } | CallOutcomeKind::Finished { .. } => Vec::new(),
        }
    }
}
