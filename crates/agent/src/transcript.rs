//! What is written down of a run, in the state directory: its place, after each turn, and the full transcript. A run goes on from there
//! after it was interrupted or killed.

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
    event::{Mode, RunEvent, RunPhase, StopReason},
    history_context::TranscriptEntry,
    model::{CallResult, ModelCall, TokenUsage},
    snapshot_context::RunMemory,
};

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedRun {
    /// Its name. Names sort by time.
    pub run: String,
    /// What is to be done.
    pub story: String,
    /// Its session.
    pub session: String,
    /// Who was asked.
    pub model: String,
    /// How the prompt was made.
    pub mode: Mode,
    /// Where it is.
    pub phase: RunPhase,
    /// Whether the model has written tasks in this run.
    #[serde(default)]
    pub has_plan: bool,
    /// The turns that are over.
    pub turn: u32,
    /// What they took.
    pub usage: TokenUsage,
    /// Why it stopped, if it has.
    pub stop: Option<StopReason>,
    /// What it knows.
    pub memory: RunMemory,
}

/// The files of a run. Whoever has them has the run: no other process works on it meanwhile.
#[derive(Debug)]
pub struct RunTranscript {
    dir: OwnedFd,
    transcript: File,
}

/// Why a run cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// There is none that is not done.
    #[error("there is no run to resume here; start one with: surehand run \"STORY\"")]
    Nothing,
    /// There is none of this name.
    #[error("there is no run {run:?} here; there are: {known}")]
    Unknown {
        /// The name.
        run: String,
        /// The last ones that there are.
        known: String,
    },
    /// There is nothing left to do.
    #[error("run {run} is done; start another one with: surehand run \"STORY\"")]
    Done {
        /// The run.
        run: String,
    },
    /// Another process works on it.
    #[error("run {run} is being worked on by another process")]
    Busy {
        /// The run.
        run: String,
    },
    /// What was written down of its place cannot be understood.
    #[error(
        "{RUNS}/{run}/{PLACE} in the state directory is damaged: {why}\nwhat was said and done is in {TRANSCRIPT} beside it; to go on with another run, \
         name it: surehand run --resume=RUN"
    )]
    Damaged {
        /// The run.
        run: String,
        /// What the parser said.
        why: String,
    },
    /// The record cannot be read.
    #[error("the record of the run: {0}")]
    Unreadable(#[from] io::Error),
}

const RUNS: &str = "runs";
const PLACE: &str = "run.json";
const TRANSCRIPT: &str = "transcript.jsonl";

impl RunTranscript {
    /// The record of a run, new or not; an error of the kind `WouldBlock` if another process has it.
    pub fn open(workspace: &Workspace, run: &str) -> io::Result<Self> {
        let state = workspace.state_folder()?;
        let runs = make_dir(&*state, RUNS)?;
        let dir = make_dir(&runs, run)?;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut transcript = File::from(sys::openat(&dir, TRANSCRIPT, flags, Permissions::from_raw_mode(0o600))?);
        lock(&transcript)?;
        drop_torn_line(&mut transcript)?;
        Ok(Self { dir, transcript })
    }

    /// Adds to the transcript. Pieces of text are not written down: the whole text follows.
    pub fn append(&mut self, event: &RunEvent) -> io::Result<()> {
        if matches!(event, RunEvent::Text { .. } | RunEvent::Calling { .. }) {
            return Ok(());
        }
        let mut line = serde_json::to_vec(event).map_err(io::Error::other)?;
        line.push(b'\n');
        self.transcript.write_all(&line)
    }

    /// Writes down where the run is: whoever looks sees the old place or the new one, whole.
    pub fn save(&mut self, saved: &SavedRun) -> io::Result<()> {
        let new = format!("{PLACE}.new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = File::from(sys::openat(&self.dir, &new, flags, Permissions::from_raw_mode(0o600))?);
        file.write_all(&serde_json::to_vec(saved).map_err(io::Error::other)?)?;
        // A turn takes longer than this, and after a power cut the name may be there before the content is.
        file.sync_data()?;
        sys::renameat(&self.dir, &new, &self.dir, PLACE)?;
        Ok(())
    }
}

/// Takes a run for this process.
fn lock(transcript: &File) -> io::Result<()> {
    match sys::flock(transcript, FlockOperation::NonBlockingLockExclusive) {
        Err(error @ Errno::WOULDBLOCK) => Err(error.into()),
        // Where the file system has no locks, it goes without.
        _ => Ok(()),
    }
}

/// Takes out a line that was being written when its process was killed: the next one would be glued to it.
fn drop_torn_line(transcript: &mut File) -> io::Result<()> {
    let mut content = Vec::new();
    transcript.read_to_end(&mut content)?;
    let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < content.len() { transcript.set_len(whole as u64) } else { Ok(()) }
}

/// Where a run was that can be gone on with: the named one, or the last one that is not done and that nobody works on.
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
    let place = read_saved(runs, run)?.ok_or_else(unknown)?;
    let run = run.to_owned();
    if place.stop == Some(StopReason::Done) { Err(ResumeError::Done { run }) } else { Ok(place) }
}

