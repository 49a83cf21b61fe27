//! The local copy of the board, in the state directory of the repository. The helper writes it; hooks, servers, people
//! and the window read it, and need no board for that.

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
};

use surehand_core::{ContentHash, RelPath};
use surehand_store::board::CheckoutId;

use super::board_place;
use crate::{config::BoardConfig, disk::replace_file, fleet_link::LocalCopy, state_dir, workspace::Workspace};

/// Identifies a version of the file, so that it is read again only if it was replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyStamp {
    inode: u64,
    modified: (i64, i64),
    size: i64,
}

const MAX_BYTES: u64 = 256 << 20;

impl Workspace {
    /// Replaces the local copy. One process at a time may do so.
    pub fn write_local_copy(&self, copy: &LocalCopy) -> io::Result<()> {
        let (dir, name) = (self.repository_dir()?, self.copy_file("json"));
        replace_file::put((&dir, &format!("{name}.new")), (&dir, &name), &serde_json::to_vec(copy)?)
    }

    /// The name of a file with what is on the board. Each board has its own: a program with other settings for
    /// `board.url` may run at the same time, and must not take the one for the other.
    pub(super) fn copy_file(&self, kind: &str) -> String {
        match &self.config().board {
            BoardConfig { url: None, .. } => format!("board.{kind}"),
            server => format!("board-{}.{kind}", &ContentHash::of(board_place(server).as_bytes()).to_string()[..16]),
        }
    }

    /// The local copy; `None` if there is none.
    pub fn local_copy(&self) -> io::Result<Option<LocalCopy>> {
        let Some(mut file) = self.open_copy()? else { return Ok(None) };
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        // One that was being written when the power went is replaced soon.
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Identifies the present version of the local copy; `None` if there is none.
    pub fn local_copy_stamp(&self) -> Option<CopyStamp> {
        let stat =
            rustix::fs::statat(&*self.repository_dir().ok()?, self.copy_file("json"), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
                .ok()?;
        #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
        Some(CopyStamp {
            inode: stat.st_ino as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            size: stat.st_size as i64,
        })
    }

    /// The copy of the board as this process has it: from memory, if another thread keeps it there.
    pub fn fleet_copy(&self) -> Option<Arc<LocalCopy>> {
        self.fleet()?.copy(|| self.local_copy().ok().flatten())
    }

    /// The copy of the board for a call about these files of the work tree: from memory, if another thread keeps it there,
    /// else only what concerns the files.
    pub(super) fn fleet_copy_about(&self, paths: &[RelPath]) -> Option<Arc<LocalCopy>> {
        match self.fleet()? {
            fleet if fleet.keeps_copy() => fleet.kept_copy(),
            _ => self.board_about(paths).ok().flatten().map(Arc::new),
        }
    }

    /// What this checkout is called on the board. Found once, for a process that takes part in the fleet.
    pub fn fleet_checkout(&self) -> Option<CheckoutId> {
        self.fleet()?.checkout(|| Some(self.checkout().ok()?.id()))
    }

    fn open_copy(&self) -> io::Result<Option<File>> {
        let dir = match self.repository_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            dir => dir?,
        };
        match state_dir::open_file(&dir, &self.copy_file("json"), MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => file.map(Some),
        }
    }
}
