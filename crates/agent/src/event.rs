//! The events of a run. The transcript, `surehand run --json` and the terminal all show this one enum, so none of
//! them knows more than the others.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
pub use surehand_engine::core::ContextMode;
use surehand_engine::core::{
    TaskStatus,
    file_diff::{DiffKind, FileDiff},
};

use crate::model::{KeptReasoning, TokenUsage};

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
    /// The answer got too long and was cut off. What came until then counts.
    Cut {
        /// Tokens of the answer.
        tokens: u64,
    },
    /// A note of the run to the model, for its next prompt.
    Note {
        /// The note.
        text: String,
    },
    /// The user has said something, which the model reads in its next prompt.
    User {
        /// What they said.
        text: String,
        /// The question of the model that this answers.
        answers: Option<String>,
    },
    /// What the provider wants back of the model's reasoning with the next prompt (history mode only).
    Reasoned {
        /// As the provider sent it.
        kept: KeptReasoning,
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
    /// What the command of a call has printed, while it runs; its result has all that is kept of it.
    Output {
        /// The id of the call.
        id: String,
        /// The next lines.
        text: String,
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
    /// The tasks of the run, if they have changed since the last report.
    Plan {
        /// All of them, in the order of their numbers.
        tasks: Vec<PlannedTask>,
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
        /// What the whole run took and did.
        #[serde(default)]
        totals: RunTotals,
    },
}

/// A task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// Its number.
    pub id: u32,
    /// What is to be done.
    pub description: String,
    /// How far it is.
    pub status: TaskStatus,
}

/// What a whole run took and did, also in earlier processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTotals {
    /// Number of turns.
    pub turns: u32,
    /// Number of calls that the model made.
    pub calls: u32,
    /// How many of them were refused.
    pub refused: u32,
    /// Tokens and cost.
    pub usage: TokenUsage,
    /// Time, in seconds.
    pub seconds: f64,
    /// The files that the edits and commands of the run have changed.
    pub files: Vec<FileTotal>,
}

/// What became of a file in a whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTotal {
    /// Its path, the last one it had.
    pub path: String,
    /// Its path before, if it was moved.
    pub from: Option<String>,
    /// What happened to it, in a word.
    pub change: FileChangeWord,
    /// Number of lines added; `None` if it is binary, or a version of it is not kept.
    pub added: Option<usize>,
    /// Number of lines removed.
    pub removed: Option<usize>,
}

/// What happened to a file, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeWord {
    /// It has other content.
    Edited,
    /// It was not there before.
    Created,
    /// It is no longer there.
    Deleted,
    /// It has another path, and perhaps other content.
    Moved,
}

impl FileTotal {
    /// By the difference between the first and the last version; `None` if there is none.
    pub(crate) fn of(diff: &FileDiff) -> Option<Self> {
        let change = match diff.kind() {
            DiffKind::Unchanged => return None,
            DiffKind::Edited => FileChangeWord::Edited,
            DiffKind::Created => FileChangeWord::Created,
            DiffKind::Deleted => FileChangeWord::Deleted,
            DiffKind::Renamed => FileChangeWord::Moved,
        };
        let from = (change == FileChangeWord::Moved).then(|| diff.path_before().to_string());
        let lines = |number| (!diff.is_binary()).then_some(number);
        let (added, removed) = (lines(diff.added()), lines(diff.removed()));
        Some(Self { path: diff.path_after().to_string(), from, change, added, removed })
    }
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
    /// A limit on turns, tokens, cost or time was reached.
    Budget,
    /// The loop detector stopped it.
    Stuck,
    /// The user stopped it.
    Cancelled,
    /// The model did not answer.
    Model,
}
