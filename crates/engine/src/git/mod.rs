//! Reads git's own files, in process: where a work tree begins, where its git directory is, what the index tracks.
//!
//! No git command is started: a repository's configuration can make git run programs, and `git rev-parse` takes two hundred
//! times as long. The variables `GIT_DIR`, `GIT_WORK_TREE`, `GIT_COMMON_DIR` and `GIT_INDEX_FILE` count for nothing here.

mod index;
mod work_tree;

pub(crate) use index::tracks;
pub(crate) use work_tree::{GitDirs, WorkTree, discover, is_in_bare_repository, is_same_file};
