//! Claude Code. What it looks at before its hooks run, a file that was not read say, it refuses itself, and no hook hears of it.

use serde_json::Value;
use surehand_engine::{Tool, ToolNames};

use super::{
    Dialect, EVENT, Heard, Loads, Shown, ToolOutcome, Transcript, Use, What, beginning, edit, line_number, replacement,
    say_as_claude, several_edits, text, write,
};

pub(super) const DIALECT: Dialect = Dialect {
    names: || ToolNames::reading_with("Read").with(Tool::EditFile, "Edit").with(Tool::WriteFile, "Write"),
    // Of more than 10,000 characters it shows only the beginning.
    room: 9_500,
    hears_at: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"],
    hear,
    say: say_as_claude,
    person: Some("systemMessage"),
    loads: Loads::AboveAndRead { instead: &["CLAUDE.md", ".claude/CLAUDE.md"] },
    transcript: Transcript::HoldsFiles,
};

fn hear(input: &Value) -> Option<Heard> {
    // Cursor runs these hooks as well, and has its own.
    if input.get("cursor_version").is_some() {
        return None;
    }
    let what = match input[EVENT].as_str()? {
        "SessionStart" => What::Begins(beginning(input["source"].as_str())),
        // Of the whole conversation, a beginning has said it already.
        "PostCompact" if input["agent_id"].is_string() => What::Forgot,
        "UserPromptSubmit" => What::Prompted,
        "PreToolUse" => What::Before(used(input)?),
        "PostToolUse" => What::After(used(input)?, outcome(input)),
        // A command that ends with an error has run all the same.
        "PostToolUseFailure" => What::After(used(input)?, failure(input)),
        _ => return None,
    };
    let (transcript, gave) = (text(input, "transcript_path"), Vec::new());
    let (session, agent, directory) = (text(input, "session_id")?, text(input, "agent_id"), text(input, "cwd")?);
    Some(Heard { session, agent, directory, transcript, gave, what })
}

fn used(input: &Value) -> Option<Use> {
    let arguments = &input["tool_input"];
    let path = || text(arguments, "file_path");
    Some(match input["tool_name"].as_str()? {
        "Read" => Use::Read,
        "Edit" => {
            let all = arguments["replace_all"].as_bool().unwrap_or_default();
            edit(&path()?, arguments["old_string"].as_str()?, arguments["new_string"].as_str()?, all)
        }
        "MultiEdit" => multi_edit(&path()?, arguments["edits"].as_array()?),
        "Write" => write(&path()?, arguments["content"].as_str()?),
        "Bash" => Use::Shell { command: text(arguments, "command")?, directory: None },
        _ => return None,
    })
}

fn multi_edit(path: &str, edits: &[Value]) -> Use {
    let edit = |edit: &Value| {
        let all = edit["replace_all"].as_bool().unwrap_or_default();
        Some(replacement(path, edit["old_string"].as_str()?, edit["new_string"].as_str()?, all))
    };
    several_edits(path, edits.iter().map(edit).collect())
}

fn outcome(input: &Value) -> ToolOutcome {
    let response = &input["tool_response"];
    if response["is_error"] == true || response["success"] == false {
        return ToolOutcome::Failed;
    }
    let file = &response["file"];
    match (input["tool_name"].as_str(), file["content"].as_str(), response["stdout"].as_str()) {
        (Some("Read"), Some(content), _) => {
            let Some(path) = text(&input["tool_input"], "file_path") else { return ToolOutcome::Failed };
            let start = line_number(file, "startLine").unwrap_or(1);
            ToolOutcome::Showed(vec![Shown { path, start, content: content.to_owned() }])
        }
        (Some("Bash"), _, Some(output)) => ToolOutcome::Printed(output.to_owned()),
        _ => ToolOutcome::Done,
    }
}

fn failure(input: &Value) -> ToolOutcome {
    match (input["tool_name"].as_str(), input["error"].as_str()) {
        (Some("Bash"), Some(error)) => {
            let status = error.starts_with("Exit code ");
            let output = error.split_once('\n').map_or("", |(_, output)| output);
            ToolOutcome::Printed(if status { output } else { error }.to_owned())
        }
        _ => ToolOutcome::Failed,
    }
}
