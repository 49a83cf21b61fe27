//! Real processes: killed at any step, and several at once in one workspace.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use serde_json::{Value, json};
use surehand_testkit::{
    scenario::tree,
    tool_client::{McpClient, ToolClient},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_surehand");
const FAST: &[(&str, &str)] = &[("SUREHAND_POLICY_DURABILITY", "fast")];
/// The steps: lock, 3 × stage, begin, 3 × (check, swap, verify), end.
const STEPS_OF_BATCH: usize = 1 + 3 + 1 + 3 * 3 + 1;

fn call(root: &Path, tool: &str, arguments: &Value, environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["call", tool, &arguments.to_string(), "--root"]).arg(root);
    command.envs(FAST.iter().copied()).envs(environment.iter().copied()).output().unwrap()
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "old_string": old, "new_string": new })
}

/// Files that Surehand should have removed.
fn debris(root: &Path) -> Vec<PathBuf> {
    let parts = ["staged", "journal", "outbox", "rescued"].map(|part| root.join(".git/surehand/checkouts/main").join(part));
    parts.iter().flat_map(|part| fs::read_dir(part).into_iter().flatten()).map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn kill_9_at_every_step_leaves_files_whole_and_the_batch_all_or_nothing() {
    for step in 0..STEPS_OF_BATCH {
        let dir = surehand_testkit::repository();
        let root = dir.path();
        fs::write(root.join("a.txt"), "one\n").unwrap();
        fs::write(root.join("b.txt"), "one\n").unwrap();
        let before = tree(root);
        for path in ["a.txt", "b.txt"] {
            assert!(call(root, "read_file", &json!({ "path": path }), &[]).status.success());
        }
        let batch = json!({ "edits": [edit("a.txt", "one", "two"), edit("b.txt", "one", "two"), edit("c.txt", "", "two\n")] });
        let killed = call(root, "multi_edit", &batch, &[("SUREHAND_TEST_KILL_AFTER", &step.to_string())]);
        assert_eq!(killed.status.code(), None, "killed by a signal after step {step}");
        // Any call starts the program again.
        let next = call(root, "forget", &json!({}), &[]);
        assert!(next.status.success());
        let after = tree(root);
        let done: Vec<_> = ["a.txt", "b.txt", "c.txt"].map(|path| (path.to_owned(), b"two\n".to_vec())).into();
        assert!(after == before || after.clone().into_iter().eq(done), "after step {step}: {after:?}");
        assert_eq!(debris(root), Vec::<PathBuf>::new(), "after step {step}");
    }
}

#[test]
fn a_server_that_is_killed_loses_no_file() {
    let dir = surehand_testkit::repository();
    let root = dir.path();
    for round in 0..5 {
        fs::write(root.join("a.txt"), "count 0\n").unwrap();
        let mut client = McpClient::start(Path::new(PROGRAM), root, FAST);
        client.call("read_file", &json!({ "path": "a.txt" }));
        for number in 0..40 {
            let arguments = edit("a.txt", &format!("count {number}\n"), &format!("count {}\n", number + 1));
            let params = json!({ "name": "edit_file", "arguments": arguments });
            client.send(&json!({ "jsonrpc": "2.0", "id": 100 + number, "method": "tools/call", "params": params }).to_string());
        }
        // Somewhere in the middle of the edits.
        for _ in 0..round * 8 {
            client.receive();
        }
        client.process().kill().unwrap();
        drop(client);
        call(root, "forget", &json!({}), &[]);
        let now = fs::read_to_string(root.join("a.txt")).unwrap();
        let number: u32 = now.strip_prefix("count ").and_then(|rest| rest.strip_suffix('\n')).unwrap().parse().unwrap();
        assert!(number >= round * 8, "edits that were answered are there: {now}");
        assert_eq!(debris(root), Vec::<PathBuf>::new());
    }
}

/// The server is killed right after its answer, long before the store gets the change.
#[test]
fn what_a_killed_server_has_answered_for_can_be_undone() {
    let dir = surehand_testkit::repository();
    let root = dir.path();
    for (path, content) in [("a.txt", "one\n"), ("b.txt", "one\n"), ("gone.bin", "\0one\n"), ("moved.txt", "one\n")] {
        fs::write(root.join(path), content).unwrap();
    }
    let before = tree(root);
    let calls = [
        ("edit_file", edit("a.txt", "one", "two")),
        (
            "multi_edit",
            json!({ "edits": [edit("a.txt", "two", "three"), edit("b.txt", "one", "three"), edit("c.txt", "", "three\n")] }),
        ),
        ("delete_file", json!({ "path": "gone.bin" })),
        ("write_file", json!({ "path": "b.txt", "content": "four\n" })),
        ("move_file", json!({ "from": "moved.txt", "to": "there.txt" })),
    ];
    for answered in 1..=calls.len() {
        let mut client = McpClient::start(Path::new(PROGRAM), root, FAST);
        for path in ["a.txt", "b.txt", "moved.txt"] {
            client.call("read_file", &json!({ "path": path }));
        }
        for (tool, arguments) in &calls[..answered] {
            let answer = client.call(tool, arguments);
            assert!(!answer.is_error, "{tool}: {}", answer.text);
        }
        client.process().kill().unwrap();
        drop(client);
        for _ in 0..answered {
            let undone = Command::new(PROGRAM).args(["undo", "--root"]).arg(root).output().unwrap();
            assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stdout));
        }
        assert_eq!(tree(root), before, "after {answered} calls");
        assert_eq!(debris(root), Vec::<PathBuf>::new());
    }
}

