//! Cline. Cancelling a call ends the whole task, so a denial replaces the arguments with some that can only fail, and
//! adds the reason. A version that cannot replace arguments makes the call, and its model still reads the reason. Cline
//! truncates long results after its hooks have run.

use serde_json::{Value, json};
use surehand_engine::{Tool, ToolNames};

use super::{ClientAdapter, DEFAULTS, FIELDS, InputFields};
use crate::{
    client_instructions,
    hooks::{
        event::{HookEvent, SessionStart, ShownLines, ToolOutcome, ToolUse, edit, join_rows, text, unknown_edit, write},
        truncation::{self, CutSize},
    },
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "cline",
    mcp_name: "@cline",
    names: || ToolNames::reading_with("read_files").with(Tool::EditFile, "editor").with(Tool::WriteFile, "editor"),
    context_events: &["tool_call", "tool_result"],
    event_field: "hookName",
    fields: InputFields {
        session: &["/taskId"],
        // The main agent has an id as well, but no parent.
        agent: &["/parent_agent_id", "/agent_id"],
        directory: &["/workspaceRoots/0", "/workspaceInfo/rootPath"],
        ..FIELDS
    },
    parse,
    deny: |input, why| {
        let why = format!("This call was denied and did nothing. {why}");
        json!({ "cancel": false, "contextModification": why, "overrideInput": harmless(input["tool_call"]["name"].as_str()) })
    },
    add_context: |_, text| json!({ "cancel": false, "contextModification": text }),
    instructions: &client_instructions::CLINE,
    ..DEFAULTS
};

fn parse(event: &str, input: &Value) -> Option<HookEvent> {
    Some(match event {
        "agent_start" => HookEvent::Starts(SessionStart::New),
        "agent_resume" => HookEvent::Starts(SessionStart::Resumed),
        // Only some versions send it.
        "PreCompact" => HookEvent::ContextLost,
        "tool_call" => HookEvent::Before(parse_tool_use(&input["tool_call"])?),
        "tool_result" => HookEvent::After(parse_tool_use(&input["tool_result"])?, parse_outcome(&input["tool_result"])),
        _ => return None,
    })
}

fn parse_tool_use(call: &Value) -> Option<ToolUse> {
    let arguments = &call["input"];
    let path = || text(arguments, "path");
    Some(match call["name"].as_str()? {
        "read_files" => ToolUse::Read,
        "editor" if !arguments["insert_line"].is_null() => unknown_edit(&path()?),
        "editor" => match arguments["old_text"].as_str().filter(|old| !old.is_empty()) {
            Some(old) => edit(&path()?, old, arguments["new_text"].as_str().unwrap_or_default(), false),
            None => write(&path()?, arguments["new_text"].as_str()?),
        },
        "apply_patch" => ToolUse::Patch(arguments.as_str().map(str::to_owned).or_else(|| text(arguments, "input"))?),
        "run_commands" => ToolUse::Shell { command: commands(arguments)?, directory: None },
        "search_codebase" => ToolUse::search(None),
        _ => return None,
    })
}

/// One call may run several commands.
fn commands(arguments: &Value) -> Option<String> {
    let commands = arguments["commands"].as_array().into_iter().flatten();
    let lines: Vec<&str> = commands.filter_map(|command| command.as_str().or_else(|| command["command"].as_str())).collect();
    if lines.is_empty() { text(arguments, "command") } else { Some(lines.join("\n")) }
}

fn parse_outcome(call: &Value) -> ToolOutcome {
    let results: Vec<&Value> = match &call["output"] {
        Value::Array(results) => results.iter().collect(),
        result => vec![result],
    };
    let text_of = |result: &Value| shortened(result["result"].as_str().unwrap_or_default());
    match call["name"].as_str() {
        Some("read_files") => {
            let files = results.iter().filter(|result| result["success"] != false);
            ToolOutcome::Showed(files.filter_map(|result| shown(result["query"].as_str()?, &text_of(result))).flatten().collect())
        }
        Some("run_commands") => ToolOutcome::Printed(results.iter().map(|result| printed(&text_of(result))).collect()),
        Some("search_codebase") => ToolOutcome::Printed(results.iter().map(|result| text_of(result) + "\n").collect()),
        _ if results.iter().any(|result| result["success"] == false) => ToolOutcome::Failed,
        _ => ToolOutcome::Done,
    }
}

