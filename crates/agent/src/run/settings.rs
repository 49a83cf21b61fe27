//! The inputs of a run (its settings, its limits and the outside world) and its outcome.

use std::io;

use surehand_engine::{
    Workspace,
    core::{ContextMode, EditDialect},
    store::StoreError,
};

use crate::{
    cancel::CancelToken,
    command::Approver,
    event::{RunEvent, StopReason},
    model::{ChatModel, TokenUsage},
    person::Person,
    prompt::PromptDetail,
    secrets::Secrets,
    transcript::ResumeError,
};

/// How a run works, and its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSettings {
    /// Whether each prompt is a snapshot of the present or the whole conversation.
    pub mode: ContextMode,
    /// Size of a prompt in snapshot mode, in tokens.
    pub budget: usize,
    /// Size of the conversation in history mode, in tokens.
    pub window: usize,
    /// The model's edit tool; `None` chooses one by the model's name.
    pub dialect: Option<EditDialect>,
    /// The limits of the whole run.
    pub limits: RunLimits,
    /// Whether every prompt is recorded beside the transcript.
    pub record_prompts: bool,
    /// Whether the person is asked about each edit before it is made.
    pub ask_edits: bool,
    /// Redacted in prompts, the transcript, events and the environment of commands.
    pub secrets: Secrets,
}

/// The limits of a whole run, including its earlier processes; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunLimits {
    /// Number of turns, after which the run stops.
    pub turns: Option<u32>,
    /// Input and output tokens together.
    pub tokens: Option<u64>,
    /// Cost in US dollars. A run with this limit stops if the cost is unknown.
    pub cost: Option<f64>,
    /// Minutes that its processes may run in total.
    pub minutes: Option<f64>,
}

impl RunSettings {
    /// The settings of a workspace, with the default limits.
    pub fn for_workspace(workspace: &Workspace) -> Self {
        let config = workspace.config();
        let context = config.context;
        Self {
            mode: context.mode,
            budget: context.budget,
            window: context.window,
            dialect: None,
            limits: RunLimits { turns: Some(500), tokens: None, cost: None, minutes: config.run.minutes },
            record_prompts: false,
            ask_edits: config.run.ask_edits,
            secrets: Secrets::default(),
        }
    }
}

/// Why a run cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no run to resume.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The fixed parts of the prompt alone exceed the budget.
    #[error(
        "a budget of {budget} tokens is too small: rules, tools and state may take most of {needed}; give --budget {needed} or more, or set context.budget"
    )]
    BudgetTooSmall {
        /// The configured budget, in tokens.
        budget: usize,
        /// The smallest budget that works, in tokens.
        needed: usize,
    },
    /// Edits need approval, and no one is there to give it.
    #[error(
        "each edit is to be approved (--ask-edits, run.ask_edits), and there is no one to ask: run it on a terminal, or set SUREHAND_RUN_ASK_EDITS=false"
    )]
    NobodyToAsk,
    /// The task list cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The transcript cannot be read or written.
    #[error("cannot access the transcript of the run: {0}")]
    Record(#[from] io::Error),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// The id of the run.
    pub run: String,
    /// Why the run stopped.
    pub stop: StopReason,
    /// The model's summary if the run is done, or else the reason, mostly with the command that continues it.
    pub text: String,
    /// Tokens and cost of all turns.
    pub usage: TokenUsage,
    /// Number of turns, including those before a resume.
    pub turns: u32,
}

/// The outside world of a run.
pub struct Ports<'a> {
    /// The model that answers the prompts.
    pub model: &'a mut dyn ChatModel,
    /// Decides which commands may run.
    pub permission: &'a mut dyn Approver,
    /// The person who answers questions, gives input between turns and approves edits.
    pub person: &'a mut dyn Person,
    /// Receives every event, with secrets redacted.
    pub listener: &'a mut dyn FnMut(&RunEvent),
    /// Stops the run when cancelled.
    pub cancel: CancelToken,
}

pub(super) fn fitting_detail(settings: &RunSettings, dialect: EditDialect) -> Result<PromptDetail, RunError> {
    let too_small = |needed| RunError::BudgetTooSmall { budget: settings.budget, needed };
    match settings.mode {
        ContextMode::Snapshot => PromptDetail::for_budget(settings.budget, dialect).map_err(too_small),
        // A conversation is folded, however small the window is.
        ContextMode::History => Ok(PromptDetail::for_budget(settings.window, dialect).unwrap_or(PromptDetail::Terse)),
    }
}
