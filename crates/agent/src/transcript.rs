//! What is stored of a run, in the state directory: the saved run after each turn (`run.json`) and the transcript
//! of all events. From these an interrupted or killed run is resumed.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{self as sys, FlockOperation, Mode as Permissions, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use surehand_engine::Workspace;

use crate::{
    event::{ContextMode, RunEvent, RunPhase, StopReason},
    model::{CallResult, ChatMessage, ModelCall, TokenUsage},
    snapshot_context::RunMemory,
};

/// The state of a run after its last complete turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedRun {
    /// The id of the run. Ids sort by time.
    pub run: String,
    /// The story.
    pub story: String,
    /// The id of its session.
    pub session: String,
    /// The name of the model.
    pub model: String,
    /// Its context mode.
    pub mode: ContextMode,
    /// Its phase.
    pub phase: RunPhase,
    /// Whether the model wrote tasks in this run.
    #[serde(default)]
    pub has_plan: bool,
    /// Number of completed turns.
    pub turn: u32,
    /// Tokens and cost of these turns.
    pub usage: TokenUsage,
    /// Why it stopped; `None` while it runs or if it was killed.
    pub stop: Option<StopReason>,
    /// What the model remembers in snapshot mode.
    pub memory: RunMemory,
}

/// The files of a run, locked: no other process can work on it meanwhile.
#[derive(Debug)]
pub struct RunTranscript {
    dir: OwnedFd,
    transcript: File,
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
        /// The latest runs.
        known: String,
    },
    /// The run is done.
    #[error("run {0} is done; start another one with: surehand run \"STORY\"")]
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
        /// Its id.
        run: String,
        /// The error of the parser.
        why: String,
    },
    /// The files of the run cannot be read.
    #[error("cannot access the files of the run: {0}")]
    Unreadable(#[from] io::Error),
}

const RUNS: &str = "runs";
const SAVED_RUN: &str = "run.json";
const TRANSCRIPT: &str = "transcript.jsonl";

