//! The files of runs: one directory for each run, readable only by its user. Nothing here follows a symbolic link.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{self as sys, FlockOperation, Mode as Permissions, OFlags},
    io::Errno,
};
use surehand_engine::Workspace;

pub(crate) const RUNS: &str = "runs";
pub(crate) const SAVED_RUN: &str = "run.json";
pub(crate) const TRANSCRIPT: &str = "transcript.jsonl";
pub(crate) const PROMPTS: &str = "prompts.jsonl";

/// The directory of all runs; `None` if there is none yet.
pub(crate) fn open_runs(workspace: &Workspace) -> io::Result<Option<OwnedFd>> {
    match if_found(workspace.state_folder())? {
        Some(state) => if_found(open_dir(&*state, RUNS)),
        None => Ok(None),
    }
}

/// Turns the error of a missing file or directory into `None`.
pub(crate) fn if_found<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

pub(crate) fn lock(transcript: &File) -> io::Result<()> {
    match sys::flock(transcript, FlockOperation::NonBlockingLockExclusive) {
        Err(error @ Errno::WOULDBLOCK) => Err(error.into()),
        // Some file systems have no locks; there the run continues without one.
        _ => Ok(()),
    }
}

/// Removes an incomplete last line, left by a killed process, so that the next line does not continue it.
pub(crate) fn drop_torn_line(transcript: &mut File) -> io::Result<()> {
    let mut content = Vec::new();
    transcript.read_to_end(&mut content)?;
    let complete = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if complete < content.len() { transcript.set_len(complete as u64) } else { Ok(()) }
}

pub(crate) fn is_busy(runs: &OwnedFd, run: &str) -> bool {
    let transcript = open_dir(runs, run).and_then(|dir| open_file(&dir, TRANSCRIPT, OFlags::RDONLY));
    transcript.is_ok_and(|transcript| sys::flock(transcript, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
}

pub(crate) fn read_file(dir: &OwnedFd, name: &str) -> io::Result<Option<String>> {
    let Some(mut file) = if_found(open_file(dir, name, OFlags::RDONLY))? else { return Ok(None) };
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(Some(String::from_utf8_lossy(&content).into_owned()))
}

/// Opens a file of a run, but no symbolic link, and without waiting at a pipe.
pub(crate) fn open_file(dir: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    let safe = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(File::from(sys::openat(dir, name, flags | safe, Permissions::from_raw_mode(0o600))?))
}

/// The ids of all runs, oldest first.
pub(crate) fn run_names(runs: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in sys::Dir::read_from(runs)? {
        let entry = entry?;
        names.extend(entry.file_name().to_str().ok().filter(|name| !name.starts_with('.')).map(str::to_owned));
    }
    names.retain(|name| open_dir(runs, name).is_ok());
    names.sort();
    Ok(names)
}

pub(crate) fn make_dir(parent: &impl std::os::fd::AsFd, name: &str) -> io::Result<OwnedFd> {
    match sys::mkdirat(parent, name, Permissions::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    open_dir(parent, name)
}

pub(crate) fn open_dir(parent: &impl std::os::fd::AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(sys::openat(parent, name, flags, Permissions::empty())?)
}
