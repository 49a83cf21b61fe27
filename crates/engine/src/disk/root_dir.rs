//! The workspace root. Every path is resolved beneath it, and only beneath it.
//!
//! A path is first normalised without looking at the disk. Then the kernel opens it beneath the root without following
//! symlinks, so that one that is swapped in during the call cannot lead outside. Only if the path contains a symlink is
//! it resolved by name, checked to be inside, and opened again in the strict way.

use std::{
    borrow::Cow,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{self as sys, AtFlags, Mode, OFlags},
    io::Errno,
};
use surehand_core::{Cause, Refusal, RelPath, path::BadPath};

#[derive(Debug)]
pub(crate) struct RootDir {
    path: PathBuf,
    /// The path as it was given, for absolute paths spelled through a symlink above the root.
    given: PathBuf,
    dir: OwnedFd,
}

/// Whether the path of a workspace still leads to the directory that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootStatus {
    /// The same directory, or no sign that the open one has been replaced or removed.
    Same,
    /// Another directory, which has taken its place.
    Another,
    /// Nothing: the directory was removed.
    Gone,
}

impl RootDir {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let given = std::path::absolute(path)?;
        let path = path.canonicalize()?;
        let dir = sys::open(&path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path, given, dir })
    }

    /// Its absolute path, without symlinks.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Compares the directory at the path with the one that is open, by inode.
    pub(crate) fn now(&self) -> RootStatus {
        let Ok(open) = sys::fstat(&self.dir) else { return RootStatus::Same };
        match sys::stat(&self.path) {
            Ok(named) if (named.st_dev, named.st_ino) == (open.st_dev, open.st_ino) => RootStatus::Same,
            Ok(named) if sys::FileType::from_raw_mode(named.st_mode) == sys::FileType::Directory => RootStatus::Another,
            Err(Errno::NOENT) if open.st_nlink == 0 => RootStatus::Gone,
            // It was moved away, or cannot be examined: the open directory is still the tree.
            Ok(_) | Err(_) => RootStatus::Same,
        }
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Normalises a path, which may be absolute and contain `.` and `..`. Symlinks beneath the root are not followed
    /// yet.
    pub(crate) fn normalize(&self, spelling: &str) -> Result<RelPath, Refusal> {
        let refuse = |cause| Refusal::of_spelling(spelling, cause);
        let relative = self.without_root(spelling)?;
        let relative = relative.as_ref();
        if relative.ends_with('/') {
            return Err(refuse(Cause::NotAFile { kind: "the name of a directory" }));
        }
        RelPath::new(relative).map_err(|bad| match bad {
            BadPath::Outside => refuse(Cause::OutsideWorkspace),
            BadPath::Empty if !spelling.is_empty() => refuse(Cause::NotAFile { kind: "a directory" }),
            bad => refuse(Cause::BadArguments { why: bad.to_string() }),
        })
    }

    /// Like [`Self::normalize`], for a path that may be a directory; `None` is the root itself.
    pub(crate) fn normalize_place(&self, spelling: &str) -> Result<Option<RelPath>, Refusal> {
        let refuse = |cause| Refusal::of_spelling(spelling, cause);
        match RelPath::new(&self.without_root(spelling)?) {
            Ok(path) => Ok(Some(path)),
            Err(BadPath::Empty) => Ok(None),
            Err(BadPath::Outside) => Err(refuse(Cause::OutsideWorkspace)),
            Err(bad) => Err(refuse(Cause::BadArguments { why: bad.to_string() })),
        }
    }

    /// A path without the root, if it was absolute.
    fn without_root<'a>(&self, spelling: &'a str) -> Result<Cow<'a, str>, Refusal> {
        if !spelling.starts_with('/') {
            return Ok(Cow::Borrowed(spelling));
        }
        let stripped = self.strip_root(Path::new(spelling)).map(Cow::Borrowed);
        let by_links = || self.strip_root_behind_links(spelling).map(Cow::Owned);
        stripped.or_else(by_links).ok_or_else(|| Refusal::of_spelling(spelling, Cause::OutsideWorkspace))
    }

    /// Like [`Self::strip_root`], for a path that reaches the root through a symlink above it: `/home` may lead to
    /// `/var/home`.
    fn strip_root_behind_links(&self, spelling: &str) -> Option<String> {
        let path = Path::new(spelling);
        let (existing, resolved) = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)))?;
        // The rest as it was spelled, including a trailing slash.
        let rest = spelling.strip_prefix(existing.to_str()?)?;
        let inside = resolved.strip_prefix(&self.path).ok()?.to_str()?;
        Some(format!("{inside}{rest}"))
    }

    /// An absolute path without the root, if it is beneath it. `..` is left for [`RelPath`] to judge.
    fn strip_root<'a>(&self, path: &'a Path) -> Option<&'a str> {
        [&self.path, &self.given].into_iter().find_map(|root| path.strip_prefix(root).ok()).and_then(Path::to_str)
    }

    /// Resolves the symlinks in a path. A path that leads outside is refused.
    pub(crate) fn resolve(&self, path: &RelPath) -> Result<RelPath, Refusal> {
        let full = self.path.join(path.as_str());
        let settled = match full.canonicalize() {
            Ok(settled) => settled,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.resolve_parent(path),
            Err(error) => return Err(refuse_io(path, "resolve", &error)),
        };
        self.relative(path, &settled)
    }

    /// Like [`Self::resolve`], for a path that may be a directory; `None` is the root itself.
    pub(crate) fn resolve_place(&self, path: &RelPath) -> Result<Option<RelPath>, Refusal> {
        match self.path.join(path.as_str()).canonicalize() {
            Ok(settled) if settled == self.path => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(Refusal::of(path, Cause::NothingThere)),
            _ => self.resolve(path).map(Some),
        }
    }

    /// Resolves a file that does not exist yet, whose directory may be behind a link.
    fn resolve_parent(&self, path: &RelPath) -> Result<RelPath, Refusal> {
        if self.path.join(path.as_str()).is_symlink() {
            return Err(Refusal::of(path, Cause::Io { why: "is a link that leads nowhere".to_owned() }));
        }
        let Some(parent) = path.parent() else { return Ok(path.clone()) };
        let parent = self.resolve(&parent).map_err(|refusal| Refusal::of(path, refusal.cause))?;
        RelPath::new(&format!("{parent}/{}", path.name())).map_err(|_| Refusal::of(path, Cause::OutsideWorkspace))
    }

    fn relative(&self, path: &RelPath, settled: &Path) -> Result<RelPath, Refusal> {
        let outside = || Refusal::of(path, Cause::OutsideWorkspace);
        let inside = settled.strip_prefix(&self.path).map_err(|_| outside())?;
        let inside = inside.to_str().ok_or_else(|| Refusal::of(path, Cause::Io { why: "its name is not UTF-8".to_owned() }))?;
        RelPath::new(inside).map_err(|_| Refusal::of(path, Cause::NotAFile { kind: "a directory" }))
    }

    /// Opens the file or directory at a path without following symlinks. [`Errno::LOOP`] means that the path contains
    /// one.
    pub(crate) fn open_at(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        open_beneath(self.dir(), path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW)
    }

    pub(crate) fn open_parent(&self, path: &RelPath) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match path.parent() {
            Some(parent) => self.open_at(parent.as_str(), flags),
            // The root itself is open already.
            None => rustix::io::fcntl_dupfd_cloexec(&self.dir, 0),
        }
    }

    /// The missing directories above a file, from the outermost to the innermost.
    pub(crate) fn missing_parents(&self, path: &RelPath) -> rustix::io::Result<Vec<RelPath>> {
        let mut missing = Vec::new();
        let mut next = path.parent();
        while let Some(dir) = next {
            match self.open_at(dir.as_str(), OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(_) => break,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
            next = dir.parent();
            missing.push(dir);
        }
        missing.reverse();
        Ok(missing)
    }

    /// Creates a directory in an existing parent, without following symlinks. Returns `false` if it exists already.
    pub(crate) fn make_dir(&self, dir: &RelPath) -> rustix::io::Result<bool> {
        let parent = self.open_parent(dir)?;
        match sys::mkdirat(&parent, dir.name(), Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Whether two paths name the same file and differ only in case, on a file system that ignores case.
    pub(crate) fn is_own_name_in_other_letters(&self, path: &RelPath, other: &RelPath) -> bool {
        path.parent() == other.parent()
            && self.open_parent(path).is_ok_and(|dir| is_other_letters(dir, path.name(), other.name()))
    }

    /// Removes a directory that we made, if it is still empty.
    pub(crate) fn remove_dir_if_empty(&self, dir: &RelPath) {
        let Ok(parent) = self.open_parent(dir) else { return };
        for _ in 0..HIDDEN_PATIENCE {
            match sys::unlinkat(&parent, dir.name(), AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY) if has_only_hidden(&parent, dir.name()) => std::thread::sleep(Duration::from_millis(2)),
                _ => return,
            }
        }
    }
}

pub(crate) fn refuse_io(path: &RelPath, what: &str, error: &io::Error) -> Refusal {
    Refusal::of(path, Cause::Io { why: format!("cannot {what}: {error}") })
}

#[cfg(target_os = "linux")]
fn open_beneath(dir: BorrowedFd<'_>, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    match sys::openat2(dir, path, flags, Mode::empty(), resolve) {
        // Old kernels and strict sandboxes do not have the call.
        Err(Errno::NOSYS | Errno::PERM) => open_by_steps(dir, path, flags),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(dir: BorrowedFd<'_>, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    open_by_steps(dir, path, flags)
}

/// `openat2` with plain calls: opens one component of the path after the other and follows no symlink.
fn open_by_steps(dir: BorrowedFd<'_>, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let (parents, name) = path.rsplit_once('/').map_or((None, path), |(parents, name)| (Some(parents), name));
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut here: Option<OwnedFd> = None;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let at = here.as_ref().map_or(dir, AsFd::as_fd);
        here = Some(match sys::openat(at, part, step, Mode::empty()) {
            // A link is "not a directory" when it is opened as one without being followed.
            Err(Errno::NOTDIR) if is_link(at, part) => return Err(Errno::LOOP),
            opened => opened?,
        });
    }
    sys::openat(here.as_ref().map_or(dir, AsFd::as_fd), name, flags, Mode::empty())
}

fn is_link(dir: BorrowedFd<'_>, name: &str) -> bool {
    sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| sys::FileType::from_raw_mode(stat.st_mode) == sys::FileType::Symlink)
}

