//! The data that Surehand stores, and its removal: `usage`, `clean`.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{fs, path::PathBuf, process::Command, sync::LazyLock, time::SystemTime};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{
    going_back::{PROGRAM, Stage},
    people::{CLAUDE, claude_writes, transcript},
};

/// A command of the same user, with the same state, in another directory.
fn elsewhere(stage: &Stage, directory: &PathBuf) -> Command {
    let mut command = stage.command(PROGRAM);
    command.current_dir(directory);
    command
}

/// Removes sizes, because those of database files differ from run to run.
fn without_sizes(text: &str) -> String {
    let units = ["B", "kB", "MB", "GB"];
    let mut lines = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let is_size = |place: usize| {
            let unit = words.get(place + 1).is_some_and(|unit| units.contains(&unit.trim_end_matches([',', ')'])));
            unit && words[place].parse::<f64>().is_ok_and(|number| number > 0.0)
        };
        let shown = (0..words.len()).map(|place| if is_size(place) { "{n}" } else { words[place] });
        lines.push(
            shown
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
                .replace("{n} kB", "{size}")
                .replace("{n} B", "{size}"),
        );
    }
    lines.join("\n")
}

fn directory_beside(stage: &Stage, name: &str) -> PathBuf {
    let directory = stage.root().parent().unwrap().join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn what_is_kept_is_counted_and_measured() {
    let stage = Stage::new();
    assert_snapshot!(transcript(&stage, &["usage"]), @"
    $ surehand usage
    Nothing is stored for {dir}.
    [exit 0]
    ");
    claude_writes(&stage, CLAUDE, "a.txt", "one\n");
    claude_writes(&stage, CLAUDE, "b.txt", "two\n");
    stage.json(&["checkpoint", "mine"]);
    let state = stage.at(".git/surehand/checkouts/main");
    fs::create_dir_all(state.join("rescued")).unwrap();
    fs::write(state.join("rescued/1-a.txt"), "x".repeat(1500)).unwrap();
    fs::create_dir_all(state.join("runs/20260101-000000-0000")).unwrap();
    fs::write(state.join("runs/20260101-000000-0000/transcript.jsonl"), "{}\n").unwrap();
    assert_snapshot!(without_sizes(&transcript(&stage, &["usage"])), @"
    $ surehand usage
    {dir}/.git/surehand {size}
    versions 2 {size} contents of files, for undo and restore
    changes 2 {size}
    checkpoints 1 {size}
    other log entries 0 0 B
    sessions 1 {size} with views of 2 files
    rescued files 1 {size} see surehand rescued
    runs 1 {size} of surehand run
    staged files 0 0 B of edits that are being made
    other {size} indexes, locks, free space in the database
    Limits: versions, changes and checkpoints {n} MB (versions.bytes), 30 days of use (versions.days).
    surehand clean removes the parts that you select.
    [exit 0]
    ");
    let usage = stage.json(&["usage"]);
    let repository = &usage["repositories"][0];
    let main = &repository["checkouts"][0];
    assert_eq!(main["rescued"], json!({ "count": 1, "bytes": 1500 }), "{usage:#}");
    assert_eq!((&main["is"], &main["runs"]), (&json!("there"), &json!({ "count": 1, "bytes": 3 })));
    let on_disk: u64 = stage.disk_usage(".git/surehand");
    assert_eq!(repository["bytes"], json!(on_disk), "{usage:#}");
    let parts =
        ["versions", "changes", "checkpoints", "other_entries", "views"].map(|kind| repository[kind]["bytes"].as_u64().unwrap());
    assert!(parts.iter().sum::<u64>() < on_disk && parts[0] > 0 && parts[1] > 0, "{usage:#}");
}

#[test]
fn what_is_kept_of_all_repositories_names_those_that_are_gone() {
    let stage = Stage::new();
    assert_snapshot!(transcript(&stage, &["usage", "--all"]), @"
    $ surehand usage --all
    Nothing is stored.
    [exit 0]
    ");
    claude_writes(&stage, CLAUDE, "a.txt", "one\n");
    let plain = directory_beside(&stage, "plain");
    let write = r#"{"path": "x.txt", "content": "x\n"}"#;
    assert!(elsewhere(&stage, &plain).args(["call", "write_file", write]).output().unwrap().status.success());
    stage.commit();
    stage.shell("git worktree add -q ../linked && cd ../linked && echo 1 > y");
    let linked = stage.root().parent().unwrap().join("linked");
    assert!(elsewhere(&stage, &linked).args(["checkpoint"]).output().unwrap().status.success());
    let gone = |usage: &Value| {
        let repositories = usage["repositories"].as_array().unwrap().clone();
        let mut gone: Vec<String> = repositories
            .iter()
            .flat_map(|repository| repository["checkouts"].as_array().unwrap().clone())
            .filter(|checkout| checkout["is"] == "gone")
            .map(|checkout| PathBuf::from(checkout["root"].as_str().unwrap()).file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        gone.sort();
        gone
    };
    let usage = stage.json(&["usage", "--all"]);
    assert_eq!(usage["repositories"].as_array().unwrap().len(), 2, "{usage:#}");
    assert_eq!(gone(&usage), Vec::<String>::new(), "{usage:#}");
    fs::rename(&plain, plain.with_file_name("moved")).unwrap();
    fs::remove_dir_all(&linked).unwrap();
    let usage = stage.json(&["usage", "--all"]);
    assert_eq!(gone(&usage), ["linked", "plain"], "{usage:#}");
    // From anywhere, even outside a workspace.
    let home = stage.root().parent().unwrap().join("home");
    let output = elsewhere(&stage, &home).args(["usage", "--all"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap().replace(&stage.root().parent().unwrap().display().to_string(), "{dir}");
    assert_snapshot!(without_sizes(&text), @"
    {size} {dir}/project (one of its work trees is gone: {size})
    {size} {dir}/plain (gone)
    {size} where 1 session worked
    {size} in all
    surehand clean --gone removes the data of work trees that are gone.
    A repository that keeps its state in .git is listed if an agent with hooks worked there in the last 30 days.
    ");
    // Read-only commands create nothing.
    let before = stage.disk_usage("../home/state");
    stage.json(&["usage", "--all"]);
    assert_eq!(stage.disk_usage("../home/state"), before);
}

/// A worktree that was moved, or that is locked because its disk is not mounted, is not gone.
#[test]
fn a_worktree_that_is_elsewhere_is_not_gone() {
    let stage = Stage::new();
    stage.write("a.txt", "one\n", 0o644);
    stage.commit();
    stage.shell("git worktree add -q ../moved && git worktree add -q ../locked && git worktree lock ../locked");
    for name in ["moved", "locked"] {
        let tree = stage.root().parent().unwrap().join(name);
        assert!(elsewhere(&stage, &tree).args(["checkpoint"]).output().unwrap().status.success());
    }
    stage.shell("git worktree move ../moved ../there && mv ../locked ../unplugged");
    stage.json(&["checkpoint"]);
    let usage = stage.json(&["usage"]);
    let checkouts = usage["repositories"][0]["checkouts"].as_array().unwrap();
    assert_eq!(checkouts.iter().map(|checkout| checkout["is"].as_str().unwrap()).collect::<Vec<_>>(), ["there"; 3], "{usage:#}");
}

/// Makes a run with this id, done or not. Returns the path of its transcript.
fn keep_run(stage: &Stage, run: &str, is_done: bool) -> PathBuf {
    let script = stage.at(".git/script");
    let calls = [
        r#"{"calls": [{"tool": "list_files", "arguments": {}}]}"#,
        r#"{"calls": [{"tool": "done", "arguments": {"summary": "x"}}]}"#,
    ];
    fs::write(&script, calls[usize::from(is_done)]).unwrap();
    let runs = stage.at(".git/surehand/checkouts/main/runs");
    stage.surehand(&["run", "tidy up\nand more", "--max-turns", "1", "--script", script.to_str().unwrap()]);
    let made = fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path());
    let made = made.max_by_key(|path| fs::metadata(path).unwrap().created().unwrap()).unwrap();
    fs::rename(made, runs.join(run)).unwrap();
    runs.join(run).join("transcript.jsonl")
}

fn keep_rescue(stage: &Stage, name: &str, content: &str) -> PathBuf {
    let rescued = stage.at(".git/surehand/checkouts/main/rescued");
    fs::create_dir_all(&rescued).unwrap();
    fs::write(rescued.join(name), content).unwrap();
    // All are equally old, so their order is that of their names.
    static NOW: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);
    fs::File::open(rescued.join(name)).unwrap().set_modified(*NOW).unwrap();
    rescued.join(name)
}

#[test]
fn what_is_cleaned_is_shown_and_asked_for_first() {
    let stage = Stage::new();
    assert_snapshot!(transcript(&stage, &["clean"]), @"
    $ surehand clean
    [standard error]
    error: the following required arguments were not provided:
      <--sessions|--versions|--runs|--rescued|--gone>

    Usage: surehand clean <--sessions|--versions|--runs|--rescued|--gone>

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(transcript(&stage, &["clean", "--versions", "--yes"]), @"
    $ surehand clean --versions --yes
    [standard error]
    error: the following required arguments were not provided:
      --older-than <AGE>

    Usage: surehand clean --older-than <AGE> --yes <--sessions|--versions|--runs|--rescued|--gone>

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(transcript(&stage, &["clean", "--runs", "--older-than", "a while"]), @"
    $ surehand clean --runs --older-than a while
    [standard error]
    error: invalid value 'a while' for '--older-than <AGE>': give a number and a unit, as in 30m, 12h, 7d or 2w

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(transcript(&stage, &["clean", "--runs", "--rescued", "--sessions"]), @"
    $ surehand clean --runs --rescued --sessions
    There is nothing to remove.
    [exit 0]
    ");
    claude_writes(&stage, CLAUDE, "a.txt", "one\n");
    keep_run(&stage, "20260101-000000-0000", false);
    keep_rescue(&stage, "1-a.txt", "theirs\n");
    let before = stage.disk_usage(".git/surehand/checkouts/main/runs");
    assert_snapshot!(transcript(&stage, &["clean", "--runs", "--rescued", "--sessions"]), @"
    $ surehand clean --runs --rescued --sessions
    To remove, for good:
      run 20260101-000000-0000 (could be resumed): tidy up
      {id} rescued: 7 bytes that another program wrote to a file while it was replaced
    Nothing was done; --yes does it without asking.
    [exit 1]
    ");
    assert_snapshot!(transcript(&stage, &["clean", "--runs", "--dry-run"]), @"
    $ surehand clean --runs --dry-run
    To remove, for good:
      run 20260101-000000-0000 (could be resumed): tidy up
    [exit 0]
    ");
    let said = stage.json(&["clean", "--runs", "--rescued", "--dry-run"]);
    assert_eq!((&said["removed"], said["runs"].as_array().unwrap().len()), (&json!(false), 1), "{said:#}");
    assert_eq!(stage.disk_usage(".git/surehand/checkouts/main/runs"), before);
    assert_snapshot!(transcript(&stage, &["clean", "--runs", "--rescued", "--older-than", "1h", "--yes"]), @"
    $ surehand clean --runs --rescued --older-than 1h --yes
    There is nothing to remove.
    [exit 0]
    ");
    let said = stage.json(&["clean", "--runs", "--rescued", "--yes"]);
    assert_eq!((&said["removed"], &said["failed"]), (&json!(true), &json!([])), "{said:#}");
    assert_eq!(said["freed"].as_u64().unwrap(), before + "theirs\n".len() as u64, "{said:#}");
    assert_snapshot!(transcript(&stage, &["clean", "--runs", "--rescued"]), @"
    $ surehand clean --runs --rescued
    There is nothing to remove.
    [exit 0]
    ");
    // Nothing else has changed.
    assert_eq!(stage.json(&["log", "--kind", "change"]).as_array().unwrap().len(), 1);
    assert_eq!(stage.json(&["undo"])["success"], true);
}

#[test]
fn what_a_running_process_needs_is_not_cleaned() {
    let stage = Stage::new();
    claude_writes(&stage, CLAUDE, "a.txt", "one\n");
    let busy = fs::File::open(keep_run(&stage, "20260101-000000-0000", false)).unwrap();
    busy.lock().unwrap();
    keep_run(&stage, "20260102-000000-0000", true);
    let open = fs::File::open(keep_rescue(&stage, "1-a.txt", "still being written")).unwrap();
    keep_rescue(&stage, "2-b.txt", "done with");
    // A recently active session goes on, and its edits need what it has seen.
    stage.write("a.txt", "one\ntwo\n", 0o644);
    let text = transcript(&stage, &["clean", "--sessions", "--versions", "--runs", "--rescued", "--older-than", "0s", "--yes"]);
    assert_snapshot!(without_sizes(&text), @"
    $ surehand clean --sessions --versions --runs --rescued --older-than 0s --yes
    To remove, for good:
    1 change (270 B) from before {moment}
    after that, undo, restore, log and diff know only what came later
    run 20260102-000000-0000: tidy up
    {id} rescued: 19 bytes that another program wrote to a file while it was replaced
    {id} rescued: 9 bytes that another program wrote to a file while it was replaced
    Kept: run 20260101-000000-0000, another process is working on it.
    Removed. {size} are free again.
    Kept: rescued file {id} ({id}: in use by another process)
    [exit 1]
    ");
    assert_eq!(stage.json(&["log", "--kind", "change"]), json!([]));
    let edit = json!({ "path": "a.txt", "old_string": "one", "new_string": "1" });
    let call = stage.surehand(&["call", "edit_file", &edit.to_string(), "--session", &format!("claude-{CLAUDE}")]);
    assert!(String::from_utf8_lossy(&call.stdout).contains("modified since last read"), "{call:?}");
    drop((busy, open));
    let said = stage.json(&["clean", "--runs", "--rescued", "--yes"]);
    assert_eq!((said["runs"].as_array().unwrap().len(), said["rescued"].as_array().unwrap().len()), (1, 1), "{said:#}");
    assert_eq!(said["failed"], json!([]));
}

#[test]
fn what_is_kept_of_gone_work_trees_is_cleaned() {
    let stage = Stage::new();
    claude_writes(&stage, CLAUDE, "a.txt", "one\n");
    stage.commit();
    let plain = directory_beside(&stage, "plain");
    let write = r#"{"path": "x.txt", "content": "x\n"}"#;
    assert!(elsewhere(&stage, &plain).args(["call", "write_file", write]).output().unwrap().status.success());
    stage.shell("git worktree add -q ../linked");
    let linked = stage.root().parent().unwrap().join("linked");
    assert!(elsewhere(&stage, &linked).args(["call", "write_file", write]).output().unwrap().status.success());
    stage.shell("mkdir ../other && cd ../other && git init -q");
    let other = stage.root().parent().unwrap().join("other");
    claude_writes_in(&stage, &other, "y.txt");
    let home = stage.root().parent().unwrap().join("home");
    let clean = |words: &[&str]| {
        let output = elsewhere(&stage, &home).args(["clean", "--gone"]).args(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        without_sizes(&text.replace(&stage.root().parent().unwrap().display().to_string(), "{dir}"))
    };
    assert_snapshot!(clean(&["--yes"]), @"There is nothing to remove.");
    for gone in [&plain, &linked, &other] {
        fs::remove_dir_all(gone).unwrap();
    }
    assert_snapshot!(clean(&["--dry-run"]), @"
    To remove, for good:
    data of {dir}/plain, which is gone: {size} with 1 version (103 B), 1 change (270 B)
    data of {dir}/linked, which is gone: {size} with 1 change (270 B)
    where 1 session worked, in work trees that are gone
    a work tree on a disk that is not mounted looks gone as well
    ");
    assert_snapshot!(clean(&["--yes"]), @"
    To remove, for good:
    data of {dir}/plain, which is gone: {size} with 1 version (103 B), 1 change (270 B)
    data of {dir}/linked, which is gone: {size} with 1 change (270 B)
    where 1 session worked, in work trees that are gone
    a work tree on a disk that is not mounted looks gone as well
    Removed. {size} are free again.
    ");
    assert_snapshot!(clean(&[]), @"There is nothing to remove.");
    let usage = stage.json(&["usage", "--all"]);
    let repositories = usage["repositories"].as_array().unwrap();
    assert_eq!(repositories.len(), 1, "{usage:#}");
    assert_eq!(repositories[0]["checkouts"].as_array().unwrap().len(), 1, "{usage:#}");
    assert_eq!(usage["sessions"]["gone"], 0);
    assert!(!stage.json(&["log"]).as_array().unwrap().is_empty());
    // The worktree can come back.
    stage.shell("git worktree prune && git worktree add -q ../linked -b again");
    assert!(elsewhere(&stage, &linked).args(["call", "write_file", write]).output().unwrap().status.success());
}

/// A session whose home is another directory.
fn claude_writes_in(stage: &Stage, directory: &PathBuf, path: &str) {
    let input = json!({ "file_path": directory.join(path), "content": "y\n" });
    let fields = json!({
        "session_id": "other", "cwd": directory, "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_use_id": path,
        "tool_input": input
    });
    stage.hook(&fields);
}
