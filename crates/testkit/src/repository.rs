//! Directories to work in.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A temporary directory with a minimal git repository, so that it contains the state of its workspace.
pub fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    make_repository(dir.path());
    dir
}

/// Makes a directory look like a repository to our search for one.
pub fn make_repository(dir: &Path) {
    for part in ["objects", "refs"] {
        fs::create_dir_all(dir.join(".git").join(part)).expect("a directory of git");
    }
    if !dir.join(".git/HEAD").exists() {
        fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file of git");
    }
}

/// The state directory of the main checkout of a repository.
pub fn state_of(dir: &Path) -> PathBuf {
    dir.join(".git/surehand/checkouts/main")
}
