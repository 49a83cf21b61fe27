//! `list_files`: lists files by name.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, Tool, ToolNames};

use super::{ToolDefinition, WholeNumber, arguments, limit, schema};
use crate::calls::{Call, ListCall};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<ListFiles>, parse };

fn describe(_: &ToolNames) -> String {
    "List the files of the workspace, or below `path`, without what .gitignore or .ignore names. Where there are too many, directories come as counts."
        .to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListFiles {
    path: Option<String>,
    /// `*.rs`, `src/**`, `*.{js,ts}`, `!*.min.js` for all others.
    glob: Option<String>,
    /// 200 by default.
    limit: Option<WholeNumber>,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let call: ListFiles = arguments(Tool::ListFiles.name(), value)?;
    let limit = limit(Tool::ListFiles, call.limit)?;
    Ok(Call::List(ListCall { path: call.path, glob: call.glob, limit }))
}
