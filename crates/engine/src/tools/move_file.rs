//! `move_file`: gives a file another name.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::{Edit, Refusal};

use super::ToolArguments;
use crate::calls::Call;

/// Move or rename a file to a free path. A text file must have been read in this session and be unchanged since.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveFile {
    from: String,
    to: String,
}

impl ToolArguments for MoveFile {
    fn into_call(self) -> Result<Call, Refusal> {
        Ok(Call::Edit(Edit::Move { from: self.from, to: self.to }))
    }
}
