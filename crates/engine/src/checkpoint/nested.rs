//! Nested repositories: clones, submodules and worktrees within the workspace. A session that works there takes
//! checkpoints of its own, but these are deleted together with the repository. So a checkpoint of the outer workspace
//! keeps its changed and untracked files as well.

use std::{collections::HashMap, fs};

use surehand_core::RelPath;
use surehand_store::NotKept;

use super::{ChangeFinder, CheckpointBuilder, CheckpointCandidate, GitState, WalkContext};
use crate::{
    disk::{
        root_dir::RootDir,
        walk::{Globs, walk},
    },
    git::{self, GitDirs},
    workspace::Workspace,
};

/// The maximum size of the indexes of nested repositories other than submodules, about 20,000 entries in all. Small
/// indexes come first. Git itself does not look into such repositories.
const MOST_INDEX_BYTES: u64 = 2 << 20;

const MOST_REPOSITORIES: usize = 1000;

/// A repository within the workspace.
pub(super) struct NestedRepository {
    /// Its top directory, with a trailing slash.
    inside: String,
    pub git: GitState,
}

/// A repository that the walk skipped.
struct FoundRepository {
    top: RelPath,
    git: GitDirs,
    is_submodule: bool,
    index_bytes: u64,
}

impl NestedRepository {
    /// The path of a file relative to the top of the repository.
    pub(super) fn name_inside<'a>(&self, path: &'a str) -> &'a str {
        &path[self.inside.len()..]
    }
}

impl CheckpointBuilder<'_> {
    /// Finds the changed and untracked files of the repositories that the walk skipped.
    pub(super) fn find_in_repositories(&mut self, all: &mut ChangeFinder<'_>, context: &WalkContext<'_>) {
        let mut tops: Vec<String> = all.unfilled().into_iter().map(str::to_owned).collect();
        let (mut left, mut index_bytes) = (MOST_REPOSITORIES, 0);
        while !tops.is_empty() {
            let mut found: Vec<FoundRepository> = tops.iter().filter_map(|top| self.repository_at(top, context)).collect();
            found.sort_by(|one, other| (one.index_bytes, &one.top).cmp(&(other.index_bytes, &other.top)));
            tops.clear();
            for repository in found {
                index_bytes += if repository.is_submodule { 0 } else { repository.index_bytes };
                if left == 0 || index_bytes > MOST_INDEX_BYTES {
                    let why = "a repository of its own, too large to be kept with this one".to_owned();
                    self.not_kept.push(NotKept { path: repository.top.to_string(), why });
                    continue;
                }
                left -= 1;
                tops.extend(self.find_in_repository(&repository, all, context));
            }
        }
    }

    fn repository_at(&self, top: &str, context: &WalkContext<'_>) -> Option<FoundRepository> {
        let place = self.workspace.path().join(top);
        fs::symlink_metadata(place.join(".git")).ok()?;
        let git = git::discover(&place, None).filter(|found| found.root == place)?.git?;
        let is_submodule = context.index.find(format!("{}{top}", context.below).as_bytes()).is_some();
        let index_bytes = fs::metadata(git.own.join("index")).map_or(0, |index| index.len());
        Some(FoundRepository { top: RelPath::new(top).ok()?, git, is_submodule, index_bytes })
    }

    /// Finds the files of a repository that differ from its commit. Returns the repositories within it.
    fn find_in_repository(
        &mut self,
        repository: &FoundRepository,
        all: &mut ChangeFinder<'_>,
        context: &WalkContext<'_>,
    ) -> Vec<String> {
        let top = &repository.top;
        let read = GitState::read(&repository.git).map_err(|error| error.why.clone());
        let git = match read {
            Ok(git) => git,
            Err(why) => {
                self.not_kept.push(NotKept { path: top.to_string(), why: format!("a repository that cannot be read: {why}") });
                return Vec::new();
            }
        };
        let inside = format!("{top}/");
        let inner = WalkContext { index: &git.index, head: &git.head, clock: context.clock, below: "", umask: context.umask };
        // If a link has taken the directory's place, nothing is read through it: contents are read by their path from
        // the root.
        let walked = RootDir::open(&self.workspace.path().join(top.as_str()))
            .and_then(|root| walk(&root, None, &Globs::all(), || ChangeFinder::new(&inner)));
        let Ok(walked) = walked else { return Vec::new() };
        let mut found = ChangeFinder::new(&inner);
        walked.visitors.into_iter().for_each(|finder| found.add(finder));
        let number = self.nested.len();
        let tops = found.unfilled().into_iter().map(|path| format!("{inside}{path}")).collect();
        self.note_unreadable(&inside, walked.left_out, found.unreadable.drain(..));
        // Changed permissions alone do not justify a copy of committed content.
        let changed = found.candidates.into_iter().filter(|candidate| !candidate.is_committed);
        let in_workspace = |candidate: CheckpointCandidate| CheckpointCandidate {
            path: format!("{inside}{}", candidate.path),
            nested: Some(number),
            ..candidate
        };
        all.candidates.extend(changed.map(in_workspace));
        self.nested.push(NestedRepository { inside, git });
        tops
    }
}

/// Whether a path lies in a nested repository at present. Results are cached by directory.
#[derive(Default)]
pub(crate) struct NestedPaths(HashMap<RelPath, bool>);

impl NestedPaths {
    pub(crate) fn contain(&mut self, workspace: &Workspace, path: &RelPath) -> bool {
        let Some(dir) = path.parent() else { return false };
        if let Some(known) = self.0.get(&dir) {
            return *known;
        }
        let is_top = || workspace.path().join(dir.as_str()).join(".git").symlink_metadata().is_ok();
        let is_nested = self.contain(workspace, &dir) || is_top();
        self.0.insert(dir, is_nested);
        is_nested
    }
}
