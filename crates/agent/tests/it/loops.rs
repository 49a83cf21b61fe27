//! Runs of a model that repeats itself in the ways that models do. Each must stop soon and give the reason.

use serde_json::{Value, json};
use surehand_agent::{
    event::StopReason,
    model::scripted::{ScriptedCall, ScriptedTurn},
};

use super::run::{Stage, call, complete, done, plan, read, turn, write};

/// A run stops within 10 turns after it begins to repeat itself, for a reason that says this, and after a warning.
#[track_caller]
fn stops(before: Vec<ScriptedTurn>, repeated: impl Fn(usize) -> ScriptedTurn, why: &str) {
    let stage = Stage::new(&[("a.txt", "one\n"), ("b.txt", "two\n")]).running_commands();
    let begin = before.len();
    let played = stage.play(before.into_iter().chain((1..30).map(repeated)).collect());
    let turns = played.outcome.turns as usize - begin;
    assert_eq!(played.outcome.stop, StopReason::Stuck, "{}", played.outcome.text);
    assert!(turns <= 10, "it took {turns} turns");
    assert!(played.outcome.text.contains(why), "{}", played.outcome.text);
    let warned = (1..=played.outcome.turns as usize).any(|turn| played.user(turn).contains("the run stops"));
    assert!(warned, "the model is warned before");
}

fn tasks(arguments: Value) -> ScriptedTurn {
    turn(vec![call("update_tasks", arguments)])
}

fn edit(old: &str, new: &str) -> ScriptedTurn {
    turn(vec![call("edit_file", json!({ "path": "a.txt", "old_string": old, "new_string": new }))])
}

#[test]
fn a_status_that_is_set_to_itself_stops_the_run() {
    let set = |_| tasks(json!({ "set": [{ "id": 1, "status": "pending" }] }));
    stops(vec![plan(&["t"])], set, "update_tasks");
    let one_of_two = |number| tasks(json!({ "set": [{ "id": number % 2 + 1, "status": "pending" }] }));
    stops(vec![plan(&["t", "u"])], one_of_two, "update_tasks");
}

#[test]
fn a_task_that_is_added_again_and_again_stops_the_run() {
    stops(vec![], |_| plan(&["write the parser"]), "update_tasks");
    stops(vec![plan(&["a"])], |number| plan(&[["Write it", " write IT "][number % 2]]), "update_tasks");
}

#[test]
fn done_that_is_refused_again_and_again_stops_the_run() {
    stops(vec![plan(&["t"])], |_| done(), "done");
    let said_otherwise = |number| turn(vec![call("done", json!({ "summary": format!("finished {number}") }))]);
    stops(vec![plan(&["t"])], said_otherwise, "done (open_tasks)");
}

#[test]
fn two_calls_in_turns_stop_the_run() {
    stops(vec![plan(&["t"])], |number| turn(vec![read(["a.txt", "b.txt"][number % 2])]), "read_file");
    let status = |id: u32, status: &str| tasks(json!({ "set": [{ "id": id, "status": status }] }));
    let toggle = |number| status(1, ["pending", "in_progress"][number % 2]);
    stops(vec![plan(&["t"])], toggle, "update_tasks");
    let back_and_forth = |number| if number % 2 == 1 { edit("one", "1") } else { edit("1", "one") };
    stops(vec![plan(&["t"]), turn(vec![read("a.txt")])], back_and_forth, "edit_file");
    let reopened = |number| status(1, ["pending", "completed"][number % 2]);
    stops(vec![plan(&["t"])], reopened, "update_tasks");
}

#[test]
fn the_same_calls_stop_the_run_whatever_they_answer() {
    stops(vec![plan(&["t"])], |_| turn(vec![read("a.txt"), call("list_files", json!({}))]), "list_files, read_file");
    stops(vec![plan(&["t"])], |_| turn(vec![call("search_files", json!({ "pattern": "one" }))]), "search_files");
    stops(vec![plan(&["t"])], |_| turn(vec![call("launch", json!({}))]), "launch");
    let unlike = |number| turn(vec![call("launch", json!({ "number": number }))]);
    stops(vec![plan(&["t"])], unlike, "every call was refused");
}

#[test]
fn a_model_that_only_talks_is_stopped() {
    let talk = |number| ScriptedTurn { text: format!("Let me think, {number}."), ..ScriptedTurn::default() };
    stops(vec![], talk, "called no tool");
}

