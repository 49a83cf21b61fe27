//! The names that clients give to our tools. Most put the server's name before ours, which models understand. But some
//! clients have a `read_file` of their own, whose reads Surehand does not see. So texts for their models must use the
//! full name of ours.

use surehand_engine::{Tool, ToolNames};

/// The clients with tools of the same names as ours: the start of the client's name, and the text around the server's
/// name.
const CLIENTS: &[(&str, &str, &str)] =
    &[("gemini-cli", "mcp_", "_"), ("qwen-cli-mcp-client", "mcp__", "__"), ("reasonix", "mcp-tool:", "/")];

/// The offered tools by the names that this client gives them; `None` if they cannot be mistaken for other tools.
pub(super) fn as_seen_by(client: &str, offered: &ToolNames) -> Option<ToolNames> {
    let (start, before, after) = CLIENTS.iter().find(|(start, ..)| client.starts_with(start))?;
    // Qwen Code sends the name of the server in its settings. For other clients, the name is the one that `surehand
    // init` writes.
    let said = client.strip_prefix(start).and_then(|rest| rest.strip_prefix('-')).filter(|_| start.starts_with("qwen"));
    let prefix = format!("{before}{}{after}", said.unwrap_or("surehand"));
    let tools = Tool::ALL.into_iter().filter_map(|tool| Some((tool, offered.get(tool)?)));
    let none = ToolNames::reading_with(format!("{prefix}{}", offered.read()));
    Some(tools.fold(none, |names, (tool, name)| names.with(tool, format!("{prefix}{name}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_with_its_own_read_file_gets_the_full_name_of_ours() {
        let offered = ToolNames::offering([Tool::EditFile]);
        let names = as_seen_by("gemini-cli-mcp-client", &offered).unwrap();
        assert_eq!((names.read(), names.get(Tool::EditFile)), ("mcp_surehand_read_file", Some("mcp_surehand_edit_file")));
        assert_eq!(names.get(Tool::WriteFile), None);
        assert_eq!(as_seen_by("qwen-cli-mcp-client-files", &offered).unwrap().read(), "mcp__files__read_file");
        assert_eq!(as_seen_by("reasonix", &offered).unwrap().read(), "mcp-tool:surehand/read_file");
        assert_eq!(as_seen_by("claude-code", &offered), None);
    }
}
