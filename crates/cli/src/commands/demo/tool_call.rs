//! What was called and what came of it, out of the events of a run.

use surehand_agent::RunEvent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub tool: String,
    /// The file that it is about; empty if it is about none.
    pub path: String,
    /// Whether the loop made it of its own accord.
    pub is_repair: bool,
}

impl ToolCall {
    /// The call of an event, if it is one.
    pub(super) fn of(event: &RunEvent) -> Option<Self> {
        let RunEvent::Call { tool, arguments, repair, .. } = event else { return None };
        let path = arguments["path"].as_str().unwrap_or_default().to_owned();
        Some(Self { tool: tool.clone(), path, is_repair: *repair })
    }
}
