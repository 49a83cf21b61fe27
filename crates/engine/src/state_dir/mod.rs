//! Where the state of a work tree is kept, and how it is opened.
//!
//! Surehand trusts its state: it carries out journals, and views let edits pass. So the state lives where a checkout
//! cannot put anything: in the git directory that all worktrees share, or else in the user's own state directory. It is
//! used only if this user made it and no other user can reach it. Everything below is opened relative to a handle,
//! without following symlinks.
//!
//! The place depends only on the owner and the file system, never on whether this process may write there. Otherwise a
//! command in a sandbox and the hook beside it would have two different states.

mod home;
mod identity;
pub(crate) mod inventory;
mod permissions;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::{
    fs::{self as sys, Access, AtFlags, Mode, OFlags, RenameFlags},
    io::Errno,
};
use surehand_core::ContentHash;

pub use self::home::{StateHome, StateHomeError, user_state_dir};
pub(crate) use self::identity::{CheckoutKey, IfThere, write_file};
pub(crate) use self::permissions::{check_file, check_private, open_dir, open_dir_if_any, open_file};
use self::{
    identity::{TreeIdentity, identity_of, read_identity, sync_identity, write_identity},
    inventory::{BOARDS, CHECKOUTS, ROOTS, SET_ASIDE},
    permissions::{IfMissing, PRIVATE, UntrustedDir, foreign_owner, open_if_it_can_hold_state, open_private},
};
use crate::{
    git::{self, GitDirs, WorkTree},
    user::effective_user,
};

/// Why the state of a work tree cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateDirError {
    /// The git directory cannot hold it, and no other place was given.
    #[error("there is no directory for the state: set SUREHAND_STATE_DIR to one that is yours alone")]
    NoPlace,
    /// The directory exists or could be created, but cannot be used.
    #[error("{path}: cannot use the state directory: {error}")]
    Unusable {
        /// The directory of the state.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// A place that should have held the state, and why it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// The directory that is not used.
    pub path: PathBuf,
    /// Why it is not used, as a message.
    pub why: String,
}

#[derive(Debug, Clone)]
pub(crate) struct StateDir {
    /// The directory that all checkouts of a repository share.
    pub(crate) path: PathBuf,
    pub(crate) checkout_path: PathBuf,
    pub(crate) dir: Arc<File>,
    pub(crate) checkout: Arc<File>,
    pub(crate) key: CheckoutKey,
    pub(crate) is_writable: bool,
    /// Whether this process gave the checkout its key.
    is_begun_here: bool,
    /// Whether the key is known to be on disk.
    is_on_disk: Arc<Mutex<bool>>,
    /// The preferred place, if it could not be trusted.
    pub(crate) passed_over: Option<PassedOver>,
}

/// Name of the state directory in a git directory.
const IN_GIT: &str = "surehand";
impl StateDir {
    /// Opens the state of a work tree, and creates it if there is none.
    pub(crate) fn open(tree: &WorkTree, home: &StateHome) -> Result<Self, StateDirError> {
        let opened = Self::open_or_find(tree, home, IfMissing::Make)?.expect("it is created if missing");
        // A state that cannot be written would only fail later.
        match opened.is_writable {
            true => Ok(opened),
            false => Err(StateDirError::Unusable {
                error: may_write(&opened.checkout).err().unwrap_or(Errno::ACCESS).into(),
                path: opened.path,
            }),
        }
    }

    /// Opens the state of a work tree for reading; `None` if there is none. Creates nothing.
    pub(crate) fn find(tree: &WorkTree, home: &StateHome) -> Result<Option<Self>, StateDirError> {
        Self::open_or_find(tree, home, IfMissing::Leave)
    }

    fn open_or_find(tree: &WorkTree, home: &StateHome, missing: IfMissing) -> Result<Option<Self>, StateDirError> {
        let Some(place) = RepositoryPlace::of(tree, home, missing, None)? else { return Ok(None) };
        match place.open_checkout(tree, missing) {
            // The state there belongs to another tree, so this one keeps its state elsewhere.
            Err(CheckoutError::OfAnotherTree(why)) => {
                let passed_over = PassedOver { path: place.path, why };
                let Some(place) = RepositoryPlace::of(tree, home, missing, Some(passed_over))? else { return Ok(None) };
                place.open_checkout(tree, missing).map_err(|error| place.unusable(error))
            }
            opened => opened.map_err(|error| place.unusable(error)),
        }
    }

