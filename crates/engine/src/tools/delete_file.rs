//! `delete_file`: a file, taken away. It can be brought back.

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
        "Delete a file. A text file must have been read in this session (any part) and be unchanged since; otherwise nothing is deleted and the refusal shows\n\
         what changed.{back} Not for directories."
    )
}

/// The arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteFile {
    /// Path of the file, relative to the workspace root or absolute.
    path: String,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let DeleteFile { path } = arguments(Tool::DeleteFile.name(), value)?;
    Ok(Call::Edit(Edit::Delete { path }))
}
