//! Our own protocol, for any agent: one JSON object on standard input, one on standard output. `docs/hook-protocol.md` describes it.

use serde_json::{Value, json};
use surehand_engine::{Edit, Tool, ToolNames};

use super::{
    Beginning, Denial, Dialect, Heard, Shown, ToolOutcome, Transcript, Use, What, decide::Verdict, edit, line_number,
    replacements, several_edits, some_edit, text, write,
};
use crate::client_instructions;

pub(super) const DIALECT: Dialect = Dialect {
    // An agent that calls them otherwise can tell its model so.
    names: || {
        ToolNames::reading_with("read")
            .with(Tool::EditFile, "edit")
            .with(Tool::WriteFile, "write")
            .with(Tool::ApplyPatch, "patch")
            .with(Tool::DeleteFile, "delete")
            .with(Tool::MoveFile, "move")
    },
    room: 16_000,
    hears_at: &["begin", "prompt", "before", "after", "shown"],
    event: "event",
    denial: Denial::Answered,
    beside_denial: "",
    hear,
    say,
    person: Some("person"),
    instructions: &client_instructions::NOTHING,
    transcript: Transcript::Unread,
};

const EVENTS: &[&str] = &["begin", "prompt", "before", "after", "shown", "reset"];

const TOOLS: &[&str] = &["read", "search", "edit", "write", "patch", "delete", "move", "shell"];

fn hear(input: &Value) -> Option<Heard> {
    let what = match input["event"].as_str()? {
        "begin" => What::Begins(beginning(input["source"].as_str())),
        "prompt" => What::Prompted(shown(input)),
        "before" => What::Before(used(&input["tool"])?),
        "after" => What::After(used(&input["tool"])?, outcome(input)),
        "shown" => match text(input, "printed") {
            Some(printed) => What::After(Use::Search { paths: Vec::new() }, ToolOutcome::Printed(printed)),
            None => What::After(Use::Read, ToolOutcome::Showed(shown(input))),
        },
        "reset" => What::Forgot,
        _ => return None,
    };
    let (session, agent, directory) = (text(input, "session")?, text(input, "agent"), text(input, "directory")?);
    Some(Heard { session, agent, directory, transcript: None, gave: Vec::new(), what })
}

fn beginning(source: Option<&str>) -> Beginning {
    match source {
        Some("resumed") => Beginning::Resumed,
        Some("cleared") => Beginning::Cleared,
        Some("compacted") => Beginning::Compacted,
        _ => Beginning::New,
    }
}

/// The tool and its arguments.
fn tool(tool: &Value) -> Option<(&str, &Value)> {
    let fields = tool.as_object()?;
    fields.iter().find(|(name, _)| TOOLS.contains(&name.as_str())).map(|(name, arguments)| (name.as_str(), arguments))
}

fn used(tool_use: &Value) -> Option<Use> {
    let (name, arguments) = tool(tool_use)?;
    let path = || text(arguments, "path");
    Some(match name {
        "read" => Use::Read,
        "search" => {
            let paths = arguments["paths"].as_array().into_iter().flatten();
            Use::Search { paths: paths.filter_map(|path| path.as_str().map(str::to_owned)).collect() }
        }
        "edit" if !arguments["edits"].is_null() => {
            let path = path()?;
            several_edits(&path, replacements(&path, &arguments["edits"], ["old", "new", "all"]))
        }
        "edit" => match (arguments["old"].as_str(), arguments["new"].as_str()) {
            (Some(old), Some(new)) => edit(&path()?, old, new, arguments["all"] == true),
            // How it is edited is not said; that it is, is enough to ask for a read.
            _ => some_edit(&path()?),
        },
        "write" => write(&path()?, arguments["content"].as_str()?),
        "patch" => Use::Patch(text(arguments, "text")?),
        "delete" => Use::Change(Edit::Delete { path: path()? }),
        "move" => Use::Change(Edit::Move { from: text(arguments, "from")?, to: text(arguments, "to")? }),
        _ => Use::Shell { command: text(arguments, "command")?, directory: text(arguments, "directory") },
    })
}

fn outcome(input: &Value) -> ToolOutcome {
    match (tool(&input["tool"]).map(|(name, _)| name), input["printed"].as_str()) {
        (Some("shell"), printed) => ToolOutcome::Printed(printed.unwrap_or_default().to_owned()),
        _ if input["failed"] == true => ToolOutcome::Failed,
        (Some("search"), Some(printed)) => ToolOutcome::Printed(printed.to_owned()),
        (Some("read" | "search"), _) => ToolOutcome::Showed(shown(input)),
        _ => ToolOutcome::Done,
    }
}

/// Lines of files, each with the number of the first.
fn shown(input: &Value) -> Vec<Shown> {
    let of = |shown: &Value| {
        let start = line_number(shown, "start").unwrap_or(1);
        Some(Shown { path: text(shown, "path")?, start, content: shown["text"].as_str()?.to_owned() })
    };
    input["shown"].as_array().into_iter().flatten().filter_map(of).collect()
}

/// What is wrong with an input that was not understood.
pub(super) fn slip(input: &Value) -> String {
    let event = input["event"].as_str().unwrap_or_default();
    let missing = ["session", "directory"].into_iter().find(|name| text(input, name).is_none());
    match (missing, event) {
        (_, event) if !EVENTS.contains(&event) => format!("no such event: {event:?}; there are {}", EVENTS.join(", ")),
        (Some(name), _) => format!("{name} is missing"),
        _ => format!("the tool is not understood: {}; there are {}", input["tool"], TOOLS.join(", ")),
    }
}

/// The answer that lets a call pass.
pub(super) fn allow() -> Value {
    json!({ "decision": "allow" })
}

/// The same, with what went wrong.
pub(super) fn failed(why: &str) -> Value {
    json!({ "decision": "allow", "error": why })
}

/// An answer as it is printed.
pub(super) fn line(answer: &Value) -> String {
    format!("{answer}\n")
}

fn say(_input: &Value, verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Pass => allow(),
        Verdict::Deny(why) => json!({ "decision": "deny", "reason": why }),
        Verdict::Context(text) => json!({ "decision": "allow", "context": text }),
    }
}
