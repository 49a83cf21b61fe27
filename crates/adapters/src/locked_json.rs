//! Small values that several processes share: JSON files, changed under a lock. A value that cannot be read counts as
//! the default, and a failed write is ignored, because none of them is worth failing a call.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
};

use rustix::fs::{self as sys, AtFlags, FileType, FlockOperation, Mode, OFlags};
use serde::{Serialize, de::DeserializeOwned};
use surehand_engine::{SessionId, core::ContentHash};

const MOST_BYTES: u64 = 32 << 20;

/// The file name of a session, whose id may contain any character.
pub(crate) fn file_name(session: &SessionId) -> String {
    ContentHash::of(session.0.as_bytes()).to_string()
}

/// Reads a value without a lock: files are replaced, never rewritten in place.
pub(crate) fn read<T: Default + DeserializeOwned>(dir: Option<&OwnedFd>, name: &str) -> T {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = dir.and_then(|dir| sys::openat(dir, name, flags, Mode::empty()).ok());
    file.and_then(|file| parse(&mut File::from(file)).ok()).unwrap_or_default()
}

/// Changes a value under its lock. A value that becomes the default has no file.
pub(crate) fn change<T, R>(dir: Option<&OwnedFd>, name: &str, change: impl FnOnce(&mut T) -> R) -> R
where
    T: Clone + Default + PartialEq + Serialize + DeserializeOwned,
{
    let mut held = dir.and_then(|dir| Some((dir, open_locked(dir, name).ok()?)));
    let mut value: T = held.as_mut().and_then(|(_, file)| parse(file).ok()).unwrap_or_default();
    let before = value.clone();
    let result = change(&mut value);
    if let Some((dir, _file)) = &held {
        let _ = match (value == T::default(), value == before) {
            (true, _) => sys::unlinkat(*dir, name, AtFlags::empty()).map_err(io::Error::from),
            (false, true) => Ok(()),
            (false, false) => replace(dir, name, &value),
        };
    }
    result
}

/// Replaces the file. A process that waits for the lock of the old file finds it unlinked, and opens the new one.
fn replace<T: Serialize>(dir: &OwnedFd, name: &str, value: &T) -> io::Result<()> {
    let new = format!("{name}.new");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(sys::openat(dir, &new, flags, Mode::from_raw_mode(0o600))?);
    file.write_all(&serde_json::to_vec(value).map_err(io::Error::other)?)?;
    Ok(sys::renameat(dir, &new, dir, name)?)
}

/// Opens and locks a file, and creates it if needed.
fn open_locked(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    loop {
        let file = sys::openat(dir, name, flags, Mode::from_raw_mode(0o600))?;
        if FileType::from_raw_mode(sys::fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        sys::flock(&file, FlockOperation::LockExclusive)?;
        // The last holder of the lock may have replaced or removed the file.
        if sys::fstat(&file)?.st_nlink > 0 {
            return Ok(file.into());
        }
    }
}

fn parse<T: DeserializeOwned>(file: &mut File) -> io::Result<T> {
    let mut content = String::new();
    file.take(MOST_BYTES).read_to_string(&mut content)?;
    serde_json::from_str(&content).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each change sees the one before, even if there was no file at first.
    #[test]
    fn no_change_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let open = || OwnedFd::from(File::open(dir.path()).unwrap());
        std::thread::scope(|scope| {
            for worker in 0..8_u32 {
                scope.spawn(move || {
                    for number in 0..50 {
                        let entry = worker * 100 + number;
                        change(Some(&open()), "numbers", |all: &mut Vec<u32>| all.push(entry));
                    }
                });
            }
        });
        assert_eq!(read::<Vec<u32>>(Some(&open()), "numbers").len(), 400);
        change(Some(&open()), "numbers", |all: &mut Vec<u32>| all.clear());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
