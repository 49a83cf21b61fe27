//! Codex CLI. It has no tool that reads: its model reads with commands. It edits with patches, which it applies in a way of its own.
//! An answer with any field that it does not know is no answer to it.

use serde_json::Value;
use surehand_engine::{Tool, ToolNames};

use super::{
    ClientAdapter, DenialChannel, EVENT, HookEvent, HookInput, ToolOutcome, ToolUse, TranscriptUse, beginning, say_as_claude,
    text, truncation,
};
use crate::client_instructions;

pub(super) const DIALECT: ClientAdapter = ClientAdapter {
    names: || {
        ToolNames::reading_with("cat (or sed -n)")
            .with(Tool::ApplyPatch, "apply_patch")
            .with(Tool::WriteFile, "apply_patch (Add File)")
    },
    // Of more than 2,500 tokens, four bytes each, it shows only the beginning.
    room: 9_500,
    hears_at: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"],
    event: EVENT,
    denial: DenialChannel::Answered,
    beside_denial: "",
    hear,
    say: say_as_claude,
    person: Some("systemMessage"),
    instructions: &client_instructions::CODEX,
    transcript: TranscriptUse::Unread,
};

fn hear(input: &Value) -> Option<HookInput> {
    let what = match input[EVENT].as_str()? {
        "SessionStart" => HookEvent::Begins(beginning(input["source"].as_str())),
        // A beginning follows that says it; of a subagent none may.
        "PostCompact" => HookEvent::Forgot,
        "UserPromptSubmit" => HookEvent::Prompted(Vec::new()),
        "PreToolUse" => HookEvent::Before(used(input)?),
        "PostToolUse" => HookEvent::After(used(input)?, outcome(input)),
        _ => return None,
    };
    let (transcript, gave) = (None, Vec::new());
    // For a command this is where it runs.
    let (session, agent, directory) = (text(input, "session_id")?, text(input, "agent_id"), text(input, "cwd")?);
    Some(HookInput { session, agent, directory, transcript, gave, what })
}

fn used(input: &Value) -> Option<ToolUse> {
    let command = text(&input["tool_input"], "command")?;
    Some(match input["tool_name"].as_str()? {
        "apply_patch" => ToolUse::Patch(command),
        // A patch that is given to a command of that name is not run by the shell.
        "Bash" if command.trim_start().starts_with("apply_patch") => ToolUse::Patch(command),
        "Bash" => ToolUse::Shell { command, directory: None },
        _ => return None,
    })
}

fn outcome(input: &Value) -> ToolOutcome {
    let Some(response) = input["tool_response"].as_str() else { return ToolOutcome::Done };
    match input["tool_name"].as_str() {
        Some("Bash") => ToolOutcome::Printed(printed(response)),
        _ if response.starts_with("Exit code: ") && !response.starts_with("Exit code: 0\n") => ToolOutcome::Failed,
        _ if response.contains("verification failed") && !response.contains("Success.") => ToolOutcome::Failed,
        _ => ToolOutcome::Done,
    }
}

/// What a command printed, without what Codex puts in front of it, and without the line that it has cut in the middle.
fn printed(response: &str) -> String {
    let is_framed = ["Exit code: ", "Chunk ID: ", "Wall time: "].iter().any(|start| response.starts_with(start));
    let output = match response.split_once("\nOutput:\n") {
        Some((_, output)) if is_framed => output,
        _ => response,
    };
    let is_cut = ["Warning: truncated output", "Total output lines: "].iter().any(|start| output.starts_with(start));
    let output = match output.split_once("\n\n") {
        Some((_, shown)) if is_cut => shown,
        _ => output,
    };
    const MARKS: [&str; 2] = [" tokens truncated…", " chars truncated…"];
    truncation::without_marked_line(output, |line| MARKS.iter().any(|mark| line.contains(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_codex_puts_in_front_of_an_output_is_no_part_of_it() {
        assert_eq!(printed("alpha\n\nbeta\n"), "alpha\n\nbeta\n");
        assert_eq!(printed("Exit code: 0\nWall time: 0 seconds\nOutput:\nalpha\n"), "alpha\n");
        assert_eq!(printed("Warning: truncated output (original token count: 9)\nTotal output lines: 4\n\na\n\nb"), "a\n\nb");
        assert_eq!(printed("Exit code: 0\nTotal output lines: 4\nOutput:\nTotal output lines: 4\n\na"), "a");
        assert_eq!(printed("Total output lines: 9\n\none\ntw…7 tokens truncated…ht\nnine"), "one\n\0\nnine");
    }
}
