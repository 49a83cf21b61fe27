//! `apply_patch`: several changes in one text, all or none.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::{Edit, Refusal};

use super::ToolArguments;
use crate::calls::Call;

/// Apply a patch to one or more files, all or nothing: `*** Begin Patch` (Add File, Update File, Delete File, Move to,
/// chunks under `@@`) or a unified diff. Every file must have been read in this session and be unchanged since.
/// Context must match exactly and name one place; if not, put the function or class after `@@`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyPatch {
    patch: String,
}

impl ToolArguments for ApplyPatch {
    fn into_call(self) -> Result<Call, Refusal> {
        Ok(Call::Edit(Edit::Patch { patch: self.patch }))
    }
}
