//! What a restore writes besides the contents of files: links, empty directories, permissions. Nothing that somebody else has made
//! is replaced by it: a link is made only where nothing is, and taken away only if it leads where it should.

use std::io;

use rustix::{
    fs::{self as sys, AtFlags, Mode, OFlags},
    io::Errno,
};
use surehand_core::RelPath;

use super::{commit::rename_to_free_name, root_dir::RootDir, working_copy::process_name};

/// Makes a link, with the directories above it.
pub(crate) fn make_link(root: &RootDir, path: &RelPath, target: &str) -> io::Result<()> {
    make_parents(root, path)?;
    Ok(sys::symlinkat(target, root.open_parent(path)?, path.name())?)
}

/// Takes a link away, if it still leads to this target.
pub(crate) fn remove_link(root: &RootDir, path: &RelPath, target: &str) -> io::Result<()> {
    let dir = std::fs::File::from(root.open_parent(path)?);
    // Under another name nobody changes it between the look and the removal.
    let aside = format!(".surehand-{}", process_name()?);
    rename_to_free_name((&dir, path.name()), (&dir, &aside))?;
    match sys::readlinkat(&dir, &aside, Vec::new()) {
        Ok(there) if there.as_bytes() == target.as_bytes() => Ok(sys::unlinkat(&dir, &aside, AtFlags::empty())?),
        looked => {
            rename_to_free_name((&dir, &aside), (&dir, path.name()))?;
            Err(looked.err().map_or_else(|| io::Error::other("it leads elsewhere by now"), io::Error::from))
        }
    }
}

/// Makes an empty directory, with those above it, or gives the one that is there its permissions.
pub(crate) fn make_directory(root: &RootDir, path: &RelPath, mode: u32) -> io::Result<()> {
    make_parents(root, path)?;
    root.make_dir(path)?;
    let dir = root.open_at(path.as_str(), OFlags::RDONLY | OFlags::DIRECTORY)?;
    Ok(sys::fchmod(dir, Mode::from_raw_mode(mode))?)
}

/// Takes away a directory, if nothing is in it.
pub(crate) fn remove_directory(root: &RootDir, path: &RelPath) -> io::Result<()> {
    match sys::unlinkat(root.open_parent(path)?, path.name(), AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

/// Gives a regular file its permissions.
pub(crate) fn set_mode(root: &RootDir, path: &RelPath, mode: u32) -> io::Result<()> {
    let file = root.open_at(path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let stat = sys::fstat(&file)?;
    if sys::FileType::from_raw_mode(stat.st_mode) != sys::FileType::RegularFile {
        return Err(io::Error::other("it is no regular file"));
    }
    if stat.st_mode & 0o7777 == mode {
        return Ok(());
    }
    Ok(sys::fchmod(&file, Mode::from_raw_mode(mode))?)
}

fn make_parents(root: &RootDir, path: &RelPath) -> io::Result<()> {
    for dir in root.missing_parents(path)? {
        root.make_dir(&dir)?;
    }
    Ok(())
}

/// When what is at a path was made, in milliseconds since 1970, where the file system tells.
#[cfg(target_os = "linux")]
pub(crate) fn born(root: &RootDir, path: &RelPath) -> Option<i64> {
    let dir = root.open_parent(path).ok()?;
    let stat = sys::statx(dir, path.name(), AtFlags::SYMLINK_NOFOLLOW, sys::StatxFlags::BTIME).ok()?;
    let has_birth = stat.stx_mask & sys::StatxFlags::BTIME.bits() != 0;
    has_birth.then(|| stat.stx_btime.tv_sec * 1000 + i64::from(stat.stx_btime.tv_nsec) / 1_000_000)
}

/// When what is at a path was made, in milliseconds since 1970, where the file system tells.
#[cfg(not(target_os = "linux"))]
pub(crate) fn born(root: &RootDir, path: &RelPath) -> Option<i64> {
    let made = std::fs::symlink_metadata(root.path().join(path.as_str())).ok()?.created().ok()?;
    i64::try_from(made.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()
}
