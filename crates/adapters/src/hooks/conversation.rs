//! The conversation that a client is in. When it changes, for example by `/clear`, the client runs its hooks, but does
//! not notify the MCP server that it started before. Both have the same parent process, so the hook leaves a note under
//! its name, and the server reads it.

use std::{io, os::fd::OwnedFd};

use rustix::fs::{self as sys, AtFlags, Dir};
use surehand_engine::{SessionId, Workspace, client_process::ClientProcess};

use super::pending_notes::open_directory;
use crate::locked_json;

const PREFIX: &str = "client-";

/// Notes the conversation of the client above this process. Failures are ignored.
pub(super) fn enter(workspace: &Workspace, session: &SessionId) {
    let (Some(client), Ok(shelf)) = (ClientProcess::client(), open_directory(workspace)) else { return };
    let _ = forget_the_dead(&shelf);
    locked_json::change(Some(&shelf), &file_name(&client.name()), |noted: &mut String| session.0.clone_into(noted));
}

/// The conversation of a client, if its hooks have noted it.
pub(crate) fn of(workspace: &Workspace, client: &str) -> Option<SessionId> {
    let noted: String = locked_json::read(open_directory(workspace).ok().as_ref(), &file_name(client));
    (!noted.is_empty()).then_some(SessionId(noted))
}

fn file_name(client: &str) -> String {
    format!("{PREFIX}{client}")
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
