//! The local copy of the board, in the state directory of the repository. The helper writes it. Hooks, servers, people
//! and the page read it, without access to the board.

use std::{
    io::{self, Read},
    sync::Arc,
};

use surehand_core::{ContentHash, RelPath};
use surehand_store::board::CheckoutId;

use super::{board_index::index_of, board_place};
use crate::{
    config::BoardConfig,
    fleet_link::{CopyVersion, LocalCopy},
    workspace::Workspace,
};

/// Identifies a version of a file of the copy, so that a reader reads it again only if it was replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyStamp {
    inode: u64,
    modified: (i64, i64),
    size: i64,
}

const MAX_BYTES: u64 = 256 << 20;

/// The first bytes of the file, with the number of the format. The version and a line break follow, then the content.
const FORMAT: &str = "surehand board 2 ";
const DIGITS: usize = 16;

/// The length of the first line.
pub(super) const HEAD: usize = FORMAT.len() + DIGITS + 1;

/// The version in the first line; `None` if the file has another format.
pub(super) fn version_in(head: &[u8]) -> Option<CopyVersion> {
    let digits = head.get(..HEAD)?.strip_prefix(FORMAT.as_bytes())?.strip_suffix(b"\n")?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().map(CopyVersion)
}

impl Workspace {
    /// Replaces the local copy, its index and its age. If only the age has changed, [`Workspace::refresh_local_copy`]
    /// suffices. Only one process at a time may call this.
    pub fn write_local_copy(&self, copy: &LocalCopy) -> io::Result<()> {
        let mut content = format!("{FORMAT}{:0DIGITS$x}\n", copy.version.0).into_bytes();
        serde_json::to_writer(&mut content, copy)?;
        self.write_copy_file("json", &content)?;
        self.write_copy_file("index", &index_of(copy)?)?;
        // Readers compare the version of the age with that of the content, so the content must be written first.
        copy.age_record().map_or(Ok(()), |age| self.write_copy_age(age))
    }

    /// The name of a file of the local copy. Each board has its own files: a program with another `board.url` may run
    /// at the same time, and must not confuse the two boards.
    pub(super) fn copy_file(&self, kind: &str) -> String {
        match &self.config().board {
            BoardConfig { url: None, .. } => format!("board.{kind}"),
            server => format!("board-{}.{kind}", &ContentHash::of(board_place(server).as_bytes()).to_string()[..16]),
        }
    }

    /// The local copy; `None` if there is none, or the file has another format.
    pub fn local_copy(&self) -> io::Result<Option<LocalCopy>> {
        const ATTEMPTS: usize = 3;
        for _ in 1..ATTEMPTS {
            let Some(mut copy) = self.read_local_copy()? else { return Ok(None) };
            let is_same = self.copy_age()?.is_none_or(|age| copy.set_age(age));
            // If the version on disk is still this one, the content was just written, and the age still belongs to the
            // one before.
            if is_same || self.copy_version()? == Some(copy.version) {
                return Ok(Some(copy));
            }
        }
        self.read_local_copy()
    }

    /// The content with the age that it had when it was written.
    fn read_local_copy(&self) -> io::Result<Option<LocalCopy>> {
        let Some(mut file) = self.open_copy_file("json", MAX_BYTES)? else { return Ok(None) };
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let Some(version) = version_in(&text) else { return Ok(None) };
        // A file that was incomplete because of a power failure will soon be replaced.
        let copy = serde_json::from_slice::<LocalCopy>(&text[HEAD..]).ok();
        Ok(copy.map(|copy| LocalCopy { version, ..copy }))
    }

    /// Identifies the present content of the local copy; `None` if there is none. A newer age does not change it.
    pub fn local_copy_stamp(&self) -> Option<CopyStamp> {
        self.stamp_of("json")
    }

    pub(super) fn stamp_of(&self, kind: &str) -> Option<CopyStamp> {
        let dir = self.repository_dir().ok()?;
        let stat = rustix::fs::statat(&*dir, self.copy_file(kind), rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
        #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
        Some(CopyStamp {
            inode: stat.st_ino as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            size: stat.st_size as i64,
        })
    }

    /// The copy of the board: from memory, if another thread keeps it there, otherwise from disk.
    pub fn fleet_copy(&self) -> Option<Arc<LocalCopy>> {
        self.fleet()?.copy(|| self.local_copy().ok().flatten())
    }

    /// The copy of the board for a call about these files of the work tree: from memory, if another thread keeps it
    /// there, otherwise only the entries about these files.
    pub(super) fn fleet_copy_about(&self, paths: &[RelPath]) -> Option<Arc<LocalCopy>> {
        match self.fleet()? {
            fleet if fleet.keeps_copy() => fleet.kept_copy(),
            _ => self.board_about(paths).ok().flatten().map(Arc::new),
        }
    }

    /// The id of this checkout on the board; `None` if this process takes no part in the fleet. Computed once.
    pub fn fleet_checkout(&self) -> Option<CheckoutId> {
        self.fleet()?.checkout(|| Some(self.checkout().ok()?.id()))
    }
}
