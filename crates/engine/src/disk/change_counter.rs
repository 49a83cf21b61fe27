//! Two counters in the state directory: how many changes the shared state has seen, and up to which change it was
//! exported. A process that keeps a copy in memory reads the store again only when the first counter has moved. A
//! process that finds the second one behind exports again, including changes of a process that was killed.

use std::{
    fs::{File, TryLockError},
    io,
    os::unix::fs::FileExt,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::fs::{self as sys, Mode, OFlags};

use crate::{state_dir, time::now};

const NAME: &str = "generation";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChangeCounter {
    pub changed: u64,
    /// The value of `changed` at the last export.
    pub exported: u64,
}

/// The open file, for a process that changes the numbers often.
#[derive(Debug)]
pub(crate) struct ChangeCounterFile {
    /// The checkout's part of the state directory, which the file is in.
    dir: Arc<File>,
    file: File,
}

#[derive(Debug)]
pub(crate) struct LockedCounter<'a> {
    file: &'a File,
    now: ChangeCounter,
}

impl ChangeCounter {
    /// The present counters; zero before the first change.
    pub(crate) fn load(dir: &File) -> Self {
        state_dir::open_file(dir, NAME, u64::MAX).map(|file| Self::read(&file)).unwrap_or_default()
    }

    fn read(file: &File) -> Self {
        let mut bytes = [0; 16];
        // The second number is missing until the first export.
        let _ = file.read_at(&mut bytes, 0);
        let (changed, exported) = bytes.split_at(8);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        Self { changed: number(changed), exported: number(exported) }
    }
}

impl ChangeCounterFile {
    /// Opens the file in this directory, and creates it if it is missing.
    pub(crate) fn open(dir: &Arc<File>) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(sys::openat(&**dir, NAME, flags, Mode::from_raw_mode(0o600))?);
        state_dir::check_file(&sys::fstat(&file)?).map_err(io::Error::other)?;
        Ok(Self { dir: dir.clone(), file })
    }

    pub(crate) fn is_in(&self, dir: &Arc<File>) -> bool {
        Arc::ptr_eq(&self.dir, dir) && sys::fstat(&self.file).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// Takes its lock. `None` if another process, perhaps a suspended one, holds it for longer than `patience`.
    pub(crate) fn hold(&self, patience: Duration) -> io::Result<Option<LockedCounter<'_>>> {
        let until = Instant::now() + patience;
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(Some(LockedCounter { file: &self.file, now: ChangeCounter::read(&self.file) })),
                Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(Duration::from_micros(100)),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

impl LockedCounter<'_> {
    pub(crate) fn now(&self) -> ChangeCounter {
        self.now
    }

    /// Counts a change. If the file cannot be written, other processes learn of the change a moment later from the
    /// store.
    ///
    /// If the file was lost, the counter starts at the current time, not at one: other processes remember a number from
    /// the old file, and must not meet it again. Changes do not come faster than time passes, so a number far beyond
    /// the current time is damage.
    pub(crate) fn advance(&mut self) {
        let time = now().unsigned_abs() << 16;
        let is_lost = self.now.changed == 0 || self.now.changed > time.saturating_add(1 << 48);
        self.now.changed = if is_lost { time } else { self.now.changed } + 1;
        let _ = self.file.write_all_at(&self.now.changed.to_le_bytes(), 0);
    }

    /// Marks everything up to the last change as exported.
    pub(crate) fn mark_exported(&mut self) {
        if self.now.exported != self.now.changed {
            self.now.exported = self.now.changed;
            let _ = self.file.write_all_at(&self.now.exported.to_le_bytes(), 8);
        }
    }
}

impl Drop for LockedCounter<'_> {
    fn drop(&mut self) {
        // If the lock stays, other processes wait a while and go on.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_by_all_and_exported_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Arc::new(File::open(dir.path()).unwrap());
        assert_eq!(ChangeCounter::load(&dir), ChangeCounter::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let file = ChangeCounterFile::open(&dir).unwrap();
                    (0..50).for_each(|_| file.hold(Duration::from_secs(60)).unwrap().unwrap().advance());
                });
            }
        });
        let counted = ChangeCounter::load(&dir);
        assert_eq!((counted.changed & 0xffff, counted.exported), (200, 0));
        let (one, other) = (ChangeCounterFile::open(&dir).unwrap(), ChangeCounterFile::open(&dir).unwrap());
        let mut held = one.hold(Duration::ZERO).unwrap().unwrap();
        assert!(other.hold(Duration::ZERO).unwrap().is_none(), "the lock is held");
        held.mark_exported();
        drop(held);
        assert!(other.hold(Duration::ZERO).unwrap().is_some());
        assert_eq!(ChangeCounter::load(&dir), ChangeCounter { exported: counted.changed, ..counted });
    }
}
