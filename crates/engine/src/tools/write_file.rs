//! `write_file`: writes a whole file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Edit, Refusal, Tool, ToolNames};

use super::ToolArguments;
use crate::calls::Call;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    path: String,
    content: String,
}

impl ToolArguments for WriteFile {
    fn describe(names: &ToolNames) -> String {
        let part = names.any_of(&[Tool::EditFile, Tool::EditLines, Tool::ApplyPatch]);
        let part = if part.is_empty() { String::new() } else { format!(" To change a part, use {part}.") };
        format!("Write a whole file. An existing file must have been read in full in this session and be unchanged since.{part}")
    }

    fn into_call(self) -> Result<Call, Refusal> {
        Ok(Call::Edit(Edit::Write { path: self.path, content: self.content }))
    }
}

/// Moves the text out of the arguments, if they are valid. Otherwise [`super::parse`] refuses them with the reason.
pub(super) fn take(value: &mut Value) -> Option<Call> {
    let fields = value.as_object_mut().filter(|fields| fields.len() == 2)?;
    let path = fields.get("path")?.as_str()?.to_owned();
    let Value::String(content) = fields.get_mut("content")? else { return None };
    Some(Call::Edit(Edit::Write { path, content: std::mem::take(content) }))
}
