//! `list_files`: the files of the workspace by name.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, Tool, ToolNames};

use super::{Number, ToolDefinition, arguments, limit, schema};
use crate::calls::{Call, ListCall};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<ListFiles>, parse };

fn describe(_: &ToolNames) -> String {
    "List the files of the workspace, or below `path`, one per line. Hidden files are listed; what .gitignore or .ignore names is not, nor are links.\n\
     Where there are too many, directories come as counts. Names only: before an edit, read the file."
        .to_owned()
}

/// The arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListFiles {
    /// Directory to list, relative to the workspace root or absolute; without it, the whole workspace.
    path: Option<String>,
    /// Only files that match: `*.rs`, `src/**`, `*.{js,ts}`, or `!*.min.js` for all others. One with a slash is relative to the workspace root.
    glob: Option<String>,
    /// At most so many lines; 200 by default.
    limit: Option<Number>,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let call: ListFiles = arguments(Tool::ListFiles.name(), value)?;
    let limit = limit(Tool::ListFiles, call.limit)?;
    Ok(Call::List(ListCall { path: call.path, glob: call.glob, limit }))
}