/// The server has answered and is still running.
#[test]
fn what_a_server_has_just_answered_for_is_what_others_undo() {
    let dir = surehand_testkit::repository();
    let root = dir.path();
    fs::write(root.join("a.txt"), "count 0\n").unwrap();
    let run = |arguments: &[&str]| Command::new(PROGRAM).args(arguments).arg("--root").arg(root).output().unwrap();
    let mut client = McpClient::start(Path::new(PROGRAM), root, FAST);
    for round in 0..5 {
        client.call("read_file", &json!({ "path": "a.txt" }));
        for number in 0..3 {
            let answer = client.call("edit_file", &edit("a.txt", &format!("count {number}"), &format!("count {}", number + 1)));
            assert!(!answer.is_error, "{}", answer.text);
        }
        for number in (0..3).rev() {
            let undone = run(&["undo"]);
            assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stdout));
            assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), format!("count {number}\n"), "round {round}");
        }
    }
    drop(client);
    let log: Value = serde_json::from_slice(&run(&["log", "--json", "--limit", "1000"]).stdout).unwrap();
    let log = log.as_array().or_else(|| log["changes"].as_array()).unwrap_or_else(|| panic!("{log}"));
    assert_eq!(log.len(), 30, "each change is there once: {log:?}");
}

/// The old text of a file that is replaced as a whole is stored in full, in the store or on its way there.
#[test]
fn what_a_killed_server_has_written_anew_can_be_undone() {
    let dir = surehand_testkit::repository();
    let root = dir.path();
    let text = |number: usize| (0..20_000).map(|line| format!("line {line} of text {number}\n")).collect::<String>();
    fs::write(root.join("large.txt"), text(0)).unwrap();
    for pause in [Duration::ZERO, Duration::from_millis(400)] {
        let mut client = McpClient::start(Path::new(PROGRAM), root, FAST);
        let mut from = 1;
        while from <= 20_000 {
            client.call("read_file", &json!({ "path": "large.txt", "offset": from, "limit": 1000 }));
            from += 1000;
        }
        for number in 1..=3 {
            let answer = client.call("write_file", &json!({ "path": "large.txt", "content": text(number) }));
            assert!(!answer.is_error, "{}", answer.text);
            std::thread::sleep(pause);
        }
        client.process().kill().unwrap();
        drop(client);
        for number in (0..3).rev() {
            let undone = Command::new(PROGRAM).args(["undo", "--root"]).arg(root).output().unwrap();
            assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stdout));
            assert!(fs::read_to_string(root.join("large.txt")).unwrap() == text(number), "text {number}, {pause:?}");
        }
    }
}

#[test]
fn two_servers_and_a_shell_editing_one_file_lose_nothing() {
    let dir = surehand_testkit::repository();
    let root = dir.path();
    fs::write(root.join("n.txt"), "0\n").unwrap();
    let count_up = |call: &mut dyn FnMut(&str, &Value) -> (String, bool)| {
        loop {
            let (shown, _) = call("read_file", &json!({ "path": "n.txt" }));
            let line = shown.lines().find_map(|line| line.strip_prefix("1|"));
            let number: u32 = line.unwrap_or_else(|| panic!("{shown}")).parse().unwrap();
            let (_, refused) = call("edit_file", &edit("n.txt", &format!("{number}\n"), &format!("{}\n", number + 1)));
            if !refused {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = McpClient::start(Path::new(PROGRAM), root, FAST);
                for _ in 0..50 {
                    count_up(&mut |tool, arguments| {
                        let answer = client.call(tool, arguments);
                        (answer.text, answer.is_error)
                    });
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..10 {
                count_up(&mut |tool, arguments| {
                    let output = call(root, tool, arguments, &[]);
                    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
                    (String::from_utf8(output.stdout).unwrap(), !output.status.success())
                });
            }
        });
    });
    assert_eq!(fs::read_to_string(root.join("n.txt")).unwrap(), "110\n");
    call(root, "forget", &json!({}), &[]);
    assert_eq!(debris(root), Vec::<PathBuf>::new());
}

#[test]
fn what_one_session_writes_another_finds_stale() {
    let dir = surehand_testkit::repository();
    fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    let mut first = McpClient::start(Path::new(PROGRAM), dir.path(), FAST);
    let mut second = McpClient::start(Path::new(PROGRAM), dir.path(), FAST);
    first.call("read_file", &json!({ "path": "a.txt" }));
    second.call("read_file", &json!({ "path": "a.txt" }));
    assert!(!first.call("edit_file", &edit("a.txt", "one", "1")).is_error);
    let answer = second.call("edit_file", &edit("a.txt", "two", "2"));
    assert_eq!(answer.result["refusal"]["code"], "stale");
    assert!(!second.call("edit_file", &edit("a.txt", "two", "2")).is_error);
    assert_eq!(fs::read_to_string(dir.path().join("a.txt")).unwrap(), "1\n2\n");
}
