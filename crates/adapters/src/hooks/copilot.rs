//! GitHub Copilot CLI. It does not say what happens: the name of the event is given on the command line. Exit code 1 is a denial to it.
//! That the context was compacted it says before, and not after; so everything is forgotten then. Its `create` refuses a file that is there.

use serde_json::{Value, json};
use surehand_engine::{Tool, ToolNames};

use super::{
    ClientAdapter, DenialChannel, EVENT, HookEvent, HookInput, ShownLines, ToolOutcome, ToolUse, TranscriptUse, beginning, edit,
    handle::HookVerdict, text, truncation, write,
};
use crate::client_instructions;

pub(super) const DIALECT: ClientAdapter = ClientAdapter {
    names: || ToolNames::reading_with("view").with(Tool::EditFile, "edit").with(Tool::WriteFile, "create"),
    // It has no limit that is documented; of a long result it shows the beginning.
    room: 9_500,
    hears_at: &["sessionStart", "userPromptSubmitted", "postToolUse"],
    event: EVENT,
    denial: DenialChannel::Answered,
    beside_denial: "",
    hear,
    say,
    person: None,
    instructions: &client_instructions::COPILOT,
    transcript: TranscriptUse::Unread,
};

fn hear(input: &Value) -> Option<HookInput> {
    let what = match input[EVENT].as_str()? {
        "sessionStart" => HookEvent::Begins(beginning(input["source"].as_str())),
        "preCompact" => HookEvent::Forgot,
        "userPromptSubmitted" => HookEvent::Prompted(Vec::new()),
        "preToolUse" => HookEvent::Before(used(input)?),
        "postToolUse" => HookEvent::After(used(input)?, outcome(input)),
        "postToolUseFailure" => HookEvent::After(used(input)?, ToolOutcome::Failed),
        _ => return None,
    };
    let (session, agent, directory) = (text(input, "sessionId")?, text(input, "agentId"), text(input, "cwd")?);
    Some(HookInput { session, agent, directory, transcript: None, gave: Vec::new(), what })
}

/// The arguments of a tool. Older versions give them as a text that holds JSON.
fn arguments(input: &Value) -> Value {
    match &input["toolArgs"] {
        Value::String(held) => serde_json::from_str(held).unwrap_or_else(|_| Value::String(held.clone())),
        arguments => arguments.clone(),
    }
}

fn used(input: &Value) -> Option<ToolUse> {
    let arguments = arguments(input);
    let path = || text(&arguments, "path");
    Some(match input["toolName"].as_str()? {
        "view" => ToolUse::Read,
        "edit" => edit(&path()?, arguments["old_str"].as_str()?, arguments["new_str"].as_str().unwrap_or_default(), false),
        "create" => write(&path()?, arguments["file_text"].as_str().unwrap_or_default()),
        "apply_patch" => ToolUse::Patch(arguments.as_str().map(str::to_owned).or_else(|| text(&arguments, "input"))?),
        "grep" | "rg" => ToolUse::Search { paths: paths(&arguments) },
        "bash" => ToolUse::Shell { command: text(&arguments, "command")?, directory: None },
        _ => return None,
    })
}

fn paths(arguments: &Value) -> Vec<String> {
    match &arguments["paths"] {
        Value::Array(paths) => paths.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect(),
        _ => text(arguments, "paths").or_else(|| text(arguments, "path")).into_iter().collect(),
    }
}

fn outcome(input: &Value) -> ToolOutcome {
    let result = &input["toolResult"];
    let said = result["textResultForLlm"].as_str().unwrap_or_default();
    match (input["toolName"].as_str(), result["resultType"].as_str()) {
        (Some("bash"), _) => ToolOutcome::Printed(printed(said).to_owned()),
        (_, Some("failure" | "error" | "rejected" | "denied")) => ToolOutcome::Failed,
        (Some("view"), _) => {
            let arguments = arguments(input);
            let start = arguments["view_range"][0].as_u64().and_then(|start| u32::try_from(start).ok()).unwrap_or(1);
            let shown = text(&arguments, "path").map(|path| ShownLines { path, start, content: said.to_owned() });
            ToolOutcome::Showed(shown.into_iter().collect())
        }
        (Some("grep" | "rg"), _) => ToolOutcome::Printed(preview(said).to_owned()),
        _ => ToolOutcome::Done,
    }
}

/// What a command printed, without the line that says how it ended.
fn printed(said: &str) -> &str {
    let output = match said.trim_end().rsplit_once('\n') {
        Some((output, last)) if last.starts_with("<shellId: ") || last.starts_with("<exited with ") => output,
        _ if said.starts_with("<shellId: ") => "",
        _ => said,
    };
    preview(output)
}

/// Of a long result it shows the first characters, below words of its own.
fn preview(said: &str) -> &str {
    if !said.starts_with("Output too large to read at once") {
        return said;
    }
    let shown = said.split_once("\nPreview (first ").and_then(|(_, shown)| shown.split_once(" chars):\n"));
    shown.map_or("", |(_, shown)| truncation::without_part_line(shown))
}

fn say(_input: &Value, verdict: &HookVerdict) -> Value {
    match verdict {
        HookVerdict::Pass => Value::Null,
        HookVerdict::Deny(why) => json!({ "permissionDecision": "deny", "permissionDecisionReason": why }),
        HookVerdict::Context(text) => json!({ "additionalContext": text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_command_ended_is_no_part_of_its_output() {
        assert_eq!(printed("alpha\nbeta\n<shellId: 0 completed with exit code 3>"), "alpha\nbeta");
        assert_eq!(printed("<shellId: 1 completed with exit code 0>"), "");
        assert_eq!(printed("alpha\n"), "alpha\n");
    }

    #[test]
    fn of_a_long_output_the_first_whole_lines_count() {
        let said = "Output too large to read at once (250.9 KB). Saved to: /t/x.txt\nConsider using grep.\n\n\
            Preview (first 500 chars):\none\ntwo\nthr\n<shellId: 0 completed with exit code 0>";
        assert_eq!(printed(said), "one\ntwo\n");
        assert_eq!(printed("Output too large to read at once (1 KB)."), "");
    }

    #[test]
    fn arguments_may_be_a_text() {
        let input = json!({ "toolName": "bash", "toolArgs": "{\"command\":\"cat a\"}" });
        assert_eq!(used(&input), Some(ToolUse::Shell { command: "cat a".to_owned(), directory: None }));
        let patch = json!({ "toolName": "apply_patch", "toolArgs": "*** Begin Patch\n*** End Patch" });
        assert_eq!(used(&patch), Some(ToolUse::Patch("*** Begin Patch\n*** End Patch".to_owned())));
    }
}
