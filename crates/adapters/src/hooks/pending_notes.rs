//! The state that one hook of a session leaves for the next: notes that the model has not read yet, the edits that the
//! client's tools are making, and the position in the transcript. It is a small file per session, changed under a lock.

use std::{
    io,
    os::fd::OwnedFd,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{self as sys, Mode, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use surehand_engine::{AllowedEdit, Edit, SessionId, Workspace};

use crate::locked_json;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PendingNotes {
    /// Text that the model has not read yet, oldest first.
    pub notes: String,
    /// Whether the model still has to learn that its context was reset.
    pub is_forgotten: bool,
    /// How far the transcript was read.
    pub transcript: Option<u64>,
    pub running: Vec<RunningEdit>,
    /// The warnings that the model was shown, oldest first.
    #[serde(rename = "told")]
    pub shown_warnings: Vec<String>,
}

/// An edit that one of the client's tools is making.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunningEdit {
    pub allowed: AllowedEdit,
    /// Whether the tool is done, and its result could not be distinguished from that of another call.
    #[serde(default)]
    is_made: bool,
    /// In seconds since the Unix epoch.
    since: u64,
}

const DIRECTORY: &str = "hooks";

const MOST_NOTES: usize = 64 * 1024;

/// A tool that does not report its end in this time has failed.
const LONGEST_RUN: u64 = 600;

/// Other edits of the same file wait this long for it.
const LONGEST_WAIT: u64 = 60;

/// Above these limits the oldest running edits are dropped. When such an edit is made, it is compared with the file as
/// it is then.
const MOST_RUNNING: usize = 32;
const MOST_BYTES_RUNNING: usize = 8 << 20;

impl PendingNotes {
    pub(super) fn running(&self) -> Vec<AllowedEdit> {
        let now = seconds();
        let is_running = |running: &&RunningEdit| now.saturating_sub(running.since) < LONGEST_RUN;
        self.running.iter().filter(is_running).map(|running| running.allowed.clone()).collect()
    }

    pub(super) fn start_edit(&mut self, allowed: AllowedEdit) {
        let since = seconds();
        self.running.retain(|running| since.saturating_sub(running.since) < LONGEST_RUN);
        self.running.push(RunningEdit { allowed, is_made: false, since });
        let bytes = |running: &RunningEdit| -> usize {
            let edit = &running.allowed.edit;
            edit.quotes().iter().chain(&edit.writes()).map(String::len).sum()
        };
        while self.running.len() > MOST_RUNNING || self.running.iter().map(bytes).sum::<usize>() > MOST_BYTES_RUNNING {
            self.running.remove(0);
        }
    }

    /// Records that the model gets a warning. Returns whether it is new.
    pub(super) fn warn_once(&mut self, key: &str) -> bool {
        const MOST: usize = 500;
        if self.shown_warnings.iter().any(|shown| shown == key) {
            return false;
        }
        if self.shown_warnings.len() >= MOST {
            self.shown_warnings.remove(0);
        }
        self.shown_warnings.push(key.to_owned());
        true
    }

    /// Marks an edit as made while another tool still edits the same file.
    pub(super) fn mark_made(&mut self, edit: &Edit) {
        let waiting = self.running.iter_mut().find(|running| running.allowed.edit == *edit);
        waiting.into_iter().for_each(|running| running.is_made = true);
    }

    /// The edits that are made but not recorded, and whose files no other tool edits any more.
    pub(super) fn made_edits(&self) -> Vec<AllowedEdit> {
        let is_at_work = |paths: &[String]| self.at_work().any(|other| concerns(&other.allowed, paths));
        let waiting = self.running.iter().filter(|running| running.is_made && !is_at_work(&running.allowed.edit.paths()));
        waiting.map(|running| running.allowed.clone()).collect()
    }

    /// Whether another tool edits a file of this edit.
    pub(super) fn is_shared(&self, edit: &Edit) -> bool {
        let paths = edit.paths();
        self.at_work().any(|other| other.allowed.edit != *edit && concerns(&other.allowed, &paths))
    }

    /// The edits that are probably being made now. Calls of one answer follow each other closely, so an edit that was
    /// allowed long ago and is not reported did not happen.
    fn at_work(&self) -> impl Iterator<Item = &RunningEdit> {
        let now = seconds();
        self.running.iter().filter(move |running| !running.is_made && now.saturating_sub(running.since) < LONGEST_WAIT)
    }

    pub(super) fn end_edit(&mut self, edit: &Edit) {
        if let Some(index) = self.running.iter().position(|running| running.allowed.edit == *edit) {
            self.running.remove(index);
        }
    }

    /// Changes the notes of a session under a lock.
    pub(super) fn update<T>(workspace: &Workspace, session: &SessionId, change: impl FnOnce(&mut Self) -> T) -> T {
        locked_json::change(open_directory(workspace).ok().as_ref(), &locked_json::file_name(session), change)
    }

    pub(super) fn add_note(&mut self, text: &str) {
        if self.notes.len() + text.len() <= MOST_NOTES {
            self.notes.push_str(text);
        }
    }
}

fn concerns(allowed: &AllowedEdit, paths: &[String]) -> bool {
    allowed.edit.paths().iter().any(|path| paths.contains(path))
}

pub(super) fn open_directory(workspace: &Workspace) -> io::Result<OwnedFd> {
    let state = workspace.state_folder()?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match sys::openat(&*state, DIRECTORY, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            sys::mkdirat(&*state, DIRECTORY, Mode::from_raw_mode(0o700))?;
            Ok(sys::openat(&*state, DIRECTORY, flags, Mode::empty())?)
        }
        opened => Ok(opened?),
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}
