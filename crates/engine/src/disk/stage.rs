//! Staging: the new content of a file, complete and with everything that belongs to the file, before anybody sees it.

use std::{
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::FileExt,
    },
};

use rustix::{
    fs::{self as sys, AtFlags, Gid, Mode, OFlags, Stat, Uid, XattrFlags},
    io::Errno,
};

use super::rescue::Spare;

/// The result of staging a replacement.
pub(crate) enum Staged {
    /// A file that can take the old one's place.
    Ready {
        /// The file.
        file: File,
        /// Whether the old one has attributes besides mode and owner.
        has_attributes: bool,
        /// What the system says about it, complete.
        stat: Box<Stat>,
    },
    /// Owner or marks of the old file cannot be given to a new one: write the old one in place.
    CannotCopyMarks,
}

/// Writes the new content of an existing file under `name`, with mode, owner and extended attributes of the old one.
///
/// A spare file that has this name already is used instead of a new one.
pub(crate) fn replacement(
    dir: BorrowedFd<'_>,
    name: &str,
    spare: Option<Spare>,
    content: &[u8],
    old: &File,
    stat: &Stat,
) -> io::Result<Staged> {
    let (file, birth) = match spare {
        Some(Spare { file, stat: its }) => {
            let too_open = its.st_mode & !stat.st_mode & 0o777;
            if too_open != 0 {
                // What it will hold is for fewer eyes than what it held.
                sys::fchmod(&file, Mode::from_raw_mode(0o600))?;
            }
            (file, Birth::Bare)
        }
        None => (fresh(dir, name)?, Birth::Usual),
    };
    file.write_all_at(content, 0)?;
    let mut now = sys::fstat(&file)?;
    if now.st_size != content.len() as i64 {
        // Afterwards: some systems take a file that is emptied first for one that must be flushed when it is closed.
        file.set_len(content.len() as u64)?;
        now = sys::fstat(&file)?;
    }
    match copy_marks(old, stat, &file, &now, birth) {
        Ok(has_attributes) => Ok(Staged::Ready { file, has_attributes, stat: Box::new(now) }),
        Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => {
            remove(dir, name);
            Ok(Staged::CannotCopyMarks)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Writes content under `name`, for our eyes only.
pub(crate) fn copy(dir: BorrowedFd<'_>, name: &str, content: &[u8]) -> io::Result<File> {
    let mut file = fresh(dir, name)?;
    file.write_all(content)?;
    Ok(file)
}

/// A file without a name in this directory; it vanishes if we do. `None` where the file system has no such thing.
#[cfg(target_os = "linux")]
pub(crate) fn nameless(dir: BorrowedFd<'_>, content: &[u8]) -> io::Result<Option<File>> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let mut file = match sys::openat(dir, ".", flags, Mode::from_raw_mode(0o666)) {
        Ok(fd) => File::from(fd),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    file.write_all(content)?;
    Ok(Some(file))
}

/// There are no files without a name here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn nameless(_: BorrowedFd<'_>, _: &[u8]) -> io::Result<Option<File>> {
    Ok(None)
}

/// Gives a nameless file its name, unless something has that name already.
#[cfg(target_os = "linux")]
pub(crate) fn name_it(file: &File, dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;
    let by_number = format!("/proc/self/fd/{}", file.as_raw_fd());
    sys::linkat(sys::CWD, by_number, dir, name, AtFlags::SYMLINK_FOLLOW)
}

/// There are no files without a name here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn name_it(_: &File, _: BorrowedFd<'_>, _: &str) -> rustix::io::Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Removes a staged file of ours, and says whether it is gone. One that is gone already is what we want.
pub(crate) fn remove(dir: BorrowedFd<'_>, name: &str) -> bool {
    matches!(sys::unlinkat(dir, name, AtFlags::empty()), Ok(()) | Err(Errno::NOENT))
}

fn fresh(dir: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(sys::openat(dir, name, flags, Mode::from_raw_mode(0o600))?))
}

/// Gives a new file the mode of another one and, as far as we may, its owner and attributes.
pub(crate) fn give_marks(of: &File, stat: &Stat, file: &File) -> rustix::io::Result<()> {
    match copy_marks(of, stat, file, &sys::fstat(file)?, Birth::Usual) {
        Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => sys::fchmod(file, Mode::from_raw_mode(stat.st_mode & 0o777)),
        copied => copied.map(drop),
    }
}

/// What a new file may have come with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Birth {
    /// Attributes from its directory.
    Usual,
    /// No attributes.
    Bare,
}

/// Says whether there were attributes to copy.
fn copy_marks(old: &File, stat: &Stat, new: &File, now: &Stat, birth: Birth) -> rustix::io::Result<bool> {
    let same_owner = (now.st_uid, now.st_gid) == (stat.st_uid, stat.st_gid);
    if !same_owner {
        sys::fchown(new, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))?;
    }
    let has_attributes = copy_attributes(old.as_fd(), new.as_fd(), birth)?;
    // Last, because a change of owner takes special bits away.
    if !same_owner || now.st_mode != stat.st_mode {
        sys::fchmod(new, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    }
    Ok(has_attributes)
}

fn copy_attributes(old: BorrowedFd<'_>, new: BorrowedFd<'_>, birth: Birth) -> rustix::io::Result<bool> {
    let wanted = attributes(old)?;
    let there = if birth == Birth::Usual { attributes(new)? } else { Vec::new() };
    for name in there.iter().filter(|name| !wanted.contains(name) && !name.starts_with(b"security.")) {
        sys::fremovexattr(new, &name[..])?;
    }
    for name in &wanted {
        let name = &name[..];
        let mut value = vec![0_u8; sys::fgetxattr_query(old, name)?];
        let size = sys::fgetxattr(old, name, &mut value[..])?;
        match sys::fsetxattr(new, name, &value[..size], XattrFlags::empty()) {
            // The label that the system itself gives to files here.
            Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) if name.starts_with(b"security.") => {}
            set => set?,
        }
    }
    Ok(!wanted.is_empty())
}

/// The names of the extended attributes of a file.
fn attributes(file: BorrowedFd<'_>) -> rustix::io::Result<Vec<Vec<u8>>> {
    let size = match sys::flistxattr_query(file) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        size => size?,
    };
    let mut names = vec![0_u8; size];
    let size = sys::flistxattr(file, &mut names[..])?;
    Ok(names[..size].split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
}
