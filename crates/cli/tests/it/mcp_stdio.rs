//! The server over standard input and output, except for its tools: prompts, roots, dialects, the log, and sessions
//! that hooks share.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_surehand");

/// A client after the handshake.
struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// The server's answer to `initialize`.
    hello: Value,
}

impl Client {
    fn start(root: &Path, options: &[&str]) -> Self {
        Self::start_as("test", &json!({}), root, options, &[])
    }

    fn start_as(name: &str, capabilities: &Value, root: &Path, options: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("mcp").args(options).arg("--root").arg(root);
        command.env("SUREHAND_POLICY_DURABILITY", "fast").env("XDG_STATE_HOME", state_home(root));
        command.env_remove("CLAUDE_CODE_SESSION_ID").envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, stdin, stdout, hello: Value::Null };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": { "name": name, "version": "0" } });
        client.hello = client.ask("initialize", &hello)["result"].take();
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the server hung up");
        serde_json::from_str(&line).unwrap()
    }

    /// The answer to a request. Messages before it are skipped.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }));
        loop {
            let answer = self.receive();
            if answer["id"] == 7 && answer.get("method").is_none() {
                return answer;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the homes of the sessions in this workspace are noted. The user's own directory may have a session of the same
/// name, left by an earlier run.
fn state_home(root: &Path) -> PathBuf {
    root.join(".git/state-home")
}

fn workspace() -> TempDir {
    let dir = surehand_testkit::repository();
    fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    dir
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn read() -> Value {
    json!({ "path": "a.txt" })
}

fn edit(old: &str, new: &str) -> Value {
    json!({ "path": "a.txt", "old_string": old, "new_string": new })
}

#[test]
fn prompts_hold_the_rules_the_state_and_what_is_open() {
    let dir = workspace();
    let mut client = Client::start(dir.path(), &[]);
    let names: Vec<String> = client.ask("prompts/list", &json!({}))["result"]["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|prompt| prompt["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["start", "continue"]);
    client.call("update_tasks", &json!({ "add": [{ "description": "paint it blue" }] }));
    let words = |answer: Value| answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_default().to_owned();
    let start = words(client.ask("prompts/get", &json!({ "name": "start", "arguments": { "story": "paint the shed" } })));
    assert!(
        ["Read before you edit", "paint the shed", "Repository state", "a.txt "].iter().all(|words| start.contains(words)),
        "{start}"
    );
    let next = words(client.ask("prompts/get", &json!({ "name": "continue" })));
    assert!(next.contains("The next task is 1. [pending] paint it blue\n"), "{next}");
    for bad in [json!({ "name": "start" }), json!({ "name": "start", "arguments": { "story": " " } }), json!({ "name": "stop" })]
    {
        assert_eq!(client.ask("prompts/get", &bad)["error"]["code"], -32602);
    }
}

#[test]
fn a_root_elsewhere_is_noted_and_logged_and_changes_nothing() {
    let dir = workspace();
    let mut client = Client::start_as("test", &json!({ "roots": {} }), dir.path(), &[], &[]);
    let asked = client.receive();
    assert_eq!(asked["method"], "roots/list");
    let roots = json!([{ "uri": "file:///nowhere/else" }, { "uri": format!("file://{}", dir.path().display()) }]);
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": roots } }));
    let logged = client.receive();
    assert_eq!((&logged["method"], &logged["params"]["level"]), (&json!("notifications/message"), &json!("warning")));
    let first = client.call("read_file", &read());
    assert!(text(&first).contains("note: the client's root /nowhere/else is not in this workspace"), "{first}");
    assert!(!text(&client.call("read_file", &read())).contains("note:"), "it is said once");
}

#[test]
fn a_client_that_wants_only_errors_is_spared_warnings() {
    let dir = workspace();
    let mut client = Client::start_as("test", &json!({ "roots": { "listChanged": true } }), dir.path(), &[], &[]);
    let answer = |client: &mut Client, root: &str| {
        let asked = client.receive();
        assert_eq!(asked["method"], "roots/list");
        client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": [{ "uri": root }] } }));
    };
    answer(&mut client, &format!("file://{}", dir.path().display()));
    assert!(client.ask("logging/setLevel", &json!({ "level": "error" }))["result"].is_object());
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    answer(&mut client, "file:///nowhere/else");
    // Had it been logged, the log message would precede the answer to a call with the note.
    loop {
        client.send(
            &json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": { "name": "read_file", "arguments": read() } }),
        );
        let answer = client.receive();
        assert_eq!(answer["id"], 8, "{answer}");
        if text(&answer["result"]).contains("/nowhere/else") {
            break;
        }
    }
}

#[test]
fn dialects_choose_the_tools_that_edit() {
    let dir = workspace();
    let mut client = Client::start(dir.path(), &["--dialects", "lines,patch"]);
    let listed = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"edit_lines") && names.contains(&"apply_patch") && names.contains(&"write_file"));
    assert!(!names.contains(&"edit_file") && !names.contains(&"multi_edit"));
    client.call("read_file", &read());
    let refused = client.call("edit_file", &edit("one", "1"));
    assert!(refused["isError"] == true && text(&refused).contains("there is no tool \"edit_file\"; there are read_file"));
}

/// The answer of a hook of Claude Code to this event.
fn hook(root: &Path, event: &str, tool: &str, more: &Value) -> String {
    let mut input = json!({ "session_id": "c1", "cwd": root, "hook_event_name": event, "tool_name": tool });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut command = Command::new(PROGRAM);
    command.args(["hook", "claude"]).env("SUREHAND_POLICY_DURABILITY", "fast").env("XDG_STATE_HOME", state_home(root));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn a_server_and_the_hooks_of_its_client_have_one_session() {
    let dir = workspace();
    let environment = [("CLAUDE_CODE_SESSION_ID", "c1")];
    let mut client = Client::start_as("claude-code", &json!({}), dir.path(), &[], &environment);
    let file = dir.path().join("a.txt");
    let native = json!({ "tool_input": { "file_path": file, "old_string": "one", "new_string": "1" } });
    assert!(hook(dir.path(), "PreToolUse", "Edit", &native).contains("deny"), "nobody has read it");
    client.call("read_file", &read());
    assert_eq!(hook(dir.path(), "PreToolUse", "Edit", &native), "", "read through the server, edited by the client's own tool");
    fs::write(&file, "1\ntwo\n").unwrap();
    hook(dir.path(), "PostToolUse", "Edit", &native);
    let done = client.call("edit_file", &edit("two", "2"));
    assert!(done["isError"] != true, "the client's own edit is nothing new: {done}");
    hook(dir.path(), "SessionStart", "", &json!({ "source": "compact" }));
    assert_eq!(client.call("edit_file", &edit("2", "3"))["isError"], true, "and what is forgotten is forgotten in both");
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_goes_on_with_its_client_to_the_next_conversation() {
    let dir = workspace();
    let environment = [("CLAUDE_CODE_SESSION_ID", "c1")];
    let mut client = Client::start_as("claude-code", &json!({}), dir.path(), &[], &environment);
    let next = |more: Value| {
        let mut next = json!({ "session_id": "c2" });
        next.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        next
    };
    hook(dir.path(), "SessionStart", "", &json!({ "source": "startup" }));
    client.call("read_file", &read());
    hook(dir.path(), "SessionStart", "", &next(json!({ "source": "clear" })));
    assert_eq!(client.call("edit_file", &edit("one", "1"))["isError"], true, "that was read before");
    let file =
        json!({ "filePath": dir.path().join("a.txt"), "content": "one\ntwo\n", "startLine": 1, "numLines": 2, "totalLines": 2 });
    let shown =
        json!({ "tool_input": { "file_path": dir.path().join("a.txt") }, "tool_response": { "type": "text", "file": file } });
    hook(dir.path(), "PostToolUse", "Read", &next(shown));
    let done = client.call("edit_file", &edit("one", "1"));
    assert!(done["isError"] != true, "read by the client's own tool: {done}");
    let notes = fs::read_dir(dir.path().join(".git/surehand/checkouts/main/hooks")).unwrap();
    assert_eq!(notes.filter(|note| note.as_ref().unwrap().file_name().to_str().unwrap().starts_with("client-")).count(), 1);
}

#[test]
fn a_name_in_the_environment_is_not_taken_for_another_client() {
    let dir = workspace();
    let environment = [("CLAUDE_CODE_SESSION_ID", "c1")];
    let mut client = Client::start_as("codex-mcp-client", &json!({}), dir.path(), &[], &environment);
    client.call("read_file", &read());
    let native = json!({ "tool_input": { "file_path": dir.path().join("a.txt"), "old_string": "one", "new_string": "1" } });
    assert!(hook(dir.path(), "PreToolUse", "Edit", &native).contains("deny"));
}

#[test]
fn a_call_that_names_its_conversation_is_in_that_session() {
    let dir = workspace();
    let mut client = Client::start_as("codex-mcp-client", &json!({}), dir.path(), &[], &[]);
    let mut call = |session: &str, tool: &str, arguments: &Value| {
        let meta = json!({ "sessionId": session, "threadId": session, "progressToken": 1 });
        client.ask("tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": meta }))["result"]["isError"] == true
    };
    assert!(!call("s1", "read_file", &read()));
    assert!(call("s2", "edit_file", &edit("one", "1")));
    assert!(!call("s1", "edit_file", &edit("one", "1")));
}

#[test]
fn the_result_as_an_object_is_there_for_who_asks() {
    let dir = workspace();
    let mut client = Client::start(dir.path(), &[]);
    let mut call = |tool: &str, arguments: &Value, asked: &Value| {
        client.ask("tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": { "surehand/result": asked } }))["result"]
            .clone()
    };
    let refused = call("edit_file", &edit("one", "1"), &json!(true));
    assert_eq!(refused["_meta"]["surehand/result"]["refusal"]["code"], "unread", "{refused}");
    let done = call("read_file", &read(), &json!("true"));
    assert_eq!(done["_meta"]["surehand/result"]["success"], true, "{done}");
    let unasked = call("read_file", &read(), &json!(false));
    for result in [unasked, client.call("read_file", &read()), client.call("read_file", &json!({}))] {
        assert_eq!(result.get("_meta"), None, "{result}");
    }
}