    /// Syncs the key of this checkout and the directories that lead to it, once. After a power cut a journal counts
    /// only if it begins with that key, so this comes before a journal is synced.
    pub(crate) fn sync_key(&self) -> io::Result<()> {
        let mut is_on_disk = self.is_on_disk.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_on_disk {
            sync_identity(&self.checkout)?;
            open_dir(&*self.dir, CHECKOUTS)?.sync_all()?;
            self.dir.sync_all()?;
            *is_on_disk = true;
        }
        Ok(())
    }

    /// Like [`Self::sync_key`], if this process made the key. Opening does not sync it, so that the first reply comes
    /// sooner.
    pub(crate) fn sync_new_key(&self) -> io::Result<()> {
        if self.is_begun_here { self.sync_key() } else { Ok(()) }
    }

    /// The path of the database. It must be a regular file of ours or missing, because SQLite opens it by name. It is
    /// created here, because SQLite gives its other files the permissions of this one.
    pub(crate) fn database(&self) -> io::Result<PathBuf> {
        if self.is_writable {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match sys::openat(&*self.dir, "state.db", flags, Mode::from_raw_mode(0o600)) {
                Ok(_) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        for name in ["state.db", "state.db-wal", "state.db-shm", "state.db-journal"] {
            match sys::statat(&*self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if stat.st_nlink > 1 => {
                    return Err(io::Error::other(format!(
                        "{name} has several names (hard links); when nothing runs: cp {name} new && mv new {name}"
                    )));
                }
                Ok(stat) => check_file(&stat).map_err(|why| io::Error::other(format!("{name} {why}")))?,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(self.path.join("state.db"))
    }
}

/// Why the state is not in the git directory.
enum GitPlace {
    /// It cannot be trusted there; `Some` if a state exists there, which is worth a notice.
    PassedOver(Option<PassedOver>),
    /// It could be there, but the system refused.
    Failed(StateDirError),
}

/// Why a checkout's part of the state cannot be opened.
enum CheckoutError {
    OfAnotherTree(String),
    /// The system refused, or the directory is not ours.
    Failed(io::Error),
}

impl<E: Into<io::Error>> From<E> for CheckoutError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The state in the git directory of a tree that is not used, with the reason.
pub(crate) fn passed_over(tree: &WorkTree, home: &StateHome) -> Option<PassedOver> {
    let git = tree.git.as_ref().filter(|_| home.fixed.is_none())?;
    match RepositoryPlace::in_git(git, IfMissing::Leave) {
        Err(GitPlace::PassedOver(place)) => place,
        Ok(_) | Err(GitPlace::Failed(_)) => None,
    }
}

/// Why the state of a tree that has none could not be created. Creates nothing.
pub(crate) fn why_not_made(tree: &WorkTree, home: &StateHome) -> Option<StateDirError> {
    let unusable = |path: &Path, errno: Errno| StateDirError::Unusable { path: path.to_owned(), error: errno.into() };
    if let (Some(git), None) = (&tree.git, &home.fixed)
        && let Ok(common) = open_if_it_can_hold_state(&git.common)
        && let Ok(_) = open_private(&common, IN_GIT, IfMissing::Leave)
    {
        return may_write(&common).err().map(|errno| unusable(&git.common.join(IN_GIT), errno));
    }
    let Some(base) = home.fixed.as_ref().or(home.user.as_ref()) else { return Some(StateDirError::NoPlace) };
    // Missing directories of the path would be created.
    let existing = base.ancestors().find(|dir| dir.symlink_metadata().is_ok())?;
    let may_write = open_dir(rustix::fs::CWD, &existing.canonicalize().ok()?).and_then(|dir| may_write(&dir));
    may_write.err().map(|errno| unusable(base, errno))
}

struct RepositoryPlace {
    path: PathBuf,
    dir: Arc<File>,
    checkout: String,
    passed_over: Option<PassedOver>,
}

impl RepositoryPlace {
    fn of(
        tree: &WorkTree,
        home: &StateHome,
        missing: IfMissing,
        mut passed_over: Option<PassedOver>,
    ) -> Result<Option<Self>, StateDirError> {
        if let Some(fixed) = &home.fixed {
            return Self::in_home(fixed, tree, missing, None);
        }
        if let (Some(git), None) = (&tree.git, &passed_over) {
            match Self::in_git(git, missing) {
                Ok(place) => return Ok(place),
                Err(GitPlace::PassedOver(place)) => passed_over = place,
                Err(GitPlace::Failed(error)) => return Err(error),
            }
        }
        match &home.user {
            Some(user) => Self::in_home(user, tree, missing, passed_over),
            None if missing == IfMissing::Leave => Ok(None),
            None => Err(StateDirError::NoPlace),
        }
    }

    fn unusable(&self, error: CheckoutError) -> StateDirError {
        let error = match error {
            CheckoutError::OfAnotherTree(why) => io::Error::other(why),
            CheckoutError::Failed(error) => error,
        };
        StateDirError::Unusable { path: self.path.clone(), error }
    }

    fn in_git(git: &GitDirs, missing: IfMissing) -> Result<Option<Self>, GitPlace> {
        let path = git.common.join(IN_GIT);
        let common = match open_if_it_can_hold_state(&git.common) {
            Ok(common) => common,
            // Without a state there is nothing to report.
            Err(why) => return Err(GitPlace::PassedOver(path.symlink_metadata().is_ok().then_some(PassedOver { path, why }))),
        };
        match open_private(&common, IN_GIT, missing) {
            Ok(dir) => Ok(dir.map(|dir| Self { path, dir: Arc::new(dir), checkout: git.checkout.clone(), passed_over: None })),
            Err(UntrustedDir::Foreign(why)) => Err(GitPlace::PassedOver(Some(PassedOver { path, why }))),
            Err(UntrustedDir::Failed(error)) => Err(GitPlace::Failed(StateDirError::Unusable { path, error })),
        }
    }

    /// A directory named after the tree, in `roots/` of a state directory of the user.
    fn in_home(
        home: &Path,
        tree: &WorkTree,
        missing: IfMissing,
        passed_over: Option<PassedOver>,
    ) -> Result<Option<Self>, StateDirError> {
        let unusable = |error| StateDirError::Unusable { path: home.to_owned(), error };
        let foreign = |why: UntrustedDir| unusable(why.into());
        if missing == IfMissing::Make {
            make_path(home).map_err(unusable)?;
        }
        // Symlinks on the way are the user's own, but SQLite would refuse them.
        let home = match home.canonicalize() {
            Ok(home) => home,
            Err(error) if missing == IfMissing::Leave && error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(error)),
        };
        let path = home.join(ROOTS).join(name_of(&tree.root));
        let mut dir = open_dir(rustix::fs::CWD, &home).map_err(|errno| unusable(errno.into()))?;
        let stat = sys::fstat(&dir).map_err(|errno| unusable(errno.into()))?;
        // Its mode does not matter: entries that other users put there do not belong to us.
        if stat.st_uid != effective_user() {
            return Err(foreign(UntrustedDir::Foreign(foreign_owner(&stat))));
        }
        for name in [ROOTS, &name_of(&tree.root)] {
            match open_private(&dir, name, missing).map_err(foreign)? {
                Some(next) => dir = next,
                None => return Ok(None),
            }
        }
        Ok(Some(Self { path, dir: Arc::new(dir), checkout: "main".to_owned(), passed_over }))
    }

    /// Opens the state of this checkout, if it belongs to this very tree. State that another tree left under the same
    /// name, or that came with a copied repository, is moved aside and never used again.
    fn open_checkout(&self, tree: &WorkTree, missing: IfMissing) -> Result<Option<StateDir>, CheckoutError> {
        let Some(checkouts) = open_private(&self.dir, CHECKOUTS, missing)? else { return Ok(None) };
        let here = identity_of(&tree.root)?;
        let known = match open_private(&checkouts, &self.checkout, missing)? {
            Some(checkout) => read_identity(&checkout)?.map(|known| (checkout, known)),
            None => None,
        };
        let (checkout, key, is_begun_here) = match known {
            Some((checkout, known)) if known.is_same_tree(&here) => {
                if !known.is_at_same_place(&here) && missing == IfMissing::Make {
                    // The tree was moved, or its device has a new number. If this write fails, the next start tries
                    // again.
                    let _ = write_identity(&checkout, &here.with_key(known.key.clone())).and_then(|()| sync_identity(&checkout));
                }
                (checkout, known.key, false)
            }
            Some((_, known)) if missing == IfMissing::Leave && self.is_in_use_by(&known) => return Err(known.is_not(&here)),
            _ if missing == IfMissing::Leave => return Ok(None),
            _ => self.begin_checkout(&checkouts, here)?,
        };
        let is_writable = may_write(&checkout).is_ok();
        Ok(Some(StateDir {
            path: self.path.clone(),
            checkout_path: self.path.join(CHECKOUTS).join(&self.checkout),
            dir: self.dir.clone(),
            checkout: Arc::new(checkout),
            key,
            is_writable,
            is_begun_here,
            is_on_disk: Arc::default(),
            passed_over: self.passed_over.clone(),
        }))
    }

    /// Whether the tree that a checkout belongs to exists and uses this very directory; then another tree must not take
    /// it over.
    fn is_in_use_by(&self, known: &TreeIdentity) -> bool {
        let exists = identity_of(&known.path).is_ok_and(|now| known.is_same_tree(&now));
        let git = exists.then(|| git::discover(&known.path, None)).flatten().and_then(|tree| tree.git);
        git.is_some_and(|git| git::is_same_file(&git.common.join(IN_GIT), &self.path))
    }

    /// Gives a checkout its key; the flag is `true` if it had none. One process at a time: another could take the
    /// directory of the first for a foreign one.
    fn begin_checkout(&self, checkouts: &File, here: TreeIdentity) -> Result<(File, CheckoutKey, bool), CheckoutError> {
        // A handle of its own, so that the lock ends with this function.
        let lock = open_dir(checkouts, ".")?;
        lock.lock()?;
        loop {
            let checkout = open_private(checkouts, &self.checkout, IfMissing::Make)?.expect("it is created if missing");
            match read_identity(&checkout)? {
                Some(known) if known.is_same_tree(&here) => return Ok((checkout, known.key, false)),
                Some(known) if self.is_in_use_by(&known) => return Err(known.is_not(&here)),
                Some(_) => set_aside(checkouts, &self.checkout)?,
                None => {
                    let identity = here.with_key(CheckoutKey::random()?);
                    write_identity(&checkout, &identity)?;
                    return Ok((checkout, identity.key, true));
                }
            }
        }
    }
}

fn may_write(dir: &File) -> rustix::io::Result<()> {
    sys::accessat(dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
}

/// Whether the user's own place has state for this directory, which makes it the top of a workspace.
pub(crate) fn is_known_root(dir: &Path, home: &StateHome) -> bool {
    let bases = home.fixed.iter().chain(&home.user);
    bases.into_iter().any(|base| base.join(ROOTS).join(name_of(dir)).join(CHECKOUTS).is_dir())
}

/// Creates the directory of a board in the user's own directory, closed to all other users.
pub(crate) fn make_board_dir(home: &StateHome, board: &str) -> Result<PathBuf, StateDirError> {
    let home = inventory::home_dir(home).ok_or(StateDirError::NoPlace)?;
    let make = || -> io::Result<PathBuf> {
        make_path(home)?;
        // Symlinks on the way are the user's own, but SQLite would refuse them.
        let home = home.canonicalize()?;
        let mut dir = open_dir(rustix::fs::CWD, &home)?;
        for name in [BOARDS, board] {
            dir = open_private(&dir, name, IfMissing::Make)?.expect("it is created if missing");
        }
        Ok(home.join(BOARDS).join(board))
    };
    make().map_err(|error| StateDirError::Unusable { path: home.join(BOARDS).join(board), error })
}

/// A name that people recognise and that is unique to this tree.
fn name_of(root: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: u8| if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) { char::from(byte) } else { '_' };
    let base: String =
        root.file_name().map(OsStrExt::as_bytes).unwrap_or(b"root").iter().take(40).map(|byte| plain(*byte)).collect();
    let hash = ContentHash::of(root.as_os_str().as_bytes()).to_string();
    format!("{base}-{}", &hash[..12])
}

/// Creates a directory of the user's and its parents, like `mkdir -p`. Symlinks on the way are the user's own.
fn make_path(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(path)
}

/// Renames the directory of a checkout. The new name has the time at which it went out of use.
fn set_aside(checkouts: &File, name: &str) -> io::Result<()> {
    let now = jiff::Timestamp::now().as_millisecond();
    for number in 0..100 {
        let old = format!("{SET_ASIDE}{}", now + number);
        match sys::renameat_with(checkouts, name, checkouts, &old, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            Err(Errno::INVAL | Errno::NOSYS) => return Ok(sys::renameat(checkouts, name, checkouts, &old)?),
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::Error::other("no name is free"))
}

/// Opens a directory of the state, and creates it if it is missing.
pub(crate) fn make_dir(parent: &File, name: &str) -> io::Result<Arc<File>> {
    let dir = match open_dir(parent, name) {
        Err(Errno::NOENT) => {
            match sys::mkdirat(parent, name, Mode::from_raw_mode(PRIVATE)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            open_dir(parent, name)?
        }
        opened => opened?,
    };
    Ok(Arc::new(dir))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out directories")]
mod tests;
