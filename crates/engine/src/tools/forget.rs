//! `forget`: files that left the context no longer count as seen.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::Refusal;

use super::ToolArguments;
use crate::calls::{Call, ForgetCall};

/// Say that what you had read is no longer in your context, after a compaction or reset: all of it, or these files.
/// Read them again before you edit them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForgetArguments {
    paths: Option<Vec<String>>,
}

impl ToolArguments for ForgetArguments {
    fn into_call(self) -> Result<Call, Refusal> {
        Ok(Call::Forget(self.paths.map_or(ForgetCall::Everything, ForgetCall::Files)))
    }
}
