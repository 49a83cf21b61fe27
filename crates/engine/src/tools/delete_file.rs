//! `delete_file`: deletes a file, which can be undone.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::{Edit, Refusal, Tool, ToolNames};

use super::ToolArguments;
use crate::calls::Call;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteFile {
    path: String,
}

impl ToolArguments for DeleteFile {
    fn describe(names: &ToolNames) -> String {
        let back = names.get(Tool::Undo).map(|undo| format!(" `{undo}` brings it back.")).unwrap_or_default();
        format!("Delete a file, not a directory. A text file must have been read in this session and be unchanged since.{back}")
    }

    fn into_call(self) -> Result<Call, Refusal> {
        Ok(Call::Edit(Edit::Delete { path: self.path }))
    }
}
