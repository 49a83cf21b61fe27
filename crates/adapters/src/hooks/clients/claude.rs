//! Claude Code. Some calls it refuses before its hooks run, for example an edit of a file that it has not read.

use serde_json::Value;
use surehand_engine::{Tool, ToolNames};

use super::{ClientAdapter, DEFAULTS, FIELDS, InputFields, TranscriptUse, parse_like_claude};
use crate::{
    client_instructions,
    hooks::{
        event::{
            EditFields, HookEvent, ShownLines, ToolOutcome, ToolUse, edit_in, edits_in, line_number, text, unknown_edit, write,
        },
        truncation::{self, CutSize},
    },
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "claude",
    mcp_name: "claude-code",
    project_variable: Some("CLAUDE_PROJECT_DIR"),
    conversation_variable: Some("CLAUDE_CODE_SESSION_ID"),
    names: || ToolNames::reading_with("Read").with(Tool::EditFile, "Edit").with(Tool::WriteFile, "Write"),
    // It shows the model only the beginning of more than 10,000 characters.
    max_context: 9_500,
    context_events: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"],
    fields: InputFields { transcript: "/transcript_path", ..FIELDS },
    parse,
    person_field: Some("systemMessage"),
    instructions: &client_instructions::CLAUDE,
    transcript: TranscriptUse::HoldsFiles,
    ..DEFAULTS
};

fn parse(event: &str, input: &Value) -> Option<HookEvent> {
    // Cursor runs these hooks as well, and has hooks of its own.
    if input.get("cursor_version").is_some() {
        return None;
    }
    match event {
        // For the main agent, a `SessionStart` reports it.
        "PostCompact" if !input["agent_id"].is_string() => None,
        // A command that exits with an error has still run.
        "PostToolUseFailure" => Some(HookEvent::After(parse_tool_use(input)?, parse_failure(input))),
        _ => parse_like_claude(event, input, parse_tool_use, parse_outcome),
    }
}

const EDIT: EditFields<'_> = ["old_string", "new_string", "replace_all"];

fn parse_tool_use(input: &Value) -> Option<ToolUse> {
    let arguments = &input["tool_input"];
    let path = || text(arguments, "file_path");
    Some(match input["tool_name"].as_str()? {
        "Read" => ToolUse::Read,
        "Edit" => edit_in(&path()?, arguments, EDIT)?,
        "MultiEdit" => edits_in(&path()?, &arguments["edits"], EDIT),
        "Write" => write(&path()?, arguments["content"].as_str()?),
        // The input has one cell, not the file. The path is enough to require a read.
        "NotebookEdit" => unknown_edit(&text(arguments, "notebook_path")?),
        // In the other modes it prints file names only.
        "Grep" if arguments["output_mode"] == "content" => ToolUse::search(text(arguments, "path")),
        "Bash" => ToolUse::shell(arguments, None)?,
        _ => return None,
    })
}

fn parse_outcome(input: &Value) -> ToolOutcome {
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
            ToolOutcome::Showed(vec![ShownLines::new(path, start, content)])
        }
        (None, Some(cells)) => {
            let sources = cells.iter().filter_map(|cell| cell["source"].as_str());
            ToolOutcome::ShowedNotebook { path, cells: sources.collect::<Vec<_>>().join("\n") }
        }
        (None, None) => ToolOutcome::Done,
    }
}

/// The output of a command. If Claude Code stores a long output in a file, the model gets only its beginning, but the
/// hook gets more.
fn printed(response: &Value) -> String {
    let output = response["stdout"].as_str().unwrap_or_default();
    let is_kept = response["persistedOutputPath"].as_str().is_some_and(|path| !path.is_empty());
    if is_kept { truncation::head(output, CutSize::Units(2_000)).to_owned() } else { output.to_owned() }
}

fn parse_failure(input: &Value) -> ToolOutcome {
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
        assert_eq!(parse_failure(&input), ToolOutcome::Printed("one\n\0\nnine".to_owned()));
    }

    #[test]
    fn a_notebook_is_shown_by_its_cells() {
        let file = json!({ "cells": [{ "source": "x = 1\nprint(x)" }, { "source": "# Title" }] });
        let input = json!({ "tool_name": "Read", "tool_input": { "file_path": "/w/n.ipynb" }, "tool_response": { "type": "notebook", "file": file } });
        let cells = "x = 1\nprint(x)\n# Title".to_owned();
        assert_eq!(parse_outcome(&input), ToolOutcome::ShowedNotebook { path: "/w/n.ipynb".to_owned(), cells });
    }
}