#[test]
fn a_search_that_was_cancelled_is_not_answered_and_the_server_goes_on() {
    let dir = workspace();
    let mut client = Client::start(dir.path(), &[]);
    let call = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "search_files", "arguments": { "pattern": "o" } } });
    for _ in 0..20 {
        client.send(&call(1));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
        client.send(&call(2));
        let mut answer = client.receive();
        if answer["id"] == 1 {
            // It was carried out before it was cancelled.
            answer = client.receive();
        }
        assert_eq!(answer["id"], 2, "{answer}");
        assert!(text(&answer["result"]).contains("1|one"), "{answer}");
    }
}

#[test]
fn calls_that_are_answered_at_once_are_answered_as_the_sdk_does() {
    let dir = workspace();
    fs::write(dir.path().join("b.txt"), "tab\there, \"quoted\" \\ \u{1} é\nlast").unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let mut ask = |arguments: &Value, meta: Option<Value>| {
        let mut params = json!({ "name": "read_file", "arguments": arguments });
        meta.into_iter().for_each(|meta| params["_meta"] = meta);
        client.ask("tools/call", &params)
    };
    // A call that wants more than the text goes through the SDK, and so does the first.
    let by_the_sdk = json!({ "surehand/result": false });
    for arguments in [read(), json!({ "path": "b.txt" }), json!({ "path": "missing" }), json!({ "path": 7 })] {
        let first = ask(&arguments, Some(by_the_sdk.clone()));
        for meta in [None, Some(json!({ "progressToken": 1, "claudecode/toolUseId": "t" })), Some(json!({}))] {
            let mut again = ask(&arguments, meta);
            if first["result"]["isError"] == true {
                // A refusal contains the number of its repetitions.
                again["result"]["content"] = first["result"]["content"].clone();
            }
            assert_eq!(again, first);
        }
    }
}

