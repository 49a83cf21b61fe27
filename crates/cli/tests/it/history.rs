//! The record of what happened, and its authors: `log`, `show`, `sessions`, `rescued`.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs,
    path::PathBuf,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{
    going_back::{PROGRAM, Stage},
    people::{CLAUDE, claude_writes, transcript, transcript_in},
};

fn stage() -> Stage {
    let stage = Stage::new();
    stage.write("a.txt", "one\ntwo\n", 0o644);
    stage.write("src/b.txt", "x\n", 0o644);
    stage.commit();
    stage
}

fn call(stage: &Stage, session: &str, tool: &str, arguments: &Value) -> Option<i32> {
    stage.surehand(&["call", tool, &arguments.to_string(), "--session", session]).status.code()
}

/// Stages a rescue: a program wrote this into a file while it was being replaced.
fn rescue(stage: &Stage, path: &str, content: &str) -> PathBuf {
    let state = stage.at(".git/surehand/checkouts/main");
    let name = format!("1-{}", path.replace('/', "__"));
    for dir in ["rescued", "rescue-notes"] {
        fs::create_dir_all(state.join(dir)).unwrap();
    }
    let note = state.join("rescue-notes").join(&name);
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    fs::write(&note, json!({ "path": path, "at": at }).to_string()).unwrap();
    stage.shell("chmod 700 .git/surehand/checkouts/main/rescue*; chmod 600 .git/surehand/checkouts/main/rescue*/*");
    let file = state.join("rescued").join(&name);
    fs::write(&file, content).unwrap();
    file
}

