//! Reads git's files in process: the work tree, its git directory, the tracked files, and the commit at HEAD.
//!
//! Reading starts no git command: the configuration of a repository can make git run programs, and `git rev-parse`
//! takes two hundred times as long. Only [`program`] starts git, for requests of a person. `GIT_DIR`, `GIT_WORK_TREE`,
//! `GIT_COMMON_DIR` and `GIT_INDEX_FILE` are ignored.

pub(crate) mod blame;
pub(crate) mod conversion;
mod entries;
mod head;
mod history;
mod index;
mod objects;
mod origin;
mod other_checkouts;
mod pack;
pub(crate) mod program;
mod root_commits;
pub(crate) mod scratch;
pub(crate) mod staging_area;
mod target_branch;
#[cfg(test)]
mod tests;
mod tree;
mod work_tree;

pub(crate) use entries::GitIndex;
pub(crate) use head::{Head, head_of, reference};
pub(crate) use history::{Commit, History};
pub(crate) use index::tracks;
pub(crate) use objects::{ObjectId, ObjectKind, Objects};
pub(crate) use origin::origin_of;
pub(crate) use other_checkouts::{checkout_at, other_checkouts};
pub(crate) use root_commits::smallest_root_commit;
pub(crate) use target_branch::target_commit;
pub(crate) use tree::{HeadTree, TreeEntry, entry_at, files_of, tree_of};
pub(crate) use work_tree::{GitDirs, WorkTree, discover, is_in_bare_repository, is_same_file, is_worktree_gone};

/// Why git's files do not answer a question: the repository uses a feature that this reader does not know, or it is
/// damaged. Callers conclude nothing from it.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub(crate) struct CannotTell {
    pub path: String,
    pub why: String,
}

/// Git's mode of a file with these permissions.
pub(crate) fn git_mode(permissions: u32) -> u32 {
    if permissions & 0o100 != 0 { 0o100_755 } else { 0o100_644 }
}

impl CannotTell {
    fn of(path: &std::path::Path, why: impl ToString) -> Self {
        Self { path: path.display().to_string(), why: why.to_string() }
    }
}
