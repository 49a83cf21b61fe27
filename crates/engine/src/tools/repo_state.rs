//! `repo_state`: what is there, what was done, what is left.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use surehand_core::{Refusal, render::snapshot::format_for_prompt};

use super::arguments;
use crate::{
    RepoTracker, repo,
    session::{Session, Success},
};

/// The state of the repository in a few hundred tokens: open tasks, files that changed since you read them, files that were created or changed, the rest as
/// counts. Use it instead of looking everything up again, above all after your context was compacted. It does not count as a read of the files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepoStateArguments {
    /// "text" (default), or "json" for all of it.
    #[serde(default)]
    format: Format,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Text,
    Json,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: RepoStateArguments = arguments("repo_state", call)?;
    let state = RepoTracker::load(session.workspace().clone()).snapshot();
    let text = match call.format {
        Format::Text => format_for_prompt(&state),
        Format::Json => format!("{:#}\n", repo::to_json(&state)),
    };
    let open = state.open_tasks().len();
    let result = Map::from_iter([("files_tracked".to_owned(), json!(state.files.len())), ("open_tasks".to_owned(), json!(open))]);
    Ok(Success { text, result, ..Success::default() })
}
