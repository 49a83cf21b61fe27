//! The state of the repository for programs that use a workspace without a session.

use std::sync::Arc;

use surehand_core::{Outcome, RelPath, RepoState};

use crate::{
    disk::read::{Found, find},
    workspace::Workspace,
};

/// Follows what tools do to the files of a workspace. All trackers of a workspace are one. A failure here never fails a tool: it is
/// told, and the state is rebuilt the next time.
#[derive(Debug, Clone)]
pub struct RepoTracker {
    workspace: Arc<Workspace>,
}

impl RepoTracker {
    /// Loads the state of a workspace. What is damaged is made anew from the files, and told with the next reply.
    pub fn load(workspace: Arc<Workspace>) -> Self {
        workspace.repo().load(&workspace.repo_sources());
        Self { workspace }
    }

    /// Takes in what came of a call. Sessions do that themselves.
    pub fn update_from_tool_result(&self, outcome: &Outcome) {
        let stamp_of = |path: &RelPath| match find(self.workspace.root(), path) {
            Ok(Found::File { stat, .. }) => Some(self.workspace.clock().stamp(&stat)),
            _ => None,
        };
        self.workspace.repo().take_touched(outcome.touched(), stamp_of);
    }

    /// The state as it is: files that are not what they were are looked at again.
    pub fn snapshot(&self) -> RepoState {
        self.workspace.repo().snapshot(&self.workspace.repo_sources())
    }

    /// Writes the state down, if what is written is behind.
    pub fn persist(&self) {
        let mut repo = self.workspace.repo();
        repo.load(&self.workspace.repo_sources());
        repo.persist(self.workspace.state(), &|| self.workspace.ask(|store| store.plan()).ok());
    }
}
