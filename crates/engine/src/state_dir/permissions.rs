//! Which directories and files may hold state: those of this user that no other user can enter or replace.

use std::{fs::File, io, os::fd::AsFd, path::Path};

use rustix::{
    fs::{self as sys, AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use crate::user::effective_user;

/// Mode of directories that only their owner may enter.
pub(super) const PRIVATE: u32 = 0o700;

/// What to do if a directory is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfMissing {
    Make,
    Leave,
}

/// Opens a git directory if it can hold state. It must be ours, on a local file system, where locks and shared memory
/// work, and no other user may be able to replace it: SQLite opens its files by name.
///
/// The error says why it cannot hold state.
pub(super) fn open_if_it_can_hold_state(common: &Path) -> Result<File, String> {
    let dir = open_dir(rustix::fs::CWD, common).map_err(|errno| io::Error::from(errno).to_string())?;
    let stat = sys::fstat(&dir).map_err(|errno| io::Error::from(errno).to_string())?;
    match () {
        () if stat.st_uid != effective_user() => Err(foreign_owner(&stat)),
        () if !is_local(&dir) => Err("is on another machine".to_owned()),
        () => match common.ancestors().skip(1).find(|dir| !is_held_in_place(dir)) {
            Some(above) => Err(format!("could be replaced by others, who may rename what is in {}", above.display())),
            None => Ok(dir),
        },
    }
}

/// Whether a directory belongs to us or to root, and no other user may rename its entries. Our own group may: on many
/// systems it has one member.
fn is_held_in_place(dir: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    let Ok(stat) = sys::stat(dir) else { return false };
    let is_open_to_group = stat.st_mode & 0o020 != 0 && ![0, rustix::process::getegid().as_raw()].contains(&stat.st_gid);
    let is_open = stat.st_mode & STICKY == 0 && (stat.st_mode & 0o002 != 0 || is_open_to_group);
    (stat.st_uid == effective_user() || is_root(stat.st_uid)) && !is_open
}

/// Whether this user is root. In a sandbox that maps only its own user, all others share one number.
fn is_root(user: u32) -> bool {
    const NOBODY: u32 = 65_534;
    let knows_root = || {
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        map.is_empty() || map.lines().any(|line| line.split_whitespace().next() == Some("0"))
    };
    user == 0 || (user == NOBODY && user != effective_user() && !knows_root())
}

#[cfg(target_os = "linux")]
fn is_local(dir: &File) -> bool {
    // NFS, SMB (three kinds), AFS (two), Ceph, 9p, Coda, Lustre, GPFS.
    const REMOTE: [u64; 11] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x5346_414f,
        0x6b41_4653,
        0x00c3_6400,
        0x0102_1997,
        0x7375_7245,
        0x0bd0_0bd0,
        0x4750_4653,
    ];
    sys::fstatfs(dir).is_ok_and(|system| !REMOTE.contains(&(system.f_type as u64 & 0xffff_ffff)))
}

#[cfg(not(target_os = "linux"))]
fn is_local(_: &File) -> bool {
    true
}

/// Why a directory is not used.
pub enum UntrustedDir {
    /// It is not as we would have made it.
    Foreign(String),
    /// The operating system reported an error.
    Failed(io::Error),
}

impl From<Errno> for UntrustedDir {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno.into())
    }
}

impl From<UntrustedDir> for io::Error {
    fn from(untrusted: UntrustedDir) -> Self {
        match untrusted {
            UntrustedDir::Foreign(why) => Self::new(io::ErrorKind::PermissionDenied, why),
            UntrustedDir::Failed(error) => error,
        }
    }
}

/// Opens a directory that must be ours and closed to all other users, or creates it.
pub(super) fn open_private(parent: &File, name: &str, missing: IfMissing) -> Result<Option<File>, UntrustedDir> {
    let mut is_made = false;
    loop {
        match open_dir(parent, name) {
            Ok(dir) => {
                return match check_private(&sys::fstat(&dir)?) {
                    Ok(()) => Ok(Some(dir)),
                    Err(why) => {
                        if is_made {
                            // This file system adds permissions of its own.
                            let _ = sys::unlinkat(parent, name, AtFlags::REMOVEDIR);
                        }
                        Err(UntrustedDir::Foreign(why))
                    }
                };
            }
            Err(Errno::NOENT) if missing == IfMissing::Leave => return Ok(None),
            Err(Errno::NOENT) if !is_made => match sys::mkdirat(parent, name, Mode::from_raw_mode(PRIVATE)) {
                Ok(()) | Err(Errno::EXIST) => is_made = true,
                Err(errno) => return Err(errno.into()),
            },
            Err(errno @ (Errno::LOOP | Errno::NOTDIR | Errno::ACCESS)) => {
                let stat = sys::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
                let why = check_private(&stat).err();
                return Err(why.map_or_else(|| errno.into(), UntrustedDir::Foreign));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

pub(crate) fn open_dir(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    sys::openat(parent, name, flags, Mode::empty()).map(File::from)
}

/// Opens a directory; `None` if it does not exist.
pub(crate) fn open_dir_if_any(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<Option<File>> {
    match open_dir(parent, name) {
        Err(Errno::NOENT) => Ok(None),
        opened => opened.map(Some),
    }
}

pub(crate) fn check_private(stat: &Stat) -> Result<(), String> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err("is not a directory".to_owned());
    }
    if stat.st_uid != effective_user() {
        return Err(foreign_owner(stat));
    }
    match stat.st_mode & 0o077 {
        0 => Ok(()),
        _ => Err(format!("gives rights to others (mode {:o})", stat.st_mode & 0o7777)),
    }
}

pub(super) fn foreign_owner(stat: &Stat) -> String {
    format!("belongs to user {}, and you are user {}", stat.st_uid, effective_user())
}

/// A state file must be a regular file of ours. Its mode does not matter, because no other user can enter the
/// directory.
pub(crate) fn check_file(stat: &Stat) -> Result<(), &'static str> {
    match () {
        () if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => Err("is not a regular file"),
        () if stat.st_uid != effective_user() => Err("belongs to another user"),
        () => Ok(()),
    }
}

/// Opens a file of the state for reading. It must be ours and have at most `limit` bytes. [`Errno::NOENT`] if it is
/// missing.
pub(crate) fn open_file(dir: &File, name: &str, limit: u64) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(sys::openat(dir, name, flags, Mode::empty())?);
    let stat = sys::fstat(&file)?;
    check_file(&stat).map_err(|why| io::Error::other(format!("{name} {why}")))?;
    if u64::try_from(stat.st_size).unwrap_or_default() > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{name} is over {limit} bytes")));
    }
    Ok(file)
}
