//! Qwen Code. Its hooks are like Claude Code's, its tools like Gemini CLI's. After its hooks it refuses an edit of a
//! file that was not read or has changed. It sends an empty prompt before each call of the model.

use serde_json::Value;
use surehand_engine::{Tool, ToolNames};

use super::{ClientAdapter, DEFAULTS, gemini, parse_like_claude};
use crate::{
    client_instructions,
    hooks::{
        event::{HookEvent, ShownLines, ToolOutcome, ToolUse, edit_in, line_number, text, unknown_edit, write},
        prompt_files,
        truncation::{self, CutSize},
    },
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "qwen",
    mcp_name: "qwen",
    project_variable: Some("QWEN_PROJECT_DIR"),
    conversation_variable: Some("QWEN_CODE_SESSION_ID"),
    names: || ToolNames::reading_with("read_file").with(Tool::EditFile, "edit").with(Tool::WriteFile, "write_file"),
    // An addition to a long result is truncated with it.
    max_context: 9_500,
    context_events: &["SessionStart", "UserPromptSubmit", "PostToolUse"],
    denial_note: "Qwen Code itself takes an edit only of what read_file has shown as it is now: call read_file first.\n",
    parse,
    person_field: Some("systemMessage"),
    instructions: &client_instructions::QWEN,
    ..DEFAULTS
};

fn parse(event: &str, input: &Value) -> Option<HookEvent> {
    match event {
        // For the main agent, a `SessionStart` reports it.
        "PostCompact" if !input["agent_id"].is_string() => None,
        "UserPromptSubmit" => Some(HookEvent::Prompted(prompt_files::referenced(input["prompt"].as_str().unwrap_or_default()))),
        // A command that exits with an error has still run.
        "PostToolUseFailure" => Some(HookEvent::After(parse_tool_use(input)?, parse_failure(input))),
        _ => parse_like_claude(event, input, parse_tool_use, parse_outcome),
    }
}

fn parse_tool_use(input: &Value) -> Option<ToolUse> {
    let arguments = &input["tool_input"];
    let path = || gemini::path(arguments);
    Some(match input["tool_name"].as_str()? {
        "read_file" | "read_many_files" => ToolUse::Read,
        "edit" => edit_in(&path()?, arguments, ["old_string", "new_string", "replace_all"])?,
        "write_file" => write(&path()?, arguments["content"].as_str()?),
        "notebook_edit" => unknown_edit(&text(arguments, "notebook_path")?),
        "grep_search" => ToolUse::search(text(arguments, "path")),
        "run_shell_command" => ToolUse::shell(arguments, text(arguments, "directory"))?,
        _ => return None,
    })
}

fn parse_outcome(input: &Value) -> ToolOutcome {
    let (arguments, response) = (&input["tool_input"], &input["tool_response"]);
    let content = gemini::said(&response["llmContent"]);
    if response.get("error").is_some_and(|error| !error.is_null()) {
        return ToolOutcome::Failed;
    }
    match input["tool_name"].as_str() {
        Some("read_file") => {
            let Some(path) = gemini::path(arguments) else { return ToolOutcome::Failed };
            if content.starts_with("Jupyter Notebook (") {
                return ToolOutcome::ShowedNotebook { path, cells: content };
            }
            ToolOutcome::Showed(vec![shown(path, arguments, &content)])
        }
        Some("read_many_files") => ToolOutcome::Showed(gemini::shown_of_many(&content)),
        Some("run_shell_command") => ToolOutcome::Printed(printed(&content)),
        Some("grep_search") => ToolOutcome::Printed(found(&content)),
        _ => ToolOutcome::Done,
    }
}

fn parse_failure(input: &Value) -> ToolOutcome {
    match (input["tool_name"].as_str(), input["error"].as_str()) {
        (Some("run_shell_command"), Some(error)) => ToolOutcome::Printed(printed(error)),
        _ => ToolOutcome::Failed,
    }
}

