//! The files of a run in the state directory: the saved run after each turn (`run.json`) and the transcript of all
//! events. An interrupted or killed run is resumed from them.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
};

use rustix::fs::{self as sys, OFlags};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use surehand_engine::{
    Workspace,
    session_names::{IdError, IdKind, find_id},
};

use crate::{
    event::{ContextMode, RunEvent, RunPhase, StopReason},
    model::{CallResult, ChatMessage, KeptReasoning, ModelCall, Prompt, TokenUsage},
    prompt,
    recorded_prompts::PromptRecorder,
    run_files::{
        RUNS, SAVED_RUN, TRANSCRIPT, drop_torn_line, is_busy, lock, make_dir, open_dir, open_file, open_runs, read_file,
        run_names,
    },
    snapshot_context::RunMemory,
};

/// The state of a run after its last complete turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedRun {
    /// The id of the run. Ids sort by time.
    pub run: String,
    /// The current story, redacted.
    pub story: String,
    /// Number of stories before this one.
    #[serde(default)]
    pub former_stories: u32,
    /// Number of turns before this story.
    #[serde(default)]
    pub story_turn: u32,
    /// The id of its session.
    pub session: String,
    /// The name of the model.
    pub model: String,
    /// Whether prompts are snapshots or the whole conversation.
    pub mode: ContextMode,
    /// The phase in which it continues.
    pub phase: RunPhase,
    /// Whether the model wrote tasks in this run.
    #[serde(default)]
    pub has_plan: bool,
    /// Number of completed turns.
    pub turn: u32,
    /// Tokens and cost of these turns.
    pub usage: TokenUsage,
    /// Number of calls that the model made.
    #[serde(default)]
    pub calls: u32,
    /// Number of calls that were refused.
    #[serde(default)]
    pub refused: u32,
    /// Seconds that its processes have run so far.
    #[serde(default)]
    pub seconds: f64,
    /// Why it stopped; `None` while it runs or if it was killed.
    pub stop: Option<StopReason>,
    /// The memory of the model in snapshot mode.
    pub memory: RunMemory,
}

impl SavedRun {
    /// The id of the story, to which its tasks belong. The id of the first story is that of the run.
    pub fn story_id(&self) -> String {
        match self.former_stories {
            0 => self.run.clone(),
            former => format!("{}.{}", self.run, former + 1),
        }
    }

    /// This run at the beginning of a further story.
    pub(crate) fn with_story(self, story: String) -> Self {
        let (former_stories, story_turn) = (self.former_stories + 1, self.turn);
        Self { story, former_stories, story_turn, phase: RunPhase::Planning, has_plan: false, ..self }
    }
}

/// The files of a run, locked: no other process can work on it meanwhile.
#[derive(Debug)]
pub struct RunTranscript {
    dir: OwnedFd,
    transcript: File,
    /// Records the prompts, once there is one to record.
    prompts: Option<PromptRecorder>,
}

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// There is no unfinished run.
    #[error("there is no run to resume here; start one with: surehand run \"STORY\"")]
    Nothing,
    /// There is no run with this id.
    #[error("there is no run {run:?} here; there are: {known}")]
    Unknown {
        /// The id that was given.
        run: String,
        /// The ids of the latest runs, as a list.
        known: String,
    },
    /// Several runs have an id that begins like this.
    #[error(transparent)]
    Ambiguous(IdError),
    /// The run is done.
    #[error("run {0} is done; give it a further story with: surehand run \"STORY\" --resume={0}")]
    Done(String),
    /// Another process is working on it.
    #[error("another process is working on run {0}")]
    Busy(String),
    /// Its `run.json` cannot be parsed.
    #[error(
        "{RUNS}/{run}/{SAVED_RUN} in the state directory is damaged: {why}\nits transcript is {TRANSCRIPT} beside it; \
         to resume another run: surehand run --resume=RUN"
    )]
    Damaged {
        /// The id of the run.
        run: String,
        /// The error of the parser.
        why: String,
    },
    /// The files of the run cannot be read.
    #[error("cannot access the files of the run: {0}")]
    Unreadable(#[from] io::Error),
}

