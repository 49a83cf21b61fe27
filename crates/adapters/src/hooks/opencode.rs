//! opencode. It has plugins instead of hooks: ours is a thin one that asks this program and does as it is told. What it sends is ours to
//! say: the session, the directory, the tool with its arguments and what it printed.

use serde_json::{Value, json};
use surehand_engine::{Tool, ToolNames};

use super::{
    ClientAdapter, DenialChannel, EVENT, HookEvent, HookInput, SessionStart, ShownLines, ToolOutcome, ToolUse, TranscriptUse,
    edit, handle::HookVerdict, in_a_row, replacements, several_edits, text, truncation, write,
};
use crate::client_instructions;

pub(super) const DIALECT: ClientAdapter = ClientAdapter {
    names: || ToolNames::reading_with("read").with(Tool::EditFile, "edit").with(Tool::WriteFile, "write"),
    // It has no limit: what we say is put below what the tool printed.
    room: 16_000,
    hears_at: &["tool.execute.after"],
    event: EVENT,
    denial: DenialChannel::Answered,
    beside_denial: "",
    hear,
    say,
    person: Some("person"),
    // It says with each read which ones it gave.
    instructions: &client_instructions::OPENCODE,
    transcript: TranscriptUse::Unread,
};

const PLUGIN: &str = include_str!("opencode.js");

/// The plugin, for a program that is called so.
pub fn plugin(program: &str) -> String {
    PLUGIN.replacen("\"surehand\"", &Value::from(program).to_string(), 1)
}

fn hear(input: &Value) -> Option<HookInput> {
    let what = match input[EVENT].as_str()? {
        "session.created" => HookEvent::Begins(SessionStart::New),
        "session.compacted" => HookEvent::Forgot,
        "tool.execute.before" => HookEvent::Before(used(input)?),
        "tool.execute.after" => HookEvent::After(used(input)?, outcome(input)),
        _ => return None,
    };
    let gave = input["loaded"].as_array().into_iter().flatten().filter_map(|path| path.as_str().map(str::to_owned)).collect();
    // A subagent has a session of its own.
    let (session, directory) = (text(input, "session")?, text(input, "directory")?);
    Some(HookInput { session, agent: None, directory, transcript: None, gave, what })
}

fn used(input: &Value) -> Option<ToolUse> {
    let arguments = &input["args"];
    let path = || text(arguments, "filePath");
    Some(match input["tool"].as_str()? {
        "read" => ToolUse::Read,
        // With nothing to replace, all is replaced.
        "edit" if arguments["oldString"] == "" => write(&path()?, arguments["newString"].as_str()?),
        "edit" => {
            let all = arguments["replaceAll"] == true;
            edit(&path()?, arguments["oldString"].as_str()?, arguments["newString"].as_str()?, all)
        }
        "multiedit" => {
            let path = path()?;
            several_edits(&path, replacements(&path, &arguments["edits"], ["oldString", "newString", "replaceAll"]))
        }
        "write" => write(&path()?, arguments["content"].as_str()?),
        "apply_patch" | "patch" => ToolUse::Patch(text(arguments, "patchText")?),
        "grep" => ToolUse::Search { paths: text(arguments, "path").into_iter().collect() },
        "bash" => ToolUse::Shell { command: text(arguments, "command")?, directory: text(arguments, "workdir") },
        _ => return None,
    })
}

/// A tool that fails ends without a word to plugins, so that this is what came of one that did not.
fn outcome(input: &Value) -> ToolOutcome {
    let output = input["output"].as_str().unwrap_or_default();
    match input["tool"].as_str() {
        Some("read") => {
            let path = text(&input["args"], "filePath");
            let shown = path.and_then(|path| numbered(output).map(|(start, content)| ShownLines { path, start, content }));
            ToolOutcome::Showed(shown.into_iter().collect())
        }
        Some("bash") => ToolOutcome::Printed(printed(output).to_owned()),
        Some("grep") => ToolOutcome::Printed(output.to_owned()),
        _ => ToolOutcome::Done,
    }
}

/// What a command printed: of much the end, below words of opencode's own. The first and the last line of it may be cut.
fn printed(output: &str) -> &str {
    match output.strip_prefix("...output truncated...\n\n").and_then(|rest| rest.split_once("\n\n")) {
        Some((_, shown)) => truncation::without_part_line(truncation::without_first_line(shown)),
        None => output,
    }
}

/// The rows (`12: text`, before that `00012| text`) of a read, with the number of the first.
fn numbered(output: &str) -> Option<(u32, String)> {
    let row = |row: &str| -> Option<(u32, String)> {
        let end = row.find(|c: char| !c.is_ascii_digit())?;
        let line =
            row[end..].strip_prefix(": ").or_else(|| row[end..].strip_prefix("| ")).or_else(|| row[end..].strip_prefix(':'))?;
        Some((row[..end].parse().ok()?, line.to_owned()))
    };
    let above = |line: &&str| !matches!(*line, "<content>" | "<file>");
    in_a_row(output.split('\n').skip_while(above).skip(1).map_while(row).collect())
}

fn say(_input: &Value, verdict: &HookVerdict) -> Value {
    match verdict {
        HookVerdict::Pass => Value::Null,
        HookVerdict::Deny(why) => json!({ "deny": why }),
        HookVerdict::Context(text) => json!({ "context": text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_up_to_the_first_that_is_none() {
        let output =
            "<path>/w/a</path>\n<type>file</type>\n<content>\n3: c\n4: \n5: 6: e\n\n(End of file - total 5 lines)\n</content>";
        assert_eq!(numbered(output), Some((3, "c\n\n6: e".to_owned())));
        assert_eq!(numbered("<file>\n00001| a\n00002| b\n</file>"), Some((1, "a\nb".to_owned())));
        assert_eq!(numbered("<content>\n1: a\n3: c\n"), None);
        assert_eq!(numbered("<content>\n4294967295: a\n0: b\n"), None);
        assert_eq!(numbered("<path>/w</path>\n<type>directory</type>\n<entries>\na\n</entries>"), None);
    }

    #[test]
    fn of_a_long_output_the_whole_lines_at_the_end_count() {
        let output = "...output truncated...\n\nFull output saved to: /t/x\n\nree\nfour\nfive\nsi";
        assert_eq!(printed(output), "four\nfive\n");
        assert_eq!(printed("one\ntwo"), "one\ntwo");
    }

    #[test]
    fn the_plugin_calls_the_program_by_its_name() {
        let plugin = plugin("/opt/sure \"hand\"");
        assert!(plugin.contains(r#"const PROGRAM = "/opt/sure \"hand\"""#), "{plugin}");
    }
}
