//! `list_files`: lists files by name.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::{Refusal, Tool};

use super::{ToolArguments, WholeNumber, limit};
use crate::calls::{Call, ListCall};

/// List files by name, except those that .gitignore or .ignore excludes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFiles {
    path: Option<String>,
    /// `*.{js,ts}`, `src/**`, `!*.min.js`.
    glob: Option<String>,
    /// 200 by default.
    limit: Option<WholeNumber>,
}

impl ToolArguments for ListFiles {
    fn into_call(self) -> Result<Call, Refusal> {
        let limit = limit(Tool::ListFiles, self.limit)?;
        Ok(Call::List(ListCall { path: self.path, glob: self.glob, limit }))
    }
}
