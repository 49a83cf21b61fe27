//! Finds the states that are kept for a user, and the checkouts of each. Creates nothing.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{self as sys, CWD},
    io::Errno,
};

use super::{
    CheckoutKey, IN_GIT, StateHome,
    identity::{identity_of, read_identity},
    permissions::{check_private, open_dir, open_dir_if_any},
};
use crate::git;

/// Name of the directory that has a part of the state for each checkout.
pub(crate) const CHECKOUTS: &str = "checkouts";

/// Name of the directory of states in the user's own directory.
pub(crate) const ROOTS: &str = "roots";

/// Name of the directory of boards in the user's own directory.
pub(crate) const BOARDS: &str = "boards";

/// Whether the tree that a state was kept for still exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreePresence {
    /// It exists, or nothing shows that it does not.
    There,
    /// It is gone, or another tree is in its place.
    Gone,
    /// The state belongs to another tree, and was moved aside.
    SetAside,
}

/// The state of a repository, or of a directory without one.
#[derive(Debug)]
pub(crate) struct FoundState {
    pub path: PathBuf,
    pub dir: File,
}

/// The part of a state that belongs to one checkout.
#[derive(Debug)]
pub(crate) struct FoundCheckout {
    pub name: String,
    /// The last known path of the tree.
    pub root: PathBuf,
    /// The key that names it in the store.
    pub key: CheckoutKey,
    pub presence: TreePresence,
}

impl FoundState {
    /// Opens a state; `None` if there is none. Fails if another user could have made it.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let dir = match open_dir(CWD, path) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        check_private(&sys::fstat(&dir)?).map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
        Ok(Some(Self { path: path.to_owned(), dir }))
    }

    /// Its checkouts, sorted by name.
    pub(crate) fn checkouts(&self) -> io::Result<Vec<FoundCheckout>> {
        let Some(checkouts) = open_dir_if_any(&self.dir, CHECKOUTS)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for name in names_in(&self.path.join(CHECKOUTS))? {
            let Ok(dir) = open_dir(&checkouts, &*name) else { continue };
            let identity = read_identity(&dir).ok().flatten();
            let root = identity.as_ref().map(|identity| identity.path.clone()).unwrap_or_default();
            let is_gone = || match self.git_dir() {
                Some(git_dir) => git::is_worktree_gone(git_dir, &name),
                // The name of the directory comes from the path, so a tree that was moved has another one.
                None => identity.as_ref().is_some_and(|known| match identity_of(&known.path) {
                    Ok(here) => !known.is_same_tree(&here),
                    Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
                }),
            };
            let presence = match () {
                () if is_set_aside(&name) && self.git_dir().is_none_or(|git| !git.join("worktrees").join(&name).exists()) => {
                    TreePresence::SetAside
                }
                () if is_gone() => TreePresence::Gone,
                () => TreePresence::There,
            };
            let key = identity.map(|identity| identity.key).unwrap_or_default();
            found.push(FoundCheckout { name, root, key, presence });
        }
        Ok(found)
    }

    /// The git directory that contains it; `None` for a state in the user's own directory.
    pub(crate) fn git_dir(&self) -> Option<&Path> {
        self.path.parent().filter(|_| self.path.file_name().is_some_and(|name| name == IN_GIT))
    }
}

/// Prefix of the name of a checkout that was moved aside.
pub(super) const SET_ASIDE: &str = "old-";

/// Whether it is the name of a checkout that was moved aside, with the time in milliseconds.
fn is_set_aside(name: &str) -> bool {
    let moment = name.strip_prefix(SET_ASIDE).unwrap_or_default();
    moment.len() >= 13 && moment.bytes().all(|byte| byte.is_ascii_digit())
}

/// The user's directory for the state of trees outside git, and for boards.
pub(crate) fn home_dir(home: &StateHome) -> Option<&Path> {
    home.fixed.as_deref().or(home.user.as_deref())
}

/// The paths of all states in the user's own directory.
pub(crate) fn states_in_home(home: &StateHome) -> io::Result<Vec<PathBuf>> {
    let Some(home) = home_dir(home).and_then(|home| home.canonicalize().ok()) else { return Ok(Vec::new()) };
    let roots = home.join(ROOTS);
    Ok(names_in(&roots)?.into_iter().map(|name| roots.join(name)).filter(|path| path.is_dir()).collect())
}

/// The path of the state of a tree in a git repository, if it exists.
pub(crate) fn state_in_git(tree: &Path) -> Option<PathBuf> {
    let found = git::discover(&tree.canonicalize().ok()?, None)?.git?;
    Some(found.common.join(IN_GIT)).filter(|path| path.is_dir())
}

/// The names in a directory, sorted; none if it does not exist.
pub(crate) fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}
