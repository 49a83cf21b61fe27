//! `apply_patch`: several changes in one text, all or none.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Edit, Refusal, Tool, ToolNames};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<ApplyPatch>, parse };

fn describe(_: &ToolNames) -> String {
    "Apply a patch to one or more files, all or nothing: `*** Begin Patch` (Add File, Update File, Delete File, Move to, chunks under `@@`) or a unified \
     diff. Every file it changes must have been read in this session and be unchanged since. Context must match exactly and name one place; if not, put \
     the function or class after `@@`."
        .to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyPatch {
    patch: String,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let ApplyPatch { patch } = arguments(Tool::ApplyPatch.name(), value)?;
    Ok(Call::Edit(Edit::Patch { patch }))
}
