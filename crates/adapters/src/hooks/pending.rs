//! What a hook has to say when the client cannot hear it: kept in the state directory until the next hook of the session that can say it.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use rustix::fs::{self as sys, Mode, OFlags};
use serde::{Deserialize, Serialize};
use surehand_engine::{SessionId, Workspace, core::ContentHash};

/// What is still to be said to a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// Notes, in the order in which they came.
    #[serde(default)]
    pub notes: String,
    /// Whether the context was compacted since something was last said.
    #[serde(default)]
    pub is_compacted: bool,
}

const DIRECTORY: &str = "hooks";

impl Pending {
    /// What is to be said to a session. What cannot be read is nothing.
    pub fn take(workspace: &Workspace, session: &SessionId) -> Self {
        let taken = || -> io::Result<Self> {
            let name = name(session);
            let dir = sys::openat(
                &*workspace.state().dir(),
                DIRECTORY,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let mut content = String::new();
            let file = sys::openat(&dir, &name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            File::from(file).read_to_string(&mut content)?;
            sys::unlinkat(&dir, &name, sys::AtFlags::empty())?;
            serde_json::from_str(&content).map_err(io::Error::other)
        };
        taken().unwrap_or_default()
    }

    /// Keeps it for the next hook.
    pub fn keep(&self, workspace: &Workspace, session: &SessionId) -> io::Result<()> {
        let state = workspace.state().dir();
        match sys::mkdirat(&*state, DIRECTORY, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let dir = sys::openat(
            &*state,
            DIRECTORY,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = sys::openat(&dir, name(session), flags, Mode::from_raw_mode(0o600))?;
        File::from(file).write_all(&serde_json::to_vec(self).map_err(io::Error::other)?)
    }
}

/// A session may be called anything; a file may not.
fn name(session: &SessionId) -> String {
    ContentHash::of(session.0.as_bytes()).to_string()
}
