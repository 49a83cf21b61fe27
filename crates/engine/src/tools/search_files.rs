//! `search_files`: shows matching lines, which then count as seen.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::{Refusal, Tool, ToolNames};

use super::{ToolArguments, WholeNumber, limit};
use crate::calls::{Call, SearchCall};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchFiles {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    /// 100 by default.
    limit: Option<WholeNumber>,
    /// Lines around each match.
    context: Option<WholeNumber>,
    #[serde(default)]
    case_insensitive: bool,
    /// The pattern is plain text.
    #[serde(default)]
    fixed: bool,
    #[serde(default)]
    anchors: bool,
}

impl ToolArguments for SearchFiles {
    fn describe(names: &ToolNames) -> String {
        format!(
            "Search files for a regular expression (Rust syntax), line by line. Lines are shown as by {}, and exactly \
             those count as read. Ignored files are searched only if `path` names them.",
            names.read()
        )
    }

    fn into_call(self) -> Result<Call, Refusal> {
        let limit = limit(Tool::SearchFiles, self.limit)?;
        Ok(Call::Search(SearchCall {
            pattern: self.pattern,
            path: self.path,
            glob: self.glob,
            limit,
            context: self.context.map_or(0, |context| context.0 as usize),
            case_insensitive: self.case_insensitive,
            fixed: self.fixed,
            anchors: self.anchors,
        }))
    }
}