/// A header above a part of a file has its line numbers.
fn shown(path: String, arguments: &Value, content: &str) -> ShownLines {
    let part = content.strip_prefix("Showing lines ").and_then(|rest| {
        let (above, content) = rest.split_once("\n\n---\n\n")?;
        Some((above.split_once('-')?.0.parse().ok()?, content))
    });
    let asked = || line_number(arguments, "offset")?.checked_add(1);
    let (start, content) = part.unwrap_or_else(|| (asked().unwrap_or(1), content));
    ShownLines::new(path, start, content)
}

const CUT: &str = "... [CONTENT TRUNCATED] ...";

/// The output of a command, without its frame and without the part that was not shown.
fn printed(content: &str) -> String {
    // The note about a cut is above the part that is shown.
    let content = match content.split_once("\n\nTruncated part of the output:\n") {
        Some((above, shown)) if above.starts_with("Tool output was too large") => {
            truncation::without_marker(&shown.replace(&format!("---\n{CUT}\n---\n"), &format!("{CUT}\n")), |line| line == CUT)
        }
        _ => content.to_owned(),
    };
    let content = match content.split_once("\nOutput: ") {
        Some((above, output)) if above.starts_with("Command: ") => output,
        _ => &content,
    };
    const BELOW: &[&str] =
        &["Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ", "Stdout: ", "Stderr: "];
    gemini::without_status(content, BELOW).to_owned()
}

/// The shown part of a search: the two ends of a long result. The hook gets the whole result, before it is
/// cut.
fn found(content: &str) -> String {
    const MOST: usize = 20_000;
    const BETWEEN: &str = "\n\n---\n... [CONTENT TRUNCATED] ...\n---\n\n";
    const FIRST: usize = (MOST - BETWEEN.len()) / 5;
    const LAST: usize = MOST - BETWEEN.len() - FIRST - 1;
    truncation::ends(content, CutSize::Units(MOST), CutSize::Units(FIRST), CutSize::Units(LAST))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_of_a_file_has_its_number_above() {
        let part =
            shown("a".to_owned(), &json!({ "offset": 1, "limit": 1 }), "Showing lines 2-2 of 4 total lines.\n\n---\n\nbeta");
        assert_eq!(part, ShownLines { path: "a".to_owned(), start: 2, content: "beta".to_owned() });
        assert_eq!(shown("a".to_owned(), &json!({}), "alpha\n").start, 1);
        assert_eq!(shown("a".to_owned(), &json!({ "offset": u64::MAX }), "alpha\n").start, 1);
    }

    #[test]
    fn what_qwen_puts_around_an_output_is_no_part_of_it() {
        let content = "Command: cat a b\nDirectory: (root)\nOutput: one\nError: mine\ntwo\nError: (none)\nExit Code: 0\nSignal: (none)\nProcess Group PGID: (none)";
        assert_eq!(printed(content), "one\nError: mine\ntwo");
    }

    #[test]
    fn of_a_long_output_the_ends_count() {
        let content = "Tool output was too large and has been truncated.\nThe full output has been saved to: /x\n\n\
            Truncated part of the output:\nCommand: cat a\nDirectory: (root)\nOutput: one\ntwo\nthr...\n\n---\n\
            ... [CONTENT TRUNCATED] ...\n---\n\n...ght\nnine\nError: (none)\nExit Code: 0\nSignal: (none)\nProcess Group PGID: (none)";
        assert_eq!(printed(content), "one\ntwo\n\0\nnine");
    }

    #[test]
    fn of_many_hits_the_ends_count() {
        let rows: String = (1..=1000).map(|number| format!("L{number}: some words that fill it\n")).collect();
        let shown = found(&rows);
        assert!(shown.len() < 20_000 && shown.starts_with("L1: ") && shown.ends_with("it\n"), "{shown}");
        assert!(!shown.contains("L200:") && shown.contains("\0"));
        assert_eq!(found("L1: a"), "L1: a");
    }
}
