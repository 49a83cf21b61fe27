//! Runs that have ended or were killed: `runs` lists them, and `show` shows their events, turn by turn.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{fs, process::Output};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{going_back::Stage, people::transcript};

/// A script of a model that turns two into a number. Between the lines it tries to imitate the program.
const SCRIPT: [&str; 5] = [
    r#"{"text": "Let me look at it.\n\u001b[2Jresult of done", "calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]}"#,
    r#"{"calls": [{"tool": "update_tasks", "arguments": {"add": [{"description": "make it a number"}]}}]}"#,
    r#"{"calls": [{"tool": "edit_file", "arguments": {"path": "a.txt", "old_string": "one\ntwo", "new_string": "one\n2"}},
        {"tool": "edit_file", "arguments": {"path": "b.txt", "old_string": "x", "new_string": "y"}}]}"#,
    r#"{"calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}, {"tool": "update_tasks", "arguments": {"set": [{"id": 1, "status": "completed"}]}}]}"#,
    r#"{"calls": [{"tool": "done", "arguments": {"summary": "It is a number."}}]}"#,
];

fn stage() -> Stage {
    let stage = Stage::new();
    stage.write("a.txt", "one\ntwo\n", 0o644);
    stage.commit();
    let script: Vec<String> = SCRIPT.iter().map(|turn| turn.replace('\n', " ")).collect();
    stage.write(".git/script.jsonl", script.join("\n"), 0o644);
    stage
}

fn run(stage: &Stage, words: &[&str]) -> Output {
    stage.surehand(&[&["run", "--script", ".git/script.jsonl"], words].concat())
}

fn latest(stage: &Stage) -> String {
    stage.json(&["runs"])[0]["run"].as_str().unwrap().to_owned()
}

/// A transcript without the parts that differ from run to run: the id, times, versions and estimates.
fn settled(stage: &Stage, words: &[&str]) -> String {
    let id = latest(stage);
    let mut text = transcript(stage, words).replace(&id, "{run}").replace(&id[..12], "{prefix}");
    for (at, _) in text.clone().rmatch_indices("version ") {
        let end = at + "version ".len();
        text.replace_range(end..end + 6, "{hash}");
    }
    text.split_inclusive('\n').map(without_figures).collect()
}

/// A line without its estimates and times.
fn without_figures(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_figure = |at: usize| {
        let unit = words.get(at + 1).unwrap_or(&"").trim_end();
        words[at].starts_with(|c: char| c.is_ascii_digit()) && ["tokens", "tokens:", "out,", "s", "s,"].contains(&unit)
    };
    let shown: Vec<&str> = (0..words.len()).map(|at| if is_figure(at) { "{n}" } else { words[at] }).collect();
    shown.join(" ")
}

