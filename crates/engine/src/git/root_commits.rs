//! The commits without parents that a history begins with.

use std::{collections::HashSet, fs};

use super::{CannotTell, Commit, GitDirs, Head, ObjectId, Objects, head_of};

/// The smallest commit without parents among the ancestors of HEAD; `None` if there is no commit, or if the repository
/// has only a part of its history.
pub(crate) fn smallest_root_commit(git: &GitDirs) -> Result<Option<ObjectId>, CannotTell> {
    // Git reports the commits at the edge of a shallow clone as roots.
    if fs::symlink_metadata(git.common.join("shallow")).is_ok() {
        return Ok(None);
    }
    let Head::Commit(head) = head_of(git)? else { return Ok(None) };
    let objects = Objects::of(&git.common);
    let (mut open, mut known) = (vec![head], HashSet::from([head]));
    let mut smallest: Option<ObjectId> = None;
    while let Some(commit) = open.pop() {
        let parents = Commit::read(&objects, &commit)?.parents;
        if parents.is_empty() {
            smallest = Some(smallest.map_or(commit, |least| least.min(commit)));
        }
        open.extend(parents.into_iter().filter(|parent| known.insert(*parent)));
    }
    Ok(smallest)
}

#[cfg(test)]
mod tests {
    use surehand_testkit::repository;

    use super::*;
    use crate::git::{discover, program};

    #[test]
    fn it_is_the_one_that_git_finds_whatever_the_branches() {
        let dir = repository();
        let git = |words: &str| program::git_in(dir.path()).args(words.split(' ')).output().unwrap();
        for words in [
            "config user.name n",
            "config user.email e@example.org",
            "commit -q --allow-empty -m one",
            "checkout -q --orphan other",
            "commit -q --allow-empty -m two",
            "merge -q --allow-unrelated-histories -m both main",
            "commit -q --allow-empty -m three",
        ] {
            let done = git(words);
            assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
        }
        let roots = String::from_utf8(git("rev-list --max-parents=0 HEAD").stdout).unwrap();
        assert_eq!(roots.lines().count(), 2);
        let dirs = discover(&dir.path().canonicalize().unwrap(), None).unwrap().git.unwrap();
        let found = smallest_root_commit(&dirs).unwrap().unwrap();
        assert_eq!(Some(found.to_string().as_str()), roots.lines().min());
    }
}
