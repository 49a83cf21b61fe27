//! Codex CLI. It has no read tool: its model reads with commands. It edits with patches, which it applies by its own
//! rules. It ignores an answer with an unknown field.

use serde_json::Value;
use surehand_engine::{Tool, ToolNames};

use super::{ClientAdapter, DEFAULTS, parse_like_claude};
use crate::{
    client_instructions,
    hooks::{
        event::{ToolOutcome, ToolUse, text},
        truncation,
    },
};

pub(super) const ADAPTER: ClientAdapter = ClientAdapter {
    name: "codex",
    mcp_name: "codex",
    names: || {
        ToolNames::reading_with("cat (or sed -n)")
            .with(Tool::ApplyPatch, "apply_patch")
            .with(Tool::WriteFile, "apply_patch (Add File)")
    },
    // It shows the model only the beginning of more than 2,500 tokens, at four bytes each.
    max_context: 9_500,
    context_events: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"],
    // After a `PostCompact` comes a `SessionStart`, but perhaps not for a subagent.
    parse: |event, input| parse_like_claude(event, input, parse_tool_use, parse_outcome),
    person_field: Some("systemMessage"),
    instructions: &client_instructions::CODEX,
    ..DEFAULTS
};

fn parse_tool_use(input: &Value) -> Option<ToolUse> {
    let command = text(&input["tool_input"], "command")?;
    Some(match input["tool_name"].as_str()? {
        "apply_patch" => ToolUse::Patch(command),
        // Codex applies a patch in a command of that name itself.
        "Bash" if command.trim_start().starts_with("apply_patch") => ToolUse::Patch(command),
        "Bash" => ToolUse::Shell { command, directory: None },
        _ => return None,
    })
}

fn parse_outcome(input: &Value) -> ToolOutcome {
    let Some(response) = input["tool_response"].as_str() else { return ToolOutcome::Done };
    match input["tool_name"].as_str() {
        Some("Bash") => ToolOutcome::Printed(printed(response)),
        _ if response.starts_with("Exit code: ") && !response.starts_with("Exit code: 0\n") => ToolOutcome::Failed,
        _ if response.contains("verification failed") && !response.contains("Success.") => ToolOutcome::Failed,
        _ => ToolOutcome::Done,
    }
}

/// The output of a command, without the header of Codex and without the line that it truncated.
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