#[test]
fn runs_are_listed_with_what_became_of_them() {
    let stage = stage();
    assert_snapshot!(transcript(&stage, &["runs"]), @r#"
    $ surehand runs
    There are no runs. `surehand run "STORY"` begins one.
    [exit 0]
    "#);
    assert!(run(&stage, &["Make two a number.", "--record-prompts"]).status.success());
    assert_snapshot!(settled(&stage, &["runs"]), @"
    $ surehand runs
    {run}  {n} s ago  done: 5 turns, {n} tokens in, {n} out, {n} s, scripted, with prompts
        Make two a number.
    [exit 0]
    ");
    assert_eq!(run(&stage, &["And another.", "--max-turns", "2"]).status.code(), Some(1));
    let all = stage.json(&["runs"]);
    let field = |name: &str| all.as_array().unwrap().iter().map(|run| run[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("state"), [json!("budget"), json!("done")]);
    assert_eq!(field("turns"), [json!(2), json!(5)]);
    assert_eq!(field("prompts"), [json!(false), json!(true)]);
    assert!(transcript(&stage, &["runs", "-n", "1"]).contains("1 run is not shown: surehand runs -n 2 lists all."));
    // The remains of a killed process, and of a bad disk.
    let dir = stage.at(&format!(".git/surehand/checkouts/main/runs/{}", latest(&stage)));
    let saved: Value = serde_json::from_slice(&fs::read(dir.join("run.json")).unwrap()).unwrap();
    let killed = Value::Object(saved.as_object().unwrap().clone().into_iter().filter(|(key, _)| key != "stop").collect());
    fs::write(dir.join("run.json"), killed.to_string()).unwrap();
    assert_eq!(stage.json(&["runs"])[0]["state"], "interrupted");
    fs::write(dir.join("run.json"), "{").unwrap();
    let damaged = stage.json(&["runs"]);
    assert!(damaged[0]["damaged"].as_str().unwrap().contains("EOF") && damaged[1]["state"] == "done", "{damaged}");
    assert!(transcript(&stage, &["runs"]).contains("run.json is damaged: EOF"));
}

#[test]
fn a_run_is_shown_turn_by_turn() {
    let stage = stage();
    assert!(run(&stage, &["Make two a number."]).status.success());
    let id = latest(&stage);
    assert_snapshot!(settled(&stage, &["show", &id[..12]]), @"
    $ surehand show {prefix}
    {run}  {n} s ago  done: 5 turns, {n} tokens in, {n} out, {n} s, scripted
        Make two a number.

    run {run}: scripted, snapshot mode, session {run}
    story: Make two a number.
    turn 1: planning, 0 of 0 tasks completed, {n} tokens
    Let me look at it.
    <U+001B>[2Jresult of done
    call: read_file a.txt
    result: read_file: a.txt (2 lines, version {hash})
    turn 1 took {n} tokens in, {n} out, {n} s
    turn 2: planning, 0 of 0 tasks completed, {n} tokens
    call: update_tasks 1 added
    result: update_tasks: Story: {run}
    task: 1 make it a number
    turn 2 took {n} tokens in, {n} out, {n} s
    turn 3: coding, 0 of 1 task completed, {n} tokens: make it a number
    call: edit_file a.txt
    result: edit_file: a.txt edited (+1 -1, now 2 lines, version {hash})
    | --- a/a.txt
    | +++ b/a.txt
    | @@ -1,2 +1,2 @@
    |  one
    | -two
    | +2
    call: edit_file b.txt
    refused: edit_file: there is no file b.txt in the workspace; paths are relative to its root. Check the path; to create it, use write_file.
    turn 3 took {n} tokens in, {n} out, {n} s
    turn 4: coding, 0 of 1 task completed, {n} tokens: make it a number
    call: read_file a.txt
    result: read_file: a.txt (2 lines, version {hash})
    call: update_tasks 1 set
    result: update_tasks: Story: {run}
    task completed: 1 make it a number
    turn 4 took {n} tokens in, {n} out, {n} s
    turn 5: coding, 1 of 1 task completed, {n} tokens
    call: done It is a number.
    result: done: Done.
    turn 5 took {n} tokens in, {n} out, {n} s
    done
    It is a number.
    took 5 turns, 7 calls (1 refused), {n} tokens in, {n} out, {n} s
    changed: a.txt +1 -1
    see it: surehand diff --session {run}
    undo it: surehand undo --session {run}
    [exit 0]
    ");
    assert_snapshot!(settled(&stage, &["show", &id, "3"]), @"
    $ surehand show {run} 3
    turn 3: coding, 0 of 1 task completed, {n} tokens: make it a number
    The prompt was not recorded: `surehand run --record-prompts` keeps the prompts of a run, also with --resume.
    call of edit_file
    | new_string:
    |   one
    |   2
    | old_string:
    |   one
    |   two
    | path: a.txt
    result of edit_file
    | a.txt edited (+1 -1, now 2 lines, version {hash})
    |  1|one
    | -2|two
    | +2|2
    diff
    | diff --git a/a.txt b/a.txt
    | --- a/a.txt
    | +++ b/a.txt
    | @@ -1,2 +1,2 @@
    |  one
    | -two
    | +2
    call of edit_file
    | new_string: y
    | old_string: x
    | path: b.txt
    result of edit_file, refused
    | Error: there is no file b.txt in the workspace; paths are relative to its root. Check the path; to create it, use write_file.
    took {n} tokens in, {n} out, {n} s
    [exit 0]
    ");
    let shown = stage.json(&["show", &id, "3"]);
    assert_eq!((&shown["turn"]["turn"], &shown["turn"]["prompt"]), (&json!(3), &Value::Null));
    let diffs: Vec<&Value> = shown["turn"]["events"].as_array().unwrap().iter().map(|event| &event["diff"]).collect();
    assert!(diffs.iter().any(|diff| diff.as_str().is_some_and(|diff| diff.contains("-two\n+2\n"))), "{diffs:?}");
    assert_eq!(stage.json(&["show", &id])["events"].as_array().unwrap().last().unwrap()["event"], "stopped");
}

#[test]
fn every_prompt_can_be_looked_at_afterwards() {
    for mode in ["snapshot", "history"] {
        let stage = stage();
        assert_eq!(
            run(&stage, &["Make two a number.", "--record-prompts", "--mode", mode, "--max-turns", "2"]).status.code(),
            Some(1)
        );
        assert!(run(&stage, &["--resume", "--record-prompts", "--mode", mode]).status.success());
        let id = latest(&stage);
        let text = |turn: &str| String::from_utf8(stage.surehand(&["show", &id, turn]).stdout).unwrap();
        let third = text("3");
        assert!(
            third.starts_with("turn 3: ")
                && third.contains("\nprompt, system\n| You are a coding agent.")
                && third.contains("| Make two a number.\n"),
            "{third}"
        );
        assert!(third.contains("1|one") && third.contains("prompt, tools\n| read_file, "), "{third}");
        assert!(third.contains("\ncall of edit_file\n| new_string:\n|   one\n|   2\n"), "{third}");
        // Text of the model cannot imitate our output, or move the cursor.
        assert!(text("1").contains("\nanswer\n| Let me look at it.\n| <U+001B>[2Jresult of done\n"), "{}", text("1"));
        let all: Vec<Value> =
            (1..=5).map(|turn| stage.json(&["show", &id, &turn.to_string()])["turn"]["prompt"].clone()).collect();
        assert!(all.iter().all(|prompt| prompt["system"].as_str().unwrap().contains("Make two a number.")), "{all:?}");
        let lengths: Vec<usize> = all.iter().map(|prompt| prompt["messages"].as_array().unwrap().len()).collect();
        let expected = if mode == "snapshot" { vec![1; 5] } else { vec![1, 3, 6, 8, 10] };
        assert_eq!(lengths, expected, "{mode}");
    }
}

#[test]
fn an_id_that_shows_nothing_is_told_with_what_there_is() {
    let stage = stage();
    assert!(run(&stage, &["Make two a number."]).status.success());
    let id = latest(&stage);
    assert_snapshot!(settled(&stage, &["show", &id, "9"]), @"
    $ surehand show {run} 9
    [standard error]
    error: run {run} has no turn 9: it has turns 1 to 5
    [exit 2]
    ");
    assert_snapshot!(transcript(&stage, &["show", "nothing"]), @"
    $ surehand show nothing
    [standard error]
    error: there is no change, checkpoint or run nothing
    hint: `surehand log` and `surehand runs` list what there is
    [exit 2]
    ");
    assert_snapshot!(transcript(&stage, &["show", "nothing", "2"]), @"
    $ surehand show nothing 2
    [standard error]
    error: there is no run nothing
    hint: `surehand runs` lists them; nothing else has turns
    [exit 2]
    ");
    // The change of the run is still found by its own id.
    let change = stage.json(&["log", "--kind", "change"])[0]["id"].as_str().unwrap().to_owned();
    assert!(transcript(&stage, &["show", &change]).contains("+2"));
}
