//! The state of a repository in a few hundred tokens.

use crate::state::RepoState;

/// For a prompt.
pub fn format_for_prompt(state: &RepoState) -> String {
    format!("{} files\n{}", state.files.len(), super::tasks::tasks(&state.tasks))
}