#[test]
fn calls_that_come_together_are_answered_in_order_and_with_what_comes_before_them() {
    let dir = workspace();
    let mut client = Client::start(dir.path(), &[]);
    client.call("read_file", &read());
    client.ask("resources/subscribe", &json!({ "uri": "surehand://journal" }));
    let call = |id: usize, tool: &str, arguments: &Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
    let ways = [("one", "1"), ("1", "one")];
    let calls = (0..40).map(|id| match id % 4 {
        0 => call(id, "edit_file", &edit(ways[id / 4 % 2].0, ways[id / 4 % 2].1)),
        _ => call(id, "read_file", &read()),
    });
    let lines: String = calls.map(|call| format!("{call}\n")).collect();
    client.stdin.write_all(lines.as_bytes()).unwrap();
    for id in 0..40 {
        if id % 4 == 0 {
            let notification = client.receive();
            assert_eq!(notification["params"]["uri"], "surehand://journal", "before answer {id}: {notification}");
        }
        let answer = client.receive();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(id), &json!(false)), "{answer}");
        let holds = ways[id / 4 % 2].1;
        assert!(id % 4 == 0 || text(&answer["result"]).contains(&format!("1|{holds}\n")), "{answer}");
    }
}

/// Calls that are in flight together share a sync and an export, both before the first of their answers.
#[test]
fn changes_that_come_together_are_complete_before_their_answers() {
    let dir = workspace();
    let names: Vec<String> = (0..24).map(|number| format!("{number:02}.txt")).collect();
    names.iter().for_each(|name| fs::write(dir.path().join(name), "one\n").unwrap());
    let mut client = Client::start_as("test", &json!({}), dir.path(), &[], &[("SUREHAND_POLICY_DURABILITY", "full")]);
    names.iter().for_each(|name| drop(client.call("read_file", &json!({ "path": name }))));
    let edit = |number: usize| {
        let arguments =
            json!({ "path": names[number], "old_string": if number == 20 { "none" } else { "one" }, "new_string": "two" });
        json!({ "jsonrpc": "2.0", "id": 100 + number, "method": "tools/call", "params": { "name": "edit_file", "arguments": arguments } })
    };
    let all: String = (0..names.len()).map(|number| format!("{}\n", edit(number))).collect();
    client.stdin.write_all(all.as_bytes()).unwrap();
    for (number, name) in names.iter().enumerate() {
        let answer = client.receive();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(100 + number), &json!(number == 20)), "{answer}");
        if number == 20 {
            continue;
        }
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "two\n");
        let state: Value = serde_json::from_slice(&fs::read(dir.path().join(".surehand/repostate.json")).unwrap()).unwrap();
        let file = state["files"].as_array().unwrap().iter().find(|file| file["path"] == **name).unwrap();
        assert_eq!((&file["status"], &file["size"]), (&json!("modified"), &json!(4)), "{file}");
        assert_eq!(file["hash"], surehand_engine::core::ContentHash::of(b"two\n").to_string());
    }
}

