//! Cursor, from its documentation. It reports one action twice, as a tool and as an action (`preToolUse` and
//! `beforeShellExecution`); the second report changes nothing. Only answers after a tool reach the model. It reports a
//! compaction before it happens, and not after, so views are forgotten then, and the model reads that with the next
//! result.

use serde_json::{Value, json};
use surehand_engine::{Edit, Tool, ToolNames};

use super::{ClientAdapter, DEFAULTS, FIELDS, InputFields};
use crate::{
    client_instructions,
    hooks::event::{
        HookEvent, SessionStart, ShownLines, ToolOutcome, ToolUse, any_text, edit, edits_in, join_rows, line_number, text,
        unknown_edit, write,
    },
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "cursor",
    mcp_name: "cursor",
    project_variable: Some("CURSOR_PROJECT_DIR"),
    names: || ToolNames::reading_with("Read").with(Tool::EditFile, "Write").with(Tool::WriteFile, "Write"),
    // It drops more than 10,000 characters.
    max_context: 9_500,
    context_events: &["sessionStart", "postToolUse"],
    fields: InputFields { session: &["/conversation_id", "/session_id"], directory: &["/cwd", "/workspace_roots/0"], ..FIELDS },
    parse,
    deny: |_, why| {
        let user = why.lines().next().unwrap_or_default();
        json!({ "permission": "deny", "user_message": format!("Surehand: {user}"), "agent_message": why })
    },
    add_context: |_, text| json!({ "additional_context": text }),
    person_field: Some("user_message"),
    instructions: &client_instructions::CURSOR,
    ..DEFAULTS
};

fn parse(event: &str, input: &Value) -> Option<HookEvent> {
    Some(match event {
        "sessionStart" => HookEvent::Starts(SessionStart::New),
        "preCompact" => HookEvent::ContextLost,
        "preToolUse" => HookEvent::Before(parse_tool_use(input)?),
        "postToolUse" => HookEvent::After(parse_tool_use(input)?, parse_outcome(input)),
        "beforeShellExecution" => HookEvent::Before(shell(input)?),
        "afterShellExecution" => HookEvent::After(shell(input)?, ToolOutcome::Printed(text(input, "output").unwrap_or_default())),
        "afterFileEdit" => HookEvent::After(edits(input)?, ToolOutcome::Done),
        _ => return None,
    })
}

fn path(arguments: &Value) -> Option<&str> {
    any_text(arguments, &["file_path", "path", "target_file"])
}

fn parse_tool_use(input: &Value) -> Option<ToolUse> {
    let arguments = &input["tool_input"];
    let old_and_new = || Some((arguments["old_string"].as_str()?, arguments["new_string"].as_str()?));
    Some(match input["tool_name"].as_str()? {
        "Read" => ToolUse::Read,
        "Write" => match (old_and_new(), any_text(arguments, &["content", "contents"])) {
            (Some((old, new)), _) => edit(path(arguments)?, old, new, arguments["replace_all"] == true),
            (None, Some(content)) => write(path(arguments)?, content),
            // Without the content, at least the path is known.
            (None, None) => unknown_edit(path(arguments)?),
        },
        "Delete" => ToolUse::Change(Edit::Delete { path: path(arguments)?.to_owned() }),
        "Grep" => ToolUse::search(path(arguments).map(str::to_owned)),
        "Shell" => shell(arguments)?,
        _ => return None,
    })
}

fn shell(arguments: &Value) -> Option<ToolUse> {
    ToolUse::shell(arguments, text(arguments, "working_directory"))
}

fn edits(input: &Value) -> Option<ToolUse> {
    let edits = input.get("edits").filter(|edits| edits.is_array())?;
    Some(edits_in(&text(input, "file_path")?, edits, ["old_string", "new_string", ""]))
}

fn parse_outcome(input: &Value) -> ToolOutcome {
    // Usually a string of JSON, else the plain output.
    let output = match &input["tool_output"] {
        Value::String(output) => serde_json::from_str(output).unwrap_or_else(|_| Value::String(output.clone())),
        other => other.clone(),
    };
    if output.get("error").is_some_and(|error| !error.is_null()) || output["success"] == false {
        return ToolOutcome::Failed;
    }
    let said = output.as_str().or_else(|| any_text(&output, &["content", "contents", "output", "stdout", "text", "result"]));
    match (input["tool_name"].as_str(), said) {
        (Some("Read"), Some(said)) => {
            let path = path(&input["tool_input"]);
            ToolOutcome::showed(path.map(|path| shown(path, &input["tool_input"], said)))
        }
        (Some("Read"), None) => ToolOutcome::Failed,
        (Some("Shell" | "Grep"), said) => ToolOutcome::Printed(said.unwrap_or_default().to_owned()),
        _ => ToolOutcome::Done,
    }
}

fn shown(path: &str, arguments: &Value, said: &str) -> ShownLines {
    if let Some((start, content)) = numbered(said) {
        return ShownLines::new(path, start, content);
    }
    let start = line_number(arguments, "offset").filter(|offset| *offset > 0).unwrap_or(1);
    ShownLines::new(path, start, said)
}

/// The lines of `12|text` rows, with the number of the first.
fn numbered(said: &str) -> Option<(u32, String)> {
    let row = |row: &str| -> Option<(u32, String)> {
        let (number, line) = row.split_once('|')?;
        Some((number.trim().parse().ok()?, line.to_owned()))
    };
    join_rows(said.lines().map_while(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_must_follow_each_other() {
        assert_eq!(numbered("3|c\n4|\n5|6|e\nend"), Some((3, "c\n\n6|e".to_owned())));
        assert_eq!(numbered("1|a\n3|c"), None);
        assert_eq!(numbered("4294967295|a\n0|b"), None);
    }
}
