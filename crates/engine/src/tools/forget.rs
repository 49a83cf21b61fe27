//! `forget`: files that left the context no longer count as seen.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, Tool, ToolNames};

use super::{ToolDefinition, arguments, schema};
use crate::calls::{Call, ForgetCall};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<ForgetArguments>, parse };

fn describe(_: &ToolNames) -> String {
    "Say that what you had read is no longer in your context, after a compaction or reset: all of it, or these files. Read them again before you edit them."
        .to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForgetArguments {
    paths: Option<Vec<String>>,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let call: ForgetArguments = arguments(Tool::Forget.name(), value)?;
    Ok(Call::Forget(call.paths.map_or(ForgetCall::Everything, ForgetCall::Files)))
}
