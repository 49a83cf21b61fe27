//! opencode. It has plugins instead of hooks: the Surehand plugin passes each call to this program and carries out its
//! answer.

use serde_json::{Value, json};
use surehand_engine::{Tool, ToolNames};

use super::{ClientAdapter, DEFAULTS, FIELDS, InputFields};
use crate::{
    client_instructions,
    hooks::{
        event::{
            EditFields, HookEvent, SessionStart, ShownLines, ToolOutcome, ToolUse, edit_in, edits_in, join_rows, text, write,
        },
        truncation,
    },
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "opencode",
    mcp_name: "opencode",
    names: || ToolNames::reading_with("read").with(Tool::EditFile, "edit").with(Tool::WriteFile, "write"),
    context_events: &["tool.execute.after"],
    fields: InputFields { session: &["/session"], agent: &[], directory: &["/directory"], given: "/loaded", ..FIELDS },
    parse,
    deny: |_, why| json!({ "deny": why }),
    add_context: |_, text| json!({ "context": text }),
    person_field: Some("person"),
    // Each read lists the instruction files that it loaded.
    instructions: &client_instructions::OPENCODE,
    ..DEFAULTS
};

const PLUGIN: &str = include_str!("opencode.js");

/// The source of the plugin that starts this program.
pub fn plugin(program: &str) -> String {
    PLUGIN.replacen("\"surehand\"", &Value::from(program).to_string(), 1)
}

fn parse(event: &str, input: &Value) -> Option<HookEvent> {
    Some(match event {
        "session.created" => HookEvent::Starts(SessionStart::New),
        "session.compacted" => HookEvent::ContextLost,
        "tool.execute.before" => HookEvent::Before(parse_tool_use(input)?),
        "tool.execute.after" => HookEvent::After(parse_tool_use(input)?, parse_outcome(input)),
        _ => return None,
    })
}

const EDIT: EditFields<'_> = ["oldString", "newString", "replaceAll"];

fn parse_tool_use(input: &Value) -> Option<ToolUse> {
    let arguments = &input["args"];
    let path = || text(arguments, "filePath");
    Some(match input["tool"].as_str()? {
        "read" => ToolUse::Read,
        // An empty `oldString` replaces the whole file.
        "edit" if arguments["oldString"] == "" => write(&path()?, arguments["newString"].as_str()?),
        "edit" => edit_in(&path()?, arguments, EDIT)?,
        "multiedit" => edits_in(&path()?, &arguments["edits"], EDIT),
        "write" => write(&path()?, arguments["content"].as_str()?),
        "apply_patch" | "patch" => ToolUse::Patch(text(arguments, "patchText")?),
        "grep" => ToolUse::search(text(arguments, "path")),
        "bash" => ToolUse::shell(arguments, text(arguments, "workdir"))?,
        _ => return None,
    })
}

/// opencode does not call plugins after a tool that failed.
fn parse_outcome(input: &Value) -> ToolOutcome {
    let output = input["output"].as_str().unwrap_or_default();
    match input["tool"].as_str() {
        Some("read") => {
            let rows = text(&input["args"], "filePath").zip(numbered(output));
            ToolOutcome::showed(rows.map(|(path, (start, content))| ShownLines::new(path, start, content)))
        }
        Some("bash") => ToolOutcome::Printed(printed(output).to_owned()),
        Some("grep") => ToolOutcome::Printed(output.to_owned()),
        _ => ToolOutcome::Done,
    }
}

/// The output of a command: the end of a long one, below a header. Its first and last line may be cut.
fn printed(output: &str) -> &str {
    match output.strip_prefix("...output truncated...\n\n").and_then(|rest| rest.split_once("\n\n")) {
        Some((_, shown)) => truncation::without_part_line(truncation::without_first_line(shown)),
        None => output,
    }
}

/// The rows (`12: text`, in older versions `00012| text`) of a read, with the number of the first.
fn numbered(output: &str) -> Option<(u32, String)> {
    let row = |row: &str| -> Option<(u32, String)> {
        let end = row.find(|c: char| !c.is_ascii_digit())?;
        let line =
            row[end..].strip_prefix(": ").or_else(|| row[end..].strip_prefix("| ")).or_else(|| row[end..].strip_prefix(':'))?;
        Some((row[..end].parse().ok()?, line.to_owned()))
    };
    let above = |line: &&str| !matches!(*line, "<content>" | "<file>");
    join_rows(output.split('\n').skip_while(above).skip(1).map_while(row).collect())
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
