//! goose. Its model reads with commands, and its hooks do not get the output, but its session database has it, so each
//! hook looks there first ([`super::goose_database`]). Only a denial reaches the model. goose reports an edit twice
//! (`PostToolUse` and `AfterFileEdit`); only the first counts.

use std::path::Path;

use serde_json::{Value, json};
use surehand_engine::{Tool, ToolNames};

use super::{ClientAdapter, DEFAULTS, FIELDS, InputFields, TranscriptUse, parse_like_claude};
use crate::{
    client_instructions,
    hooks::event::{HookEvent, SessionStart, ToolOutcome, ToolUse, edit_in, text, write},
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "goose",
    mcp_name: "goose",
    conversation_variable: Some("AGENT_SESSION_ID"),
    names: || ToolNames::reading_with("shell (cat)").with(Tool::EditFile, "edit").with(Tool::WriteFile, "write"),
    // No limit is documented.
    max_context: 9_500,
    event_field: "event",
    denial_note: "goose adds to this that you should not retry. That does not hold here: once you have seen the lines, the call may be sent again.\n",
    fields: InputFields { agent: &[], directory: &["/working_dir"], transcript: "/sessions_database", ..FIELDS },
    parse,
    deny: |_, why| json!({ "decision": "block", "reason": why }),
    // Notes stay pending until a denial.
    add_context: |_, _| Value::Null,
    instructions: &client_instructions::GOOSE,
    transcript: TranscriptUse::HoldsResults,
    ..DEFAULTS
};

/// Adds to the input what goose does not send: its working directory and the path of its session database. `variable`
/// reads the environment.
pub fn with_environment(input: &str, directory: &Path, variable: impl Fn(&str) -> Option<String>) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(input) else { return input.to_owned() };
    if let (false, Some(directory)) = (fields.contains_key(DIRECTORY), directory.to_str()) {
        fields.insert(DIRECTORY.to_owned(), directory.into());
    }
    if let Some(record) = record(variable) {
        fields.insert(RECORD.to_owned(), record.into());
    }
    Value::Object(fields).to_string()
}

const DIRECTORY: &str = "working_dir";

const RECORD: &str = "sessions_database";

fn record(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let own = is_set("GOOSE_PATH_ROOT").map(|root| format!("{root}/data"));
    let data = || is_set("XDG_DATA_HOME").or_else(|| is_set("HOME").map(|home| format!("{home}/.local/share")));
    let directory = own.or_else(|| data().map(|data| format!("{data}/goose")))?;
    Some(format!("{directory}/sessions/sessions.db"))
}

fn parse(event: &str, input: &Value) -> Option<HookEvent> {
    match event {
        "SessionStart" => Some(HookEvent::Starts(SessionStart::New)),
        "PostToolUseFailure" => Some(HookEvent::After(parse_tool_use(input)?, ToolOutcome::Failed)),
        _ => parse_like_claude(event, input, parse_tool_use, |_| ToolOutcome::Done),
    }
}

fn parse_tool_use(input: &Value) -> Option<ToolUse> {
    let arguments = &input["tool_input"];
    let path = || text(arguments, "path");
    let name = input["tool_name"].as_str()?;
    Some(match name.strip_prefix("developer__").unwrap_or(name) {
        "edit" => edit_in(&path()?, arguments, ["before", "after", ""])?,
        "write" => write(&path()?, arguments["content"].as_str()?),
        "shell" => ToolUse::shell(arguments, None)?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goose_does_not_say_is_added() {
        let input = r#"{"event":"SessionStart","session_id":"1"}"#;
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let sent: Value = serde_json::from_str(&with_environment(input, Path::new("/w"), home)).unwrap();
        assert_eq!((&sent[DIRECTORY], &sent[RECORD]), (&json!("/w"), &json!("/h/.local/share/goose/sessions/sessions.db")));
        let all = |name: &str| Some(format!("/{name}"));
        let said = r#"{"event":"PreToolUse","working_dir":"/x"}"#;
        let sent: Value = serde_json::from_str(&with_environment(said, Path::new("/w"), all)).unwrap();
        assert_eq!((&sent[DIRECTORY], &sent[RECORD]), (&json!("/x"), &json!("/GOOSE_PATH_ROOT/data/sessions/sessions.db")));
        assert_eq!(with_environment("nonsense", Path::new("/w"), |_| None), "nonsense");
    }
}
