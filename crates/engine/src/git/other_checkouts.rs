//! The `.git` entries of other checkouts that may lie in a work tree: those of its submodules and of linked worktrees.
//! Git reads the configuration behind them, also when it is called in the work tree around them.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    CannotTell, GitDirs, GitIndex,
    work_tree::{MAX_GITFILE, read_small},
};

/// The mode of a submodule in the index.
const SUBMODULE: u32 = 0o160_000;

/// The paths where other checkouts have, or would have, their `.git`.
pub(crate) fn other_checkouts(tree: &Path, git: &GitDirs) -> Result<Vec<PathBuf>, CannotTell> {
    let mut found = own_dirs(&git.common).iter().filter_map(|own| dot_git_of(own)).collect::<Vec<_>>();
    let index = GitIndex::read(git)?;
    let submodules = index.entries().iter().filter(|entry| entry.mode == SUBMODULE);
    found.extend(submodules.map(|entry| tree.join(OsStr::from_bytes(index.name(entry))).join(".git")));
    Ok(found)
}

/// The git directories of the checkout with this root, if it is one of the repository with this common git directory.
/// The repository says where its checkouts are: nothing is read at the root.
pub(crate) fn checkout_at(common: &Path, root: &Path) -> Option<GitDirs> {
    let dot_git = root.join(".git");
    if dot_git == common {
        return Some(GitDirs { own: common.to_owned(), common: common.to_owned(), checkout: "main".to_owned() });
    }
    let own = own_dirs(common).into_iter().find(|own| dot_git_of(own).is_some_and(|place| place == dot_git))?;
    let checkout = own.file_name()?.to_str()?.to_owned();
    Some(GitDirs { own, common: common.to_owned(), checkout })
}

/// The git directories that belong to one linked worktree each.
fn own_dirs(common: &Path) -> Vec<PathBuf> {
    fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Where the worktree with this git directory has its `.git`.
fn dot_git_of(own: &Path) -> Option<PathBuf> {
    let named = read_small(&own.join("gitdir"), MAX_GITFILE)?;
    let path = own.join(named.trim_end_matches(['\r', '\n']));
    // Newer versions of git can write a relative path.
    let (directory, name) = (path.parent()?, path.file_name()?);
    Some(directory.canonicalize().unwrap_or_else(|_| directory.to_owned()).join(name))
}
