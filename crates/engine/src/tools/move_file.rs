//! `move_file`: gives a file another name.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Edit, Refusal, Tool, ToolNames};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<MoveFile>, parse };

fn describe(_: &ToolNames) -> String {
    "Move or rename a file to a path where nothing is. Some of a text file must have been read in this session, and it must be unchanged since."
        .to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MoveFile {
    from: String,
    to: String,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let MoveFile { from, to } = arguments(Tool::MoveFile.name(), value)?;
    Ok(Call::Edit(Edit::Move { from, to }))
}
