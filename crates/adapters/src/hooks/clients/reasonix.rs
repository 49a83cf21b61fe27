//! Reasonix. It takes a denial from exit code 2 and standard error, and adds context only at the start of a session. It
//! reports a failed tool twice (`PostToolUseFailure`, then `PostToolUse` with an error); the second counts. It
//! truncates long results after its hooks have run.

use serde_json::Value;
use surehand_engine::{Edit, Tool, ToolNames};

use super::{CAMEL_CASE_FIELDS, ClientAdapter, DEFAULTS, DenialChannel, parse_like_claude};
use crate::{
    client_instructions,
    hooks::{
        event::{ShownLines, ToolOutcome, ToolUse, edit_in, edits_in, join_rows, text, unknown_edit, write},
        truncation::{self, CutSize},
    },
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "reasonix",
    mcp_name: "reasonix",
    names: || {
        ToolNames::reading_with("read_file")
            .with(Tool::EditFile, "edit_file")
            .with(Tool::MultiEdit, "multi_edit")
            .with(Tool::WriteFile, "write_file")
            .with(Tool::MoveFile, "move_file")
    },
    // No limit is documented.
    max_context: 9_500,
    context_events: &["SessionStart"],
    event_field: "event",
    denial: DenialChannel::ExitCode,
    denial_note: "Reasonix itself takes an edit only of what read_file has shown as it is now: call read_file first.\n",
    fields: CAMEL_CASE_FIELDS,
    parse: |event, input| parse_like_claude(event, input, parse_tool_use, parse_outcome),
    instructions: &client_instructions::REASONIX,
    ..DEFAULTS
};

fn parse_tool_use(input: &Value) -> Option<ToolUse> {
    let arguments = &input["toolArgs"];
    let path = || text(arguments, "path");
    Some(match input["toolName"].as_str()? {
        "read_file" => ToolUse::Read,
        "edit_file" => edit_in(&path()?, arguments, ["old_string", "new_string", ""])?,
        "multi_edit" => edits_in(&path()?, &arguments["edits"], ["old_string", "new_string", "replace_all"]),
        "write_file" => write(&path()?, arguments["content"].as_str()?),
        "delete_range" | "delete_symbol" => unknown_edit(&path()?),
        "notebook_edit" => unknown_edit(&path().or_else(|| text(arguments, "notebook_path"))?),
        "move_file" => {
            let [from, to] = [["source_path", "source", "from"], ["destination_path", "destination", "to"]]
                .map(|names| names.iter().find_map(|name| text(arguments, name)));
            ToolUse::Change(Edit::Move { from: from?, to: to? })
        }
        "grep" => ToolUse::search(path()),
        "bash" => ToolUse::shell(arguments, None)?,
        _ => return None,
    })
}

fn parse_outcome(input: &Value) -> ToolOutcome {
    let result = input["toolResult"].as_str().unwrap_or_default();
    match (input["toolName"].as_str(), input["error"].as_str()) {
        // A command that exits with an error has still run.
        (Some("bash"), _) => ToolOutcome::Printed(printed(result)),
        (_, Some(_)) => ToolOutcome::Failed,
        (Some("read_file"), None) => {
            let rows = text(&input["toolArgs"], "path").zip(numbered(beginning_of(result)));
            ToolOutcome::showed(rows.map(|(path, (start, content))| ShownLines::new(path, start, content)))
        }
        (Some("grep"), None) => ToolOutcome::Printed(beginning_of(result).to_owned()),
        _ => ToolOutcome::Done,
    }
}

const MOST: CutSize = CutSize::Bytes(32 * 1024);

/// The shown part of a command's output: the two ends of a long one.
fn printed(result: &str) -> String {
    const END: CutSize = CutSize::Bytes(8_000);
    truncation::ends(result, MOST, END, END)
}

/// The shown part of another tool's result: the beginning of a long one.
fn beginning_of(result: &str) -> &str {
    const KEPT: CutSize = CutSize::Bytes(31 * 1024);
    if MOST.is_exceeded_by(result) { truncation::head(result, KEPT) } else { result }
}

/// The lines of `12→text` rows, with the number of the first.
fn numbered(result: &str) -> Option<(u32, String)> {
    let row = |row: &str| -> Option<(u32, String)> {
        let (number, line) = row.split_once('→')?;
        Some((number.trim_start().parse().ok()?, line.to_owned()))
    };
    join_rows(result.lines().map_while(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_up_to_the_first_that_is_none() {
        let result = " 9→i→j\n10→\n\n[PARTIAL view: showing lines 9-10 of at least 11; pass offset=10 to continue.]\n";
        assert_eq!(numbered(result), Some((9, "i→j\n".to_owned())));
        assert_eq!(numbered("no such file"), None);
    }

    #[test]
    fn of_a_long_read_the_beginning_counts() {
        let rows: String = (1..=1000).map(|number| format!("{number:4}→{}\n", "w".repeat(60))).collect();
        let (start, content) = numbered(beginning_of(&rows)).unwrap();
        assert_eq!((start, content.lines().count()), (1, 31 * 1024 / 68));
    }

    #[test]
    fn of_a_long_output_the_ends_count() {
        let lines: String = (1..=6000).map(|number| format!("line {number}\n")).collect();
        let shown = printed(&lines);
        assert!(
            shown.len() < 16_010 && shown.starts_with("line 1\n") && shown.contains("\0\n") && shown.ends_with("line 6000\n")
        );
        assert_eq!(printed("a\n"), "a\n");
    }
}
