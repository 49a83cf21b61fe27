//! The conversation that a client is in. When it changes, as by `/clear`, the client tells its hooks, but not the MCP server that it started
//! before. Hook and server have the same parent process, so the hook leaves a note under its name, and the server follows it.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
};

use rustix::fs::{self as sys, AtFlags, Dir, Mode, OFlags};
use surehand_engine::{SessionId, Workspace};

use super::pending_notes::open_directory;
use crate::client_process::ClientProcess;

const PREFIX: &str = "client-";

const MOST_BYTES: u64 = 1024;

/// Notes the conversation of the client above this process. Failures are ignored.
pub(super) fn enter(workspace: &Workspace, session: &SessionId) {
    let (Some(client), Ok(shelf)) = (ClientProcess::client(), open_directory(workspace)) else { return };
    let _ = forget_the_dead(&shelf);
    let _ = write(&shelf, &client.name(), session);
}

/// The conversation of a client, if its hooks have noted it.
pub(crate) fn of(workspace: &Workspace, client: &str) -> Option<SessionId> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let note = sys::openat(&open_directory(workspace).ok()?, format!("{PREFIX}{client}"), flags, Mode::empty()).ok()?;
    let mut session = String::new();
    File::from(note).take(MOST_BYTES).read_to_string(&mut session).ok()?;
    Some(SessionId(session))
}

fn write(shelf: &OwnedFd, client: &str, session: &SessionId) -> io::Result<()> {
    let (name, new) = (format!("{PREFIX}{client}"), format!("{PREFIX}{client}.new"));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = sys::openat(shelf, &new, flags, Mode::from_raw_mode(0o600))?;
    File::from(file).write_all(session.0.as_bytes())?;
    Ok(sys::renameat(shelf, &new, shelf, &name)?)
}

fn forget_the_dead(shelf: &OwnedFd) -> io::Result<()> {
    for entry in Dir::read_from(shelf)? {
        let entry = entry?;
        let client = entry.file_name().to_str().ok().and_then(|name| name.strip_prefix(PREFIX));
        if client.is_some_and(|client| !ClientProcess::is_alive(client.trim_end_matches(".new"))) {
            sys::unlinkat(shelf, entry.file_name(), AtFlags::empty())?;
        }
    }
    Ok(())
}
