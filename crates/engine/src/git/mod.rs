//! Reads git's files in process: the work tree, its git directory, and what the index tracks.
//!
//! No git command is started: the configuration of a repository can make git run programs, and `git rev-parse` takes two
//! hundred times as long. `GIT_DIR`, `GIT_WORK_TREE`, `GIT_COMMON_DIR` and `GIT_INDEX_FILE` are ignored.

mod index;
mod work_tree;

pub(crate) use index::tracks;
pub(crate) use work_tree::{GitDirs, WorkTree, discover, is_in_bare_repository, is_same_file};
