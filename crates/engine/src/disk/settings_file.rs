//! Reads settings files that a clone may have shipped: links to devices, named pipes and endless files neither block
//! nor fill memory.

use std::{fs::File, io::Read, path::Path};

use rustix::{
    fs::{self as sys, Mode, OFlags},
    io::Errno,
};

use super::read_file::{kind_of, open_patiently};
use crate::user::effective_user;

/// A larger settings file is refused.
const MOST_BYTES: u64 = 64 * 1024;

/// Reads a repository's settings; `None` if there are none. A symlink is not followed: it may lead anywhere. The error
/// describes the problem with the file.
pub(crate) fn of_repository(path: &Path) -> Result<Option<String>, String> {
    match open(path, OFlags::NOFOLLOW) {
        Err(Errno::LOOP) => Err("it is a link, not a regular file".to_owned()),
        opened => read(opened),
    }
}

/// Reads the user's own settings, which may be a link to another place.
pub(crate) fn of_user(path: &Path) -> Result<Option<String>, String> {
    read(open(path, OFlags::empty()))
}

/// Why a settings file is not trusted, if another user could have written it.
pub(crate) fn why_untrusted(path: &Path) -> Option<String> {
    let stat = sys::stat(path).ok()?;
    let is_ours = [0, effective_user()].contains(&stat.st_uid);
    let is_open = kind_of(&stat).is_none() && stat.st_mode & 0o002 != 0;
    match () {
        () if !is_ours => Some(format!("it belongs to user {}", stat.st_uid)),
        () if is_open => Some(format!("every user can write it (mode {:o})", stat.st_mode & 0o777)),
        () => None,
    }
}

fn open(path: &Path, links: OFlags) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | links;
    open_patiently(|| sys::open(path, flags, Mode::empty())).map(File::from)
}

fn read(opened: Result<File, Errno>) -> Result<Option<String>, String> {
    let file = match opened {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(std::io::Error::from(errno).to_string()),
    };
    let stat = sys::fstat(&file).map_err(|errno| std::io::Error::from(errno).to_string())?;
    if let Some(kind) = kind_of(&stat) {
        return Err(format!("it is {kind}, not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8 text".to_owned())
}
