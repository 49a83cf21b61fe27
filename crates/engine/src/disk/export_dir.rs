//! `.surehand` in the work tree: the exported state for other programs, and a directory for staging on the file system
//! of the tree. Surehand trusts nothing in it, because a clone can ship it.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use rustix::{
    fs::{self as sys, AtFlags, Mode, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::{checkout_state::lock, replace_file};
use crate::{
    git,
    state_dir::{self, check_private, open_dir},
    user::effective_user,
};

/// Name of the directory in the work tree.
pub const EXPORT_DIR: &str = ".surehand";

/// Whether a path component names a directory of git or Surehand.
pub(crate) fn is_internal(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case(EXPORT_DIR)
}

/// The export is first written to this file of the state directory, so that the tree never shows it incomplete.
const STAGED: &str = "repostate.out";

/// A larger file is not read back. This is room for a million files.
const MAX_READ_BACK: u64 = 1 << 28;

#[derive(Debug)]
pub(crate) struct ExportDir {
    root: Arc<File>,
    /// The git directory of this checkout, if it has one.
    git_dir: Option<PathBuf>,
    known: Mutex<Option<GitTracking>>,
    /// The directory as it was last opened.
    opened: Mutex<Option<Arc<File>>>,
}

/// Whether git tracks something in a directory, and for which inode and which index of git this holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GitTracking {
    directory: u64,
    index: Option<(u64, u64, i64, i64)>,
    is_tracked: bool,
}

impl ExportDir {
    pub(crate) fn new(root: Arc<File>, git_dir: Option<PathBuf>) -> Self {
        Self { root, git_dir, known: Mutex::new(None), opened: Mutex::new(None) }
    }

