//! The events of a run. The transcript, `surehand run --json` and the terminal all show this one enum, so none of
//! them knows more than the others.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
pub use surehand_engine::core::ContextMode;
use surehand_engine::core::file_diff::FileDiff;

use crate::model::TokenUsage;

/// One event of a run. The names of variants and fields are those of the JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// A run starts or is resumed.
    Started {
        /// The id of the run.
        run: String,
        /// The story, as the user gave it.
        story: String,
        /// The name of the model.
        model: String,
        /// `snapshot` or `history`.
        mode: ContextMode,
        /// The id of its session, for `surehand log` and `surehand undo`.
        session: String,
        /// The last completed turn; 0 for a new run.
        after_turn: u32,
    },
    /// A turn starts: the model is asked.
    Turn {
        /// The number of the turn, from 1.
        turn: u32,
        /// The phase of the run.
        phase: RunPhase,
        /// The first open task.
        task: Option<String>,
        /// Number of open tasks.
        open: usize,
        /// Number of completed tasks.
        completed: usize,
        /// Estimated tokens of the prompt; never an underestimate.
        prompt_tokens: usize,
    },
    /// A streamed piece of the model's text.
    Text {
        /// The piece.
        text: String,
    },
    /// The model has begun to write a call of this tool.
    Calling {
        /// Name of the tool.
        tool: String,
    },
    /// The request failed and will be repeated. Discard what was streamed of its answer.
    Again {
        /// The error.
        why: String,
        /// Seconds until the next attempt.
        seconds: f64,
    },
    /// The whole text of the model's answer.
    Said {
        /// The text.
        text: String,
    },
    /// A tool is being called.
    Call {
        /// The id of the call.
        id: String,
        /// Name of the tool.
        tool: String,
        /// The arguments; a string if the model did not write JSON.
        arguments: Value,
        /// Whether the loop made this call itself to repair a refused edit.
        repair: bool,
    },
    /// The result of a call.
    Result {
        /// The id of the call.
        id: String,
        /// Name of the tool.
        tool: String,
        /// Whether the call was refused.
        is_error: bool,
        /// The full reply.
        text: String,
        /// The changed files. In JSON this is a unified diff in one string, which is not parsed back: an event read from
        /// the transcript has no diff.
        #[serde(serialize_with = "as_unified_diff", skip_deserializing)]
        diff: Vec<FileDiff>,
    },
    /// Lines left the prompt for lack of room.
    Left {
        /// Files, with line ranges.
        what: Vec<String>,
    },
    /// The conversation was folded into a snapshot (history mode only).
    Folded {
        /// Number of messages folded.
        messages: usize,
    },
    /// A turn is complete.
    TurnEnded {
        /// The number of the turn.
        turn: u32,
        /// Tokens and cost of this turn.
        usage: TokenUsage,
        /// Tokens and cost of all turns so far.
        total: TokenUsage,
        /// Time taken by the model and the tools.
        seconds: f64,
    },
    /// The run has stopped.
    Stopped {
        /// The reason.
        stop: StopReason,
        /// The model's summary, or what to do next.
        text: String,
    },
}

fn as_unified_diff<S: Serializer>(files: &[FileDiff], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&files.iter().map(FileDiff::to_string).collect::<String>())
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// The model explores and writes the task list.
    #[default]
    Planning,
    /// The model works on the tasks.
    Coding,
    /// The model has called `done`.
    Done,
}

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model called `done` with no task open.
    Done,
    /// A limit on turns, tokens or cost was reached.
    Budget,
    /// The loop detector stopped it.
    Stuck,
    /// The user stopped it.
    Cancelled,
    /// The model did not answer.
    Model,
}
