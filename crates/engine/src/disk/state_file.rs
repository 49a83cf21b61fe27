//! A file of the state directory that is replaced as a whole: whoever reads it sees the old or the new content, never a part,
//! and several processes change it one after the other.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
};

use rustix::{
    fs::{self as sys, AtFlags, Mode, OFlags, RenameFlags},
    io::Errno,
};

use super::lease::{self, Lease};
use crate::state_dir;

/// More than this is not read: it would tell of some million files.
const MAX_BYTES: u64 = 1 << 30;

/// Such a file.
#[derive(Debug)]
pub(crate) struct StateFile {
    name: &'static str,
    /// Held while it is changed.
    lock: Option<File>,
    /// What we put there, or found there, last.
    ours: Option<Known>,
}

/// A content, by the file that holds it and by how often it had been replaced then. One file is not enough: two take turns, so
/// that the same one is there again after somebody has replaced it twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    identity: (u64, u64),
    /// Kept in the file of the lock.
    turn: u64,
}

impl StateFile {
    /// The file of this name.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, lock: None, ours: None }
    }

    /// Its content; `None` when there is none.
    pub(crate) fn read(&mut self, dir: &File) -> io::Result<Option<Vec<u8>>> {
        // Before the content: if that is replaced meanwhile, it is taken for somebody's, and looked at once more.
        let lock = state_dir::open_file(dir, &self.lock_name(), u64::MAX);
        let turn = lock.map_or(0, |lock| turn_of(&lock));
        let mut file = match state_dir::open_file(dir, self.name, MAX_BYTES) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        self.ours = Some(Known { identity: identity(&file)?, turn });
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok(Some(content))
    }

    /// Whether somebody has replaced it since we last read or replaced it.
    pub(crate) fn is_replaced(&self, dir: &File) -> bool {
        let turn = match &self.lock {
            Some(lock) => turn_of(lock),
            None => state_dir::open_file(dir, &self.lock_name(), u64::MAX).map_or(0, |lock| turn_of(&lock)),
        };
        turn != self.ours.map_or(0, |ours| ours.turn)
    }

    /// How large it is; nothing when there is none.
    pub(crate) fn size(&self, dir: &File) -> u64 {
        sys::statat(dir, self.name, AtFlags::SYMLINK_NOFOLLOW).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or_default())
    }

    /// Replaces it. `content` is asked for while nobody else changes it; it is told whether somebody has, since we last did.
    pub(crate) fn replace(&mut self, dir: &File, content: impl FnOnce(&mut Self, bool) -> io::Result<Vec<u8>>) -> io::Result<()> {
        let lock = match self.lock.take() {
            Some(lock) => lock,
            None => File::from(sys::openat(
                dir,
                self.lock_name(),
                OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW,
                Mode::from_raw_mode(0o600),
            )?),
        };
        lock.lock()?;
        let turn = turn_of(&lock);
        let there = sys::statat(dir, self.name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let there = there.map(|stat| Known { identity: (stat.st_dev, stat.st_ino), turn });
        let is_theirs = there.is_some() && there != self.ours;
        let replaced = content(self, is_theirs).and_then(|content| {
            // First: a turn that is counted and not taken only makes others look again.
            lock.write_all_at(&(turn + 1).to_le_bytes(), 0)?;
            let new = format!("{}.new", self.name);
            self.ours = Some(Known { identity: put((dir, &new), (dir, self.name), &content)?, turn: turn + 1 });
            Ok(())
        });
        lock.unlock()?;
        self.lock = Some(lock);
        replaced
    }

    fn lock_name(&self) -> String {
        format!("{}.lock", self.name)
    }
}

/// Puts a content in the place of a file, written under another name first. Gives the file that holds it.
pub(crate) fn put(new: (&File, &str), place: (&File, &str), content: &[u8]) -> io::Result<(u64, u64)> {
    let file = fresh_or_free(new.0, new.1)?;
    file.write_all_at(content, 0)?;
    if file.metadata()?.len() != content.len() as u64 {
        file.set_len(content.len() as u64)?;
    }
    lease::give_back(&file);
    // What was there becomes the next one to be written over. A rename would make some systems flush the file first.
    match sys::renameat_with(new.0, new.1, place.0, place.1, RenameFlags::EXCHANGE) {
        Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => sys::renameat(new.0, new.1, place.0, place.1)?,
        exchanged => exchanged?,
    }
    identity(&file)
}

/// How often the content has been replaced; nothing yet where nobody has counted.
fn turn_of(lock: &File) -> u64 {
    let mut turn = [0; 8];
    lock.read_exact_at(&mut turn, 0).map_or(0, |()| u64::from_le_bytes(turn))
}

/// A file that nobody is reading: the one that was there before, if it is free, else a new one.
fn fresh_or_free(dir: &File, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let open = || sys::openat(dir, name, flags, Mode::from_raw_mode(0o600)).map(File::from);
    if let Ok(file) = open()
        && Lease::take(&file).is_ok()
    {
        return Ok(file);
    }
    match sys::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(open()?),
        Err(errno) => Err(errno.into()),
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let stat = sys::fstat(file)?;
    Ok((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_whole_contents_and_writers_take_turns() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::open(dir.path()).unwrap();
        let content = |number: usize| format!("{number};").repeat(5000);
        std::thread::scope(|scope| {
            for writer in 0..2 {
                scope.spawn(move || {
                    let (dir, mut file) = (open(), StateFile::new("state"));
                    for round in 0..200 {
                        file.replace(&dir, |_, _| Ok(content(writer * 1000 + round).into_bytes())).unwrap();
                    }
                });
            }
            scope.spawn(|| {
                let (dir, mut file) = (open(), StateFile::new("state"));
                for _ in 0..500 {
                    let Some(seen) = file.read(&dir).unwrap() else { continue };
                    let seen = String::from_utf8(seen).unwrap();
                    let number = seen.split(';').next().unwrap().parse().unwrap();
                    assert_eq!(seen, content(number), "a part of a file was read");
                }
            });
        });
    }

    #[test]
    fn who_changed_it_in_between_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = File::open(dir.path()).unwrap();
        let (mut one, mut other) = (StateFile::new("state"), StateFile::new("state"));
        let seen = |file: &mut StateFile| {
            let mut seen = None;
            file.replace(&dir, |_, is_theirs| {
                seen = Some(is_theirs);
                Ok(b"x".to_vec())
            })
            .unwrap();
            seen.unwrap()
        };
        assert_eq!([seen(&mut one), seen(&mut one), seen(&mut other), seen(&mut one)], [false, false, true, true]);
        // Twice, so that the same file is there again.
        assert_eq!([seen(&mut other), seen(&mut other), seen(&mut one)], [true, false, true]);
    }
}
