//! GitHub Copilot CLI. Its input does not name the event: the command line of the hook does. It takes exit code 1 for a
//! denial. It reports a compaction before it happens, and not after, so views are forgotten then. Its `create` refuses
//! an existing file.

use serde_json::{Value, json};
use surehand_engine::{Tool, ToolNames};

use super::{CAMEL_CASE_FIELDS, ClientAdapter, DEFAULTS, session_start};
use crate::{
    client_instructions,
    hooks::{
        event::{HookEvent, ShownLines, ToolOutcome, ToolUse, edit, text, write},
        truncation,
    },
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "copilot",
    mcp_name: "copilot",
    conversation_variable: Some("COPILOT_AGENT_SESSION_ID"),
    names: || ToolNames::reading_with("view").with(Tool::EditFile, "edit").with(Tool::WriteFile, "create"),
    // No limit is documented; it shows the beginning of a long result.
    max_context: 9_500,
    context_events: &["sessionStart", "userPromptSubmitted", "postToolUse"],
    fields: CAMEL_CASE_FIELDS,
    parse,
    deny: |_, why| json!({ "permissionDecision": "deny", "permissionDecisionReason": why }),
    add_context: |_, text| json!({ "additionalContext": text }),
    instructions: &client_instructions::COPILOT,
    ..DEFAULTS
};

fn parse(event: &str, input: &Value) -> Option<HookEvent> {
    Some(match event {
        "sessionStart" => HookEvent::Starts(session_start(input)),
        "preCompact" => HookEvent::ContextLost,
        "userPromptSubmitted" => HookEvent::Prompted(Vec::new()),
        "preToolUse" => HookEvent::Before(parse_tool_use(input)?),
        "postToolUse" => HookEvent::After(parse_tool_use(input)?, parse_outcome(input)),
        "postToolUseFailure" => HookEvent::After(parse_tool_use(input)?, ToolOutcome::Failed),
        _ => return None,
    })
}

/// The arguments of a tool. Older versions send them as a string of JSON.
fn arguments(input: &Value) -> Value {
    match &input["toolArgs"] {
        Value::String(held) => serde_json::from_str(held).unwrap_or_else(|_| Value::String(held.clone())),
        arguments => arguments.clone(),
    }
}

fn parse_tool_use(input: &Value) -> Option<ToolUse> {
    let arguments = arguments(input);
    let path = || text(&arguments, "path");
    Some(match input["toolName"].as_str()? {
        "view" => ToolUse::Read,
        "edit" => edit(&path()?, arguments["old_str"].as_str()?, arguments["new_str"].as_str().unwrap_or_default(), false),
        "create" => write(&path()?, arguments["file_text"].as_str().unwrap_or_default()),
        "apply_patch" => ToolUse::Patch(arguments.as_str().map(str::to_owned).or_else(|| text(&arguments, "input"))?),
        "grep" | "rg" => ToolUse::Search { paths: paths(&arguments) },
        "bash" => ToolUse::shell(&arguments, None)?,
        _ => return None,
    })
}

fn paths(arguments: &Value) -> Vec<String> {
    match &arguments["paths"] {
        Value::Array(paths) => paths.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect(),
        _ => text(arguments, "paths").or_else(|| text(arguments, "path")).into_iter().collect(),
    }
}

fn parse_outcome(input: &Value) -> ToolOutcome {
    let result = &input["toolResult"];
    let said = result["textResultForLlm"].as_str().unwrap_or_default();
    match (input["toolName"].as_str(), result["resultType"].as_str()) {
        (Some("bash"), _) => ToolOutcome::Printed(printed(said).to_owned()),
        (_, Some("failure" | "error" | "rejected" | "denied")) => ToolOutcome::Failed,
        (Some("view"), _) => {
            let arguments = arguments(input);
            let start = arguments["view_range"][0].as_u64().and_then(|start| u32::try_from(start).ok()).unwrap_or(1);
            ToolOutcome::showed(text(&arguments, "path").map(|path| ShownLines::new(path, start, said)))
        }
        (Some("grep" | "rg"), _) => ToolOutcome::Printed(preview(said).to_owned()),
        _ => ToolOutcome::Done,
    }
}

/// The output of a command, without the line with its exit status.
fn printed(said: &str) -> &str {
    let output = match said.trim_end().rsplit_once('\n') {
        Some((output, last)) if last.starts_with("<shellId: ") || last.starts_with("<exited with ") => output,
        _ if said.starts_with("<shellId: ") => "",
        _ => said,
    };
    preview(output)
}

/// The part of a long result that the model sees, below a header.
fn preview(said: &str) -> &str {
    if !said.starts_with("Output too large to read at once") {
        return said;
    }
    let shown = said.split_once("\nPreview (first ").and_then(|(_, shown)| shown.split_once(" chars):\n"));
    shown.map_or("", |(_, shown)| truncation::without_part_line(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_command_ended_is_no_part_of_its_output() {
        assert_eq!(printed("alpha\nbeta\n<shellId: 0 completed with exit code 3>"), "alpha\nbeta");
        assert_eq!(printed("<shellId: 1 completed with exit code 0>"), "");
        assert_eq!(printed("alpha\n"), "alpha\n");
    }

    #[test]
    fn of_a_long_output_the_first_whole_lines_count() {
        let said = "Output too large to read at once (250.9 KB). Saved to: /t/x.txt\nConsider using grep.\n\n\
            Preview (first 500 chars):\none\ntwo\nthr\n<shellId: 0 completed with exit code 0>";
        assert_eq!(printed(said), "one\ntwo\n");
        assert_eq!(printed("Output too large to read at once (1 KB)."), "");
    }

    #[test]
    fn arguments_may_be_a_text() {
        let input = json!({ "toolName": "bash", "toolArgs": "{\"command\":\"cat a\"}" });
        assert_eq!(parse_tool_use(&input), Some(ToolUse::Shell { command: "cat a".to_owned(), directory: None }));
        let patch = json!({ "toolName": "apply_patch", "toolArgs": "*** Begin Patch\n*** End Patch" });
        assert_eq!(parse_tool_use(&patch), Some(ToolUse::Patch("*** Begin Patch\n*** End Patch".to_owned())));
    }
}
