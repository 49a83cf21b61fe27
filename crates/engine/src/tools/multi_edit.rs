//! `multi_edit`: several replacements in several files, all or none.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::{Edit, Refusal, edit::TextReplacement};

use super::ToolArguments;
use crate::calls::Call;

/// Several replacements in one or more files, all or nothing. Every file must have been read in this session and be
/// unchanged since. Later edits see the results of earlier ones.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MultiEdit {
    edits: Vec<ReplacementArguments>,
}

/// One replacement.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplacementArguments {
    path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

impl ToolArguments for MultiEdit {
    fn into_call(self) -> Result<Call, Refusal> {
        let replacement = |edit: ReplacementArguments| {
            let ReplacementArguments { path, old_string: old, new_string: new, replace_all: all } = edit;
            TextReplacement { path, old, new, all }
        };
        Ok(Call::Edit(Edit::ReplaceMany(self.edits.into_iter().map(replacement).collect())))
    }
}
