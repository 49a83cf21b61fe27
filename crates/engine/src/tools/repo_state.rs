//! `repo_state`: shows files, changes and open tasks.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::Refusal;

use super::ToolArguments;
use crate::calls::{Call, StateFormat};

/// Show open tasks, files that changed since you read them, files created or changed, and counts of the rest, in a few
/// hundred tokens. Use it after a compaction.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RepoStateArguments {
    /// json for all of it.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["text", "json"]))]
    format: StateFormat,
}

impl ToolArguments for RepoStateArguments {
    fn into_call(self) -> Result<Call, Refusal> {
        Ok(Call::State(self.format))
    }
}
