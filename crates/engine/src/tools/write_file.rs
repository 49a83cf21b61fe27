//! `write_file`: a whole file.

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
        "Write a whole file. A new file needs nothing; over an existing file the whole of it must have been read in this session and be unchanged since.\n\
         Writing what is there already changes nothing.{part}"
    )
}

/// The arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    /// Path of the file, relative to the workspace root or absolute. Missing directories are made.
    path: String,
    /// The whole content.
    content: String,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let WriteFile { path, content } = arguments(Tool::WriteFile.name(), value)?;
    Ok(Call::Edit(Edit::Write { path, content }))
}
