//! Directories to work in.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A temporary directory with the bones of a git repository, so that the state of a workspace in it goes with it.
pub fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    make_repository(dir.path());
    dir
}

/// Turns a directory into a repository, as far as finding one goes.
pub fn make_repository(dir: &Path) {
    for part in ["objects", "refs"] {
        fs::create_dir_all(dir.join(".git").join(part)).expect("a directory of git");
    }
    if !dir.join(".git/HEAD").exists() {
        fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file of git");
    }
}

/// The part of the state directory that belongs to the first checkout of a repository.
pub fn state_of(dir: &Path) -> PathBuf {
    dir.join(".git/surehand/checkouts/main")
}
