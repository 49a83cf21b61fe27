//! The journal of a process: what it is about to do to files, written before it does so. A living process holds a lock on its
//! journal. A journal without a lock was left by a crash, and the next process to start recovers from it.

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
    /// The new one is renamed over the old one, where the file system cannot exchange.
    Rename,
    Create,
    /// The file has several names, or marks that cannot be copied: its bytes are replaced, after a copy of them is safe.
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
    /// The version after; `None` if it is deleted.
    pub new: Option<ContentHash>,
    /// The staged file: the new content before the swap, the old one after it. For a new file, the place for a rollback.
    pub staged: Option<String>,
    pub place: StagingPlace,
    /// The inode of the new file, which tells it from another program's; of a deleted or moved file, its own.
    pub inode: u64,
    /// Its modification time, because a freed inode is soon reused.
    pub modified: i64,
    /// Mode, owner and attributes of a file that is replaced, and of the one in its place.
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

/// Whether it names something in a directory, and nothing else.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalEntry {
    /// Always the first entry: the key of the checkout, which only its owner can read. A journal without it is ignored.
    Start {
        /// The key.
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
    /// What every journal of this process begins with.
    opening: Vec<u8>,
    next: u64,
    size: u64,
    /// Commits that have begun and are not settled.
    open: usize,
    /// Whether its name is on the disk.
    is_name_synced: bool,
    /// The size at which it is too long.
    limit: u64,
}

/// A journal is emptied when it has grown to this and nothing in it is needed any more.
const MAX_SIZE: u64 = 64 * 1024;
/// When it has grown by this, displaced files no longer wait for their second look, so that it can be emptied.
const TOO_LONG: u64 = 512 * 1024;

impl Journal {
    /// Starts a journal of a checkout under this name.
    pub(crate) fn start(dir: Arc<File>, name: String, checkout: &str) -> io::Result<Self> {
        let file = open_new(dir.as_fd(), &name)?;
        let opening = line(&JournalEntry::Start { checkout: checkout.to_owned() });
        let mut journal =
            Self { dir, file, name, opening: opening.clone(), next: 0, size: 0, open: 0, is_name_synced: false, limit: TOO_LONG };
        journal.write_line(&opening)?;
        Ok(journal)
    }

    /// Adds a line that counts as long as the process lives.
    pub(crate) fn begin_with(&mut self, entry: &JournalEntry) -> io::Result<()> {
        let line = line(entry);
        self.opening.extend_from_slice(&line);
        self.write_line(&line)
    }

    /// Its name; staged files of this process begin with it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A number for the next commit, which is open from now on.
    pub(crate) fn open_commit(&mut self) -> u64 {
        self.next += 1;
        self.open += 1;
        self.next
    }

    /// A commit is settled: it has ended, and what it displaced is known.
    pub(crate) fn end_commit(&mut self) {
        // One that was begun in the journal of a state that is gone is not counted here.
        self.open = self.open.saturating_sub(1);
    }

    /// Whether it has grown so much that it should be emptied.
    pub(crate) fn is_long(&self) -> bool {
        self.size > MAX_SIZE
    }

    /// Whether it is so long that it should be emptied at once. If it still cannot be, because a displaced file is held open, this asks
    /// again only after it has grown as much again.
    pub(crate) fn is_too_long(&mut self) -> bool {
        let is_too_long = self.size > self.limit;
        if is_too_long {
            self.limit = self.size + TOO_LONG;
        }
        is_too_long
    }

    /// Adds a line; with `sync`, waits until it is on the disk.
    pub(crate) fn write(&mut self, entry: &JournalEntry, sync: bool) -> io::Result<()> {
        self.write_line(&line(entry))?;
        if sync && !std::mem::replace(&mut self.is_name_synced, true) {
            self.dir.sync_all()?;
        }
        if sync { self.file.sync_data() } else { Ok(()) }
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line) {
            // A piece of a line would spoil the next one.
            let _ = self.file.set_len(self.size);
            return Err(error);
        }
        self.size += line.len() as u64;
        Ok(())
    }

    /// Empties the journal, unless a commit is open. Only to be called when no displaced file is left.
    pub(crate) fn empty(&mut self) -> io::Result<()> {
        if self.open > 0 {
            return Ok(());
        }
        (self.size, self.limit) = (0, TOO_LONG);
        self.file.set_len(0)?;
        let opening = self.opening.clone();
        self.write_line(&opening)
    }

    /// Removes the journal. Only to be called when nothing in it is needed.
    pub(crate) fn remove(&self) {
        // Left behind, it would be read and removed at the next start.
        let _ = sys::unlinkat(&*self.dir, &self.name, AtFlags::empty());
    }
}

fn line(entry: &JournalEntry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).expect("an entry is plain data");
    line.push(b'\n');
    line
}

/// Makes a file of a process, under a lock that shows that the process lives.
pub(crate) fn open_new(dir: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    loop {
        let file = File::from(sys::openat(dir, name, flags, Mode::from_raw_mode(0o600))?);
        file.lock()?;
        // Another process may have taken the new file for one that a crash left, and removed it before we had the lock.
        if sys::fstat(&file)?.st_nlink > 0 {
            return Ok(file);
        }
    }
}

/// The entries of a journal. A last line that was cut off by the crash was never acted upon and is left out.
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
