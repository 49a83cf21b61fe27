//! `search_files`: shows matching lines, which then count as seen.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, Tool, ToolNames};

use super::{ToolDefinition, WholeNumber, arguments, limit, schema};
use crate::calls::{Call, SearchCall};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<SearchFiles>, parse };

fn describe(names: &ToolNames) -> String {
    format!(
        "Search the files of the workspace, or below `path`, for a regular expression (Rust syntax) within a line. Lines come as from {}, and exactly \
         those that are shown count as read. What .gitignore or .ignore names is searched only if `path` names it.",
        names.read()
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchFiles {
    pattern: String,
    path: Option<String>,
    /// `*.rs`, `src/**`, `!*.min.js`.
    glob: Option<String>,
    /// Matching lines to show; 100 by default.
    limit: Option<WholeNumber>,
    /// Lines around each match.
    #[schemars(range(min = 0))]
    context: Option<WholeNumber>,
    #[serde(default)]
    case_insensitive: bool,
    /// The pattern is plain text.
    #[serde(default)]
    fixed: bool,
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
