//! `multi_edit`: several replacements in several files, all or none.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Edit, Refusal, Tool, ToolNames, edit::Replacement};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<MultiEdit>, parse };

fn describe(_: &ToolNames) -> String {
    "Make several replacements in one or more files, all or nothing: if one cannot be made, none is. Every file must have been read in this session\n\
     and be unchanged since. Later edits see the result of earlier ones on the same file. An empty `old_string` creates a new file."
        .to_owned()
}

/// The arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MultiEdit {
    /// The edits, in order.
    edits: Vec<OneEdit>,
}

/// One replacement.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    /// Path of the file, relative to the workspace root or absolute.
    path: String,
    /// The exact text to replace. Empty to create the file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let call: MultiEdit = arguments(Tool::MultiEdit.name(), value)?;
    let replacement = |edit: OneEdit| {
        let OneEdit { path, old_string, new_string, replace_all } = edit;
        Replacement { path, old: old_string, new: new_string, all: replace_all }
    };
    Ok(Call::Edit(Edit::ReplaceMany(call.edits.into_iter().map(replacement).collect())))
}
