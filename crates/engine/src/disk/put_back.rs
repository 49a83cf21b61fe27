//! Writes what a restore needs besides file contents: symlinks, empty directories, permissions. Nothing that another
//! program has made is replaced: a symlink is created only if its name is free, and removed only if it has the expected
//! target.

use std::io;

use rustix::{
    fs::{self as sys, AtFlags, Mode, OFlags},
    io::Errno,
};
use surehand_core::RelPath;

use super::{commit::rename_to_free_name, root_dir::RootDir, working_copy::process_name};

/// Creates a symlink, and its missing parent directories.
pub(crate) fn make_link(root: &RootDir, path: &RelPath, target: &str) -> io::Result<()> {
    make_parents(root, path)?;
    Ok(sys::symlinkat(target, root.open_parent(path)?, path.name())?)
}

/// Removes a symlink, if it still leads to this target.
pub(crate) fn remove_link(root: &RootDir, path: &RelPath, target: &str) -> io::Result<()> {
    let dir = std::fs::File::from(root.open_parent(path)?);
    // Under another name, no other program changes it between the check and the removal.
    let aside = format!(".surehand-{}", process_name()?);
    rename_to_free_name((&dir, path.name()), (&dir, &aside))?;
    match sys::readlinkat(&dir, &aside, Vec::new()) {
        Ok(found) if found.as_bytes() == target.as_bytes() => Ok(sys::unlinkat(&dir, &aside, AtFlags::empty())?),
        read => {
            rename_to_free_name((&dir, &aside), (&dir, path.name()))?;
            Err(read.err().map_or_else(|| io::Error::other("it leads elsewhere by now"), io::Error::from))
        }
    }
}

/// Creates an empty directory and its missing parents, or gives an existing one its permissions.
pub(crate) fn make_directory(root: &RootDir, path: &RelPath, mode: u32) -> io::Result<()> {
    make_parents(root, path)?;
    root.make_dir(path)?;
    let dir = root.open_at(path.as_str(), OFlags::RDONLY | OFlags::DIRECTORY)?;
    Ok(sys::fchmod(dir, Mode::from_raw_mode(mode))?)
}

/// Removes a directory, if it is empty.
pub(crate) fn remove_directory(root: &RootDir, path: &RelPath) -> io::Result<()> {
    match sys::unlinkat(root.open_parent(path)?, path.name(), AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

/// Sets the permissions of a regular file.
pub(crate) fn set_mode(root: &RootDir, path: &RelPath, mode: u32) -> io::Result<()> {
    let file = root.open_at(path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let stat = sys::fstat(&file)?;
    if sys::FileType::from_raw_mode(stat.st_mode) != sys::FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
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

/// When the file at a path was created, in milliseconds since the Unix epoch; `None` if the file system does not record
/// it.
#[cfg(target_os = "linux")]
pub(crate) fn born(root: &RootDir, path: &RelPath) -> Option<i64> {
    let dir = root.open_parent(path).ok()?;
    let stat = sys::statx(dir, path.name(), AtFlags::SYMLINK_NOFOLLOW, sys::StatxFlags::BTIME).ok()?;
    let has_birth = stat.stx_mask & sys::StatxFlags::BTIME.bits() != 0;
    has_birth.then(|| stat.stx_btime.tv_sec * 1000 + i64::from(stat.stx_btime.tv_nsec) / 1_000_000)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn born(root: &RootDir, path: &RelPath) -> Option<i64> {
    let made = std::fs::symlink_metadata(root.path().join(path.as_str())).ok()?.created().ok()?;
    i64::try_from(made.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()
}
