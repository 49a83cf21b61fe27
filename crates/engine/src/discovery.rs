//! Which directory is the workspace of a place in the file system.

use std::{
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    git,
    state_dir::{StateHome, is_known_root},
    user::effective_user,
};

/// Why a place is in no workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindRootError {
    /// It cannot be looked at.
    #[error("{path}: {error}", path = path.display())]
    Unreadable {
        /// The place.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// It is no directory.
    #[error("{path}: not a directory", path = path.display())]
    NotADirectory {
        /// The place.
        path: PathBuf,
    },
    /// It is the file system or the home directory of the user.
    #[error("{path}: not a workspace: everything below it would be one", path = path.display())]
    Everything {
        /// The place.
        path: PathBuf,
    },
    /// It is in a bare repository.
    #[error("{path}: a bare repository has no workspace; go to one of its worktrees", path = path.display())]
    Bare {
        /// The place.
        path: PathBuf,
    },
}

/// The top of the work tree that a file is in, whether the file is there or not; nothing if it is in none.
pub fn work_tree_of(file: &Path, state: &StateHome) -> Option<PathBuf> {
    let directory = file.parent()?.ancestors().find_map(|dir| dir.canonicalize().ok())?;
    git::discover(&directory, state.home.as_deref()).map(|tree| tree.root)
}

/// The top of the work tree that a directory is in. Where nobody keeps it under version control, it is the directory above that was
/// worked in before, or else the directory itself.
pub fn find_root(from: &Path, state: &StateHome) -> Result<PathBuf, FindRootError> {
    let from = from.canonicalize().map_err(|error| FindRootError::Unreadable { path: from.to_owned(), error })?;
    if !from.is_dir() {
        return Err(FindRootError::NotADirectory { path: from });
    }
    if let Some(tree) = git::discover(&from, state.home.as_deref()) {
        return Ok(tree.root);
    }
    let is_home = |dir: &Path| state.home.as_deref().is_some_and(|home| git::is_same_file(home, dir));
    let may_be_root = |dir: &Path| dir.parent().is_some() && !is_home(dir);
    let is_ours = |dir: &Path| dir.metadata().is_ok_and(|dir| dir.uid() == effective_user());
    let is_known = |dir: &&Path| may_be_root(dir) && is_ours(dir) && is_known_root(dir, state);
    let root = from.ancestors().find(is_known).map_or_else(|| from.clone(), Path::to_owned);
    if git::is_in_bare_repository(&root) {
        return Err(FindRootError::Bare { path: root });
    }
    if may_be_root(&root) { Ok(root) } else { Err(FindRootError::Everything { path: root }) }
}
