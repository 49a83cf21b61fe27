//! Hooks of all clients with arbitrary input. A hook answers with JSON or with nothing, changes no file, denies only
//! calls that are about to happen in the workspace, and gives a reason. If Surehand fails, the client continues.

use std::{cell::RefCell, path::Path};

use serde_json::{Value, json};
use surehand_adapters::hooks::{HookAnswer, HookClient, HookEnvironment, answer};

use crate::{
    json::spoiled,
    sandbox::{FILES, OTHERS, Sandbox, difference},
    source::Source,
};

pub(super) const WORDS: &[&str] = &[
    "claude\n",
    "generic\n",
    "hook_event_name",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SessionStart",
    "BeforeTool",
    "AfterTool",
    "preToolUse",
    "postToolUse",
    "afterFileEdit",
    "afterShellExecution",
    "tool.execute.before",
    "tool.execute.after",
    "session.compacted",
    "tool_name",
    "tool_input",
    "tool_response",
    "file_path",
    "old_string",
    "new_string",
    "edits",
    "\"Edit\"",
    "\"Read\"",
    "\"Bash\"",
    "apply_patch",
    "read_many_files",
    "\"cwd\":\"$ROOT\"",
    "$ROOT/a.txt",
    "\"startLine\":4294967295",
    "\"content\":\"one\\ntwo\\n\"",
    "null",
    "[]",
    "{}",
    "\\u0000",
    "\\ud83d",
];

/// The events of a client: before a tool, after it, and others.
struct ClientEvents {
    before: &'static str,
    after: &'static str,
    others: &'static [&'static str],
}

fn events(client: HookClient) -> ClientEvents {
    let (before, after, others): (_, _, &[_]) = match client {
        HookClient::Claude => {
            ("PreToolUse", "PostToolUse", &["SessionStart", "UserPromptSubmit", "PostCompact", "PostToolUseFailure"])
        }
        HookClient::Codex => ("PreToolUse", "PostToolUse", &["SessionStart", "UserPromptSubmit", "PostCompact"]),
        HookClient::Gemini => ("BeforeTool", "AfterTool", &["SessionStart", "BeforeAgent"]),
        HookClient::Cursor => (
            "preToolUse",
            "postToolUse",
            &["sessionStart", "preCompact", "afterFileEdit", "beforeShellExecution", "afterShellExecution"],
        ),
        HookClient::Opencode => ("tool.execute.before", "tool.execute.after", &["session.created", "session.compacted"]),
        HookClient::Qwen => ("PreToolUse", "PostToolUse", &["SessionStart", "UserPromptSubmit", "PostToolUseFailure"]),
        HookClient::Copilot => {
            ("preToolUse", "postToolUse", &["sessionStart", "userPromptSubmitted", "preCompact", "postToolUseFailure"])
        }
        HookClient::Goose => ("PreToolUse", "PostToolUse", &["SessionStart", "UserPromptSubmit", "PostToolUseFailure"]),
        HookClient::Cline => ("tool_call", "tool_result", &["agent_start", "PreCompact"]),
        HookClient::Reasonix => ("PreToolUse", "PostToolUse", &["SessionStart", "UserPromptSubmit", "PostCompact"]),
        HookClient::Generic => ("before", "after", &["begin", "prompt", "shown", "reset"]),
    };
    ClientEvents { before, after, others }
}

/// The names of clients' tools.
const TOOLS: &[&str] = &[
    "Read",
    "Edit",
    "MultiEdit",
    "Write",
    "Bash",
    "apply_patch",
    "read_file",
    "read_many_files",
    "replace",
    "write_file",
    "run_shell_command",
    "Delete",
    "Shell",
    "read",
    "edit",
    "multiedit",
    "write",
    "patch",
    "bash",
];

