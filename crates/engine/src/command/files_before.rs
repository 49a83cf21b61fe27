//! The versions of the files that a command names, noted before the command runs. A long-lived process keeps them in
//! memory. Hooks run in two processes, one before and one after the command, so they keep them in a file of the state
//! directory.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::fs::{self as sys, AtFlags, Dir};
use serde::{Deserialize, Serialize};
use surehand_core::{ContentHash, RelPath};
use surehand_store::{Millis, SessionId};

use super::ShellCommand;
use crate::{
    state_dir::{self, IfThere, make_dir},
    workspace::Workspace,
};

/// The files that a command names, before it runs. A named file that is missing here did not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilesBefore {
    pub files: HashMap<RelPath, FileBefore>,
    /// Permissions of regular files.
    pub modes: HashMap<RelPath, u32>,
    pub at: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileBefore {
    Absent,
    Version(ContentHash),
    /// Not checked: binary, too large, or over the limit of files.
    Unknown,
}

/// The directory of notes from one hook to the next.
const DIRECTORY: &str = "hooks";
const PREFIX: &str = "command-";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotePurpose {
    Ended,
    /// Until its output is found.
    Printed,
}

/// A longer file was not written by us.
const MOST_BYTES: u64 = 1 << 20;

/// The note of a command whose end is never reported is dropped after a day.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl FilesBefore {
    pub(super) fn get(&self, path: &RelPath) -> FileBefore {
        self.files.get(path).copied().unwrap_or(FileBefore::Absent)
    }

    /// The files with a known content, by path.
    pub(super) fn versions(&self) -> Vec<(RelPath, ContentHash)> {
        let version = |(path, before): (&RelPath, &FileBefore)| match before {
            FileBefore::Version(version) => Some((path.clone(), *version)),
            FileBefore::Absent | FileBefore::Unknown => None,
        };
        let mut versions: Vec<_> = self.files.iter().filter_map(version).collect();
        versions.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        versions
    }

    /// Writes the note to the state directory. If that fails, the command is treated as unannounced.
    pub(super) fn keep(&self, workspace: &Workspace, session: &SessionId, command: &ShellCommand<'_>, until: NotePurpose) {
        let _ = self.write(workspace, &name(session, command, until));
    }

    pub(super) fn take(
        workspace: &Workspace,
        session: &SessionId,
        command: &ShellCommand<'_>,
        until: NotePurpose,
    ) -> Option<Self> {
        let (folder, name) = (notes_directory(workspace).ok()?, name(session, command, until));
        let mut content = Vec::new();
        state_dir::open_file(&folder, &name, MOST_BYTES).ok()?.read_to_end(&mut content).ok()?;
        sys::unlinkat(&*folder, &name, AtFlags::empty()).ok()?;
        serde_json::from_slice(&content).ok()
    }

    fn write(&self, workspace: &Workspace, name: &str) -> io::Result<()> {
        let folder = notes_directory(workspace)?;
        forget_old(&folder)?;
        state_dir::write_file(&folder, name, &serde_json::to_vec(self)?, IfThere::Replace)
    }
}

fn notes_directory(workspace: &Workspace) -> io::Result<Arc<File>> {
    make_dir(&*workspace.state_folder()?, DIRECTORY)
}

/// Commands of one session may run in parallel, so each has its own file.
fn name(session: &SessionId, command: &ShellCommand<'_>, until: NotePurpose) -> String {
    let key = format!("{}\0{}\0{}\0{until:?}", session.0, command.directory, command.line);
    format!("{PREFIX}{}", ContentHash::of(key.as_bytes()))
}

fn forget_old(folder: &File) -> io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let stat = sys::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if u64::try_from(stat.st_mtime).is_ok_and(|at| at + LONGEST.as_secs() < now) {
            sys::unlinkat(folder, name, AtFlags::empty())?;
        }
    }
    Ok(())
}
