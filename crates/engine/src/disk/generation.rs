//! Two numbers in the state directory: how often what all processes share has changed, and up to which change it was exported. Whoever
//! keeps a copy in memory looks at the first, and reads again only if it has moved on; whoever finds the second behind exports anew, also what
//! somebody left who was killed.

use std::{
    fs::{File, TryLockError},
    io,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

use rustix::fs::{self as sys, Mode, OFlags};

use crate::state_dir;

const NAME: &str = "generation";

/// What the file says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Generation {
    /// How often something has changed.
    pub changed: u64,
    /// What `changed` was when it was last exported.
    pub exported: u64,
}

/// The numbers, while nobody else may change them.
#[derive(Debug)]
pub(crate) struct Held {
    file: File,
    now: Generation,
}

impl Generation {
    /// What it is now; zero where nobody has counted yet.
    pub(crate) fn look(dir: &File) -> Self {
        state_dir::open_file(dir, NAME, u64::MAX).map(|file| Self::read(&file)).unwrap_or_default()
    }

    /// Counts one more change.
    pub(crate) fn advance(dir: &File, patience: Duration) {
        if let Ok(Some(mut held)) = Held::take(dir, patience) {
            held.advance();
        }
    }

    fn read(file: &File) -> Self {
        let mut bytes = [0; 16];
        // Only the first is there until something was exported.
        let _ = file.read_at(&mut bytes, 0);
        let (changed, exported) = bytes.split_at(8);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        Self { changed: number(changed), exported: number(exported) }
    }
}

impl Held {
    /// Takes the lock. `None` if somebody else has it for longer than that, because he was stopped.
    pub(crate) fn take(dir: &File, patience: Duration) -> io::Result<Option<Self>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(sys::openat(dir, NAME, flags, Mode::from_raw_mode(0o600))?);
        state_dir::check_file(&sys::fstat(&file)?).map_err(io::Error::other)?;
        let until = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(Duration::from_micros(100)),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        let now = Generation::read(&file);
        Ok(Some(Self { file, now }))
    }

    pub(crate) fn now(&self) -> Generation {
        self.now
    }

    /// Counts a change. What cannot be written, others learn a moment later from the store.
    pub(crate) fn advance(&mut self) {
        self.now.changed += 1;
        let _ = self.file.write_all_at(&self.now.changed.to_le_bytes(), 0);
    }

    /// Says that everything up to the last change was exported.
    pub(crate) fn mark_exported(&mut self) {
        if self.now.exported != self.now.changed {
            self.now.exported = self.now.changed;
            let _ = self.file.write_all_at(&self.now.exported.to_le_bytes(), 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_by_all_and_exported_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let dir = File::open(dir.path()).unwrap();
        assert_eq!(Generation::look(&dir), Generation::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| Generation::advance(&dir, Duration::from_secs(60))));
            }
        });
        assert_eq!(Generation::look(&dir), Generation { changed: 200, exported: 0 });
        let mut held = Held::take(&dir, Duration::ZERO).unwrap().unwrap();
        assert!(Held::take(&dir, Duration::ZERO).unwrap().is_none(), "somebody has it");
        held.mark_exported();
        drop(held);
        assert_eq!(Generation::look(&dir), Generation { changed: 200, exported: 200 });
    }
}
