//! `blame`: the authors of lines.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{
    going_back::Stage,
    people::{CLAUDE, transcript, transcript_in},
};

/// A call of a session that must not be refused.
#[track_caller]
pub(crate) fn call(stage: &Stage, session: &str, tool: &str, arguments: &Value) {
    let output = stage.surehand(&["call", tool, &arguments.to_string(), "--session", session]);
    assert!(output.status.success(), "{output:?}");
}

#[track_caller]
pub(crate) fn edit(stage: &Stage, session: &str, path: &str, old: &str, new: &str) {
    call(stage, session, "read_file", &json!({ "path": path }));
    call(stage, session, "edit_file", &json!({ "path": path, "old_string": old, "new_string": new }));
}

/// The author of each line: the id of a session, `outside`, `commit`, or the line of a command.
#[track_caller]
fn authors(stage: &Stage, path: &str) -> Vec<String> {
    let blame = stage.json(&["blame", path]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let author = |run: &Value| match run["by"].as_str().unwrap() {
        "session" => text(&run["session"]),
        "command" => text(&run["command"]),
        other => other.to_owned(),
    };
    let runs = blame["runs"].as_array().unwrap();
    let authors: Vec<String> = runs
        .iter()
        .flat_map(|run| {
            let lines = run["lines"].as_array().unwrap();
            let first = run["start"].as_u64().unwrap() as usize;
            assert_eq!(run["end"].as_u64().unwrap() as usize, first + lines.len() - 1);
            lines.iter().map(|line| format!("{} {}", author(run), text(line))).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(authors.len() as u64, blame["total_lines"].as_u64().unwrap());
    authors
}

fn stage() -> Stage {
    let stage = Stage::new();
    stage.write("a.txt", "one\ntwo\nthree\nfour\n", 0o644);
    stage.commit();
    stage
}

#[test]
fn blame_names_sessions_commits_and_what_came_from_outside() {
    let stage = stage();
    let claude = format!("claude-{CLAUDE}");
    edit(&stage, &claude, "a.txt", "two", "2\n2.5");
    stage.write("a.txt", "zero\none\n2\n2.5\nthree\nfour\n", 0o644);
    edit(&stage, "alice", "a.txt", "four", "4");
    assert_snapshot!(transcript(&stage, &["blame", "a.txt"]), @"
    $ surehand blame a.txt
             outside        0 s ago 1| zero
    {id} a              0 s ago 2| one
    {id} claude 3f2a    0 s ago 3| 2
    {id} claude 3f2a    0 s ago 4| 2.5
    {id} a              0 s ago 5| three
    {id} alice          0 s ago 6| 4
    [exit 0]
    ");
    stage.write("src/keep", "", 0o644);
    assert_snapshot!(transcript_in(&stage, "src", &["blame", "../a.txt", "-L", "3,+1", "-L", "6"]), @"
    src$ surehand blame ../a.txt -L 3,+1 -L 6
    {id} claude 3f2a    0 s ago 3| 2
    {id} alice          0 s ago 6| 4
    [exit 0]
    ");
    let outside = &stage.json(&["blame", "a.txt", "-L", "1,1"])["runs"][0];
    assert!(outside["at"].is_string(), "it was there when the next session read the file: {outside}");
    let committed = &stage.json(&["blame", "a.txt", "-L", "2,2"])["runs"][0];
    assert_eq!((committed["author"].as_str(), committed["summary"].as_str()), (Some("a"), Some("x")));
    // After a person commits, the lines of sessions stay theirs; lines that no session wrote belong to the commit.
    stage.commit();
    let expected = ["commit zero", "commit one", &format!("{claude} 2"), &format!("{claude} 2.5"), "commit three", "alice 4"];
    assert_eq!(authors(&stage, "a.txt"), expected);
}

#[test]
fn lines_that_git_brings_back_are_those_of_before() {
    let stage = stage();
    edit(&stage, "alice", "a.txt", "two", "2");
    stage.commit();
    stage.git(&["checkout", "-q", "HEAD~1"]);
    assert_eq!(authors(&stage, "a.txt"), ["commit one", "commit two", "commit three", "commit four"]);
    edit(&stage, "bob", "a.txt", "three", "3");
    stage.git(&["checkout", "-q", "--force", "trunk"]);
    assert_eq!(authors(&stage, "a.txt"), ["commit one", "alice 2", "commit three", "commit four"]);
}

#[test]
fn a_command_wrote_what_it_wrote_and_not_what_it_fetched() {
    let stage = stage();
    stage.git(&["checkout", "-q", "-b", "side"]);
    stage.write("a.txt", "one\ntwo\nthree\nfour\nfive\n", 0o644);
    let earlier = "GIT_COMMITTER_DATE='2026-01-31 14:00' git -c user.name=a -c user.email=a@b commit -qam earlier";
    stage.shell(earlier);
    stage.git(&["checkout", "-q", "trunk"]);
    let fields = json!({
        "hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": { "file_path": stage.at("a.txt") },
        "tool_response": { "type": "text", "file": {
            "filePath": stage.at("a.txt"), "content": "one\ntwo\nthree\nfour\n", "numLines": 4, "startLine": 1, "totalLines": 4
        } },
    });
    stage.hook(&fields);
    stage.agent_runs("git merge -q --ff-only side");
    stage.agent_runs("sed -i s/two/2/ a.txt");
    let expected = ["commit one", "sed -i s/two/2/ a.txt 2", "commit three", "commit four", "commit five"];
    assert_eq!(authors(&stage, "a.txt"), expected);
    stage.agent_runs("mv a.txt b.txt");
    assert_eq!(authors(&stage, "b.txt"), expected);
}

#[test]
fn blame_follows_renames_and_shows_what_was_removed() {
    let stage = stage();
    edit(&stage, "alice", "a.txt", "two", "2");
    call(&stage, "alice", "move_file", &json!({ "from": "a.txt", "to": "new\nname.txt" }));
    edit(&stage, "bob", "new\nname.txt", "four", "4");
    assert_eq!(authors(&stage, "new\nname.txt"), ["commit one", "alice 2", "commit three", "bob 4"]);
    assert_snapshot!(transcript(&stage, &["blame", "a.txt"]), @r#"
    $ surehand blame a.txt
    [standard error]
    error: a.txt: it was renamed to "new\nname.txt"
    hint: surehand blame "new\nname.txt"
    [exit 2]
    "#);
    call(&stage, "bob", "delete_file", &json!({ "path": "new\nname.txt" }));
    assert_snapshot!(transcript(&stage, &["blame", "new\nname.txt"]), @r#"
    $ surehand blame new
    name.txt
    {id} a        0 s ago 1| one
    {id} alice    0 s ago 2| 2
    {id} a        0 s ago 3| three
    {id} bob      0 s ago 4| 4
    [standard error]
    note: "new\nname.txt" was removed 0 s ago (bob, {id}); these are its last lines
    [exit 0]
    "#);
}

#[test]
fn blame_needs_neither_git_nor_a_history() {
    let stage = stage();
    fs::remove_dir_all(stage.at(".git")).unwrap();
    assert_eq!(authors(&stage, "a.txt").first().unwrap(), "outside one");
    edit(&stage, "alice", "a.txt", "two", "2");
    assert_eq!(authors(&stage, "a.txt"), ["outside one", "alice 2", "outside three", "outside four"]);
    stage.write("empty", "", 0o644);
    assert_eq!(authors(&stage, "empty"), Vec::<String>::new());
}

#[test]
fn lines_with_other_endings_than_the_commit_has_are_the_same_lines() {
    let stage = stage();
    stage.git(&["config", "core.autocrlf", "true"]);
    stage.write("a.txt", "one\r\ntwo\r\nthree\r\nfour\r\n", 0o644);
    edit(&stage, "alice", "a.txt", "two", "2");
    assert_eq!(authors(&stage, "a.txt"), ["commit one", "alice 2", "commit three", "commit four"]);
}

#[test]
fn a_link_has_the_lines_of_its_file() {
    let stage = stage();
    std::os::unix::fs::symlink("a.txt", stage.at("link")).unwrap();
    let blame = stage.json(&["blame", "link"]);
    assert_eq!((&blame["path"], &blame["total_lines"]), (&json!("a.txt"), &json!(4)), "{blame:#}");
}

#[test]
fn what_has_no_lines_is_said_and_nothing_of_a_file_is_obeyed() {
    let stage = stage();
    stage.write("bin", b"a\0b", 0o644);
    stage.write("bad.txt", "\x1b[2Jred\ttab\u{202e}\r\nlast", 0o644);
    for (words, why) in [
        (&["blame", "bin"][..], "bin: a binary file has no lines"),
        (&["blame", "nowhere"], "nowhere: no such file"),
        (&["blame", "."], ".: a directory has no lines"),
        (&["blame", "a.txt", "-L", "9"], "a.txt has only 4 lines"),
        (&["blame", "a.txt", "-L", "0,1"], "lines are counted from 1"),
        (&["blame", "a.txt", "-L", "3,2"], "line 2 is above line 3"),
        (&["blame", "a.txt", "-L", "x"], "is not the number of a line"),
    ] {
        let output = stage.surehand(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why) && output.status.code() == Some(2), "{said}");
    }
    assert_snapshot!(transcript(&stage, &["blame", "bad.txt"]), @"
    $ surehand blame bad.txt
             outside    0 s ago 1| <U+001B>[2Jred	tab<U+202E>
             outside    0 s ago 2| last
    [exit 0]
    ");
}
