//! The state of a repository, for a prompt and for programs.

use surehand_engine::{ToolNames, core, render::snapshot, repo_state};

/// The state of a repository at one moment: open tasks, and the files that sessions touched.
#[derive(Debug, Clone)]
pub struct RepoState {
    state: core::RepoState,
    names: ToolNames,
}

impl RepoState {
    pub(crate) fn new(state: core::RepoState, names: ToolNames) -> Self {
        Self { state, names }
    }

    /// The state in fewer than 500 tokens, for a prompt.
    pub fn format_for_prompt(&self) -> String {
        snapshot::format_for_prompt(&self.state, &self.names)
    }

    /// The whole state as a JSON document: `work_dir`, `story_id`, `files`, `open_tasks` and `last_updated`.
    pub fn to_json(&self) -> String {
        repo_state::to_json(&self.state)
    }
}
