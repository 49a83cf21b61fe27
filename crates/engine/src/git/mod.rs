//! Reads git's files in process: the work tree, its git directory, what the index tracks, and what the commit at HEAD holds.
//!
//! No git command is started: the configuration of a repository can make git run programs, and `git rev-parse` takes two
//! hundred times as long. `GIT_DIR`, `GIT_WORK_TREE`, `GIT_COMMON_DIR` and `GIT_INDEX_FILE` are ignored.

mod entries;
mod head;
mod index;
mod objects;
mod pack;
#[cfg(test)]
mod tests;
mod tree;
mod work_tree;

pub(crate) use entries::GitIndex;
pub(crate) use head::{Head, head_of};
pub(crate) use index::tracks;
pub(crate) use objects::{ObjectId, ObjectKind, Objects};
pub(crate) use tree::{HeadTree, TreeEntry, files_of, tree_of};
pub(crate) use work_tree::{GitDirs, WorkTree, discover, is_in_bare_repository, is_same_file};

/// Why something of git's cannot be told: the repository uses what this reader does not know, or it is damaged. Nothing is
/// concluded from it.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub(crate) struct CannotTell {
    /// The file.
    pub path: String,
    /// What is the matter with it.
    pub why: String,
}

impl CannotTell {
    fn of(path: &std::path::Path, why: impl ToString) -> Self {
        Self { path: path.display().to_string(), why: why.to_string() }
    }
}
