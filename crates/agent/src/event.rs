//! What happens in a run, as it happens: for the transcript, for programs (`surehand run --json`) and for the terminal. One enum, so
//! that none of the three knows more than the others.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
pub use surehand_engine::core::Mode;
use surehand_engine::core::file_diff::FileDiff;

use crate::model::TokenUsage;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// A run begins, or goes on.
    Started {
        /// Its name.
        run: String,
        /// What is to be done.
        story: String,
        /// Who is asked.
        model: String,
        /// `snapshot` or `history`.
        mode: Mode,
        /// The name of its session, for `surehand log` and `surehand undo`.
        session: String,
        /// The turn after which it goes on, 0 for a new one.
        after_turn: u32,
    },
    /// The model is asked.
    Turn {
        /// Which turn it is, from 1.
        turn: u32,
        /// What it is for.
        phase: RunPhase,
        /// The first open task.
        task: Option<String>,
        /// How many tasks are open.
        open: usize,
        /// How many are completed.
        completed: usize,
        /// Tokens of the prompt, estimated, never less than they are.
        prompt_tokens: usize,
    },
    /// A piece of the model's text, as it comes.
    Text {
        /// The piece.
        text: String,
    },
    /// The model begins to write a call of this tool.
    Calling {
        /// The tool.
        tool: String,
    },
    /// The request to the model failed and is made again. What came of its answer is void.
    Again {
        /// How it failed.
        why: String,
        /// Until the next attempt.
        seconds: f64,
    },
    /// The model has answered: all of its text.
    Said {
        /// The text.
        text: String,
    },
    /// A tool is called.
    Call {
        /// Which call.
        id: String,
        /// The tool.
        tool: String,
        /// Its arguments, or as a string what is no JSON.
        arguments: Value,
        /// Whether the loop made it of its own accord, to repair what was refused.
        repair: bool,
    },
    /// What came of a call.
    Result {
        /// Which call.
        id: String,
        /// The tool.
        tool: String,
        /// Whether it was refused.
        is_error: bool,
        /// In full.
        text: String,
        /// What it did to files, without those that are as before. In JSON it is one unified diff, a string, which is not read
        /// back: an event that was read has no diff.
        #[serde(serialize_with = "as_unified_diff", skip_deserializing)]
        diff: Vec<FileDiff>,
    },
    /// Parts of the context were dropped, by name.
    Left {
        /// Files, with lines.
        what: Vec<String>,
    },
    /// The conversation was folded into a snapshot (history mode).
    Folded {
        /// How many messages.
        messages: usize,
    },
    /// A turn is over.
    TurnEnded {
        /// Which.
        turn: u32,
        /// What it took.
        usage: TokenUsage,
        /// What all turns took so far.
        total: TokenUsage,
        /// How long the model and the tools took.
        seconds: f64,
    },
    /// The run is over, for now or for good.
    Stopped {
        /// Why.
        stop: StopReason,
        /// In words: what was done, or what to do.
        text: String,
    },
}

fn as_unified_diff<S: Serializer>(files: &[FileDiff], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&files.iter().map(FileDiff::to_string).collect::<String>())
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// The model looks around and writes the tasks.
    #[default]
    Planning,
    /// It works on them.
    Coding,
    /// It has called `done`.
    Done,
}

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model called `done` and no task is open.
    Done,
    /// Turns, tokens or money are used up.
    Budget,
    /// It goes round in circles.
    Stuck,
    /// Somebody wanted it.
    Cancelled,
    /// The model does not answer.
    Model,
}
