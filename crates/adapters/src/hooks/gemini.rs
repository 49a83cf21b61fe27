//! Gemini CLI. It does not say when it has compressed the conversation: what it says before (`PreCompress`) it says before every call of
//! the model. But its record of the conversation tells: compressing, cutting and masking results, and rewinding all put other messages
//! in the place of those that were there. Then everything is forgotten, also where little was lost. What a subagent does cannot be told
//! from what the main agent does.

use serde_json::Value;
use surehand_engine::{Tool, ToolNames};

use super::{
    ClientAdapter, DenialChannel, EVENT, HookEvent, HookInput, ShownLines, ToolOutcome, ToolUse, TranscriptUse, beginning, edit,
    handle::HookVerdict,
    line_number, prompt_files, say_as_claude, text,
    truncation::{self, CutSize},
    write,
};
use crate::client_instructions;

pub(super) const DIALECT: ClientAdapter = ClientAdapter {
    names: || ToolNames::reading_with("read_file").with(Tool::EditFile, "replace").with(Tool::WriteFile, "write_file"),
    // It has no limit that is documented.
    room: 16_000,
    hears_at: &["SessionStart", "BeforeAgent", "AfterTool"],
    event: EVENT,
    denial: DenialChannel::Answered,
    beside_denial: "",
    hear,
    say,
    person: Some("systemMessage"),
    // It gives its own GEMINI.md.
    instructions: &client_instructions::GEMINI,
    transcript: TranscriptUse::TellsLoss,
};

fn hear(input: &Value) -> Option<HookInput> {
    let what = match input[EVENT].as_str()? {
        "SessionStart" => HookEvent::Begins(beginning(input["source"].as_str())),
        "BeforeAgent" => HookEvent::Prompted(prompt_files::referenced(input["prompt"].as_str().unwrap_or_default())),
        "BeforeTool" => HookEvent::Before(used(input)?),
        "AfterTool" => HookEvent::After(used(input)?, outcome(input)),
        _ => return None,
    };
    let (transcript, gave) = (text(input, "transcript_path"), Vec::new());
    let (session, directory) = (text(input, "session_id")?, text(input, "cwd")?);
    Some(HookInput { session, agent: None, directory, transcript, gave, what })
}

fn used(input: &Value) -> Option<ToolUse> {
    let arguments = &input["tool_input"];
    let path = || text(arguments, "file_path").or_else(|| text(arguments, "absolute_path"));
    Some(match input["tool_name"].as_str()? {
        "read_file" | "read_many_files" => ToolUse::Read,
        "grep_search" | "search_file_content" => {
            ToolUse::Search { paths: text(arguments, "dir_path").or_else(|| text(arguments, "path")).into_iter().collect() }
        }
        "replace" => {
            let all = arguments["allow_multiple"] == true || arguments["expected_replacements"].as_u64().is_some_and(|n| n > 1);
            edit(&path()?, arguments["old_string"].as_str()?, arguments["new_string"].as_str()?, all)
        }
        "write_file" => write(&path()?, arguments["content"].as_str()?),
        "run_shell_command" => {
            let directory = text(arguments, "dir_path").or_else(|| text(arguments, "directory"));
            ToolUse::Shell { command: text(arguments, "command")?, directory }
        }
        _ => return None,
    })
}

fn outcome(input: &Value) -> ToolOutcome {
    let (arguments, response) = (&input["tool_input"], &input["tool_response"]);
    let content = said(&response["llmContent"]);
    match input["tool_name"].as_str() {
        // A command that ends with an error has run all the same.
        Some("run_shell_command") => ToolOutcome::Printed(printed(&content)),
        _ if response.get("error").is_some_and(|error| !error.is_null()) => ToolOutcome::Failed,
        Some("read_file") => {
            let path = text(arguments, "file_path").or_else(|| text(arguments, "absolute_path"));
            ToolOutcome::Showed(path.map(|path| shown(path, arguments, &content)).into_iter().collect())
        }
        Some("read_many_files") => ToolOutcome::Showed(shown_of_many(&content)),
        Some("grep_search" | "search_file_content") => ToolOutcome::Printed(content),
        _ => ToolOutcome::Done,
    }
}

