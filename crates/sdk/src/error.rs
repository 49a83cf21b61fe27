//! Why a call did not do what it was asked.

use surehand_engine::{ConfigError, OpenError, Outcome, StateHomeError, ToolNames};

use crate::reply::RefusalReport;

/// An error of the SDK.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SdkError {
    /// The call was refused, and nothing was changed. The text is for the model.
    #[error("{}", .0.text)]
    Refused(Box<RefusalReport>),
    /// An argument that no call accepts.
    #[error("{why}")]
    BadArgument {
        /// The problem, for people.
        why: String,
    },
    /// The workspace or the session was closed.
    #[error("the {what} is closed")]
    Closed {
        /// `workspace` or `session`.
        what: &'static str,
    },
    /// The process was forked since the workspace was opened. Its threads exist in the parent only.
    #[error("the workspace was opened before this process was forked: open it again here")]
    Forked,
    /// An earlier call of the session panicked, so its state is unknown.
    #[error("an earlier call of this session failed half-way: open a new session")]
    Broken,
    /// A setting that does not exist, or a value that does not fit.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// A variable of the environment that names no usable directory.
    #[error(transparent)]
    StateHome(#[from] StateHomeError),
    /// The workspace cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl SdkError {
    pub(crate) fn bad_argument(why: impl Into<String>) -> Self {
        Self::BadArgument { why: why.into() }
    }

    /// The refusal of an outcome, if it is one.
    pub(crate) fn refused(outcome: &Outcome, names: &ToolNames) -> Option<Self> {
        RefusalReport::of(outcome, names).map(|report| Self::Refused(Box::new(report)))
    }

    /// The stable name of the error, for programs. A refusal has its own code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(report) => report.code,
            Self::BadArgument { .. } => "bad_argument",
            Self::Closed { .. } => "closed",
            Self::Forked => "forked",
            Self::Broken => "broken",
            Self::Settings(_) | Self::StateHome(_) => "bad_settings",
            Self::Open(_) => "cannot_open",
        }
    }
}
