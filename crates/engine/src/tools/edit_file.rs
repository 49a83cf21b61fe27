//! `edit_file`: replaces an exact piece of text.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::{Edit, Refusal, edit::TextReplacement};

use super::ToolArguments;
use crate::calls::Call;

/// Replace an exact text in a file that was read in this session and is unchanged since; otherwise nothing is written
/// and the refusal shows what to do. `old_string` must occur exactly once, unless `replace_all` is set. An empty one
/// creates a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    path: String,
    /// With white space, without LINE| prefixes.
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

impl ToolArguments for EditFile {
    fn into_call(self) -> Result<Call, Refusal> {
        let Self { path, old_string: old, new_string: new, replace_all: all } = self;
        Ok(Call::Edit(Edit::Replace(TextReplacement { path, old, new, all })))
    }
}
