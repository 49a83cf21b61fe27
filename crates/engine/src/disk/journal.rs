//! The journal of a process: each entry says what the process will do to files, and is written before it does so. A
//! living process holds a lock on its journal. A journal without a lock was left by a crash, and the next process to start recovers from it.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

use rustix::fs::{self as sys, AtFlags, Mode, OFlags};
use serde::{Deserialize, Serialize};
use surehand_core::ContentHash;

use super::metadata::Metadata;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CommitMethod {
    Swap,
    /// The new file is renamed over the old one, because the file system cannot exchange them.
    Rename,
    Create,
    /// The file has several hard links, or metadata that cannot be copied: its bytes are overwritten after a copy of
    /// them is safe.
    InPlace,
    Remove,
    Move,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitIntent {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    pub how: CommitMethod,
    /// The version before; `None` for a new file.
    pub base: Option<ContentHash>,
    /// The version after; `None` for a deletion.
    pub new: Option<ContentHash>,
    /// The staged file: the new content before the swap, the old one after it. For a new file, the place for a
    /// rollback.
    pub staged: Option<String>,
    pub place: StagingPlace,
    /// The inode of the new file, which distinguishes it from another program's; for a deletion or move, the file's
    /// own.
    pub inode: u64,
    /// Its modification time, needed because a freed inode is soon reused.
    pub modified: i64,
    /// Mode, owner and attributes of a file that is replaced, and of its replacement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StagingPlace {
    State,
    /// In a directory of this name in `.surehand` of the work tree.
    Tree(String),
    Beside,
}

impl StagingPlace {
    /// The prefix of the names of files that the process of this journal stages there.
    pub(crate) fn prefix(&self, journal: &str) -> String {
        match self {
            StagingPlace::State | StagingPlace::Tree(_) => format!("{journal}-"),
            StagingPlace::Beside => format!(".surehand-{journal}-"),
        }
    }
}

/// Whether it is the name of a directory entry, and not a path.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalEntry {
    /// Always the first entry: the key of the checkout, which only its owner can read. A journal without it is ignored.
    Start {
        checkout: String,
    },
    /// A directory for staging is about to be made in `.surehand` of the work tree.
    StageDir {
        name: String,
    },
    Begin {
        commit: u64,
        files: Vec<CommitIntent>,
    },
    Make {
        commit: u64,
        /// From the outermost to the innermost.
        dirs: Vec<String>,
    },
    Stage {
        commit: u64,
        path: String,
        staged: String,
        place: StagingPlace,
    },
    End {
        commit: u64,
        /// Whether its files have their new content.
        done: bool,
        /// Metadata that was carried over: the number of the file, and the metadata of the old one when it came out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        carried_over: Vec<(usize, Metadata)>,
    },
}

#[derive(Debug)]
pub(crate) struct Journal {
    dir: Arc<File>,
    file: File,
    name: String,
    /// The entries that every journal of this process begins with.
    opening: Vec<u8>,
    next: u64,
    size: u64,
    /// Commits that have begun and are not settled.
    open: usize,
    /// Whether its name is on disk.
    is_name_synced: bool,
    /// The size in bytes at which it is too long.
    limit: u64,
}

/// A journal of more bytes is emptied as soon as nothing in it is needed any more.
const MAX_SIZE: u64 = 64 * 1024;
/// When it has grown by this, displaced files no longer wait for their second look, so that it can be emptied.
const TOO_LONG: u64 = 512 * 1024;

impl Journal {
    /// Starts a journal under this name. `checkout` is the key of the checkout.
    pub(crate) fn start(dir: Arc<File>, name: String, checkout: &str) -> io::Result<Self> {
        let file = open_new(dir.as_fd(), &name)?;
        let opening = line(&JournalEntry::Start { checkout: checkout.to_owned() });
        let mut journal =
            Self { dir, file, name, opening: opening.clone(), next: 0, size: 0, open: 0, is_name_synced: false, limit: TOO_LONG };
        journal.write_line(&opening)?;
        Ok(journal)
    }

    /// Adds an entry that stays in the journal as long as the process lives.
    pub(crate) fn begin_with(&mut self, entry: &JournalEntry) -> io::Result<()> {
        let line = line(entry);
        self.opening.extend_from_slice(&line);
        self.write_line(&line)
    }

    /// Its name, which the names of this process's staged files begin with.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Opens a commit and returns its number.
    pub(crate) fn open_commit(&mut self) -> u64 {
        self.next += 1;
        self.open += 1;
        self.next
    }

    /// Records that a commit is settled: it has ended, and its displaced files are known.
    pub(crate) fn end_commit(&mut self) {
        // A commit that began in the journal of a state directory that is gone is not counted here.
        self.open = self.open.saturating_sub(1);
    }

    /// Whether it should be emptied when possible.
    pub(crate) fn is_long(&self) -> bool {
        self.size > MAX_SIZE
    }

    /// Whether it is so long that it should be emptied at once. If that is impossible because a displaced file is held
    /// open, this is `true` again only after the journal has grown by as much again.
    pub(crate) fn is_too_long(&mut self) -> bool {
        let is_too_long = self.size > self.limit;
        if is_too_long {
            self.limit = self.size + TOO_LONG;
        }
        is_too_long
    }

    /// Adds a line; with `sync`, waits until it is on disk.
    pub(crate) fn write(&mut self, entry: &JournalEntry, sync: bool) -> io::Result<()> {
        self.write_line(&line(entry))?;
        if sync && !std::mem::replace(&mut self.is_name_synced, true) {
            self.dir.sync_all()?;
        }
        if sync { self.file.sync_data() } else { Ok(()) }
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line) {
            // A partial line would spoil the next one.
            let _ = self.file.set_len(self.size);
            return Err(error);
        }
        self.size += line.len() as u64;
        Ok(())
    }

    /// Empties the journal, unless a commit is open. Call it only when no displaced file is left.
    pub(crate) fn empty(&mut self) -> io::Result<()> {
        if self.open > 0 {
            return Ok(());
        }
        (self.size, self.limit) = (0, TOO_LONG);
        self.file.set_len(0)?;
        let opening = self.opening.clone();
        self.write_line(&opening)
    }

    /// Removes the journal. Call it only when nothing in it is needed.
    pub(crate) fn remove(&self) {
        // If it stays, the next start reads and removes it.
        let _ = sys::unlinkat(&*self.dir, &self.name, AtFlags::empty());
    }
}

pub(super) fn line(entry: &JournalEntry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).expect("an entry is plain data");
    line.push(b'\n');
    line
}

/// Creates a file of a process, with a lock that shows that the process lives.
pub(crate) fn open_new(dir: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    loop {
        let file = File::from(sys::openat(dir, name, flags, Mode::from_raw_mode(0o600))?);
        file.lock()?;
        // Another process may have mistaken the new file for one left by a crash, and removed it before we had the
        // lock.
        if sys::fstat(&file)?.st_nlink > 0 {
            return Ok(file);
        }
    }
}

/// The entries of a journal. A last line that a crash cut off was never acted upon and is left out.
pub(crate) fn entries(content: &[u8]) -> Vec<JournalEntry> {
    content
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_left_out() {
        let end = |commit| JournalEntry::End { commit, done: true, carried_over: Vec::new() };
        let mut content = serde_json::to_vec(&end(1)).unwrap();
        content.push(b'\n');
        content.extend(serde_json::to_vec(&end(2)).unwrap());
        assert_eq!(entries(&content), [end(1)]);
        content.push(b'\n');
        assert_eq!(entries(&content), [end(1), end(2)]);
    }
}
