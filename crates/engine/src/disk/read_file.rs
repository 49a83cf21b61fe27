//! Reads regular files as a whole, and never half of another program's write.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::AsFd,
    time::Duration,
};

use rustix::{
    fs::{self as sys, AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};
use surehand_core::{Cause, Refusal, RelPath, Stamp};

use super::{
    file_times::FileClock,
    root_dir::{RootDir, refuse_io},
};

#[derive(Debug)]
pub(crate) struct FileSnapshot {
    pub bytes: Vec<u8>,
    pub stamp: Stamp,
    pub links: u64,
}

#[derive(Debug)]
pub(crate) enum FoundPath {
    Nothing,
    File { file: File, stat: Box<Stat> },
    Other(Cause),
}

/// Opens the file at a path. [`Errno::LOOP`] means that the path contains a symlink: resolve the path first.
pub(crate) fn find(root: &RootDir, path: &RelPath) -> Result<FoundPath, Errno> {
    let opened = open_patiently(|| root.open_at(path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY));
    let fd = match opened {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(FoundPath::Nothing),
        Err(Errno::LOOP) => return Err(Errno::LOOP),
        Err(Errno::NXIO) => return Ok(FoundPath::Other(Cause::NotAFile { kind: "a socket or device" })),
        Err(errno) => return Ok(FoundPath::Other(Cause::Io { why: format!("cannot open: {}", io::Error::from(errno)) })),
    };
    let stat = match sys::fstat(&fd) {
        Ok(stat) => stat,
        Err(errno) => return Ok(FoundPath::Other(Cause::Io { why: format!("cannot stat: {}", io::Error::from(errno)) })),
    };
    Ok(match kind_of(&stat) {
        None => FoundPath::File { file: File::from(fd), stat: Box::new(stat) },
        Some(kind) => FoundPath::Other(Cause::NotAFile { kind }),
    })
}

/// Stats a file without opening it. Symlinks on the way are followed, which is safe for comparing stamps: device and
/// inode identify the file.
pub(crate) fn stat_of_file(root: &RootDir, path: &RelPath) -> Option<Stat> {
    let stat = sys::statat(root.dir(), path.as_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    kind_of(&stat).is_none().then_some(stat)
}

/// The stamp of a directory, which changes when an entry is added or removed; the empty path is the root. `None` if it
/// is not a directory.
pub(crate) fn stamp_of_directory(root: &RootDir, directory: &str, clock: FileClock) -> Option<Stamp> {
    let directory = if directory.is_empty() { "." } else { directory };
    let stat = sys::statat(root.dir(), directory, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::Directory).then(|| clock.stamp(&stat))
}

/// The kind of a file that is not regular, as replies name it; `None` for a regular file.
pub(crate) fn kind_of(stat: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some("a directory"),
        FileType::Fifo => Some("a named pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        FileType::Symlink => Some("a link"),
        FileType::Unknown => Some("something unknown"),
    }
}

/// Opens a file in a directory for reading, without following a symlink of this name and without blocking.
pub(crate) fn open_at(dir: impl AsFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    sys::openat(dir, name, flags, Mode::empty()).map(File::from)
}

/// Retries an open that fails because another process holds a lease on the file, usually Surehand for a moment.
pub(crate) fn open_patiently<T>(open: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    for _ in 0..5000 {
        match open() {
            Err(Errno::AGAIN) => std::thread::sleep(Duration::from_micros(200)),
            Err(Errno::INTR) => {}
            opened => return opened,
        }
    }
    open()
}

/// Reads all bytes of an open file, again if it changed meanwhile.
pub(crate) fn read_whole(path: &RelPath, file: &mut File, limit: u64, clock: FileClock) -> Result<FileSnapshot, Refusal> {
    use std::io::Seek;
    let failed = |error: io::Error| refuse_io(path, "read", &error);
    let stamp = |file: &File| sys::fstat(file).map(|stat| (clock.stamp(&stat), stat)).map_err(|errno| failed(errno.into()));
    let (mut before, _) = stamp(file)?;
    for _ in 0..50 {
        let size = before.size;
        if size > limit {
            return Err(Refusal::of(path, Cause::TooLarge { unit: "bytes", size, limit, setting: "limits.file_bytes" }));
        }
        let mut bytes = Vec::with_capacity(size as usize + 1);
        file.rewind().map_err(failed)?;
        (&mut *file).take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        let (after, stat) = stamp(file)?;
        // The stamp from before the read, because a change during it may have left the same times.
        if before.agrees_with(&after) && bytes.len() as u64 == after.size {
            return Ok(FileSnapshot { bytes, stamp: before, links: link_count(&stat) });
        }
        before = after;
    }
    Err(Refusal::of(
        path,
        Cause::Conflict { why: "another program keeps writing it, so it could not be read in one piece".to_owned() },
    ))
}

pub(crate) fn link_count(stat: &Stat) -> u64 {
    #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
    let count = stat.st_nlink as u64;
    count
}