impl RunTranscript {
    /// Opens or creates the files of a run. Fails with `WouldBlock` if another process has it open.
    pub fn open(workspace: &Workspace, run: &str) -> io::Result<Self> {
        let state = workspace.state_folder()?;
        let runs = make_dir(&*state, RUNS)?;
        let dir = make_dir(&runs, run)?;
        let mut transcript = open_file(&dir, TRANSCRIPT, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        lock(&transcript)?;
        drop_torn_line(&mut transcript)?;
        Ok(Self { dir, transcript })
    }

    /// Appends an event. Streamed pieces are skipped, because the whole text follows.
    pub fn append(&mut self, event: &RunEvent) -> io::Result<()> {
        if matches!(event, RunEvent::Text { .. } | RunEvent::Calling { .. }) {
            return Ok(());
        }
        let mut line = serde_json::to_vec(event).map_err(io::Error::other)?;
        line.push(b'\n');
        self.transcript.write_all(&line)
    }

    /// Replaces `run.json` atomically.
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

fn lock(transcript: &File) -> io::Result<()> {
    match sys::flock(transcript, FlockOperation::NonBlockingLockExclusive) {
        Err(error @ Errno::WOULDBLOCK) => Err(error.into()),
        // Some file systems have no locks; there the run goes on without one.
        _ => Ok(()),
    }
}

/// Removes an incomplete last line, left by a killed process, so that the next line does not continue it.
fn drop_torn_line(transcript: &mut File) -> io::Result<()> {
    let mut content = Vec::new();
    transcript.read_to_end(&mut content)?;
    let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < content.len() { transcript.set_len(whole as u64) } else { Ok(()) }
}

/// Finds a run to resume: the one with this id, or else the latest that is neither done nor in use.
pub fn find_resumable(workspace: &Workspace, run: Option<&str>) -> Result<SavedRun, ResumeError> {
    let state = workspace.state_folder()?;
    let runs = match open_dir(&*state, RUNS) {
        Ok(runs) => runs,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ResumeError::Nothing),
        Err(error) => return Err(error.into()),
    };
    let names = run_names(&runs)?;
    match run {
        Some(run) => find_named(&runs, run, &names),
        None => find_last(&runs, &names),
    }
}

fn find_named(runs: &OwnedFd, run: &str, names: &[String]) -> Result<SavedRun, ResumeError> {
    const SHOWN: usize = 5;
    let known = || names.iter().rev().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let unknown = || ResumeError::Unknown { run: run.to_owned(), known: known() };
    if !names.iter().any(|name| name == run) {
        return Err(if names.is_empty() { ResumeError::Nothing } else { unknown() });
    }
    let saved = read_saved(runs, run)?.ok_or_else(unknown)?;
    if saved.stop == Some(StopReason::Done) { Err(ResumeError::Done(run.to_owned())) } else { Ok(saved) }
}

fn find_last(runs: &OwnedFd, names: &[String]) -> Result<SavedRun, ResumeError> {
    let mut none = ResumeError::Nothing;
    for name in names.iter().rev() {
        if is_busy(runs, name) {
            none = ResumeError::Busy(name.clone());
            continue;
        }
        // If the latest run is damaged, report that instead of resuming an older one: it may be the one that is meant.
        match read_saved(runs, name)? {
            Some(place) if place.stop != Some(StopReason::Done) => return Ok(place),
            _ => {}
        }
    }
    Err(none)
}

fn is_busy(runs: &OwnedFd, run: &str) -> bool {
    let transcript = open_dir(runs, run).and_then(|dir| open_file(&dir, TRANSCRIPT, OFlags::RDONLY));
    transcript.is_ok_and(|transcript| sys::flock(transcript, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
}

/// The conversation of a run, read from its transcript. Incomplete lines are skipped.
pub fn read_messages(workspace: &Workspace, run: &str) -> io::Result<Vec<ChatMessage>> {
    let state = workspace.state_folder()?;
    let dir = open_dir(&open_dir(&*state, RUNS)?, run)?;
    let Some(content) = read_file(&dir, TRANSCRIPT)? else { return Ok(Vec::new()) };
    Ok(messages(content.lines().filter_map(|line| serde_json::from_str(line).ok())))
}

fn messages(events: impl Iterator<Item = RunEvent>) -> Vec<ChatMessage> {
    let mut messages = Vec::new();
    let mut turn = TranscriptTurn::default();
    for event in events {
        match event {
            // The previous turn was interrupted, but what it did is done.
            RunEvent::Turn { .. } => messages.extend(std::mem::take(&mut turn).interrupted()),
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
    text: String,
    calls: Vec<ModelCall>,
    results: Vec<CallResult>,
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
            messages.push(ChatMessage::Assistant { text: self.text, calls: self.calls });
        }
        if !self.results.is_empty() {
            messages.push(ChatMessage::Results(self.results));
        }
        messages
    }

    /// The messages of a turn in which the process was killed. A turn without calls is asked again as if it had never
    /// been.
    fn interrupted(mut self) -> Vec<ChatMessage> {
        if self.calls.is_empty() {
            return Vec::new();
        }
        for call in &self.calls {
            if !self.results.iter().any(|result| result.id == call.id) {
                let text = "The run was interrupted at this call. See what came of it before you make it again.\n".to_owned();
                self.results.push(CallResult { id: call.id.clone(), text, is_error: true });
            }
        }
        self.messages()
    }
}

fn read_saved(runs: &OwnedFd, run: &str) -> Result<Option<SavedRun>, ResumeError> {
    let Some(content) = read_file(&open_dir(runs, run)?, SAVED_RUN)? else { return Ok(None) };
    let place = serde_json::from_str::<SavedRun>(&content);
    // Do not trust the id in the file: it is used as a path.
    place
        .map(|place| Some(SavedRun { run: run.to_owned(), ..place }))
        .map_err(|error| ResumeError::Damaged { run: run.to_owned(), why: error.to_string() })
}

fn read_file(dir: &OwnedFd, name: &str) -> io::Result<Option<String>> {
    let mut content = Vec::new();
    match open_file(dir, name, OFlags::RDONLY) {
        Ok(mut file) => file.read_to_end(&mut content)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(String::from_utf8_lossy(&content).into_owned()))
}

/// Opens a file of a run, but no symbolic link, and without waiting at a pipe.
fn open_file(dir: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    let safe = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(File::from(sys::openat(dir, name, flags | safe, Permissions::from_raw_mode(0o600))?))
}

/// The ids of all runs, oldest first.
fn run_names(runs: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in sys::Dir::read_from(runs)? {
        let entry = entry?;
        names.extend(entry.file_name().to_str().ok().filter(|name| !name.starts_with('.')).map(str::to_owned));
    }
    names.retain(|name| open_dir(runs, name).is_ok());
    names.sort();
    Ok(names)
}

fn make_dir(parent: &impl std::os::fd::AsFd, name: &str) -> io::Result<OwnedFd> {
    match sys::mkdirat(parent, name, Permissions::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    open_dir(parent, name)
}

fn open_dir(parent: &impl std::os::fd::AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(sys::openat(parent, name, flags, Permissions::empty())?)
}
