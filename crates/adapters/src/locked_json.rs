//! Small values that several processes change in turn: each is a JSON file that is held under a lock while it is changed. What cannot be
//! read is the default, and what cannot be written is lost: none of them may stop anybody.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
};

use rustix::fs::{self as sys, AtFlags, FileType, FlockOperation, Mode, OFlags};
use serde::{Serialize, de::DeserializeOwned};
use surehand_engine::{SessionId, core::ContentHash};

/// A longer file is none of ours.
const MOST_BYTES: u64 = 32 << 20;

/// The file of a session: one may be called anything, a file may not.
pub(crate) fn file_name(session: &SessionId) -> String {
    ContentHash::of(session.0.as_bytes()).to_string()
}

/// Looks at a value. It is never half written, so that nobody need wait.
pub(crate) fn look<T: Default + DeserializeOwned>(dir: Option<&OwnedFd>, name: &str) -> T {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = dir.and_then(|dir| sys::openat(dir, name, flags, Mode::empty()).ok());
    file.and_then(|file| read(&mut File::from(file)).ok()).unwrap_or_default()
}

/// Looks at a value and changes it; nobody else does meanwhile. One that becomes the default has no file.
pub(crate) fn change<T, R>(dir: Option<&OwnedFd>, name: &str, change: impl FnOnce(&mut T) -> R) -> R
where
    T: Clone + Default + PartialEq + Serialize + DeserializeOwned,
{
    let mut held = dir.and_then(|dir| Some((dir, open_locked(dir, name).ok()?)));
    let mut value: T = held.as_mut().and_then(|(_, file)| read(file).ok()).unwrap_or_default();
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

/// Puts a value in the place of another. Whoever waits for the lock of the old file finds that it is gone, and opens the new one.
fn replace<T: Serialize>(dir: &OwnedFd, name: &str, value: &T) -> io::Result<()> {
    let new = format!("{name}.new");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(sys::openat(dir, &new, flags, Mode::from_raw_mode(0o600))?);
    file.write_all(&serde_json::to_vec(value).map_err(io::Error::other)?)?;
    Ok(sys::renameat(dir, &new, dir, name)?)
}

/// Opens a file under its lock, and makes it if there is none.
fn open_locked(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    loop {
        let file = sys::openat(dir, name, flags, Mode::from_raw_mode(0o600))?;
        if FileType::from_raw_mode(sys::fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        sys::flock(&file, FlockOperation::LockExclusive)?;
        // Whoever had the lock before may have put another file in its place, or done away with it.
        if sys::fstat(&file)?.st_nlink > 0 {
            return Ok(file.into());
        }
    }
}

fn read<T: DeserializeOwned>(file: &mut File) -> io::Result<T> {
    let mut content = String::new();
    file.take(MOST_BYTES).read_to_string(&mut content)?;
    serde_json::from_str(&content).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of many changes finds what the one before has left, also where there was no file.
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
        assert_eq!(look::<Vec<u32>>(Some(&open()), "numbers").len(), 400);
        change(Some(&open()), "numbers", |all: &mut Vec<u32>| all.clear());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
