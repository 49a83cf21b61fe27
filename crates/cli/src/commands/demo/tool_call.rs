//! A tool call, from the events of a run.

use surehand_agent::RunEvent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub tool: String,
    /// Empty if the tool takes no path.
    pub path: String,
    /// Whether the loop made it to repair an edit.
    pub is_repair: bool,
}

impl ToolCall {
    pub(super) fn of(event: &RunEvent) -> Option<Self> {
        let RunEvent::Call { tool, arguments, repair, .. } = event else { return None };
        let path = arguments["path"].as_str().unwrap_or_default().to_owned();
        Some(Self { tool: tool.clone(), path, is_repair: *repair })
    }
}
