//! Finds the commit at HEAD of a checkout.

use std::fs;

use super::{
    CannotTell, GitDirs, ObjectId,
    work_tree::{MAX_CONFIG, config_value, read_list, read_small},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// A branch that has no commit yet.
    Unborn,
    Commit(ObjectId),
}

/// The maximum length of a chain of references.
const DEEPEST: usize = 5;

/// A longer file is not a reference.
const MAX_REFERENCE: u64 = 4096;

/// A longer list of references is not read.
const MAX_PACKED: u64 = 256 << 20;

/// The end of a chain of references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The last reference on the way: for `HEAD`, the branch that is checked out, or `HEAD` itself.
    pub name: String,
    /// The object; `None` if there is no such reference, or a branch without a commit.
    pub commit: Option<ObjectId>,
}

pub(crate) fn head_of(git: &GitDirs) -> Result<Head, CannotTell> {
    Ok(reference(git, "HEAD")?.commit.map_or(Head::Unborn, Head::Commit))
}

/// Follows a reference: `HEAD`, or one below `refs/`. An invalid name leads to nothing.
pub(crate) fn reference(git: &GitDirs, name: &str) -> Result<Reference, CannotTell> {
    if fs::symlink_metadata(git.common.join("reftable")).is_ok() {
        return Err(CannotTell::of(&git.common.join("reftable"), "references in this format cannot be read"));
    }
    let mut name = name.to_owned();
    if name != "HEAD" && !is_valid(&name) {
        return Ok(Reference { name, commit: None });
    }
    for _ in 0..DEEPEST {
        let dir = if is_own(&name) { &git.own } else { &git.common };
        let path = dir.join(&name);
        if fs::symlink_metadata(&path).is_ok_and(|file| file.file_type().is_symlink()) {
            return Err(CannotTell::of(&path, "a reference that is a link cannot be read"));
        }
        let Some(text) = read_small(&path, MAX_REFERENCE) else {
            return packed(git, &name).map(|commit| Reference { name, commit });
        };
        let text = text.trim_end();
        match text.strip_prefix("ref:") {
            Some(next) => {
                let next = next.trim_start();
                if !is_valid(next) {
                    return Err(CannotTell::of(&path, "it names no valid reference"));
                }
                name = next.to_owned();
            }
            None => {
                let commit = ObjectId::from_hex(text).ok_or_else(|| CannotTell::of(&path, "it names no commit"))?;
                return Ok(Reference { name, commit: Some(commit) });
            }
        }
    }
    Err(CannotTell::of(&git.own.join("HEAD"), "its references go round in a circle"))
}

/// The length of object ids in a repository, in bytes.
pub(super) fn hash_length(git: &GitDirs) -> usize {
    let config = read_small(&git.common.join("config"), MAX_CONFIG).unwrap_or_default();
    let is_sha256 = |format: String| format.eq_ignore_ascii_case("sha256");
    if config_value(&config, "extensions", "objectformat").is_some_and(is_sha256) { 32 } else { 20 }
}

/// Whether each worktree has its own reference of this name.
fn is_own(name: &str) -> bool {
    !name.starts_with("refs/") || ["refs/bisect/", "refs/worktree/", "refs/rewritten/"].iter().any(|own| name.starts_with(own))
}

/// Whether a reference may have this name, which becomes a path below the git directory.
fn is_valid(name: &str) -> bool {
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.starts_with("refs/") && !name.contains(['\0', '\n', '\\', '~', '^', ':']) && name.split('/').all(part)
}

fn packed(git: &GitDirs, name: &str) -> Result<Option<ObjectId>, CannotTell> {
    let list = read_list(&git.common.join("packed-refs"), MAX_PACKED)?;
    let named = |line: &str| line.split_once(' ').filter(|(_, of)| of.trim_end() == name).map(|(id, _)| id.to_owned());
    match list.lines().find_map(named) {
        Some(id) => {
            let bad = || CannotTell::of(&git.common.join("packed-refs"), "it names no commit");
            ObjectId::from_hex(&id).map(Some).ok_or_else(bad)
        }
        None => Ok(None),
    }
}

/// The names of all packed references with this prefix, without it.
pub(super) fn packed_below(git: &GitDirs, prefix: &str) -> Result<Vec<String>, CannotTell> {
    let list = read_list(&git.common.join("packed-refs"), MAX_PACKED)?;
    let names = list.lines().filter_map(|line| line.split_once(' ').map(|(_, name)| name.trim_end()));
    Ok(names.filter_map(|name| name.strip_prefix(prefix)).map(str::to_owned).collect())
}
