//! The paths that no tool writes, for programs that confine a command.

use std::{io, path::PathBuf};

use crate::{
    disk::{export_dir::EXPORT_DIR, working_copy::RootInTree},
    git,
    workspace::Workspace,
};

impl Workspace {
    /// The paths that belong to git and to Surehand, in the workspace and outside: git's directories, the `.git` of the
    /// work tree, of its submodules and of its linked worktrees, the state, and the settings. Some may not exist. Fails
    /// if git's index cannot be read, because the submodules are then unknown.
    pub fn protected_paths(&self) -> io::Result<Vec<PathBuf>> {
        let home = &self.config().state;
        let place = RootInTree::find(self.path(), home.home.as_deref())?;
        let mut paths = place.protected_dirs(home, self.state().path().as_deref());
        for root in [place.root.path(), place.tree_root.path()] {
            paths.extend([".git", EXPORT_DIR, "surehand.toml"].map(|name| root.join(name)));
        }
        if let Some(git) = &place.tree.git {
            paths.extend(git::other_checkouts(&place.tree.root, git).map_err(io::Error::other)?);
        }
        paths.sort_unstable();
        paths.dedup();
        Ok(paths)
    }
}
