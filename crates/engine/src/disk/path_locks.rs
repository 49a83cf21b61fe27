//! Locks on paths, shared by all Surehand processes of a workspace: 256 lock files, with each path mapped to one of
//! them. Two paths may share a lock, which costs a wait and nothing else.

use std::{
    collections::HashMap,
    fs::{File, TryLockError},
    io,
    os::{fd::BorrowedFd, unix::fs::FileExt},
    sync::Mutex,
    time::{Duration, Instant},
};

use rustix::fs::{self as sys, Mode, OFlags};
use surehand_core::{ContentHash, RelPath};

use super::checkout_state::lock;

/// Locks that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct PathLocks {
    files: Vec<(u8, File)>,
}

/// The most unused lock files that stay open. All 256 would be as many files as some systems allow a process.
const MOST_IDLE: usize = 32;

/// Lock files that are open and not in use, so that they need not be opened for every commit.
#[derive(Debug, Default)]
pub(crate) struct LockPool {
    idle: Mutex<HashMap<u8, File>>,
}

impl PathLocks {
    /// Writes the name of a journal into the locks. A process that later finds such a mark knows that the holder died,
    /// and that this journal describes the half-done commit.
    pub(crate) fn mark(&self, journal: &str) -> io::Result<()> {
        self.files.iter().try_for_each(|(_, file)| set_mark(file, journal))
    }

    /// Removes the mark. It is overwritten with spaces, because truncating a file takes far longer.
    pub(crate) fn unmark(&self) -> io::Result<()> {
        self.mark("")
    }

    /// Removes the marks of this journal, and leaves any other.
    pub(crate) fn unmark_of(&self, journal: &str) -> io::Result<()> {
        self.files.iter().try_for_each(|(_, file)| if mark_of(file)? == journal { set_mark(file, "") } else { Ok(()) })
    }

    /// The journals of processes that died while holding one of these locks.
    pub(crate) fn marks(&self) -> io::Result<Vec<String>> {
        let mut marks = self.files.iter().map(|(_, file)| mark_of(file)).collect::<io::Result<Vec<_>>>()?;
        marks.retain(|mark| !mark.is_empty());
        marks.dedup();
        Ok(marks)
    }
}

fn mark_of(file: &File) -> io::Result<String> {
    let mut mark = [b' '; MARK];
    let read = file.read_at(&mut mark, 0)?;
    Ok(String::from_utf8_lossy(&mark[..read]).trim().to_owned())
}

fn set_mark(file: &File, mark: &str) -> io::Result<()> {
    file.write_all_at(format!("{mark:<MARK$}").as_bytes(), 0)
}

/// Bytes reserved for the name of a journal.
const MARK: usize = 48;

impl LockPool {
    /// Takes the locks of these files and, for files with several hard links, of their identities. Returns `None` if it
    /// does not get them all within `patience`.
    pub(crate) fn lock(
        &self,
        dir: BorrowedFd<'_>,
        paths: &[&RelPath],
        identities: &[(u64, u64)],
        patience: Duration,
    ) -> io::Result<Option<PathLocks>> {
        let identities = identities.iter().map(|(device, inode)| format!("/{device}:{inode}"));
        let mut stripes: Vec<u8> =
            paths.iter().map(|path| lock_number(path.as_str())).chain(identities.map(|id| lock_number(&id))).collect();
        // All processes take them in the same order, which prevents deadlocks.
        stripes.sort_unstable();
        stripes.dedup();
        let until = Instant::now() + patience;
        let mut files = Vec::with_capacity(stripes.len());
        for stripe in stripes {
            let file = self.open(dir, stripe)?;
            loop {
                match file.try_lock() {
                    Ok(()) => break,
                    Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(Duration::from_micros(200)),
                    Err(TryLockError::WouldBlock) => return Ok(None),
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
            files.push((stripe, file));
        }
        Ok(Some(PathLocks { files }))
    }

    /// Opens a lock file that no other thread of this process uses: two users of one open file would both hold its
    /// lock.
    fn open(&self, dir: BorrowedFd<'_>, stripe: u8) -> io::Result<File> {
        if let Some(file) = lock(&self.idle).remove(&stripe) {
            return Ok(file);
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(File::from(sys::openat(dir, format!("{stripe:02x}"), flags, Mode::from_raw_mode(0o600))?))
    }

    /// Releases locks and keeps their files open for the next commit. If too many are open, another one is closed.
    pub(crate) fn give_back(&self, locks: PathLocks) {
        for (stripe, file) in locks.files {
            if file.unlock().is_err() {
                continue;
            }
            let mut idle = lock(&self.idle);
            if idle.len() >= MOST_IDLE
                && let Some(other) = idle.keys().next().copied()
            {
                idle.remove(&other);
            }
            idle.insert(stripe, file);
        }
    }

    /// Forgets all files, because their directory is gone.
    pub(crate) fn clear(&self) {
        lock(&self.idle).clear();
    }
}

fn lock_number(key: &str) -> u8 {
    // The number must be the same in every process, whichever compiler built it.
    ContentHash::of(key.as_bytes()).as_bytes()[0]
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_lock_is_held_once_and_free_again() {
        let dir = tempfile::tempdir().unwrap();
        let dir = File::open(dir.path()).unwrap();
        let path = RelPath::new("a").unwrap();
        let pool = LockPool::default();
        let take = || pool.lock(dir.as_fd(), &[&path], &[], Duration::ZERO).unwrap();
        let held = take().expect("free at first");
        assert!(take().is_none());
        pool.give_back(held);
        let held = take().expect("free again");
        assert!(take().is_none());
        drop(held);
        assert!(take().is_some());
    }

    #[test]
    fn each_mark_is_seen_and_removed_separately() {
        let dir = tempfile::tempdir().unwrap();
        let dir = File::open(dir.path()).unwrap();
        let paths = ["a", "b"].map(|path| RelPath::new(path).unwrap());
        let pool = LockPool::default();
        let take = |paths: &[&RelPath]| pool.lock(dir.as_fd(), paths, &[], Duration::ZERO).unwrap().unwrap();
        for (path, journal) in paths.iter().zip(["one", "two"]) {
            let locks = take(&[path]);
            locks.mark(journal).unwrap();
        }
        let both = take(&[&paths[0], &paths[1]]);
        let mut marks = both.marks().unwrap();
        marks.sort();
        assert_eq!(marks, ["one", "two"]);
        both.unmark_of("one").unwrap();
        assert_eq!(both.marks().unwrap(), ["two"]);
    }
}
