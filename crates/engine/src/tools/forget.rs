//! `forget`: files that left the context no longer count as seen.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::Refusal;

use super::ToolArguments;
use crate::calls::{Call, ForgetCall};

/// After a compaction or reset of your context: earlier reads no longer count, all of them or those of these files.
/// Read again before you edit.
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
