//! The neutral protocol for any agent: one JSON object on standard input, one on standard output. See
//! `docs/hook-protocol.md`.

use serde_json::{Value, json};
use surehand_engine::{Edit, Tool, ToolNames};

use super::{ClientAdapter, DEFAULTS, FIELDS, InputFields};
use crate::hooks::event::{
    EditFields, HookEvent, SessionStart, ShownLines, ToolOutcome, ToolUse, edit_in, edits_in, line_number, text, unknown_edit,
    write,
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "generic",
    // An agent with other tool names can explain them to its model.
    names: || {
        ToolNames::reading_with("read")
            .with(Tool::EditFile, "edit")
            .with(Tool::WriteFile, "write")
            .with(Tool::ApplyPatch, "patch")
            .with(Tool::DeleteFile, "delete")
            .with(Tool::MoveFile, "move")
    },
    context_events: &["begin", "prompt", "before", "after", "shown"],
    event_field: "event",
    fields: InputFields { session: &["/session"], agent: &["/agent"], directory: &["/directory"], ..FIELDS },
    parse,
    deny: |_, why| json!({ "decision": "deny", "reason": why }),
    add_context: |_, text| json!({ "decision": "allow", "context": text }),
    person_field: Some("person"),
    ..DEFAULTS
};

const EVENTS: &[&str] = &["begin", "prompt", "before", "after", "shown", "reset"];

const TOOLS: &[&str] = &["read", "search", "edit", "write", "patch", "delete", "move", "shell"];

fn parse(event: &str, input: &Value) -> Option<HookEvent> {
    Some(match event {
        "begin" => HookEvent::Starts(session_start(input)),
        "prompt" => HookEvent::Prompted(shown(input)),
        "before" => HookEvent::Before(parse_tool_use(&input["tool"])?),
        "after" => HookEvent::After(parse_tool_use(&input["tool"])?, parse_outcome(input)),
        "shown" => match text(input, "printed") {
            Some(printed) => HookEvent::After(ToolUse::search(None), ToolOutcome::Printed(printed)),
            None => HookEvent::After(ToolUse::Read, ToolOutcome::Showed(shown(input))),
        },
        "reset" => HookEvent::ContextLost,
        _ => return None,
    })
}

fn session_start(input: &Value) -> SessionStart {
    match input["source"].as_str() {
        Some("resumed") => SessionStart::Resumed,
        Some("cleared") => SessionStart::Cleared,
        Some("compacted") => SessionStart::Compacted,
        _ => SessionStart::New,
    }
}

fn tool(tool: &Value) -> Option<(&str, &Value)> {
    let fields = tool.as_object()?;
    fields.iter().find(|(name, _)| TOOLS.contains(&name.as_str())).map(|(name, arguments)| (name.as_str(), arguments))
}

const EDIT: EditFields<'_> = ["old", "new", "all"];

fn parse_tool_use(tool_use: &Value) -> Option<ToolUse> {
    let (name, arguments) = tool(tool_use)?;
    let path = || text(arguments, "path");
    Some(match name {
        "read" => ToolUse::Read,
        "search" => {
            let paths = arguments["paths"].as_array().into_iter().flatten();
            ToolUse::Search { paths: paths.filter_map(|path| path.as_str().map(str::to_owned)).collect() }
        }
        "edit" if !arguments["edits"].is_null() => edits_in(&path()?, &arguments["edits"], EDIT),
        // The path is enough to require a read.
        "edit" => edit_in(&path()?, arguments, EDIT).or_else(|| Some(unknown_edit(&path()?)))?,
        "write" => write(&path()?, arguments["content"].as_str()?),
        "patch" => ToolUse::Patch(text(arguments, "text")?),
        "delete" => ToolUse::Change(Edit::Delete { path: path()? }),
        "move" => ToolUse::Change(Edit::Move { from: text(arguments, "from")?, to: text(arguments, "to")? }),
        _ => ToolUse::shell(arguments, text(arguments, "directory"))?,
    })
}

fn parse_outcome(input: &Value) -> ToolOutcome {
    match (tool(&input["tool"]).map(|(name, _)| name), input["printed"].as_str()) {
        (Some("shell"), printed) => ToolOutcome::Printed(printed.unwrap_or_default().to_owned()),
        _ if input["failed"] == true => ToolOutcome::Failed,
        (Some("search"), Some(printed)) => ToolOutcome::Printed(printed.to_owned()),
        (Some("read" | "search"), _) => ToolOutcome::Showed(shown(input)),
        _ => ToolOutcome::Done,
    }
}

fn shown(input: &Value) -> Vec<ShownLines> {
    let of = |shown: &Value| {
        let start = line_number(shown, "start").unwrap_or(1);
        Some(ShownLines::new(text(shown, "path")?, start, shown["text"].as_str()?))
    };
    input["shown"].as_array().into_iter().flatten().filter_map(of).collect()
}

pub(super) fn describe_mistake(input: &Value) -> String {
    let event = input["event"].as_str().unwrap_or_default();
    let missing = ["session", "directory"].into_iter().find(|name| text(input, name).is_none());
    match (missing, event) {
        (_, event) if !EVENTS.contains(&event) => format!("no such event: {event:?}; there are {}", EVENTS.join(", ")),
        (Some(name), _) => format!("{name} is missing"),
        _ => format!("the tool is not understood: {}; there are {}", input["tool"], TOOLS.join(", ")),
    }
}
