//! Claude Code. What it looks at before its hooks run, a file that was not read say, it refuses itself, and no hook hears of it.

use serde_json::Value;
use surehand_engine::{Tool, ToolNames};

use super::{
    ClientAdapter, DenialChannel, EVENT, HookEvent, HookInput, ShownLines, ToolOutcome, ToolUse, TranscriptUse, beginning, edit,
    line_number, replacements, say_as_claude, several_edits, some_edit, text,
    truncation::{self, CutSize},
    write,
};
use crate::client_instructions;

pub(super) const DIALECT: ClientAdapter = ClientAdapter {
    names: || ToolNames::reading_with("Read").with(Tool::EditFile, "Edit").with(Tool::WriteFile, "Write"),
    // Of more than 10,000 characters it shows only the beginning.
    room: 9_500,
    hears_at: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"],
    event: EVENT,
    denial: DenialChannel::Answered,
    beside_denial: "",
    hear,
    say: say_as_claude,
    person: Some("systemMessage"),
    instructions: &client_instructions::CLAUDE,
    transcript: TranscriptUse::HoldsFiles,
};

fn hear(input: &Value) -> Option<HookInput> {
    // Cursor runs these hooks as well, and has its own.
    if input.get("cursor_version").is_some() {
        return None;
    }
    let what = match input[EVENT].as_str()? {
        "SessionStart" => HookEvent::Begins(beginning(input["source"].as_str())),
        // Of the whole conversation, a beginning has said it already.
        "PostCompact" if input["agent_id"].is_string() => HookEvent::Forgot,
        "UserPromptSubmit" => HookEvent::Prompted(Vec::new()),
        "PreToolUse" => HookEvent::Before(used(input)?),
        "PostToolUse" => HookEvent::After(used(input)?, outcome(input)),
        // A command that ends with an error has run all the same.
        "PostToolUseFailure" => HookEvent::After(used(input)?, failure(input)),
        _ => return None,
    };
    let (transcript, gave) = (text(input, "transcript_path"), Vec::new());
    let (session, agent, directory) = (text(input, "session_id")?, text(input, "agent_id"), text(input, "cwd")?);
    Some(HookInput { session, agent, directory, transcript, gave, what })
}

fn used(input: &Value) -> Option<ToolUse> {
    let arguments = &input["tool_input"];
    let path = || text(arguments, "file_path");
    Some(match input["tool_name"].as_str()? {
        "Read" => ToolUse::Read,
        "Edit" => {
            let all = arguments["replace_all"].as_bool().unwrap_or_default();
            edit(&path()?, arguments["old_string"].as_str()?, arguments["new_string"].as_str()?, all)
        }
        "MultiEdit" => {
            let path = path()?;
            several_edits(&path, replacements(&path, &arguments["edits"], ["old_string", "new_string", "replace_all"]))
        }
        "Write" => write(&path()?, arguments["content"].as_str()?),
        // What becomes of the file cannot be told from the cell; that it is edited is enough to ask for a read.
        "NotebookEdit" => some_edit(&text(arguments, "notebook_path")?),
        // The names of files show nothing of them.
        "Grep" if arguments["output_mode"] == "content" => {
            ToolUse::Search { paths: text(arguments, "path").into_iter().collect() }
        }
        "Bash" => ToolUse::Shell { command: text(arguments, "command")?, directory: None },
        _ => return None,
    })
}

fn outcome(input: &Value) -> ToolOutcome {
    let response = &input["tool_response"];
    if response["is_error"] == true || response["success"] == false {
        return ToolOutcome::Failed;
    }
    match input["tool_name"].as_str() {
        Some("Read") => read(input),
        Some("Bash") => response["stdout"].as_str().map_or(ToolOutcome::Done, |_| ToolOutcome::Printed(printed(response))),
        Some("Grep") => ToolOutcome::Printed(response["content"].as_str().unwrap_or_default().to_owned()),
        _ => ToolOutcome::Done,
    }
}

fn read(input: &Value) -> ToolOutcome {
    let file = &input["tool_response"]["file"];
    let Some(path) = text(&input["tool_input"], "file_path") else { return ToolOutcome::Failed };
    match (file["content"].as_str(), file["cells"].as_array()) {
        (Some(content), _) => {
            let start = line_number(file, "startLine").unwrap_or(1);
            ToolOutcome::Showed(vec![ShownLines { path, start, content: content.to_owned() }])
        }
        (None, Some(cells)) => {
            let sources = cells.iter().filter_map(|cell| cell["source"].as_str());
            ToolOutcome::ShowedNotebook { path, cells: sources.collect::<Vec<_>>().join("\n") }
        }
        (None, None) => ToolOutcome::Done,
    }
}

/// What a command has shown. Of what was put into a file the model has only the beginning, and the hook more.
fn printed(response: &Value) -> String {
    let output = response["stdout"].as_str().unwrap_or_default();
    let is_kept = response["persistedOutputPath"].as_str().is_some_and(|path| !path.is_empty());
    if is_kept { truncation::head(output, CutSize::Units(2_000)).to_owned() } else { output.to_owned() }
}

fn failure(input: &Value) -> ToolOutcome {
    match (input["tool_name"].as_str(), input["error"].as_str()) {
        (Some("Bash"), Some(error)) => {
            let status = error.starts_with("Exit code ");
            let output = error.split_once('\n').map_or("", |(_, output)| output);
            let is_cut = |line: &str| line.starts_with("... [") && line.ends_with(" characters truncated] ...");
            ToolOutcome::Printed(truncation::without_marker(if status { output } else { error }, is_cut))
        }
        _ => ToolOutcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_an_output_that_is_kept_in_a_file_the_first_whole_lines_count() {
        let lines: String = (1..=700).map(|number| format!("line {number} with some words\n")).collect();
        let response = json!({ "stdout": lines, "persistedOutputPath": "/t/x.txt" });
        let shown = printed(&response);
        assert!(shown.len() <= 2_000 && shown.len() > 1_900 && shown.ends_with("words\n"), "{shown}");
        assert_eq!(printed(&json!({ "stdout": lines })), lines);
    }

    #[test]
    fn of_a_failed_command_the_cut_lines_do_not_count() {
        let error = "Exit code 3\none\ntw\n\n... [20011 characters truncated] ...\n\nht\nnine";
        let input = json!({ "tool_name": "Bash", "error": error });
        assert_eq!(failure(&input), ToolOutcome::Printed("one\n\0\nnine".to_owned()));
    }

    #[test]
    fn a_notebook_is_shown_by_its_cells() {
        let file = json!({ "cells": [{ "source": "x = 1\nprint(x)" }, { "source": "# Title" }] });
        let input = json!({ "tool_name": "Read", "tool_input": { "file_path": "/w/n.ipynb" }, "tool_response": { "type": "notebook", "file": file } });
        let cells = "x = 1\nprint(x)\n# Title".to_owned();
        assert_eq!(outcome(&input), ToolOutcome::ShowedNotebook { path: "/w/n.ipynb".to_owned(), cells });
    }
}