/// What the model is shown: a text, or parts of which some are.
pub(super) fn said(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str())).collect(),
        other => other["text"].as_str().unwrap_or_default().to_owned(),
    }
}

/// What stands below the instructions that it adds at the end.
const ADDED: &str = "\n\n--- Newly Discovered Project Context ---\n";

fn shown(path: String, arguments: &Value, content: &str) -> ShownLines {
    let content = content.rsplit_once(ADDED).map_or(content, |(content, _)| content);
    // Above a part stands which part it is.
    let part =
        content.split_once("--- FILE CONTENT (truncated) ---\n").and_then(|(above, part)| Some((first_line(above)?, part)));
    if let Some((start, part)) = part {
        return ShownLines { path, start, content: part.to_owned() };
    }
    let asked = line_number(arguments, "start_line").or_else(|| line_number(arguments, "offset")?.checked_add(1));
    ShownLines { path, start: asked.unwrap_or(1), content: content.to_owned() }
}

/// The first number in "lines 3-5 of 10".
fn first_line(above: &str) -> Option<u32> {
    let (_, range) = above.split_once("lines ")?;
    range.split_once('-')?.0.parse().ok()
}

/// Several files, each below a line with its name. Of a file that has such a line itself, what comes after it does not count.
pub(super) fn shown_of_many(content: &str) -> Vec<ShownLines> {
    const WARNING: &str = "[WARNING: This file was truncated.";
    let mut files: Vec<ShownLines> = Vec::new();
    for line in content.split_inclusive('\n') {
        let name = line.trim_end().strip_prefix("--- ").and_then(|line| line.strip_suffix(" ---"));
        match (name, files.last_mut()) {
            (Some(name), _) => files.push(ShownLines { path: name.to_owned(), start: 1, content: String::new() }),
            (None, Some(file)) => file.content.push_str(line),
            (None, None) => {}
        }
    }
    for file in &mut files {
        let content = file.content.strip_prefix('\n').unwrap_or(&file.content);
        let is_cut = content.starts_with(WARNING);
        let content = if is_cut { content.split_once("\n\n").map_or("", |(_, content)| content) } else { content };
        file.content = content.to_owned();
    }
    files
}

/// What a command printed, without what Gemini puts around it. Of much it shows the ends, after its hook was told all.
fn printed(content: &str) -> String {
    const MOST: CutSize = CutSize::Units(40_000);
    let content = if MOST.is_exceeded_by(content) {
        truncation::ends(content, CutSize::Units(8_000), CutSize::Units(32_000))
    } else {
        content.to_owned()
    };
    let content = content.strip_prefix("<untrusted_context>\n").unwrap_or(&content);
    let content = content.strip_suffix("\n</untrusted_context>").unwrap_or(content);
    let output = content.strip_prefix("Output: ").unwrap_or(content);
    const BELOW: &[&str] = &["Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: "];
    without_status(output, BELOW).to_owned()
}

/// An output without the lines below it that begin with one of these words.
pub(super) fn without_status<'a>(mut output: &'a str, words: &[&str]) -> &'a str {
    while let Some((above, last)) = output.rsplit_once('\n') {
        if !words.iter().any(|word| last.starts_with(word)) {
            break;
        }
        output = above;
    }
    output
}

fn say(input: &Value, verdict: &HookVerdict) -> Value {
    match verdict {
        HookVerdict::Deny(why) => serde_json::json!({ "decision": "deny", "reason": why }),
        HookVerdict::Pass | HookVerdict::Context(_) => say_as_claude(input, verdict),
    }
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
    fn many_files_are_told_apart() {
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
