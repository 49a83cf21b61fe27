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

/// Takes the text out of the arguments, where they are as they should be. Otherwise [`parse`] says what is wrong with them.
pub(super) fn take(value: &mut Value) -> Option<Call> {
    let fields = value.as_object_mut().filter(|fields| fields.len() == 2)?;
    let path = fields.get("path")?.as_str()?.to_owned();
    let Value::String(content) = fields.get_mut("content")? else { return None };
    Some(Call::Edit(Edit::Write { path, content: std::mem::take(content) }))
}
