//! `search_files`: lines that match, and exactly those that are shown count as seen.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, Tool, ToolNames};

use super::{Number, ToolDefinition, arguments, limit, schema};
use crate::calls::{Call, SearchCall};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<SearchFiles>, parse };

fn describe(names: &ToolNames) -> String {
    let in_file = names.all_of(&[Tool::EditFile, Tool::MultiEdit, Tool::ApplyPatch]);
    let in_file = if in_file.is_empty() { in_file } else { format!("{in_file} in that file") };
    let lines = names.get(Tool::EditLines).map(|edit| format!("{edit} of these lines")).unwrap_or_default();
    let allowed: Vec<String> = [in_file, lines].into_iter().filter(|edit| !edit.is_empty()).collect();
    let allowed = if allowed.is_empty() { String::new() } else { format!(": they allow {}", allowed.join(", and ")) };
    format!(
        "Search the files of the workspace, or below `path`, for a regular expression (Rust syntax), line by line. Lines come as `LINE|text`, as from {}.\n\
         Exactly the lines that are shown count as read{allowed}.\n\
         Hidden files are searched; what .gitignore or .ignore names is not unless `path` names it.",
        names.read()
    )
}

/// The arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchFiles {
    /// What to search for; a match lies within one line.
    pattern: String,
    /// Directory or file to search, relative to the workspace root or absolute; without it, the whole workspace.
    path: Option<String>,
    /// Only files that match: `*.rs`, `src/**`, `*.{js,ts}`, or `!*.min.js` for all others. One with a slash is relative to the workspace root.
    glob: Option<String>,
    /// At most so many matching lines; 100 by default. All are counted.
    limit: Option<Number>,
    /// Lines to show before and after each match; 0 by default.
    #[schemars(range(min = 0))]
    context: Option<Number>,
    /// Take upper and lower case as the same.
    #[serde(default)]
    case_insensitive: bool,
    /// Take the pattern as plain text, not as a regular expression.
    #[serde(default)]
    fixed: bool,
    /// Show each line with its anchor, LINE#HASH.
    #[serde(default)]
    anchors: bool,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let call: SearchFiles = arguments(Tool::SearchFiles.name(), value)?;
    let limit = limit(Tool::SearchFiles, call.limit)?;
    Ok(Call::Search(SearchCall {
        pattern: call.pattern,
        path: call.path,
        glob: call.glob,
        limit,
        context: call.context.map_or(0, |context| context.0 as usize),
        case_insensitive: call.case_insensitive,
        fixed: call.fixed,
        anchors: call.anchors,
    }))
}