pub(super) fn run(data: &[u8]) {
    let sandbox = Sandbox::new();
    let mut source = Source::new(data);
    let client = named_client(&mut source).unwrap_or_else(|| source.pick(HookClient::ALL));
    if source.clone().byte() == b'{' {
        for line in String::from_utf8_lossy(source.rest()).lines().take(4) {
            fire(&sandbox, client, &line.replace("$ROOT", &sandbox.root().to_string_lossy()));
        }
        return;
    }
    for _ in 0..4 {
        if source.is_empty() {
            break;
        }
        if source.below(8) == 7 {
            sandbox.write(source.pick(FILES), source.until_zero(20));
            continue;
        }
        let mut input = event(&sandbox, &mut source, client);
        (0..source.below(3)).for_each(|_| spoiled(&mut source, &mut input));
        fire(&sandbox, client, &input.to_string());
    }
}

/// The client that the first line names. Kept inputs begin with one, so that a new client does not change what they
/// try.
fn named_client(source: &mut Source<'_>) -> Option<HookClient> {
    let mut ahead = source.clone();
    let name: Vec<u8> =
        std::iter::from_fn(|| (!ahead.is_empty()).then(|| ahead.byte())).take_while(|byte| *byte != b'\n').collect();
    let client = HookClient::named(std::str::from_utf8(&name).ok()?)?;
    *source = ahead;
    Some(client)
}

/// An event as the client would send it.
fn event(sandbox: &Sandbox, source: &mut Source<'_>, client: HookClient) -> Value {
    let ClientEvents { before, after, others } = events(client);
    let record = sandbox.outside().join("record.jsonl");
    let (root, session) = (sandbox.root().to_string_lossy().into_owned(), source.pick(&["s1", "s2", "../x", "é"]));
    let mut input = json!({
        "session_id": session, "conversation_id": session, "session": session, "cwd": root, "directory": root,
        "workspace_roots": [root], "transcript_path": record, "sessionId": session, "taskId": session, "workspaceRoots": [root],
        "working_dir": root, "sessions_database": record, "source": source.pick(&["startup", "resume", "compact", "clear"]),
    });
    let name = match source.below(4) {
        0 => source.pick(others),
        1 | 2 => before,
        _ => after,
    };
    for field in ["hook_event_name", "event", "hookName"] {
        input[field] = name.into();
    }
    if source.below(6) == 5 {
        input["agent_id"] = "agent".into();
    }
    let tool = tool(source, client);
    let (arguments, response) = (arguments(sandbox, source), response(sandbox, source));
    let call = json!({ "name": tool, "input": arguments, "output": response });
    (input["tool_call"], input["tool_result"]) = (call.clone(), call);
    (input["toolName"], input["toolArgs"]) = (tool.into(), arguments.clone());
    input["toolResult"] = if client == HookClient::Copilot { json!({ "textResultForLlm": response }) } else { response.clone() };
    input["prompt"] = format!("x\n--- Content from referenced files ---\nContent from @a.txt:\n{response}").into();
    if client == HookClient::Opencode {
        (input["tool"], input["args"], input["output"]) = (tool.into(), arguments, response);
    } else if client == HookClient::Generic {
        input["tool"] = json!({ tool: arguments });
        input["shown"] = json!([{ "path": "a.txt", "start": source.byte(), "text": response }]);
        input["printed"] = response;
    } else {
        (input["tool_name"], input["tool_input"]) = (tool.into(), arguments.clone());
        input["tool_output"] = if source.flag() { response.clone() } else { response.to_string().into() };
        input["tool_response"] = response;
        // Some events of Cursor have the fields of a tool at the top level.
        if name.contains("Shell") || name.contains("FileEdit") {
            input.as_object_mut().expect("an object").extend(arguments.as_object().cloned().unwrap_or_default());
        }
    }
    input
}

