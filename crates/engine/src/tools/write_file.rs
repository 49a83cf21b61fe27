//! `write_file`: writes a whole file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Edit, Refusal, Tool, ToolNames};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<WriteFile>, parse };

fn describe(names: &ToolNames) -> String {
    let part = names.any_of(&[Tool::EditFile, Tool::EditLines, Tool::ApplyPatch]);
    let part = if part.is_empty() { String::new() } else { format!(" For a change of a part, use {part}.") };
    format!(
        "Write a whole file. A new one needs nothing; of an existing one all must have been read in this session and be unchanged since.{part}"
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    path: String,
    content: String,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let WriteFile { path, content } = arguments(Tool::WriteFile.name(), value)?;
    Ok(Call::Edit(Edit::Write { path, content }))
}