/// The part of a result that the model sees: the two ends of a long one. Cline keeps slightly more of each, depending
/// on its marker.
fn shortened(result: &str) -> String {
    const MOST: CutSize = CutSize::Units(8_000);
    const END: CutSize = CutSize::Units(3_980);
    truncation::ends(result, MOST, END, END)
}

/// The rows (`12 | text`) of a file, which may have a gap. The query is the path, possibly with a line range.
fn shown(query: &str, result: &str) -> Option<Vec<ShownLines>> {
    let is_range = |range: &str| !range.is_empty() && range.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let path = query.rsplit_once(':').filter(|(_, range)| is_range(range)).map_or(query, |(path, _)| path);
    let row = |row: &str| -> Option<(u32, String)> {
        let (number, line) = row.split_once(" | ").or_else(|| Some((row.strip_suffix(" |")?, "")))?;
        Some((number.trim_start().parse().ok()?, line.to_owned()))
    };
    let parts = result.split("\u{0}\n").map(|part| join_rows(part.lines().map_while(row).collect()));
    let shown = parts.flatten().map(|(start, content)| ShownLines::new(path, start, content));
    Some(shown.collect())
}

/// The output of a command, without the status line above it and the marker of a cut.
fn printed(result: &str) -> String {
    let is_status = result.starts_with("[Command exited with code ");
    let output = if is_status { truncation::without_first_line(result) } else { result };
    let output = truncation::without_marker(output, |line| line.starts_with("[... output truncated: "));
    if output.is_empty() || output.ends_with('\n') { output } else { output + "\n" }
}

/// Arguments that make a tool fail: a device has no entries. Malformed arguments would fail as well, but Cline ends the
/// task after three such calls in a row.
fn harmless(tool: Option<&str>) -> Value {
    const NOWHERE: &str = "/dev/null/denied-by-surehand";
    match tool {
        Some("apply_patch") => {
            json!({ "input": format!("*** Begin Patch\n*** Update File: {NOWHERE}\n@@\n-denied\n+denied\n*** End Patch") })
        }
        _ => json!({ "path": NOWHERE, "old_text": "denied", "new_text": "denied" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_and_without_a_range() {
        let of = |query, result| shown(query, result).unwrap();
        let expected = |start, content: &str| ShownLines { path: "/w/a".to_owned(), start, content: content.to_owned() };
        assert_eq!(of("/w/a:2-3", "2 | beta\n3 | "), [expected(2, "beta\n")]);
        let cut = " 9 | i | j\n10 |\n\n[Showing lines 9-10 of 60. Use start_line/end_line to read other sections.]";
        assert_eq!(of("/w/a", cut), [expected(9, "i | j\n")]);
        assert_eq!(of("/w/a", "1 | a\n\0\n8 | h\n"), [expected(1, "a"), expected(8, "h")]);
    }

    #[test]
    fn of_a_long_result_the_ends_count() {
        let rows: String = (1..=900).map(|number| format!("{number:3} | some words\n")).collect();
        let shown = shown("/w/a", &shortened(&rows)).unwrap();
        assert_eq!((shown.len(), shown[0].start), (2, 1));
        assert!(shown[1].start > 600 && shown[1].content.lines().count() < 250, "{}", shown[1].start);
    }

    #[test]
    fn what_cline_puts_around_an_output_is_no_part_of_it() {
        assert_eq!(printed("[Command exited with code 3]\nalpha\nbeta\n"), "alpha\nbeta\n");
        let cut = "one\ntwo\n\n[... output truncated: 256893 chars total. Refine the command ...]\nee\nfour";
        assert_eq!(printed(cut), "one\n\0\nfour\n");
    }

    #[test]
    fn a_denied_call_gets_arguments_that_can_only_fail() {
        let said = |tool: &str| (ADAPTER.deny)(&json!({ "tool_call": { "name": tool } }), "no");
        let editor = said("editor");
        assert_eq!(
            (&editor["cancel"], &editor["contextModification"]),
            (&json!(false), &json!("This call was denied and did nothing. no"))
        );
        assert!(editor["overrideInput"]["path"].as_str().unwrap().starts_with("/dev/null/"));
        assert!(said("apply_patch")["overrideInput"]["input"].as_str().unwrap().contains("*** Update File: /dev/null/"));
    }

    #[test]
    fn several_commands_are_one_script() {
        let call = json!({ "name": "run_commands", "input": { "commands": ["cat a", "cat b"] } });
        assert_eq!(parse_tool_use(&call), Some(ToolUse::Shell { command: "cat a\ncat b".to_owned(), directory: None }));
    }
}