/// Whether two names differ only in case, and the directory finds the first under the second. Inodes do not help: some
/// FUSE file systems report a different one for every spelling.
pub(super) fn is_other_letters(dir: impl AsFd, name: &str, other: &str) -> bool {
    if name == other || name.to_lowercase() != other.to_lowercase() {
        return false;
    }
    let has_entry = |name: &str| {
        let entries = sys::Dir::read_from(&dir).into_iter().flatten();
        entries.flatten().any(|entry| entry.file_name().to_bytes() == name.as_bytes())
    };
    sys::statat(&dir, other, AtFlags::SYMLINK_NOFOLLOW).is_ok() && has_entry(name) && !has_entry(other)
}

/// How often to retry the removal of a directory that has only hidden files.
const HIDDEN_PATIENCE: usize = 50;

/// Whether a directory has only the hidden files that FUSE keeps for removed files that are still open. FUSE learns a
/// moment late that they were closed.
fn has_only_hidden(parent: &OwnedFd, name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(dir) = sys::openat(parent, name, flags, Mode::empty()) else { return false };
    let is_hidden = |entry: rustix::io::Result<sys::DirEntry>| {
        entry.is_ok_and(|entry| {
            matches!(entry.file_name().to_bytes(), b"." | b"..") || entry.file_name().to_bytes().starts_with(b".fuse_hidden")
        })
    };
    sys::Dir::read_from(&dir).is_ok_and(|mut entries| entries.all(is_hidden))
}

#[cfg(test)]
mod tests;