/// A server that is killed right after some of its answers: what it confirmed exists, and can be undone.
#[test]
fn what_was_answered_together_outlives_a_kill() {
    let dir = workspace();
    let names: Vec<String> = (0..40).map(|number| format!("{number:02}.txt")).collect();
    names.iter().for_each(|name| fs::write(dir.path().join(name), "one\n").unwrap());
    let mut client = Client::start(dir.path(), &[]);
    names.iter().for_each(|name| drop(client.call("read_file", &json!({ "path": name }))));
    let edit = |(number, name): (usize, &String)| {
        let arguments = json!({ "path": name, "old_string": "one", "new_string": "two" });
        let params = json!({ "name": "edit_file", "arguments": arguments });
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params }))
    };
    let all: String = names.iter().enumerate().map(edit).collect();
    client.stdin.write_all(all.as_bytes()).unwrap();
    let mut answered = vec![client.receive()];
    client.child.kill().unwrap();
    let rest = client.stdout.by_ref().lines().map_while(Result::ok);
    answered.extend(rest.filter_map(|line| serde_json::from_str(&line).ok()));
    for answer in answered {
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let name = &names[usize::try_from(answer["id"].as_u64().unwrap()).unwrap()];
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "two\n");
        let undone = Command::new(PROGRAM).args(["undo", name]).current_dir(dir.path()).output().unwrap();
        assert!(undone.status.success(), "{undone:?}");
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "one\n");
    }
}