#[test]
fn a_file_that_is_written_again_with_little_difference_stops_the_run() {
    let long = |number| format!("{}{number}\n", "the same line\n".repeat(40));
    let stage = Stage::new(&[]);
    let rewrites = (1..30).map(|number| turn(vec![write("a.txt", &long(number))]));
    let played = stage.play(std::iter::once(plan(&["t"])).chain(rewrites).collect());
    assert_eq!(played.outcome.stop, StopReason::Stuck);
    assert!(played.outcome.turns <= 11 && played.outcome.text.contains("a.txt was overwritten"), "{:?}", played.outcome);
}

fn run_command(command: &str) -> ScriptedCall {
    call("run_command", json!({ "command": command }))
}

#[test]
fn three_calls_in_turns_stop_the_run() {
    let status = |id: u32, status: &str| tasks(json!({ "set": [{ "id": id, "status": status }] }));
    let begin = || vec![plan(&["t"]), turn(vec![read("a.txt")]), turn(vec![read("b.txt")])];
    let three = |number: usize| turn(vec![[read("a.txt"), read("b.txt"), call("list_files", json!({}))][number % 3].clone()]);
    stops(begin(), three, "list_files, read_file");
    let states = |number: usize| status(1, ["pending", "in_progress", "completed"][number % 3]);
    stops(vec![plan(&["t"]), states(1), states(2)], states, "update_tasks");
    let round = |number: usize| [edit("one", "two"), edit("two", "three"), edit("three", "one")][number % 3].clone();
    stops(vec![plan(&["t"]), turn(vec![read("a.txt")]), round(0), round(1)], |number| round(number + 1), "edit_file");
    let mixed = |number: usize| turn(vec![[read("a.txt"), call("done", json!({})), run_command("date +%N")][number % 3].clone()]);
    stops(vec![plan(&["t"]), turn(vec![read("a.txt")]), turn(vec![run_command("date +%N")])], mixed, "done, ");
}

#[test]
fn the_same_command_stops_the_run_whatever_it_prints_or_writes() {
    for command in ["date +%N", "date +%N > stamp", "head -c 60 /dev/urandom | base64 | tr -d 0-9", "true", "false"] {
        stops(vec![plan(&["t"])], |_| turn(vec![run_command(command)]), "run_command");
    }
    let two = |number: usize| turn(vec![run_command(["head -c 60 /dev/urandom | base64", "date +%N"][number % 2])]);
    stops(vec![plan(&["t"]), two(0)], two, "run_command");
}

#[test]
fn edits_that_differ_only_in_numbers_stop_the_run() {
    let begin = || vec![plan(&["t"]), turn(vec![read("a.txt")])];
    let text = |number: usize| if number == 0 { "one".to_owned() } else { format!("one // try {number}") };
    stops(begin(), |number| edit(&text(number - 1), &text(number)), "edit_file");
    stops(begin(), |number| edit("one", &format!("one\n// retry {number}")), "edit_file");
    let spaces = |number: usize| format!("one{}", " ".repeat(number));
    stops(begin(), |number| edit(&spaces(number - 1), &spaces(number)), "edit_file");
    let word = |number: usize| if number == 0 { "one".to_owned() } else { "x".repeat(number) };
    stops(begin(), |number| edit(&word(number - 1), &word(number)), "edit_file");
    let written = |number: usize| vec![edit("one", "two"), turn(vec![call("undo", json!({}))])][(number + 1) % 2].clone();
    stops(begin(), written, "edit_file, undo");
}

#[test]
fn a_file_that_is_paged_through_again_and_again_stops_the_run() {
    let long: String = (1..=600).map(|line| format!("line {line}\n")).collect();
    let stage = Stage::new(&[("long.txt", &long)]);
    let page = |number: usize| {
        let offset = (number * 50) % 600 + 1;
        turn(vec![call("read_file", json!({ "path": "long.txt", "offset": offset, "limit": 50 }))])
    };
    let played = stage.play(std::iter::once(plan(&["t"])).chain((0..60).map(page)).collect());
    assert_eq!(played.outcome.stop, StopReason::Stuck, "{}", played.outcome.text);
    assert!((13..=23).contains(&played.outcome.turns), "{}", played.outcome.turns);
    // Other ranges of the same lines are no news either, nor are ranges beyond the end.
    let shifted = |number: usize| {
        turn(vec![call("read_file", json!({ "path": "long.txt", "offset": 100 + number, "limit": 50 - number }))])
    };
    let played = stage.play(std::iter::once(plan(&["t"])).chain((0..30).map(shifted)).collect());
    assert!(played.outcome.stop == StopReason::Stuck && played.outcome.turns <= 10, "{:?}", played.outcome);
}

