//! The fork point of a checkout: the commit that it shares with the branch into which its work will be merged.

use crate::{
    git::{self, CannotTell, GitDirs, History, ObjectId, Objects},
    workspace::Workspace,
};

/// The point where a checkout left the main branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPoint {
    pub(super) commit: ObjectId,
    pub(super) tree: ObjectId,
    pub(super) branches: Branches,
}

/// The commits that determine a fork point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Branches {
    pub head: ObjectId,
    target: Option<ObjectId>,
}

/// Why the changes of a checkout are not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForkPointError {
    /// The workspace is not in a work tree of git.
    #[error("this is not a work tree of git")]
    NoRepository,
    /// The branch has no commit yet.
    #[error("there is no commit yet")]
    NoCommit,
    /// Git's files could not be read.
    #[error("git cannot be read: {0}")]
    Git(String),
    /// The work tree could not be walked.
    #[error("the files cannot be walked: {0}")]
    Walk(#[from] std::io::Error),
}

impl From<CannotTell> for ForkPointError {
    fn from(error: CannotTell) -> Self {
        Self::Git(error.to_string())
    }
}

impl ForkPoint {
    /// The id of the commit, in hexadecimal digits.
    pub fn commit(&self) -> String {
        self.commit.to_string()
    }
}

impl Workspace {
    /// The fork point of this checkout: the merge base of HEAD and its target branch.
    ///
    /// The target is the upstream branch or the default branch. Without a target, or if the histories do not meet (as
    /// in a shallow clone), the fork point is the commit at HEAD.
    pub fn fork_point(&self) -> Result<ForkPoint, ForkPointError> {
        let git = self.git_dirs().ok_or(ForkPointError::NoRepository)?;
        ForkPoint::find(&git, &Objects::of(&git.common), None)
    }
}

impl ForkPoint {
    /// Finds the fork point. `last` is returned if no branch has moved.
    pub(super) fn find(git: &GitDirs, objects: &Objects, last: Option<&Self>) -> Result<Self, ForkPointError> {
        let head = git::reference(git, "HEAD")?;
        let target = git::target_commit(git, &head)?;
        let branches = Branches { head: head.commit.ok_or(ForkPointError::NoCommit)?, target };
        if let Some(last) = last.filter(|last| last.branches == branches) {
            return Ok(last.clone());
        }
        let history = History::of(git, objects)?;
        let bases = target.map(|target| history.merge_bases(&branches.head, &target));
        // If a commit is missing, the histories count as not meeting.
        let commit = bases.and_then(|bases| bases.ok()?.first().copied()).unwrap_or(branches.head);
        let tree = history.commit(&commit)?.tree;
        Ok(Self { commit, tree, branches })
    }
}