    /// Exports a file for other programs to read. `state` is the checkout's part of the state directory.
    pub(crate) fn put(&self, state: &File, name: &str, content: &[u8]) -> io::Result<()> {
        let dir = self.open(state)?;
        match replace_file::put((state, STAGED), (&dir, name), content) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::XDEV) => put_beside(&dir, name, content),
            put => put,
        }
    }

    /// Size of an exported file in bytes; 0 if it does not exist.
    pub(crate) fn size(&self, name: &str) -> u64 {
        let stat = open_dir(&self.root, EXPORT_DIR).and_then(|dir| sys::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW));
        stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or_default())
    }

    /// Reads an exported file, if we have ever exported one. Other programs may have changed it since.
    pub(crate) fn read_back(&self, state: &File, name: &str) -> io::Result<Vec<u8>> {
        read_known(state).filter(|known| !known.is_tracked).ok_or(Errno::NOENT)?;
        let mut content = Vec::new();
        let dir = open_dir(&self.root, EXPORT_DIR)?;
        state_dir::open_file(&dir, name, MAX_READ_BACK)?.read_to_end(&mut content)?;
        Ok(content)
    }

    /// Creates a directory in it that only we may enter.
    pub(crate) fn make_private(&self, state: &File, name: &str) -> io::Result<File> {
        let dir = self.open(state)?;
        sys::mkdirat(&dir, name, Mode::from_raw_mode(0o700))?;
        open_private(&dir, name)
    }

    /// Opens a directory made by [`Self::make_private`], if it is ours.
    pub(crate) fn open_made(&self, name: &str) -> io::Result<File> {
        open_private(&open_dir(&self.root, EXPORT_DIR)?, name)
    }

    /// Removes a directory made by [`Self::make_private`], if it is empty.
    pub(crate) fn remove_made(&self, name: &str) {
        if let Ok(dir) = open_dir(&self.root, EXPORT_DIR) {
            let _ = sys::unlinkat(&dir, name, AtFlags::REMOVEDIR);
        }
    }

    /// Why nothing is exported; `None` if nothing prevents it.
    pub(crate) fn trouble(&self, state: &File) -> Option<String> {
        match open_dir(&self.root, EXPORT_DIR) {
            Err(Errno::NOENT) => None,
            Err(errno) => Some(link_error(errno)),
            Ok(dir) => sys::fstat(&dir)
                .map_err(io::Error::from)
                .and_then(|stat| self.check(&stat, state))
                .err()
                .map(|error| error.to_string()),
        }
    }

    /// The directory, created if missing. The last handle is used again if the name still leads to it.
    fn open(&self, state: &File) -> io::Result<Arc<File>> {
        let mut opened = lock(&self.opened);
        if let (Some(dir), Ok(named)) = (&*opened, sys::statat(&self.root, EXPORT_DIR, AtFlags::SYMLINK_NOFOLLOW))
            && sys::fstat(dir).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (named.st_dev, named.st_ino))
        {
            self.check(&named, state)?;
            return Ok(dir.clone());
        }
        Ok(opened.insert(Arc::new(self.open_anew(state)?)).clone())
    }

    fn open_anew(&self, state: &File) -> io::Result<File> {
        if sys::fstat(&self.root)?.st_uid != effective_user() {
            // The owner of the tree could not remove a file that belongs to root.
            return Err(io::Error::other("is in the work tree of another user"));
        }
        let dir = match open_dir(&self.root, EXPORT_DIR) {
            Err(Errno::NOENT) => {
                match sys::mkdirat(&self.root, EXPORT_DIR, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
                open_dir(&self.root, EXPORT_DIR).map_err(|errno| io::Error::other(link_error(errno)))?
            }
            opened => opened.map_err(|errno| io::Error::other(link_error(errno)))?,
        };
        self.check(&sys::fstat(&dir)?, state)?;
        ignore_itself(&dir)?;
        Ok(dir)
    }

    /// Refuses a directory of another user, or one that git tracks. The latter check reads git's index, so its result
    /// is remembered until the index changes.
    fn check(&self, stat: &sys::Stat, state: &File) -> io::Result<()> {
        if stat.st_uid != effective_user() {
            return Err(io::Error::other("belongs to another user"));
        }
        let Some(git_dir) = &self.git_dir else { return Ok(()) };
        #[allow(clippy::unnecessary_cast, reason = "signed or narrower on some systems")]
        let index = sys::stat(git_dir.join("index"))
            .ok()
            .map(|stat| (stat.st_ino as u64, stat.st_size as u64, stat.st_mtime as i64, stat.st_mtime_nsec as i64));
        #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
        let mut now = GitTracking { directory: stat.st_ino as u64, index, is_tracked: false };
        let mut known = lock(&self.known);
        if known.is_none() {
            *known = read_known(state);
        }
        let tracked = || io::Error::other("is tracked by git");
        match known.as_ref().filter(|known| (known.directory, known.index) == (now.directory, now.index)) {
            Some(known) if known.is_tracked => return Err(tracked()),
            Some(_) => return Ok(()),
            None => now.is_tracked = git::tracks(git_dir, EXPORT_DIR),
        }
        // If this cannot be written, the index is read again next time.
        let _ = serde_json::to_vec(&now)
            .map_err(io::Error::other)
            .and_then(|content| replace_file::put((state, "export.new"), (state, KNOWN), &content));
        let is_tracked = now.is_tracked;
        *known = Some(now);
        if is_tracked { Err(tracked()) } else { Ok(()) }
    }
}

const KNOWN: &str = "export";

fn read_known(state: &File) -> Option<GitTracking> {
    let mut text = String::new();
    state_dir::open_file(state, KNOWN, 4096).ok()?.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn link_error(errno: Errno) -> String {
    match errno {
        Errno::LOOP => "is a link".to_owned(),
        Errno::NOTDIR => "is a link or a file".to_owned(),
        errno => io::Error::from(errno).to_string(),
    }
}

fn open_private(parent: &File, name: &str) -> io::Result<File> {
    let dir = open_dir(parent, name)?;
    check_private(&sys::fstat(&dir)?).map_err(io::Error::other)?;
    Ok(dir)
}

/// Replaces a file through a temporary one beside it, if the state is on another file system.
fn put_beside(dir: &File, name: &str, content: &[u8]) -> io::Result<()> {
    let new = format!(".{name}.{}", std::process::id());
    // One of this name was left by a process that was killed.
    let _ = sys::unlinkat(dir, &new, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(sys::openat(dir, &new, flags, Mode::from_raw_mode(0o600))?);
    let put = file.write_all(content).and_then(|()| Ok(sys::renameat(dir, &new, dir, name)?));
    if put.is_err() {
        let _ = sys::unlinkat(dir, &new, AtFlags::empty());
    }
    put
}

fn ignore_itself(dir: &File) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match sys::openat(dir, ".gitignore", flags, Mode::from_raw_mode(0o666)) {
        Ok(fd) => File::from(fd).write_all(b"*\n"),
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
