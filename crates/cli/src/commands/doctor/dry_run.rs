//! Starts this program as a client does, with harmless input, in a temporary workspace.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::commands::init::clients::InitClient;

/// The timeout that `init` sets for hooks.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a session start and a read of a missing file. Returns the time of the slower one, in milliseconds.
pub(super) fn hook(client: InitClient) -> Result<u128, String> {
    let place = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    let mut slowest = 0;
    for (event, input) in samples(client, place.path()) {
        let arguments: Vec<&str> = ["hook", client.name()].into_iter().chain(event).collect();
        let mut command = this_program(&arguments, place.path())?;
        // The settings are checked separately: hooks work without them.
        command.env("XDG_CONFIG_HOME", place.path());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SUREHAND_")) {
            command.env_remove(name);
        }
        command.env("SUREHAND_BOARD_ENABLED", "false");
        let (output, millis) = run(command, &format!("{input}\n"))?;
        judge(&output)?;
        slowest = slowest.max(millis);
    }
    // A failed hook only writes to its log.
    let log = fs::read_to_string(place.path().join("state/surehand/hooks.log")).unwrap_or_default();
    log.lines().next().map_or(Ok(slowest), |line| Err(line.split_once(' ').map_or(line, |(_, why)| why).to_owned()))
}

fn judge(output: &Output) -> Result<(), String> {
    let answer = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, why.lines().next().unwrap_or_default()));
    }
    let is_fine = answer.trim().is_empty() || serde_json::from_str::<Value>(&answer).is_ok_and(|value| value.is_object());
    if is_fine { Ok(()) } else { Err(format!("its answer is not JSON: {}", answer.lines().next().unwrap_or_default())) }
}

/// The events that the client sends: the event name, if it is an argument, and the input.
fn samples(client: InitClient, place: &Path) -> Vec<(Option<&'static str>, Value)> {
    let (path, cwd, session) = (place.join("missing.txt"), place, "surehand-doctor");
    let with_fields = |event: &str, fields: Value| {
        let mut input = json!({ "session_id": session, "cwd": cwd, "transcript_path": null, "hook_event_name": event });
        fields.as_object().into_iter().flatten().for_each(|(name, value)| input[name] = value.clone());
        (None, input)
    };
    let read =
        |event, tool| with_fields(event, json!({ "tool_name": tool, "tool_input": { "file_path": path }, "tool_use_id": "1" }));
    let start = |event| with_fields(event, json!({ "source": "startup" }));
    match client {
        InitClient::Claude => vec![start("SessionStart"), read("PreToolUse", "Read")],
        InitClient::Codex => {
            let cat = json!({ "tool_name": "Bash", "tool_input": { "command": "cat missing.txt" }, "tool_use_id": "1" });
            vec![start("SessionStart"), with_fields("PreToolUse", cat)]
        }
        InitClient::Gemini => vec![start("SessionStart"), read("BeforeTool", "read_file")],
        InitClient::Qwen => vec![start("SessionStart"), read("PreToolUse", "read_file")],
        InitClient::Cursor => {
            let cursor = |(event, mut input): (Option<&'static str>, Value)| {
                input["conversation_id"] = session.into();
                input["cursor_version"] = "0".into();
                input["workspace_roots"] = json!([cwd]);
                (event, input)
            };
            vec![cursor(with_fields("sessionStart", json!({}))), cursor(read("preToolUse", "Read"))]
        }
        InitClient::Opencode => {
            let event = "tool.execute.before";
            let read = json!({ "session": session, "directory": cwd, "tool": "read", "args": { "filePath": path } });
            vec![(Some(event), read)]
        }
        InitClient::Copilot => {
            let start = json!({ "sessionId": session, "cwd": cwd, "source": "new" });
            let view = json!({ "sessionId": session, "cwd": cwd, "toolName": "view", "toolArgs": { "path": path } });
            vec![(Some("sessionStart"), start), (Some("preToolUse"), view)]
        }
        InitClient::Goose => {
            let cat = json!({
                "event": "PreToolUse", "session_id": session, "working_dir": cwd,
                "tool_name": "shell", "tool_input": { "command": "cat missing.txt" },
            });
            vec![(Some("SessionStart"), json!({ "event": "SessionStart", "session_id": session })), (Some("PreToolUse"), cat)]
        }
        InitClient::Cline => {
            let start = json!({ "hookName": "agent_start", "taskId": session, "workspaceRoots": [cwd] });
            let call = json!({ "id": "1", "name": "read_files", "input": { "files": [{ "path": path }] } });
            let read = json!({ "hookName": "tool_call", "taskId": session, "workspaceRoots": [cwd], "tool_call": call });
            vec![(Some("TaskStart"), start), (Some("PreToolUse"), read)]
        }
        InitClient::Reasonix => {
            let start = json!({ "event": "SessionStart", "sessionId": session, "cwd": cwd, "source": "startup" });
            let read = json!({
                "event": "PreToolUse", "sessionId": session, "cwd": cwd, "toolName": "read_file", "toolArgs": { "path": path },
            });
            vec![(Some("SessionStart"), start), (Some("PreToolUse"), read)]
        }
        InitClient::Continue | InitClient::Vscode => Vec::new(),
    }
}

/// Initializes the server. Returns the time in milliseconds.
pub(super) fn server() -> Result<u128, String> {
    let place = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "surehand doctor", "version": env!("CARGO_PKG_VERSION") },
    } });
    let (output, millis) = run(this_program(&["mcp"], place.path())?, &format!("{hello}\n"))?;
    let replies = String::from_utf8_lossy(&output.stdout);
    let answer: Option<Value> = replies.lines().next().and_then(|line| serde_json::from_str(line).ok());
    if answer.is_some_and(|answer| answer["result"]["serverInfo"].is_object()) {
        return Ok(millis);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}", output.status, why.lines().next().unwrap_or_default()))
}

fn this_program(arguments: &[&str], place: &Path) -> Result<Command, String> {
    let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
    command.args(arguments).current_dir(place).env("XDG_STATE_HOME", place.join("state")).env_remove("SUREHAND_STATE_DIR");
    // No agent is at work, so the board need not know.
    command.env("SUREHAND_BOARD_ENABLED", "false");
    Ok(command)
}

/// Runs a command with this input. Returns the time in milliseconds.
fn run(mut command: Command, input: &str) -> Result<(Output, u128), String> {
    let began = Instant::now();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    // A process that does not read its input reports why.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let pid = Pid::from_child(&child);
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(child.wait_with_output()));
    match receive.recv_timeout(PATIENCE) {
        Ok(Ok(output)) => Ok((output, began.elapsed().as_millis())),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => {
            let _ = kill_process(pid, Signal::KILL);
            Err(format!("no answer in {} s", PATIENCE.as_secs()))
        }
    }
}
