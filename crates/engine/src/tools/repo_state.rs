//! `repo_state`: shows files, changes and open tasks.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, Tool, ToolNames};

use super::{ToolDefinition, arguments, schema};
use crate::calls::{Call, StateFormat};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<RepoStateArguments>, parse };

fn describe(_: &ToolNames) -> String {
    "The state of the repository in a few hundred tokens: open tasks, files that changed since you read them, files created or changed, the rest as \
     counts. Use it after your context was compacted instead of looking everything up again."
        .to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RepoStateArguments {
    /// json for all of it.
    #[serde(default)]
    format: FormatArgument,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FormatArgument {
    #[default]
    Text,
    Json,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let call: RepoStateArguments = arguments(Tool::RepoState.name(), value)?;
    Ok(Call::State(match call.format {
        FormatArgument::Text => StateFormat::Summary,
        FormatArgument::Json => StateFormat::Json,
    }))
}
