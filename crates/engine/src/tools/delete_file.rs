//! `delete_file`: deletes a file, which can be undone.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Edit, Refusal, Tool, ToolNames};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<DeleteFile>, parse };

fn describe(names: &ToolNames) -> String {
    let back = names.get(Tool::Undo).map(|undo| format!(" `{undo}` brings it back.")).unwrap_or_default();
    format!(
        "Delete a file, not a directory. Some of a text file must have been read in this session, and it must be unchanged since.{back}"
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteFile {
    path: String,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let DeleteFile { path } = arguments(Tool::DeleteFile.name(), value)?;
    Ok(Call::Edit(Edit::Delete { path }))
}
