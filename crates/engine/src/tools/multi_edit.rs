//! `multi_edit`: several replacements in several files, all or none.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Edit, Refusal, Tool, ToolNames, edit::TextReplacement};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<MultiEdit>, parse };

fn describe(_: &ToolNames) -> String {
    "Several replacements in one or more files, all or nothing. Every file must have been read in this session and be unchanged since. \
     Later edits see what earlier ones made of a file."
        .to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MultiEdit {
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

fn parse(value: &Value) -> Result<Call, Refusal> {
    let call: MultiEdit = arguments(Tool::MultiEdit.name(), value)?;
    let replacement = |edit: ReplacementArguments| {
        let ReplacementArguments { path, old_string, new_string, replace_all } = edit;
        TextReplacement { path, old: old_string, new: new_string, all: replace_all }
    };
    Ok(Call::Edit(Edit::ReplaceMany(call.edits.into_iter().map(replacement).collect())))
}
