//! `restore`: brings files back to a time, a change or a checkpoint.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::Refusal;

use super::ToolArguments;
use crate::calls::{Call, RestoreCall};

/// Restore files, including deleted ones. Files that others changed must have been read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreArguments {
    #[serde(default)]
    paths: Vec<String>,
    /// 10m, a time, or a change or checkpoint.
    to: String,
}

impl ToolArguments for RestoreArguments {
    fn into_call(self) -> Result<Call, Refusal> {
        Ok(Call::Restore(RestoreCall { paths: self.paths, to: self.to }))
    }
}