#[test]
fn the_log_lists_everything_that_happened() {
    let stage = stage();
    let (claude, codex) = (format!("claude-{CLAUDE}"), "codex-0199a3b2-4cf1-7d10-9d3b-71c0aa55e210");
    assert_snapshot!(transcript(&stage, &["log"]), @"
    $ surehand log
    There is nothing in the log.
    [exit 0]
    ");
    let edit = json!({ "path": "a.txt", "old_string": "two", "new_string": "2" });
    assert_eq!(call(&stage, &claude, "read_file", &json!({ "path": "a.txt" })), Some(0));
    stage.write("a.txt", "one\ntwo\nthree\n", 0o644);
    assert_eq!(call(&stage, &claude, "edit_file", &edit), Some(1));
    assert_eq!(call(&stage, &claude, "edit_file", &edit), Some(0));
    let unread = json!({ "path": "src/b.txt", "old_string": "x", "new_string": "y" });
    assert_eq!(call(&stage, codex, "edit_file", &unread), Some(1));
    assert_eq!(call(&stage, codex, "edit_file", &unread), Some(1));
    stage.json(&["checkpoint", "mine"]);
    stage.json(&["undo"]);
    stage.json(&["restore", "--to", "mine", "--yes"]);
    rescue(&stage, "src/b.txt", "theirs\n");
    assert_snapshot!(transcript(&stage, &["log"]), @"
    $ surehand log
    {id}   0 s ago  rescued: 7 bytes that another program wrote to src/b.txt while it was replaced
    {id}   0 s ago  restore  by command line
        a.txt edited
    {id}   0 s ago  checkpoint (before restore): 1 file not as committed
    {id}   0 s ago  undo  by command line
        a.txt edited
    {id}   0 s ago  checkpoint mine (surehand checkpoint): 1 file not as committed
    {id}   0 s ago  refused: edit_file of src/b.txt, it had not been read, 2 times in a row  by codex 71c0
    {id}   0 s ago  refused: edit_file of src/b.txt, it had not been read  by codex 71c0
    {id}   0 s ago  edit_file (undone)  by claude 3f2a
        a.txt edited
    {id}   0 s ago  refused: edit_file of a.txt, it had changed since it was read  by claude 3f2a
    {id}   0 s ago  changed by another program: a.txt
    [exit 0]
    ");
    assert_snapshot!(transcript_in(&stage, "src", &["log", "b.txt"]), @"
    src$ surehand log b.txt
    {id}   0 s ago  rescued: 7 bytes that another program wrote to b.txt while it was replaced
    {id}   0 s ago  refused: edit_file of b.txt, it had not been read, 2 times in a row  by codex 71c0
    {id}   0 s ago  refused: edit_file of b.txt, it had not been read  by codex 71c0
    [exit 0]
    ");
    assert_snapshot!(transcript(&stage, &["log", "src", "--kind", "refusal,outside", "-n", "1"]), @"
    $ surehand log src --kind refusal,outside -n 1
    {id}   0 s ago  refused: edit_file of src/b.txt, it had not been read, 2 times in a row  by codex 71c0
    There are older entries: surehand log -n 5 shows more.
    [exit 0]
    ");
    assert_snapshot!(transcript(&stage, &["log", "--session", "codex", "--kind", "change"]), @"
    $ surehand log --session codex --kind change
    There is no such entry in the log.
    [exit 0]
    ");
    let kinds = |words: &[&str]| -> Vec<String> {
        let log = stage.json(words);
        log.as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        kinds(&["log"]),
        ["rescue", "restore", "checkpoint", "undo", "checkpoint", "refusal", "refusal", "change", "refusal", "outside"]
    );
    assert_eq!(kinds(&["log", "--session", "claude"]), ["change", "refusal"]);
}

#[test]
fn a_change_from_outside_is_listed_once_and_shown() {
    let stage = stage();
    for session in ["one", "two"] {
        assert_eq!(call(&stage, session, "read_file", &json!({ "path": "a.txt" })), Some(0));
    }
    stage.write("a.txt", "one\n2\n", 0o644);
    for session in ["one", "two", "one"] {
        assert_eq!(call(&stage, session, "list_files", &json!({})), Some(0));
    }
    let log = stage.json(&["log"]);
    assert_eq!((log.as_array().unwrap().len(), &log[0]["kind"]), (1, &json!("outside")), "{log:#}");
    // Another program's content is kept once a session has seen it.
    assert_eq!(call(&stage, "one", "read_file", &json!({ "path": "a.txt" })), Some(0));
    assert_snapshot!(transcript(&stage, &["show", log[0]["id"].as_str().unwrap()]), @"
    $ surehand show {id}
    {id}   0 s ago  changed by another program: a.txt
        {moment}

    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    [exit 0]
    ");
    // A change that another agent's hook reports afterwards is not one.
    claude_writes(&stage, CLAUDE, "c.txt", "1\n");
    assert_eq!(call(&stage, "one", "read_file", &json!({ "path": "c.txt" })), Some(0));
    let input = json!({ "file_path": stage.at("c.txt"), "content": "2\n" });
    let mut fields = json!({
        "session_id": CLAUDE, "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_use_id": "2", "tool_input": input
    });
    stage.hook(&fields);
    stage.write("c.txt", "2\n", 0o644);
    let outside = || stage.json(&["log", "--kind", "outside"]).as_array().unwrap().len();
    assert_eq!(call(&stage, "one", "list_files", &json!({})), Some(0));
    assert_eq!(outside(), 2);
    fields["hook_event_name"] = json!("PostToolUse");
    fields["tool_response"] = json!({ "filePath": stage.at("c.txt"), "success": true });
    stage.hook(&fields);
    assert_eq!(outside(), 1);
}

#[test]
fn whatever_the_log_lists_can_be_shown() {
    let stage = stage();
    claude_writes(&stage, CLAUDE, "src/new.txt", "by claude\n");
    stage.write("a.txt", "by the person\n", 0o644);
    stage.write("picture.bin", [0, 1, 2], 0o644);
    stage.json(&["checkpoint", "mine"]);
    let change = stage.json(&["log", "src/new.txt"])[0]["id"].as_str().unwrap().to_owned();
    assert_snapshot!(transcript_in(&stage, "src", &["show", &change]), @"
    src$ surehand show {id}
    {id}   0 s ago  write_file  by claude 3f2a
        new.txt created
        {moment}

    diff --git a/src/new.txt b/src/new.txt
    new file mode 100644
    --- /dev/null
    +++ b/src/new.txt
    @@ -0,0 +1,1 @@
    +by claude
    [exit 0]
    ");
    assert_snapshot!(transcript(&stage, &["show", "mine"]), @"
    $ surehand show mine
    {id}   0 s ago  checkpoint mine (surehand checkpoint): 3 files not as committed
        {moment}

    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,1 @@
    -one
    -two
    +by the person
    diff --git a/picture.bin b/picture.bin
    new file mode 100644
    Binary files /dev/null and b/picture.bin differ
    diff --git a/src/new.txt b/src/new.txt
    new file mode 100644
    --- /dev/null
    +++ b/src/new.txt
    @@ -0,0 +1,1 @@
    +by claude
    This is what differs from commit {id}.
    [exit 0]
    ");
    assert_snapshot!(transcript(&stage, &["show", "nothing"]), @"
    $ surehand show nothing
    [standard error]
    error: there is no change, checkpoint or run nothing
    hint: `surehand log` and `surehand runs` list what there is
    [exit 2]
    ");
    assert_eq!(stage.json(&["show", &change[..6]])["id"], change);
    let shown = stage.json(&["show", "mine"]);
    assert_eq!(shown["diffs"].as_array().unwrap().len(), 3, "{shown:#}");
}

#[test]
fn sessions_are_listed_with_what_they_have_seen() {
    let stage = stage();
    assert_snapshot!(transcript(&stage, &["sessions"]), @"
    $ surehand sessions
    There are no sessions.
    [exit 0]
    ");
    assert_eq!(call(&stage, "codex-0199a3b2-4cf1-7d10-9d3b-71c0aa55e210", "read_file", &json!({ "path": "a.txt" })), Some(0));
    claude_writes(&stage, CLAUDE, "src/new.txt", "by claude\n");
    stage.write("a.txt", "by the person\n", 0o644);
    assert_snapshot!(transcript_in(&stage, "src", &["sessions"]), @"
    src$ surehand sessions
    claude 3f2a  active 0 s ago, 1 change, 1 file seen
    codex 71c0  active 0 s ago, 0 changes, 1 file seen, of them changed since: ../a.txt
    [exit 0]
    ");
    assert_snapshot!(transcript(&stage, &["sessions", "codex"]), @"
    $ surehand sessions codex
    codex 71c0  active 0 s ago, 0 changes, 1 file seen, of them changed since: a.txt
        a.txt (changed since)
    [exit 0]
    ");
    assert_snapshot!(transcript(&stage, &["sessions", "-n", "1"]), @"
    $ surehand sessions -n 1
    claude 3f2a  active 0 s ago, 1 change, 1 file seen
    1 session is not shown: surehand sessions -n 2 lists all.
    [exit 0]
    ");
    let known = stage.json(&["sessions", "claude"]);
    assert_eq!(
        (&known[0]["client"], &known[0]["changes"], &known[0]["seen"]),
        (&json!("claude"), &json!(1), &json!(["src/new.txt"])),
        "{known:#}"
    );
    assert!(known[0]["last_active"].is_string(), "{known:#}");
}

#[test]
fn a_rescued_file_is_compared_applied_and_dropped() {
    let stage = stage();
    assert_snapshot!(transcript(&stage, &["rescued"]), @"
    $ surehand rescued
    There are no rescued files.
    [exit 0]
    ");
    stage.json(&["checkpoint"]);
    rescue(&stage, "src/b.txt", "theirs\n");
    let dropped = rescue(&stage, "a.txt", "one\n");
    let ids = || -> Vec<String> {
        let rescued = stage.json(&["rescued"]);
        rescued.as_array().unwrap().iter().map(|rescue| rescue["id"].as_str().unwrap().to_owned()).collect()
    };
    let of = |path: &str| stage.json(&["log", path, "--kind", "rescue"])[0]["id"].as_str().unwrap().to_owned();
    let (one, other) = (of("src/b.txt"), of("a.txt"));
    assert_snapshot!(transcript_in(&stage, "src", &["rescued"]), @"
    src$ surehand rescued
    {id}   0 s ago  rescued: 4 bytes that another program wrote to ../a.txt while it was replaced
    {id}   0 s ago  rescued: 7 bytes that another program wrote to b.txt while it was replaced
    surehand rescued show ID compares one with the current file; apply writes it to the file, drop removes it.
    [exit 0]
    ");
    assert_snapshot!(transcript(&stage, &["rescued", "show", &one]), @"
    $ surehand rescued show {id}
    diff --git a/src/b.txt b/src/b.txt
    --- a/src/b.txt
    +++ b/src/b.txt
    @@ -1,1 +1,1 @@
    -x
    +theirs
    [exit 0]
    ");
    assert_snapshot!(transcript(&stage, &["rescued", "apply", &one]), @"
    $ surehand rescued apply {id}
    Nothing was done; --yes does it without asking.
    [exit 1]
    ");
    assert_eq!(fs::read_to_string(stage.at("src/b.txt")).unwrap(), "x\n");
    assert_snapshot!(transcript(&stage, &["rescued", "apply", &one, "--yes"]), @"
    $ surehand rescued apply {id} --yes
    Wrote the rescued content to src/b.txt.
    surehand undo {id} takes it back.
    [exit 0]
    ");
    assert_eq!(fs::read_to_string(stage.at("src/b.txt")).unwrap(), "theirs\n");
    stage.json(&["undo"]);
    assert_eq!(fs::read_to_string(stage.at("src/b.txt")).unwrap(), "x\n");
    assert_eq!(ids(), std::slice::from_ref(&other));
    assert_snapshot!(transcript(&stage, &["rescued", "drop", &other]), @"
    $ surehand rescued drop {id}
    {id}   0 s ago  rescued: 4 bytes that another program wrote to a.txt while it was replaced
    Nothing was done; --yes does it without asking.
    [exit 1]
    ");
    assert!(dropped.exists());
    assert_snapshot!(transcript(&stage, &["rescued", "drop", &other, "--yes"]), @"
    $ surehand rescued drop {id} --yes
    Dropped. While its content is kept, surehand rescued apply {id} still finds it.
    [exit 0]
    ");
    assert!(!dropped.exists() && ids().is_empty());
    assert_snapshot!(transcript(&stage, &["show", &other]), @"
    $ surehand show {id}
    {id}   0 s ago  rescued file applied or dropped: a.txt  by command line
        {moment}

    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,1 @@
     one
    -two
    [exit 0]
    ");
    stage.json(&["rescued", "apply", &other, "--to", "c.txt"]);
    assert_eq!(fs::read_to_string(stage.at("c.txt")).unwrap(), "one\n");
}

/// Runs the program on a terminal. `None` where the machine has no `script`.
fn on_a_terminal(stage: &Stage, pager: &str, words: &str) -> Option<String> {
    let mut command = stage.command("script");
    command.args(["-qec", &format!("{PROGRAM} {words}"), "/dev/null"]).env("SUREHAND_PAGER", pager).env("TERM", "xterm");
    let output = command.output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).replace('\r', ""))
}

#[test]
fn on_a_terminal_long_output_goes_to_the_pager() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("not run: there is no `script` to make a terminal");
        return;
    }
    let stage = stage();
    for number in 0..30 {
        claude_writes(&stage, CLAUDE, &format!("{number}.txt"), "by claude\n");
    }
    let run = |pager: &str, words: &str| on_a_terminal(&stage, pager, words).unwrap();
    assert_eq!(run("head -n 1", "log").lines().count(), 1, "the pager may be quit early");
    assert!(run("wc -l", "log").trim().parse::<usize>().unwrap() > 20);
    for shown in [run("/nowhere/pager", "log"), run("head -n 1", "log --no-pager"), run("", "log")] {
        assert!(shown.lines().count() > 20, "{shown}");
    }
    assert!(run("head -n 1", "log --json").lines().count() > 20);
    let piped = stage.command(PROGRAM).arg("log").env("SUREHAND_PAGER", "head -n 1").output().unwrap();
    assert!(String::from_utf8_lossy(&piped.stdout).lines().count() > 20);
}