#[test]
fn a_client_that_reads_late_gets_every_byte() {
    let dir = workspace();
    let large: String = (0..200_000).map(|line| format!("line {line}\n")).collect();
    fs::write(dir.path().join("large.txt"), &large).unwrap();
    let environment = [("SUREHAND_LIMITS_READ_LINES", "1000000"), ("SUREHAND_LIMITS_READ_BYTES", "100000000")];
    let mut client = Client::start_as("test", &json!({}), dir.path(), &[], &environment);
    client.call("read_file", &read());
    for id in 0..4 {
        let params = json!({ "name": "read_file", "arguments": { "path": "large.txt" } });
        client.send(&json!({ "jsonrpc": "2.0", "id": 10 + id, "method": "tools/call", "params": params }));
        // The server cannot send the answer before this message, and has to go on with it afterwards.
        client.send(&json!({ "jsonrpc": "2.0", "id": 20 + id, "method": "ping" }));
    }
    let mut answers: Vec<Value> = (0..8).map(|_| client.receive()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let shown = text(&answers[0]["result"]);
    assert!(shown.ends_with("200000|line 199999\n"), "{}", &shown[shown.len() - 100..]);
    for (answer, id) in answers.iter().zip([10, 11, 12, 13, 20, 21, 22, 23]) {
        assert_eq!(answer["id"], id);
        assert!(id > 19 || text(&answer["result"]) == shown);
    }
}

/// Every request of a model contains these texts.
#[test]
fn the_tools_and_the_rules_are_short() {
    let dir = surehand_testkit::repository();
    let mut client = Client::start(dir.path(), &[]);
    let listed = client.ask("tools/list", &json!({}))["result"]["tools"].take();
    let shown =
        |tool: &Value| json!({ "name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"] });
    let tools: Vec<Value> = listed.as_array().unwrap().iter().map(shown).collect();
    let count = |text: &str| bpe_openai::o200k_base().count(text);
    let of_tools: Vec<(usize, &Value)> = tools.iter().map(|tool| (count(&tool.to_string()), &tool["name"])).collect();
    let rules = count(client.hello["instructions"].as_str().unwrap());
    let all = count(&Value::Array(tools.clone()).to_string()) + rules;
    assert!(all < 2000, "{all} tokens, of which {rules} for the rules: {of_tools:?}");
}

/// Removes a directory in which a server works. Files that the server writes meanwhile may keep a directory from being
/// empty, for `rm -rf` as well. Then this tries again, until nothing is left.
fn remove_for_good(root: &Path) {
    let until = Instant::now() + Duration::from_secs(60);
    while let Err(error) = fs::remove_dir_all(root) {
        match error.kind() {
            ErrorKind::NotFound if !root.exists() => break,
            ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty => {
                assert!(Instant::now() < until, "{}: {error}", root.display());
                std::thread::yield_now();
            }
            _ => panic!("{}: {error}", root.display()),
        }
    }
    assert!(!root.exists(), "{}", root.display());
}

/// `rm -rf project; git clone … project`, while a server is running.
#[test]
fn a_root_that_is_removed_and_made_again_is_gone_on_with() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("project");
    let make = |content: &str| {
        fs::create_dir(&root).unwrap();
        surehand_testkit::make_repository(&root);
        fs::write(root.join("a.txt"), content).unwrap();
    };
    make("one\ntwo\n");
    let mut client = Client::start(&root, &[]);
    client.call("read_file", &read());
    assert_eq!(client.call("edit_file", &edit("one", "1"))["isError"], false);

    remove_for_good(&root);
    let gone = client.call("read_file", &read());
    assert!(text(&gone).contains("was removed; create it again"), "{}", text(&gone));

    make("one\ntwo\n");
    let unread = client.call("edit_file", &edit("one", "1"));
    assert!(text(&unread).contains("was not read this session"), "{}", text(&unread));
    assert!(text(&unread).contains("was removed and created again"), "{}", text(&unread));
    let seen = client.call("read_file", &read());
    assert!(text(&seen).contains("one") && !text(&seen).contains("created again"), "said once: {}", text(&seen));
    assert_eq!(client.call("edit_file", &edit("one", "uno"))["isError"], false);
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "uno\ntwo\n");
    let resource = client.ask("resources/read", &json!({ "uri": "surehand://journal" }));
    assert!(resource.to_string().contains("a.txt"), "{resource}");
    drop(client);
    // The change is recorded in the state of the new root, and can be undone.
    let undone = Command::new(PROGRAM).args(["undo", "--root"]).arg(&root).output().unwrap();
    assert!(undone.status.success(), "{undone:?}");
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "one\ntwo\n");
}

/// The old root still exists under another name, and a link that led to it is left alone.
#[test]
fn a_root_that_is_moved_away_for_another_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let (root, old) = (dir.path().join("project"), dir.path().join("old"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.txt"), "one\n").unwrap();
    surehand_testkit::make_repository(&root);
    let mut client = Client::start(&root, &[]);
    client.call("read_file", &read());
    fs::rename(&root, &old).unwrap();
    fs::create_dir(&root).unwrap();
    surehand_testkit::make_repository(&root);
    fs::write(root.join("a.txt"), "new\n").unwrap();
    let seen = client.call("read_file", &read());
    assert!(text(&seen).contains("new") && text(&seen).contains("created again"), "{}", text(&seen));
    assert_eq!(client.call("edit_file", &edit("new", "newer"))["isError"], false);
    drop(client);
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "newer\n");
    assert_eq!(fs::read_to_string(old.join("a.txt")).unwrap(), "one\n");
}
