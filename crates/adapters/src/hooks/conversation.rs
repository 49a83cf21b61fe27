//! Which conversation a client is in. One that goes on to another, as by `/clear`, tells its hooks, but not the server that it started in the
//! first. Hook and server have the same process above them; so the hook leaves a note in its name, and the server follows it.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
};

use rustix::fs::{self as sys, AtFlags, Dir, Mode, OFlags};
use surehand_engine::{SessionId, Workspace};

use super::pending_notes::shelf;
use crate::client_process::ClientProcess;

const PREFIX: &str = "client-";

/// Longer than any name of a session.
const MOST_BYTES: u64 = 1024;

/// The client of this process is in this conversation from here on. Where that cannot be noted, it is as if nobody had said it.
pub(super) fn enter(workspace: &Workspace, session: &SessionId) {
    let (Some(client), Ok(shelf)) = (ClientProcess::client(), shelf(workspace)) else { return };
    let _ = forget_the_dead(&shelf);
    let _ = write(&shelf, &client.name(), session);
}

/// The conversation that the client of this name is in, if its hooks have said so.
pub(crate) fn of(workspace: &Workspace, client: &str) -> Option<SessionId> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let note = sys::openat(&shelf(workspace).ok()?, format!("{PREFIX}{client}"), flags, Mode::empty()).ok()?;
    let mut session = String::new();
    File::from(note).take(MOST_BYTES).read_to_string(&mut session).ok()?;
    Some(SessionId(session))
}

/// Whoever reads meanwhile has the old one or the new one.
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
