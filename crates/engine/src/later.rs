//! What processes that end at once did to files, where the state of the repository is too large to be read and written by each of them: a
//! line for each file, which whoever reads the state next takes in.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use rustix::fs::{self as sys, FlockOperation, Mode, OFlags};
use serde::{Serialize, de::DeserializeOwned};

use crate::state_dir;

const NAME: &str = "repostate.later";

/// Adds lines.
pub(crate) fn add(dir: &File, lines: &[impl Serialize]) -> io::Result<()> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    open(dir, OFlags::CREATE | OFlags::APPEND)?.write_all(&text)
}

/// The lines that there are. What cannot be read is left out.
pub(crate) fn read<T: DeserializeOwned>(dir: &File) -> Vec<T> {
    open(dir, OFlags::empty()).ok().map(|mut file| lines(&mut file)).unwrap_or_default()
}

/// The same, and they are there no more.
pub(crate) fn take<T: DeserializeOwned>(dir: &File) -> Vec<T> {
    let Ok(mut file) = open(dir, OFlags::empty()) else { return Vec::new() };
    let lines = lines(&mut file);
    let _ = file.set_len(0);
    lines
}

/// Opens the file, under its lock.
fn open(dir: &File, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = sys::openat(dir, NAME, flags, Mode::from_raw_mode(0o600))?;
    state_dir::check_file(&sys::fstat(&file)?).map_err(io::Error::other)?;
    sys::flock(&file, FlockOperation::LockExclusive)?;
    Ok(file.into())
}

fn lines<T: DeserializeOwned>(file: &mut File) -> Vec<T> {
    let mut text = String::new();
    if file.read_to_string(&mut text).is_err() {
        return Vec::new();
    }
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        let dir = File::open(dir.path()).unwrap();
        assert!(take::<u32>(&dir).is_empty());
        add(&dir, &[1, 2]).unwrap();
        add(&dir, &[3]).unwrap();
        assert_eq!(read::<u32>(&dir), [1, 2, 3]);
        assert_eq!((take::<u32>(&dir), take::<u32>(&dir)), (vec![1, 2, 3], vec![]));
    }
}
