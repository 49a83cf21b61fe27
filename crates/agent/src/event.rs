//! The events of a run. The transcript, `surehand run --json` and the terminal all receive this one enum, so all three
//! know the same.

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
        /// The name of the model, as the user gave it.
        model: String,
        /// Whether prompts are snapshots of the state or the whole conversation.
        mode: ContextMode,
        /// The id of the run's session, for `surehand log` and `surehand undo`.
        session: String,
        /// The last completed turn; 0 for a new run.
        after_turn: u32,
    },
    /// A turn starts: the model is asked.
    Turn {
        /// Number of the turn, from 1.
        turn: u32,
        /// Phase of the run; it decides which tools are offered.
        phase: RunPhase,
        /// Description of the first open task; `None` if no task is open.
        task: Option<String>,
        /// Number of open tasks.
        open: usize,
        /// Number of completed tasks.
        completed: usize,
        /// Estimated tokens of the prompt; never an underestimate.
        prompt_tokens: usize,
    },
    /// A piece of the model's text, as it arrives. `Said` has the whole text.
    Text {
        /// The piece, with secrets redacted.
        text: String,
    },
    /// The model has begun to write a call of this tool.
    Calling {
        /// Name of the tool.
        tool: String,
    },
    /// The request failed and will be repeated. Discard the streamed part of its answer.
    Again {
        /// The error of the last attempt.
        why: String,
        /// Seconds until the next attempt.
        seconds: f64,
    },
    /// The answer exceeded its length limit and was cut off. The part received before that counts.
    Cut {
        /// Output tokens of the part that was received.
        tokens: u64,
    },
    /// A note of the run to the model, for its next prompt.
    Note {
        /// The note, as the model reads it.
        text: String,
    },
    /// Input of the user. The model reads it in its next prompt.
    User {
        /// The user's text, with secrets redacted.
        text: String,
        /// The question of the model that this answers.
        answers: Option<String>,
    },
    /// Reasoning to send back to the provider with the next prompt (history mode only).
    Reasoned {
        /// The reasoning, unchanged.
        kept: KeptReasoning,
    },
    /// The whole text of the model's answer.
    Said {
        /// The text, without calls that the model wrote into it.
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
    /// Output of a running command, as it arrives. The `Result` has everything that is kept of it.
    Output {
        /// The id of the call.
        id: String,
        /// The next piece, redacted.
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
        /// The reply to the model, with secrets redacted.
        text: String,
        /// The changed files. In JSON this is a unified diff in one string, which is not parsed back: an event read
        /// from the transcript has no diff.
        #[serde(serialize_with = "as_unified_diff", skip_deserializing)]
        diff: Vec<FileDiff>,
    },
    /// The tasks of the run, if they have changed since the last report.
    Plan {
        /// All tasks, ordered by number.
        tasks: Vec<PlannedTask>,
    },
    /// Lines were removed from the prompt because the budget has no room for them.
    Left {
        /// The files, each with its line ranges.
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
        /// Why it stopped.
        stop: StopReason,
        /// The model's summary if the run is done, or else the reason, mostly with the command that
        /// continues it.
        text: String,
        /// Totals of the run, including earlier processes.
        #[serde(default)]
        totals: RunTotals,
    },
}

/// A task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// Number of the task, by which the model names it.
    pub id: u32,
    /// The task in the model's words.
    pub description: String,
    /// Whether it is open, in progress or closed.
    pub status: TaskStatus,
}

/// Totals of a run, including its earlier processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTotals {
    /// Number of completed turns.
    pub turns: u32,
    /// Number of calls that the model made.
    pub calls: u32,
    /// How many of them were refused.
    pub refused: u32,
    /// Tokens and cost of all turns.
    pub usage: TokenUsage,
    /// Wall-clock time of the run's processes, in seconds.
    pub seconds: f64,
    /// The files that the edits and commands of the run have changed.
    pub files: Vec<FileTotal>,
}

/// The net change of one file in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTotal {
    /// Path relative to the workspace root; of a moved file, the last one.
    pub path: String,
    /// Path before the run; `None` unless the file was moved.
    pub from: Option<String>,
    /// Kind of the change.
    pub change: FileChangeWord,
    /// Number of added lines; `None` if the file is binary, or one of its versions is not stored.
    pub added: Option<usize>,
    /// Number of removed lines; `None` as for `added`.
    pub removed: Option<usize>,
}

/// How a file changed in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeWord {
    /// The file has other content.
    Edited,
    /// The file did not exist before the run.
    Created,
    /// The file does not exist any more.
    Deleted,
    /// The file has another path, and perhaps other content.
    Moved,
}

impl FileTotal {
    /// The change between the first and the last version; `None` if they are equal.
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
