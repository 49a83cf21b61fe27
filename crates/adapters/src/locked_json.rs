//! Small values that several processes change in turn: each is a JSON file that is held under a lock while it is changed. What cannot be
//! read is the default, and what cannot be written is lost: none of them may stop anybody.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    os::fd::OwnedFd,
};

use rustix::fs::{self as sys, AtFlags, FileType, FlockOperation, Mode, OFlags};
use serde::{Serialize, de::DeserializeOwned};

/// A longer file is none of ours.
const MOST_BYTES: u64 = 4 << 20;

/// Looks at a value and changes it; nobody else does meanwhile. One that becomes the default has no file.
pub(crate) fn change<T, R>(dir: Option<&OwnedFd>, name: &str, change: impl FnOnce(&mut T) -> R) -> R
where
    T: Clone + Default + PartialEq + Serialize + DeserializeOwned,
{
    let mut file = dir.and_then(|dir| open(dir, name, OFlags::empty()).ok());
    let mut value: T = file.as_mut().and_then(|file| read(file).ok()).unwrap_or_default();
    let before = value.clone();
    let result = change(&mut value);
    if let (true, Some(dir)) = (value != before, dir) {
        let _ = write(dir, name, file, &value);
    }
    result
}

fn write<T: Default + PartialEq + Serialize>(dir: &OwnedFd, name: &str, file: Option<File>, value: &T) -> io::Result<()> {
    if *value == T::default() {
        return Ok(sys::unlinkat(dir, name, AtFlags::empty())?);
    }
    let mut file = match file {
        Some(file) => file,
        None => open(dir, name, OFlags::CREATE)?,
    };
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(value).map_err(io::Error::other)?)
}

/// Opens a file under its lock.
fn open(dir: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    loop {
        let file = sys::openat(dir, name, flags, Mode::from_raw_mode(0o600))?;
        if FileType::from_raw_mode(sys::fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        sys::flock(&file, FlockOperation::LockExclusive)?;
        // Whoever had the lock before may have done away with the file.
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