fn find_last(runs: &OwnedFd, names: &[String]) -> Result<SavedRun, ResumeError> {
    let mut none = ResumeError::Nothing;
    for name in names.iter().rev() {
        if is_busy(runs, name) {
            none = ResumeError::Busy { run: name.clone() };
            continue;
        }
        // A damaged one may be the very one that is meant, so an older one is not taken in its place.
        match read_saved(runs, name)? {
            Some(place) if place.stop != Some(StopReason::Done) => return Ok(place),
            _ => {}
        }
    }
    Err(none)
}

/// Whether a process works on a run.
fn is_busy(runs: &OwnedFd, run: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let transcript = open_dir(runs, run).and_then(|dir| Ok(sys::openat(&dir, TRANSCRIPT, flags, Permissions::empty())?));
    transcript.is_ok_and(|transcript| sys::flock(transcript, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
}

/// What was said in a run, from its transcript. A line that a kill has torn is passed over.
pub fn read_messages(workspace: &Workspace, run: &str) -> io::Result<Vec<TranscriptEntry>> {
    let state = workspace.state_folder()?;
    let dir = open_dir(&open_dir(&*state, RUNS)?, run)?;
    let Some(content) = read_file(&dir, TRANSCRIPT)? else { return Ok(Vec::new()) };
    Ok(lines(content.lines().filter_map(|line| serde_json::from_str(line).ok())))
}

/// What was said and done, as answers and results.
fn lines(events: impl Iterator<Item = RunEvent>) -> Vec<TranscriptEntry> {
    let mut lines = Vec::new();
    let mut turn = TranscriptTurn::default();
    for event in events {
        match event {
            // The turn before was never finished, but what it did is done.
            RunEvent::Turn { .. } => lines.extend(std::mem::take(&mut turn).interrupted()),
            RunEvent::Said { text } => turn.text = text,
            RunEvent::Call { id, tool, arguments, repair: false } => {
                let arguments = match arguments {
                    Value::String(raw) => raw,
                    other => other.to_string(),
                };
                turn.calls.push(ModelCall { id, name: tool, arguments });
            }
            RunEvent::Result { id, tool, is_error, text, .. } => turn.result(&tool, CallResult { id, text, is_error }),
            RunEvent::TurnEnded { .. } => lines.extend(std::mem::take(&mut turn).lines()),
            _ => {}
        }
    }
    lines.extend(turn.interrupted());
    lines
}

/// A turn as the transcript tells it.
#[derive(Default)]
struct TranscriptTurn {
    text: String,
    calls: Vec<ModelCall>,
    results: Vec<CallResult>,
}

impl TranscriptTurn {
    /// A call that was repaired has several results; the last one of its tool counts, not that of the read in between.
    fn result(&mut self, tool: &str, result: CallResult) {
        if self.calls.iter().any(|call| call.id == result.id && call.name == tool) {
            self.results.retain(|known| known.id != result.id);
            self.results.push(result);
        }
    }

    fn lines(self) -> Vec<TranscriptEntry> {
        let mut lines = Vec::new();
        if !self.text.is_empty() || !self.calls.is_empty() {
            lines.push(TranscriptEntry::Answer(self.text, self.calls));
        }
        if !self.results.is_empty() {
            lines.push(TranscriptEntry::Results(self.results));
        }
        lines
    }

    /// The same for a turn in which the process was killed. If it has done nothing, it is asked again as if it had never been.
    fn interrupted(mut self) -> Vec<TranscriptEntry> {
        if self.calls.is_empty() {
            return Vec::new();
        }
        for call in &self.calls {
            if !self.results.iter().any(|result| result.id == call.id) {
                let text = "The run was interrupted at this call. See what came of it before you make it again.\n".to_owned();
                self.results.push(CallResult { id: call.id.clone(), text, is_error: true });
            }
        }
        self.lines()
    }
}

fn read_saved(runs: &OwnedFd, run: &str) -> Result<Option<SavedRun>, ResumeError> {
    let Some(content) = read_file(&open_dir(runs, run)?, PLACE)? else { return Ok(None) };
    let place = serde_json::from_str::<SavedRun>(&content);
    // What the file says about its own name may lead anywhere.
    place
        .map(|place| Some(SavedRun { run: run.to_owned(), ..place }))
        .map_err(|error| ResumeError::Damaged { run: run.to_owned(), why: error.to_string() })
}

fn read_file(dir: &OwnedFd, name: &str) -> io::Result<Option<String>> {
    match sys::openat(dir, name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK, Permissions::empty()) {
        Ok(file) => {
            let mut content = Vec::new();
            File::from(file).read_to_end(&mut content)?;
            Ok(Some(String::from_utf8_lossy(&content).into_owned()))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The names of the runs, the oldest first.
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
