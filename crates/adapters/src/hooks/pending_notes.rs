//! What a hook must remember until the next one of its session and that is no business of the store: what the client could not hear
//! yet, and how far its transcript was looked through. A small file for each session, held under a lock while it is changed.

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
    /// What is still to be said, in the order in which it came.
    pub notes: String,
    /// Whether the context lost what was in it, and this is still to be said.
    pub is_forgotten: bool,
    /// How far the transcript was looked through, where that is how a client tells.
    pub transcript: Option<u64>,
    /// Edits that tools of the client are making.
    pub running: Vec<RunningEdit>,
}

/// An edit that a tool of the client is making.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunningEdit {
    /// What it was allowed.
    pub allowed: AllowedEdit,
    /// Whether the tool is done, and what came of it could not be told from the work of another call.
    #[serde(default)]
    is_made: bool,
    /// When, in seconds since 1970.
    since: u64,
}

const DIRECTORY: &str = "hooks";

/// More than this is not kept to be said later.
const MOST_NOTES: usize = 64 * 1024;

/// A tool that has not said so long that it is done has failed.
const LONGEST_RUN: u64 = 600;

/// And nobody waits longer than this for it.
const LONGEST_WAIT: u64 = 60;

/// Of more edits than this, and of more text, the oldest are forgotten: when they are made, they are held against what is there then.
const MOST_RUNNING: usize = 32;
const MOST_BYTES_RUNNING: usize = 8 << 20;

impl PendingNotes {
    /// The edits that tools of the client are making.
    pub(super) fn running(&self) -> Vec<AllowedEdit> {
        let now = seconds();
        let is_running = |running: &&RunningEdit| now.saturating_sub(running.since) < LONGEST_RUN;
        self.running.iter().filter(is_running).map(|running| running.allowed.clone()).collect()
    }

    pub(super) fn begins(&mut self, allowed: AllowedEdit) {
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

    /// A tool has made an edit, and another is at work on the same file.
    pub(super) fn waits(&mut self, edit: &Edit) {
        let waiting = self.running.iter_mut().find(|running| running.allowed.edit == *edit);
        waiting.into_iter().for_each(|running| running.is_made = true);
    }

    /// The edits that tools have made, that are not on record, and for whose files no other tool is at work any more.
    pub(super) fn waiting(&self) -> Vec<AllowedEdit> {
        let is_at_work = |paths: &[String]| self.at_work().any(|other| concerns(&other.allowed, paths));
        let waiting = self.running.iter().filter(|running| running.is_made && !is_at_work(&running.allowed.edit.paths()));
        waiting.map(|running| running.allowed.clone()).collect()
    }

    /// Whether another tool is at work on a file of this edit.
    pub(super) fn is_shared(&self, edit: &Edit) -> bool {
        let paths = edit.paths();
        self.at_work().any(|other| other.allowed.edit != *edit && concerns(&other.allowed, &paths))
    }

    /// The edits that tools are making as it seems. Calls of one answer follow each other closely: what was allowed longer ago and is not made
    /// was not made, and nobody waits for it.
    fn at_work(&self) -> impl Iterator<Item = &RunningEdit> {
        let now = seconds();
        self.running.iter().filter(move |running| !running.is_made && now.saturating_sub(running.since) < LONGEST_WAIT)
    }

    pub(super) fn ends(&mut self, edit: &Edit) -> Option<AllowedEdit> {
        let index = self.running.iter().position(|running| running.allowed.edit == *edit)?;
        Some(self.running.remove(index).allowed)
    }

    /// Looks into the notebook of a session and changes it; nobody else does meanwhile.
    pub(super) fn with<T>(workspace: &Workspace, session: &SessionId, change: impl FnOnce(&mut Self) -> T) -> T {
        locked_json::change(shelf(workspace).ok().as_ref(), &locked_json::file_name(session), change)
    }

    pub(super) fn note(&mut self, text: &str) {
        if self.notes.len() + text.len() <= MOST_NOTES {
            self.notes.push_str(text);
        }
    }
}

fn concerns(allowed: &AllowedEdit, paths: &[String]) -> bool {
    allowed.edit.paths().iter().any(|path| paths.contains(path))
}

pub(super) fn shelf(workspace: &Workspace) -> io::Result<OwnedFd> {
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

/// Since 1970.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}