#[test]
fn vain_searches_stop_the_run() {
    let search = |number: usize| turn(vec![call("search_files", json!({ "pattern": format!("{}q", "z".repeat(number)) }))]);
    stops(vec![plan(&["t"])], search, "search_files");
}

/// Plays an honest story to its end.
#[track_caller]
fn finishes(files: &[(&str, &str)], turns: Vec<ScriptedTurn>) {
    let stage = Stage::new(files).running_commands();
    let last = [turn(vec![complete(&[1])]), done()];
    let played = stage.play(std::iter::once(plan(&["t"])).chain(turns).chain(last).collect());
    assert_eq!(played.outcome.stop, StopReason::Done, "after {} turns: {}", played.outcome.turns, played.outcome.text);
}

#[test]
fn reading_a_long_file_is_no_loop() {
    let long: String = (1..=6000).map(|line| format!("line {line}\n")).collect();
    let page =
        |number: usize| turn(vec![call("read_file", json!({ "path": "long.txt", "offset": number * 100 + 1, "limit": 100 }))]);
    finishes(&[("long.txt", &long)], (0..60).map(page).collect());
}

#[test]
fn tests_between_edits_are_no_loop() {
    // One line is edited until the test passes, which always prints the same text.
    let words = ["one", "uno", "eins", "un", "ena", "jeden", "egy", "bir", "moja", "tasi", "isa", "kotahi", "ett", "ichi"];
    let tried =
        (1..words.len()).flat_map(|number| [edit(words[number - 1], words[number]), turn(vec![run_command("echo FAILED")])]);
    finishes(&[("a.txt", "one\n")], std::iter::once(turn(vec![read("a.txt")])).chain(tried).collect());
    // Different numbers are tried.
    let text = |number: usize| format!("threads = {number}");
    let tuned = (1..15).flat_map(|number| [edit(&text(number - 1), &text(number)), turn(vec![run_command("echo 3 s")])]);
    finishes(&[("a.txt", "threads = 0\n")], std::iter::once(turn(vec![read("a.txt")])).chain(tuned).collect());
}

#[test]
fn many_small_edits_are_no_loop() {
    let lines: String = (1..=30).map(|line| format!("item {line};\n")).collect();
    let renumbered = (1..=30).map(|line: usize| edit(&format!("item {line};"), &format!("item {};", line + 100)));
    finishes(&[("a.txt", &lines)], std::iter::once(turn(vec![read("a.txt")])).chain(renumbered).collect());
    let names = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kiwi", "lark"];
    let added = names.iter().map(|name| edit("one\n", &format!("one\nfn {name}() {{}}\n")));
    finishes(&[("a.txt", "one\n")], std::iter::once(turn(vec![read("a.txt")])).chain(added).collect());
    finishes(&[], (1..=20).map(|number| turn(vec![write(&format!("part{number}.txt"), "the same\n")])).collect());
}

#[test]
fn looking_at_many_things_is_no_loop() {
    let looks = (0..40).map(|number| turn(vec![run_command(&format!("echo {}", "abcdefghij".repeat(number + 1)))]));
    finishes(&[("a.txt", "one\n")], looks.collect());
}

#[test]
fn work_on_many_tasks_is_no_loop() {
    let stage = Stage::new(&[]);
    let names: Vec<String> = (1..=15).map(|number| format!("check part {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let each = (1..=15).map(|id| turn(vec![complete(&[id])]));
    let played = stage.play(std::iter::once(plan(&names)).chain(each).chain([done()]).collect());
    assert_eq!((played.outcome.stop, played.outcome.turns), (StopReason::Done, 17));
}

#[test]
fn the_same_set_of_calls_stops_the_run_whatever_the_model_says_about_it() {
    let calls = || vec![read("a.txt"), call("search_files", json!({ "pattern": "two" })), run_command("date +%N")];
    let set = |number: usize| ScriptedTurn { text: format!("Attempt {number}: now I look closely."), ..turn(calls()) };
    stops(vec![plan(&["t"])], set, "read_file, run_command, search_files");
    // In another order, and with other descriptions and summaries.
    let shuffled = |number: usize| {
        let mut calls = calls();
        calls.rotate_left(number % 3);
        calls.push(call("done", json!({ "summary": "x".repeat(number) })));
        ScriptedTurn { text: format!("{number}"), ..turn(calls) }
    };
    stops(vec![plan(&["t"])], shuffled, "done");
}
