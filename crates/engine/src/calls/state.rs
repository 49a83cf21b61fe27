//! The `state` call: files, changes and open tasks of the repository.

use serde::{Deserialize, Serialize};
use surehand_core::{Done, outcome::ShownState};

use crate::{repo_state, session::Session};

/// The format of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateFormat {
    /// A summary of a few hundred tokens.
    #[default]
    #[serde(rename(deserialize = "text"))]
    Summary,
    /// The whole state as a JSON document.
    Json,
}

pub(super) fn state(session: &mut Session, format: StateFormat) -> Done {
    let state = session.snapshot();
    let document = match format {
        StateFormat::Summary => None,
        StateFormat::Json => Some(repo_state::to_json(&state)),
    };
    Done::State(ShownState { state, document })
}
