//! Gemini CLI. It does not report a compression: `PreCompress` comes before every call of the model. Its record of the
//! conversation shows it: compressing, truncating or masking results, and rewinding all replace messages there. Then
//! all views are forgotten, even if little was lost. Its hooks do not distinguish a subagent from the main agent.

use serde_json::{Value, json};
use surehand_engine::{Tool, ToolNames};

use super::{ClientAdapter, DEFAULTS, FIELDS, InputFields, TranscriptUse, session_start};
use crate::{
    client_instructions,
    hooks::{
        event::{HookEvent, ShownLines, ToolOutcome, ToolUse, edit, line_number, text, write},
        prompt_files,
        truncation::{self, CutSize},
    },
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "gemini",
    mcp_name: "gemini-cli",
    project_variable: Some("GEMINI_PROJECT_DIR"),
    names: || ToolNames::reading_with("read_file").with(Tool::EditFile, "replace").with(Tool::WriteFile, "write_file"),
    context_events: &["SessionStart", "BeforeAgent", "AfterTool"],
    fields: InputFields { agent: &[], transcript: "/transcript_path", ..FIELDS },
    parse,
    deny: |_, why| json!({ "decision": "deny", "reason": why }),
    person_field: Some("systemMessage"),
    // It loads GEMINI.md itself.
    instructions: &client_instructions::GEMINI,
    transcript: TranscriptUse::ShowsLoss,
    ..DEFAULTS
};

fn parse(event: &str, input: &Value) -> Option<HookEvent> {
    Some(match event {
        "SessionStart" => HookEvent::Starts(session_start(input)),
        "BeforeAgent" => HookEvent::Prompted(prompt_files::referenced(input["prompt"].as_str().unwrap_or_default())),
        "BeforeTool" => HookEvent::Before(parse_tool_use(input)?),
        "AfterTool" => HookEvent::After(parse_tool_use(input)?, parse_outcome(input)),
        _ => return None,
    })
}

pub(super) fn path(arguments: &Value) -> Option<String> {
    text(arguments, "file_path").or_else(|| text(arguments, "absolute_path"))
}

fn parse_tool_use(input: &Value) -> Option<ToolUse> {
    let arguments = &input["tool_input"];
    let path = || path(arguments);
    Some(match input["tool_name"].as_str()? {
        "read_file" | "read_many_files" => ToolUse::Read,
        "grep_search" | "search_file_content" => ToolUse::search(text(arguments, "dir_path").or_else(|| text(arguments, "path"))),
        "replace" => {
            let all = arguments["allow_multiple"] == true || arguments["expected_replacements"].as_u64().is_some_and(|n| n > 1);
            edit(&path()?, arguments["old_string"].as_str()?, arguments["new_string"].as_str()?, all)
        }
        "write_file" => write(&path()?, arguments["content"].as_str()?),
        "run_shell_command" => {
            let directory = text(arguments, "dir_path").or_else(|| text(arguments, "directory"));
            ToolUse::shell(arguments, directory)?
        }
        _ => return None,
    })
}

fn parse_outcome(input: &Value) -> ToolOutcome {
    let (arguments, response) = (&input["tool_input"], &input["tool_response"]);
    let content = said(&response["llmContent"]);
    match input["tool_name"].as_str() {
        // A command that exits with an error has still run.
        Some("run_shell_command") => ToolOutcome::Printed(printed(&content)),
        _ if response.get("error").is_some_and(|error| !error.is_null()) => ToolOutcome::Failed,
        Some("read_file") => ToolOutcome::showed(path(arguments).map(|path| shown(path, arguments, &content))),
        Some("read_many_files") => ToolOutcome::Showed(shown_of_many(&content)),
        Some("grep_search" | "search_file_content") => ToolOutcome::Printed(content),
        _ => ToolOutcome::Done,
    }
}

