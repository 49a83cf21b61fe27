//! What is written down of a run, in the state directory: its place, after each turn, and the full transcript. A run goes on from there
//! after it was interrupted or killed.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{self as sys, Mode as Permissions, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use surehand_engine::Workspace;

use crate::{
    context::Memory,
    event::{Event, Mode, Phase, Stop},
    history::Line,
    model::{Call, CallResult, Usage},
};

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
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
    pub phase: Phase,
    /// The turns that are over.
    pub turn: u32,
    /// What they took.
    pub usage: Usage,
    /// Why it stopped, if it has.
    pub stop: Option<Stop>,
    /// What it knows.
    pub memory: Memory,
}

/// The files of a run.
#[derive(Debug)]
pub struct Record {
    dir: OwnedFd,
    transcript: File,
}

const RUNS: &str = "runs";
const PLACE: &str = "run.json";
const TRANSCRIPT: &str = "transcript.jsonl";

impl Record {
    /// The record of a run, new or not.
    pub fn open(workspace: &Workspace, run: &str) -> io::Result<Self> {
        let state = workspace.state().dir();
        let runs = make_dir(&*state, RUNS)?;
        let dir = make_dir(&runs, run)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let transcript = File::from(sys::openat(&dir, TRANSCRIPT, flags, Permissions::from_raw_mode(0o600))?);
        Ok(Self { dir, transcript })
    }

    /// Adds to the transcript. Pieces of text are not written down: the whole text follows.
    pub fn add(&mut self, event: &Event) -> io::Result<()> {
        if matches!(event, Event::Text { .. } | Event::Calling { .. }) {
            return Ok(());
        }
        let mut line = serde_json::to_vec(event).map_err(io::Error::other)?;
        line.push(b'\n');
        self.transcript.write_all(&line)
    }

    /// Writes down where the run is: whoever looks sees the old place or the new one, whole.
    pub fn save(&mut self, place: &Place) -> io::Result<()> {
        let new = format!("{PLACE}.new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut file = File::from(sys::openat(&self.dir, &new, flags, Permissions::from_raw_mode(0o600))?);
        file.write_all(&serde_json::to_vec(place).map_err(io::Error::other)?)?;
        sys::renameat(&self.dir, &new, &self.dir, PLACE)?;
        Ok(())
    }
}

/// Where a run was, by its name, or the last one that is not done.
pub fn find(workspace: &Workspace, run: Option<&str>) -> io::Result<Option<Place>> {
    let state = workspace.state().dir();
    let runs = match open_dir(&*state, RUNS) {
        Ok(runs) => runs,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if let Some(run) = run {
        return read_place(&runs, run);
    }
    let mut places: Vec<Place> = names(&runs)?.iter().filter_map(|name| read_place(&runs, name).ok().flatten()).collect();
    places.retain(|place| place.stop != Some(Stop::Done));
    places.sort_by(|a, b| a.run.cmp(&b.run));
    Ok(places.pop())
}

/// What was said in a run, from its transcript. A line that a kill has torn is passed over.
pub fn said(workspace: &Workspace, run: &str) -> io::Result<Vec<Line>> {
    let state = workspace.state().dir();
    let dir = open_dir(&open_dir(&*state, RUNS)?, run)?;
    let Some(content) = read(&dir, TRANSCRIPT)? else { return Ok(Vec::new()) };
    Ok(lines(content.lines().filter_map(|line| serde_json::from_str(line).ok())))
}

/// The turns that are over, as answers and results.
fn lines(events: impl Iterator<Item = Event>) -> Vec<Line> {
    let mut lines = Vec::new();
    let (mut text, mut calls, mut results): (String, Vec<Call>, Vec<CallResult>) = Default::default();
    for event in events {
        match event {
            // A turn that was never finished is asked again.
            Event::Turn { .. } => (text, calls, results) = Default::default(),
            Event::Said { text: said } => text = said,
            Event::Call { id, tool, arguments, repair: false } => {
                let arguments = match arguments {
                    Value::String(raw) => raw,
                    other => other.to_string(),
                };
                calls.push(Call { id, name: tool, arguments });
            }
            // A call that was repaired has several results; the last one counts.
            Event::Result { id, is_error, text, .. } if calls.iter().any(|call| call.id == id) => {
                results.retain(|result| result.id != id);
                results.push(CallResult { id, text, is_error });
            }
            Event::TurnEnded { .. } => {
                let (text, calls, results) =
                    (std::mem::take(&mut text), std::mem::take(&mut calls), std::mem::take(&mut results));
                if text.is_empty() && calls.is_empty() {
                    continue;
                }
                lines.push(Line::Answer(text, calls));
                if !results.is_empty() {
                    lines.push(Line::Results(results));
                }
            }
            _ => {}
        }
    }
    lines
}

fn read_place(runs: &OwnedFd, run: &str) -> io::Result<Option<Place>> {
    if run.is_empty() || run.contains('/') || run.starts_with('.') {
        return Ok(None);
    }
    let dir = match open_dir(runs, run) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let content = read(&dir, PLACE)?;
    content.map(|content| serde_json::from_str(&content).map_err(io::Error::other)).transpose()
}

fn read(dir: &OwnedFd, name: &str) -> io::Result<Option<String>> {
    match sys::openat(dir, name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Permissions::empty()) {
        Ok(file) => {
            let mut content = Vec::new();
            File::from(file).read_to_end(&mut content)?;
            Ok(Some(String::from_utf8_lossy(&content).into_owned()))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn names(dir: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in sys::Dir::read_from(dir)? {
        names.extend(entry?.file_name().to_str().map(str::to_owned).ok());
    }
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
