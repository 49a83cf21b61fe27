//! Claude Code.

use serde_json::{Value, json};

use super::{Beginning, Heard, Shown, Use, What, decide::Verdict, words::Names};

/// What its tools are called.
pub(super) const NAMES: Names = Names { read: "Read", edit: "Edit", write: "Write" };

/// What it tells, in our words; nothing if it is none of our business.
pub(super) fn hear(input: &Value) -> Option<Heard> {
    // Cursor runs these hooks as well, and has its own.
    if input.get("cursor_version").is_some() {
        return None;
    }
    let text = |name: &str| input[name].as_str().map(str::to_owned);
    let what = match input["hook_event_name"].as_str()? {
        "SessionStart" => What::Begins(match input["source"].as_str() {
            Some("resume" | "fork") => Beginning::Resumed,
            Some("clear") => Beginning::Cleared,
            Some("compact") => Beginning::Compacted,
            _ => Beginning::New,
        }),
        // Who clears or compacts says so again at the beginning that follows, but not every version does.
        "PreCompact" => What::Compacts,
        "UserPromptSubmit" => What::Prompted,
        "PreToolUse" => What::Before(used(input)?),
        "PostToolUse" => What::After(used(input)?, shown(input)),
        _ => return None,
    };
    Some(Heard { session: text("session_id")?, agent: text("agent_id"), directory: text("cwd")?, what })
}

fn used(input: &Value) -> Option<Use> {
    let arguments = &input["tool_input"];
    let path = || arguments["file_path"].as_str().map(str::to_owned);
    let change = |tool, arguments, path: String| Use::Change { tool, arguments, paths: vec![path] };
    Some(match input["tool_name"].as_str()? {
        "Read" => Use::Read { path: path()? },
        "Edit" => {
            let path = path()?;
            let call = json!({
                "path": path,
                "old_string": arguments["old_string"].as_str()?,
                "new_string": arguments["new_string"].as_str()?,
                "replace_all": arguments["replace_all"].as_bool().unwrap_or_default(),
            });
            change("edit_file", call, path)
        }
        "MultiEdit" => {
            let path = path()?;
            let edit = |edit: &Value| {
                json!({
                    "path": path,
                    "old_string": edit["old_string"],
                    "new_string": edit["new_string"],
                    "replace_all": edit["replace_all"].as_bool().unwrap_or_default(),
                })
            };
            let edits: Vec<Value> = arguments["edits"].as_array()?.iter().map(edit).collect();
            change("multi_edit", json!({ "edits": edits }), path)
        }
        "Write" => {
            let path = path()?;
            change("write_file", json!({ "path": path, "content": arguments["content"].as_str()? }), path)
        }
        "Bash" => Use::Shell { command: arguments["command"].as_str()?.to_owned() },
        _ => return None,
    })
}

fn shown(input: &Value) -> Shown {
    let response = &input["tool_response"];
    let file = &response["file"];
    match (input["tool_name"].as_str(), file["content"].as_str(), response["stdout"].as_str()) {
        (Some("Read"), Some(content), _) => {
            let start = file["startLine"].as_u64().and_then(|start| u32::try_from(start).ok()).unwrap_or(1);
            Shown::Lines { start, content: content.to_owned() }
        }
        (Some("Bash"), _, Some(output)) => Shown::Output(output.to_owned()),
        _ => Shown::Nothing,
    }
}

/// The answer in its words; null lets everything pass.
pub(super) fn say(input: &Value, verdict: &Verdict) -> Value {
    let event = input["hook_event_name"].clone();
    match verdict {
        Verdict::Pass => Value::Null,
        Verdict::Deny(why) => json!({ "hookSpecificOutput": {
            "hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": why,
        } }),
        Verdict::Context(text) => json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } }),
    }
}
