//! goose. Its hooks do not tell what a tool has shown, and its model reads with commands; but its database of sessions has the results, and each
//! hook looks there first ([`super::goose_record`]). The model hears us only when a call is denied. What goose tells twice, by the tool and by the
//! deed (`PostToolUse` and `AfterFileEdit`), is heard once.

use std::path::Path;

use serde_json::{Value, json};
use surehand_engine::{Tool, ToolNames};

use super::{
    ClientAdapter, DenialChannel, HookEvent, HookInput, SessionStart, ToolOutcome, ToolUse, TranscriptUse, edit,
    handle::HookVerdict, text, write,
};
use crate::client_instructions;

pub(super) const DIALECT: ClientAdapter = ClientAdapter {
    names: || ToolNames::reading_with("shell (cat)").with(Tool::EditFile, "edit").with(Tool::WriteFile, "write"),
    // It has no limit that is documented.
    room: 9_500,
    hears_at: &[],
    event: "event",
    denial: DenialChannel::Answered,
    beside_denial: "goose adds to this that you should not retry. That does not hold here: once you have seen the lines, the call may be sent again.\n",
    hear,
    say,
    person: None,
    instructions: &client_instructions::GOOSE,
    transcript: TranscriptUse::HoldsResults,
};

/// What goose tells, with what it does not: where it works, and where its database of sessions is. `variable` gives those of the environment.
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

fn hear(input: &Value) -> Option<HookInput> {
    let what = match input["event"].as_str()? {
        "SessionStart" => HookEvent::Begins(SessionStart::New),
        "PostCompact" => HookEvent::Forgot,
        "UserPromptSubmit" => HookEvent::Prompted(Vec::new()),
        "PreToolUse" => HookEvent::Before(used(input)?),
        "PostToolUse" => HookEvent::After(used(input)?, ToolOutcome::Done),
        "PostToolUseFailure" => HookEvent::After(used(input)?, ToolOutcome::Failed),
        _ => return None,
    };
    let (session, directory) = (text(input, "session_id")?, text(input, DIRECTORY)?);
    Some(HookInput { session, agent: None, directory, transcript: text(input, RECORD), gave: Vec::new(), what })
}

fn used(input: &Value) -> Option<ToolUse> {
    let arguments = &input["tool_input"];
    let path = || text(arguments, "path");
    let name = input["tool_name"].as_str()?;
    Some(match name.strip_prefix("developer__").unwrap_or(name) {
        "edit" => edit(&path()?, arguments["before"].as_str()?, arguments["after"].as_str()?, false),
        "write" => write(&path()?, arguments["content"].as_str()?),
        "shell" => ToolUse::Shell { command: text(arguments, "command")?, directory: None },
        _ => return None,
    })
}

fn say(_input: &Value, verdict: &HookVerdict) -> Value {
    match verdict {
        // What is kept for it waits for a denial.
        HookVerdict::Pass | HookVerdict::Context(_) => Value::Null,
        HookVerdict::Deny(why) => json!({ "decision": "block", "reason": why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goose_does_not_say_is_added() {
        let input = r#"{"event":"SessionStart","session_id":"1"}"#;
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let told: Value = serde_json::from_str(&with_environment(input, Path::new("/w"), home)).unwrap();
        assert_eq!((&told[DIRECTORY], &told[RECORD]), (&json!("/w"), &json!("/h/.local/share/goose/sessions/sessions.db")));
        let all = |name: &str| Some(format!("/{name}"));
        let said = r#"{"event":"PreToolUse","working_dir":"/x"}"#;
        let told: Value = serde_json::from_str(&with_environment(said, Path::new("/w"), all)).unwrap();
        assert_eq!((&told[DIRECTORY], &told[RECORD]), (&json!("/x"), &json!("/GOOSE_PATH_ROOT/data/sessions/sessions.db")));
        assert_eq!(with_environment("nonsense", Path::new("/w"), |_| None), "nonsense");
    }
}
