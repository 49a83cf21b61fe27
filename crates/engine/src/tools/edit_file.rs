//! `edit_file`: one exact piece of text by another.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Edit, Refusal, Tool, ToolNames, edit::Replacement};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<EditFile>, parse };

fn describe(_: &ToolNames) -> String {
    "Replace one exact piece of text in a file. The file must have been read in this session and be unchanged since; otherwise nothing is\n\
     written and the refusal shows what to do. `old_string` must be in the file exactly once, or set `replace_all`. An empty `old_string` creates a new file."
        .to_owned()
}

/// The arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditFile {
    /// Path of the file, relative to the workspace root or absolute.
    path: String,
    /// The exact text to replace, white space included, without LINE| prefixes. Empty to create the file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let EditFile { path, old_string, new_string, replace_all } = arguments(Tool::EditFile.name(), value)?;
    let replacement = Replacement { path, old: old_string, new: new_string, all: replace_all };
    Ok(Call::Edit(Edit::Replace(replacement)))
}
