//! Which commit is at HEAD of a checkout.

use std::fs;

use super::{
    CannotTell, GitDirs, ObjectId,
    work_tree::{MAX_CONFIG, config_value, read_small},
};

/// What HEAD of a checkout names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// A branch that has no commit yet.
    Unborn,
    /// This commit.
    Commit(ObjectId),
}

/// A reference may lead to another one so often.
const DEEPEST: usize = 5;

/// A file with one reference is not longer.
const MAX_REFERENCE: u64 = 4096;

/// A list of references that is longer is not read.
const MAX_PACKED: u64 = 256 << 20;

/// What HEAD names.
pub(crate) fn head_of(git: &GitDirs) -> Result<Head, CannotTell> {
    if fs::symlink_metadata(git.common.join("reftable")).is_ok() {
        return Err(CannotTell::of(&git.common.join("reftable"), "references in this format cannot be read"));
    }
    let mut name = "HEAD".to_owned();
    for _ in 0..DEEPEST {
        let dir = if is_own(&name) { &git.own } else { &git.common };
        let path = dir.join(&name);
        if fs::symlink_metadata(&path).is_ok_and(|file| file.file_type().is_symlink()) {
            return Err(CannotTell::of(&path, "a reference that is a link cannot be read"));
        }
        let Some(text) = read_small(&path, MAX_REFERENCE) else {
            return Ok(packed(git, &name)?.map_or(Head::Unborn, Head::Commit));
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
            None => return ObjectId::from_hex(text).map(Head::Commit).ok_or_else(|| CannotTell::of(&path, "it names no commit")),
        }
    }
    Err(CannotTell::of(&git.own.join("HEAD"), "its references go round in a circle"))
}

/// How long the names of objects are in a repository, in bytes.
pub(super) fn hash_length(git: &GitDirs) -> usize {
    let config = read_small(&git.common.join("config"), MAX_CONFIG).unwrap_or_default();
    let is_sha256 = |format: String| format.eq_ignore_ascii_case("sha256");
    if config_value(&config, "extensions", "objectformat").is_some_and(is_sha256) { 32 } else { 20 }
}

/// Whether each worktree has its own reference of this name.
fn is_own(name: &str) -> bool {
    !name.starts_with("refs/") || ["refs/bisect/", "refs/worktree/", "refs/rewritten/"].iter().any(|own| name.starts_with(own))
}

/// Whether a reference can have this name, and so be a path below the git directory.
fn is_valid(name: &str) -> bool {
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.starts_with("refs/") && !name.contains(['\0', '\n', '\\', '~', '^', ':']) && name.split('/').all(part)
}

/// A reference in the list of those that have no file of their own.
fn packed(git: &GitDirs, name: &str) -> Result<Option<ObjectId>, CannotTell> {
    let path = git.common.join("packed-refs");
    if fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    let list = read_small(&path, MAX_PACKED).ok_or_else(|| CannotTell::of(&path, "it cannot be read"))?;
    let named = |line: &str| line.split_once(' ').filter(|(_, of)| of.trim_end() == name).map(|(id, _)| id.to_owned());
    match list.lines().find_map(named) {
        Some(id) => ObjectId::from_hex(&id).map(Some).ok_or_else(|| CannotTell::of(&path, "it names no commit")),
        None => Ok(None),
    }
}
