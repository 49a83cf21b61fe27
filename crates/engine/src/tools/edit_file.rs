//! `edit_file`: replaces an exact piece of text.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Edit, Refusal, Tool, ToolNames, edit::TextReplacement};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<EditFile>, parse };

fn describe(_: &ToolNames) -> String {
    "Replace an exact text in a file that was read in this session and is unchanged since; otherwise nothing is written and the refusal shows what to do. \
     `old_string` must be there exactly once, or set `replace_all`. An empty one creates a new file."
        .to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditFile {
    path: String,
    /// With white space, without LINE| prefixes.
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let EditFile { path, old_string, new_string, replace_all } = arguments(Tool::EditFile.name(), value)?;
    let replacement = TextReplacement { path, old: old_string, new: new_string, all: replace_all };
    Ok(Call::Edit(Edit::Replace(replacement)))
}