fn tool(source: &mut Source<'_>, client: HookClient) -> &'static str {
    let own: &[&str] = match client {
        HookClient::Claude => &["Read", "Edit", "MultiEdit", "Write", "Bash"],
        HookClient::Codex => &["Bash", "apply_patch"],
        HookClient::Gemini => &["read_file", "read_many_files", "replace", "write_file", "run_shell_command"],
        HookClient::Cursor => &["Read", "Write", "Delete", "Shell"],
        HookClient::Opencode => &["read", "edit", "multiedit", "write", "patch", "bash", "grep"],
        HookClient::Qwen => {
            &["read_file", "read_many_files", "edit", "write_file", "run_shell_command", "grep_search", "notebook_edit"]
        }
        HookClient::Copilot => &["view", "edit", "create", "bash", "grep", "apply_patch"],
        HookClient::Goose => &["edit", "write", "shell"],
        HookClient::Cline => &["read_files", "editor", "run_commands", "search_codebase", "apply_patch"],
        HookClient::Reasonix => {
            &["read_file", "edit_file", "multi_edit", "write_file", "bash", "grep", "move_file", "delete_range"]
        }
        HookClient::Generic => &["read", "search", "edit", "write", "patch", "delete", "move", "shell"],
    };
    if source.below(10) == 9 { source.pick(TOOLS) } else { source.pick(own) }
}

fn path(sandbox: &Sandbox, source: &mut Source<'_>) -> String {
    match source.below(8) {
        0 => source.pick(OTHERS).to_owned(),
        1 => sandbox.outside().join("o.txt").to_string_lossy().into_owned(),
        2 => source.pick(FILES).to_owned(),
        _ => sandbox.root().join(source.pick(FILES)).to_string_lossy().into_owned(),
    }
}

fn arguments(sandbox: &Sandbox, source: &mut Source<'_>) -> Value {
    let path = path(sandbox, source);
    let (old, new) = (source.pick(&["one", "two\n}", "", "}", "\0", "a"]), source.pick(&["1", "", "x\ny\n"]));
    let commands = [
        "cat a.txt".to_owned(),
        "sed -n '1,3p' a.txt && cat src/b.rs".to_owned(),
        "cd src && head -2 b.rs".to_owned(),
        "grep -n a a.txt".to_owned(),
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** End Patch\nEOF".to_owned(),
        format!(
            "*** Begin Patch\n*** Update File: {path}\n*** Move to: new.txt\n@@\n-{old}\n+{new}\n*** Add File: n\n+x\n*** Delete File: src/b.rs\n*** End Patch"
        ),
        format!("cat {path}"),
    ];
    let command = &commands[source.below(commands.len())];
    let edit = json!({ "old_string": old, "new_string": new, "oldString": old, "newString": new, "old": old, "new": new });
    let mut arguments = json!({
        "file_path": path, "filePath": path, "path": path, "edits": [edit, edit], "command": command, "patchText": command,
        "old_string": old, "new_string": new, "oldString": old, "newString": new, "content": new, "before": old, "after": new,
        "old_str": old, "new_str": new, "file_text": new, "old_text": old, "new_text": new, "old": old, "new": new, "text": command,
        "commands": [command], "notebook_path": path, "from": path, "to": "new.txt", "view_range": [1, 9], "input": command,
    });
    for name in ["offset", "limit", "start_line", "expected_replacements"] {
        if source.below(4) == 3 {
            arguments[name] = json!(source.byte());
        }
    }
    if source.below(4) == 3 {
        arguments["dir_path"] = "src".into();
    }
    if source.below(4) == 3 {
        // Cursor takes a call with these fields for an edit.
        drop(arguments.as_object_mut().map(|fields| fields.remove("old_string")));
    }
    arguments
}

fn response(sandbox: &Sandbox, source: &mut Source<'_>) -> Value {
    let shown = sandbox.shown(source.pick(FILES));
    let start = source.pick(&[1_u32, 1, 2, 0, u32::MAX]);
    let many = format!("--- {}/a.txt ---\n\n{shown}\n\n--- End of content ---", sandbox.root().display());
    let framed = format!("Exit code: 0\nWall time: 0 seconds\nOutput:\n{shown}");
    let part = format!("Showing lines {start}-9 of 9 total lines.\n--- FILE CONTENT (truncated) ---\n{shown}");
    match source.below(11) {
        0 => shown.into(),
        1 => json!({ "file": { "content": shown, "startLine": start }, "stdout": shown, "llmContent": shown }),
        2 => framed.into(),
        3 => json!({ "llmContent": many }),
        4 => json!({ "llmContent": [{ "text": part }], "content": shown }),
        5 => json!({ "is_error": true, "success": false, "error": "no" }),
        6 => format!("<content>\n{start}: {}\n</content>", shown.replace('\n', "\n2: ")).into(),
        7 => Value::Null,
        9 => format!("File: a.txt\nL{start}: {shown}\na.txt:{start}:{shown}").into(),
        10 => json!([{ "query": "a.txt:1-9", "result": format!("{start} | {shown}"), "success": true }]),
        _ => json!({ "content": format!("{start}|{}", shown.replace('\n', "\n2|")) }),
    }
}

fn fire(sandbox: &Sandbox, client: HookClient, input: &str) {
    let (before, around) = (sandbox.tree(), sandbox.surroundings());
    let opened = RefCell::new(Vec::new());
    let open = |_: &Path| {
        let workspace = sandbox.open_for_one_call().expect("a workspace");
        opened.borrow_mut().push(workspace.clone());
        Ok(workspace.into())
    };
    let (state, project) = (sandbox.state(), Some(sandbox.root().to_owned()));
    let answered = answer(client, None, input, &HookEnvironment { state: state.clone(), project: project.clone(), open: &open });
    opened.into_inner().into_iter().for_each(surehand_testkit::close_leaked);
    let after = sandbox.tree();
    assert_eq!(before, after, "{input}\n{}", difference(&before, &after));
    assert_eq!(around, sandbox.surroundings(), "{input}");
    check(client, input, &answered);
    // Without a workspace, every call passes.
    let open = |_: &Path| Err("nowhere".to_owned());
    let failed = answer(client, None, input, &HookEnvironment { state, project, open: &open });
    let is_said = failed.stdout.contains("cannot guard this session: nowhere");
    assert_eq!(failed.exit_code, 0, "{input}");
    assert!(client == HookClient::Generic || failed.stdout == client.pass().stdout || is_said, "{input}");
}

fn check(client: HookClient, input: &str, answer: &HookAnswer) {
    let is_denied_by_code = client == HookClient::Reasonix && answer.exit_code == 2;
    assert!(answer.exit_code == 0 || is_denied_by_code, "{answer:?}");
    if is_denied_by_code {
        return is_before(input, &json!(answer.stderr));
    }
    if answer.stdout.is_empty() {
        assert!(!matches!(client, HookClient::Cursor | HookClient::Generic), "always JSON");
        return;
    }
    assert_eq!(answer.stdout.matches('\n').count(), 1, "one line: {}", answer.stdout);
    let said: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {}", answer.stdout));
    let own = &said["hookSpecificOutput"];
    let reason = match client {
        HookClient::Claude | HookClient::Codex | HookClient::Qwen => {
            (own["permissionDecision"] == "deny").then(|| own["permissionDecisionReason"].clone())
        }
        HookClient::Gemini => (said["decision"] == "deny").then(|| said["reason"].clone()),
        HookClient::Cursor => (said["permission"] == "deny").then(|| said["agent_message"].clone()),
        HookClient::Opencode => said.get("deny").cloned(),
        HookClient::Copilot => (said["permissionDecision"] == "deny").then(|| said["permissionDecisionReason"].clone()),
        HookClient::Goose => (said["decision"] == "block").then(|| said["reason"].clone()),
        HookClient::Cline => said.get("overrideInput").map(|_| said["contextModification"].clone()),
        HookClient::Reasonix => None,
        HookClient::Generic => (said["decision"] == "deny").then(|| said["reason"].clone()),
    };
    let Some(reason) = reason else { return };
    assert_eq!(answer.failed, None, "a failure of ours is no reason: {said}");
    is_before(input, &reason);
}

/// A denial has a reason, and comes before the tool runs.
fn is_before(input: &str, reason: &Value) {
    assert!(reason.as_str().is_some_and(|reason| !reason.trim().is_empty()), "a no has a reason: {input}");
    let input: Value = serde_json::from_str(input).expect("it was understood");
    let events = ["hook_event_name", "event", "hookName"].map(|field| input[field].as_str().unwrap_or_default().to_lowercase());
    let words = ["pre", "before", "tool_call"];
    let is_before = events.iter().any(|event| words.iter().any(|word| event.contains(word)));
    assert!(is_before, "what is done cannot be denied: {input} {reason}");
}