/// The text that the model sees: a string, or the text parts of a list.
pub(super) fn said(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str())).collect(),
        other => other["text"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The line above the instructions that it appends.
const ADDED: &str = "\n\n--- Newly Discovered Project Context ---\n";

fn shown(path: String, arguments: &Value, content: &str) -> ShownLines {
    let content = content.rsplit_once(ADDED).map_or(content, |(content, _)| content);
    // A header above a part has its line numbers.
    let part =
        content.split_once("--- FILE CONTENT (truncated) ---\n").and_then(|(above, part)| Some((first_line(above)?, part)));
    if let Some((start, part)) = part {
        return ShownLines::new(path, start, part);
    }
    let asked = line_number(arguments, "start_line").or_else(|| line_number(arguments, "offset")?.checked_add(1));
    ShownLines::new(path, asked.unwrap_or(1), content)
}

/// The first number in "lines 3-5 of 10".
fn first_line(above: &str) -> Option<u32> {
    let (_, range) = above.split_once("lines ")?;
    range.split_once('-')?.0.parse().ok()
}

/// Several files, each below a line with its name. If a file contains such a line, the rest of it does not count.
pub(super) fn shown_of_many(content: &str) -> Vec<ShownLines> {
    const WARNING: &str = "[WARNING: This file was truncated.";
    let name = |line: &str| Some(line.strip_prefix("--- ")?.strip_suffix(" ---")?.to_owned());
    let mut files = prompt_files::split_files(content, name);
    for file in &mut files {
        let content = file.content.strip_prefix('\n').unwrap_or(&file.content);
        let is_cut = content.starts_with(WARNING);
        let content = if is_cut { content.split_once("\n\n").map_or("", |(_, content)| content) } else { content };
        file.content = content.to_owned();
    }
    files
}

/// The output of a command without its frame. Gemini shows the two ends of a long output only after its hook has seen
/// all of it.
fn printed(content: &str) -> String {
    const MOST: CutSize = CutSize::Units(40_000);
    let content = truncation::ends(content, MOST, CutSize::Units(8_000), CutSize::Units(32_000));
    let content = content.strip_prefix("<untrusted_context>\n").unwrap_or(&content);
    let content = content.strip_suffix("\n</untrusted_context>").unwrap_or(content);
    let output = content.strip_prefix("Output: ").unwrap_or(content);
    const BELOW: &[&str] = &["Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: "];
    without_status(output, BELOW).to_owned()
}

/// An output without the trailing lines that start with one of these words.
pub(super) fn without_status<'a>(mut output: &'a str, words: &[&str]) -> &'a str {
    while let Some((above, last)) = output.rsplit_once('\n') {
        if !words.iter().any(|word| last.starts_with(word)) {
            break;
        }
        output = above;
    }
    output
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_of_a_file_has_its_number_above() {
        let content = "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 3-5 of 10 total lines.\nAction: …\n\n\
            --- FILE CONTENT (truncated) ---\nc\nd\ne\n\n--- Newly Discovered Project Context ---\nrules\n--- End Project Context ---";
        let expected = ShownLines { path: "a".to_owned(), start: 3, content: "c\nd\ne".to_owned() };
        assert_eq!(shown("a".to_owned(), &json!({}), content), expected);
    }

    #[test]
    fn an_older_part_has_it_in_the_arguments() {
        assert_eq!(shown("a".to_owned(), &json!({ "offset": 4, "limit": 2 }), "e\nf").start, 5);
        assert_eq!(shown("a".to_owned(), &json!({ "offset": u64::MAX }), "e\nf").start, 1);
    }

    #[test]
    fn many_files_are_separated() {
        let content = "--- /w/a ---\n\none\ntwo\n\n--- /w/b ---\n\n[WARNING: This file was truncated. To view …]\n\nthree\n\n--- End of content ---";
        let files = shown_of_many(content);
        let of = |index: usize| (files[index].path.as_str(), files[index].content.as_str());
        assert_eq!((of(0), of(1)), (("/w/a", "one\ntwo\n\n"), ("/w/b", "three\n\n")));
    }

    #[test]
    fn what_gemini_puts_around_an_output_is_no_part_of_it() {
        let content =
            "<untrusted_context>\nOutput: one\nError: mine\ntwo\nExit Code: 3\nProcess Group PGID: 63\n</untrusted_context>";
        assert_eq!(printed(content), "one\nError: mine\ntwo");
        assert_eq!(printed("plain"), "plain");
    }

    #[test]
    fn of_a_long_output_the_ends_count() {
        let lines: String = (1..=6000).map(|number| format!("line {number} with words\n")).collect();
        let shown = printed(&format!("<untrusted_context>\nOutput: {lines}Process Group PGID: 75\n</untrusted_context>"));
        assert!(shown.starts_with("line 1 with words\nline 2") && shown.ends_with("line 6000 with words"), "{shown}");
        assert!(shown.len() < 40_000 && shown.contains("\0\n") && !shown.contains("line 1000 "));
    }
}