impl RunTranscript {
    /// Opens or creates the files of a run. Fails with `WouldBlock` if another process has it open.
    pub fn open(workspace: &Workspace, run: &str) -> io::Result<Self> {
        let state = workspace.state_folder()?;
        let runs = make_dir(&*state, RUNS)?;
        let dir = make_dir(&runs, run)?;
        let mut transcript = open_file(&dir, TRANSCRIPT, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        lock(&transcript)?;
        drop_torn_line(&mut transcript)?;
        Ok(Self { dir, transcript, prompts: None })
    }

    /// Appends an event. Streamed pieces are skipped, because the whole text follows.
    pub fn append(&mut self, event: &RunEvent) -> io::Result<()> {
        if matches!(event, RunEvent::Text { .. } | RunEvent::Calling { .. } | RunEvent::Output { .. }) {
            return Ok(());
        }
        let mut line = serde_json::to_vec(event).map_err(io::Error::other)?;
        line.push(b'\n');
        self.transcript.write_all(&line)
    }

    /// Records the prompt of a turn.
    pub fn record_prompt(&mut self, turn: u32, prompt: &Prompt) -> io::Result<()> {
        let recorder = match self.prompts.take() {
            Some(recorder) => recorder,
            None => PromptRecorder::open(&self.dir)?,
        };
        self.prompts.insert(recorder).record(turn, prompt)
    }

    /// Saves the run: replaces `run.json` atomically and syncs it.
    pub fn save(&mut self, saved: &SavedRun) -> io::Result<()> {
        let new = format!("{SAVED_RUN}.new");
        let mut file = open_file(&self.dir, &new, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        file.write_all(&serde_json::to_vec(saved).map_err(io::Error::other)?)?;
        // Without a sync the new name could survive a power cut and the content not. A turn takes much longer than the
        // sync.
        file.sync_data()?;
        sys::renameat(&self.dir, &new, &self.dir, SAVED_RUN)?;
        Ok(())
    }
}

/// Finds a run to resume: the run with this id, or the only one whose id begins like this. Without an id, the latest
/// run that is neither done nor in use.
pub fn find_resumable(workspace: &Workspace, run: Option<&str>) -> Result<SavedRun, ResumeError> {
    let saved = find(workspace, run, |saved| saved.stop != Some(StopReason::Done))?;
    if saved.stop == Some(StopReason::Done) { Err(ResumeError::Done(saved.run)) } else { Ok(saved) }
}

/// Finds a run for a further story. Like [`find_resumable`], but the run may be done.
pub fn find_for_story(workspace: &Workspace, run: Option<&str>) -> Result<SavedRun, ResumeError> {
    find(workspace, run, |_| true)
}

/// The run with this id, or else the last one for which `fits` is true.
fn find(workspace: &Workspace, run: Option<&str>, fits: impl Fn(&SavedRun) -> bool) -> Result<SavedRun, ResumeError> {
    let Some(runs) = open_runs(workspace)? else { return Err(ResumeError::Nothing) };
    let names = run_names(&runs)?;
    match run {
        Some(run) => find_named(&runs, run, &names),
        None => find_last(&runs, &names, fits),
    }
}

fn find_named(runs: &OwnedFd, run: &str, names: &[String]) -> Result<SavedRun, ResumeError> {
    const SHOWN: usize = 5;
    let known = || names.iter().rev().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let unknown = || ResumeError::Unknown { run: run.to_owned(), known: known() };
    if names.is_empty() {
        return Err(ResumeError::Nothing);
    }
    let known_runs = names.iter().map(|name| (name.clone(), name.as_str()));
    let run = find_id(IdKind::Run, run, known_runs).map_err(|error| match error {
        IdError::Unknown { .. } => unknown(),
        error => ResumeError::Ambiguous(error),
    })?;
    read_saved(runs, run)?.ok_or_else(unknown)
}

fn find_last(runs: &OwnedFd, names: &[String], fits: impl Fn(&SavedRun) -> bool) -> Result<SavedRun, ResumeError> {
    let mut none = ResumeError::Nothing;
    for name in names.iter().rev() {
        if is_busy(runs, name) {
            none = ResumeError::Busy(name.clone());
            continue;
        }
        // If the latest run is damaged, report that instead of resuming an older one: the user may mean the damaged
        // run.
        match read_saved(runs, name)? {
            Some(saved) if fits(&saved) => return Ok(saved),
            _ => {}
        }
    }
    Err(none)
}

/// The events of a run, read from its transcript. Incomplete lines are skipped.
pub(crate) fn read_events(workspace: &Workspace, run: &str) -> io::Result<Vec<RunEvent>> {
    let state = workspace.state_folder()?;
    let dir = open_dir(&open_dir(&*state, RUNS)?, run)?;
    let content = read_file(&dir, TRANSCRIPT)?.unwrap_or_default();
    Ok(content.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The story with which the last process started.
pub(crate) fn last_story(events: &[RunEvent]) -> Option<&str> {
    events.iter().rev().find_map(|event| match event {
        RunEvent::Started { story, .. } => Some(story.as_str()),
        _ => None,
    })
}

/// The conversation of a run.
pub(crate) fn messages(events: Vec<RunEvent>) -> Vec<ChatMessage> {
    let mut messages = Vec::new();
    let (mut turn, mut story) = (TranscriptTurn::default(), None);
    for event in events {
        match event {
            RunEvent::Started { story: now, .. } => {
                messages.extend(std::mem::take(&mut turn).interrupted());
                if story.replace(now.clone()).is_some_and(|former| former != now) {
                    messages.push(ChatMessage::User(prompt::FURTHER_STORY.to_owned()));
                }
            }
            RunEvent::User { text, .. } => turn.words.push(text),
            // The previous turn was interrupted, but its effects remain.
            RunEvent::Turn { .. } => messages.extend(std::mem::take(&mut turn).interrupted()),
            RunEvent::Reasoned { kept } => turn.reasoning = Some(kept),
            RunEvent::Said { text } => turn.text = text,
            RunEvent::Call { id, tool, arguments, repair: false } => {
                let arguments = match arguments {
                    Value::String(raw) => raw,
                    other => other.to_string(),
                };
                turn.calls.push(ModelCall { id, name: tool, arguments });
            }
            RunEvent::Result { id, tool, is_error, text, .. } => turn.result(&tool, CallResult { id, text, is_error }),
            RunEvent::TurnEnded { .. } => messages.extend(std::mem::take(&mut turn).messages()),
            _ => {}
        }
    }
    messages.extend(turn.interrupted());
    messages
}

#[derive(Default)]
struct TranscriptTurn {
    reasoning: Option<KeptReasoning>,
    text: String,
    calls: Vec<ModelCall>,
    results: Vec<CallResult>,
    /// The user's input during the turn.
    words: Vec<String>,
}

impl TranscriptTurn {
    /// A repaired call has several results. The last one of its own tool counts, not that of the read in between.
    fn result(&mut self, tool: &str, result: CallResult) {
        if self.calls.iter().any(|call| call.id == result.id && call.name == tool) {
            self.results.retain(|known| known.id != result.id);
            self.results.push(result);
        }
    }

    fn messages(self) -> Vec<ChatMessage> {
        let mut messages = Vec::new();
        if !self.text.is_empty() || !self.calls.is_empty() {
            messages.push(ChatMessage::Assistant { text: self.text, calls: self.calls, reasoning: self.reasoning });
        }
        if !self.results.is_empty() {
            messages.push(ChatMessage::Results(self.results));
        }
        messages.extend(self.words.into_iter().map(ChatMessage::User));
        messages
    }

    /// The messages of a turn in which the process was killed. A turn without calls is asked again, so its text is
    /// dropped.
    fn interrupted(mut self) -> Vec<ChatMessage> {
        if self.calls.is_empty() {
            self.text.clear();
        }
        for call in &self.calls {
            if !self.results.iter().any(|result| result.id == call.id) {
                let text = "The run was interrupted at this call. Check its effect before you repeat it.\n".to_owned();
                self.results.push(CallResult { id: call.id.clone(), text, is_error: true });
            }
        }
        self.messages()
    }
}

pub(crate) fn read_saved(runs: &OwnedFd, run: &str) -> Result<Option<SavedRun>, ResumeError> {
    let Some(content) = read_file(&open_dir(runs, run)?, SAVED_RUN)? else { return Ok(None) };
    let place = serde_json::from_str::<SavedRun>(&content);
    // Do not trust the id in the file: it is used as a path.
    place
        .map(|place| Some(SavedRun { run: run.to_owned(), ..place }))
        .map_err(|error| ResumeError::Damaged { run: run.to_owned(), why: error.to_string() })
}
