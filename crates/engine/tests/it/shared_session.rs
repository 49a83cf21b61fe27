//! A session that several processes share, and calls that are cancelled from outside. Two open workspaces on one root
//! behave like two processes.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{fs, path::Path};

use crate::fixture::{self, content, edit, fast, lay_out};
use serde_json::json;
use surehand_engine::{CallProgress, Session, SessionId, Workspace};

fn shared(dir: &Path, id: &str) -> Session {
    Session::shared(Workspace::open(dir, fast()).unwrap(), SessionId(id.to_owned()))
}

#[test]
fn lines_shown_by_one_process_count_in_the_other() {
    let dir = lay_out(&[("a.txt", "one\ntwo\n"), ("b.txt", "one\n")]);
    let (mut one, mut other) = (shared(dir.path(), "s"), shared(dir.path(), "s"));
    assert!(other.call("edit_file", &edit("a.txt", "two", "2")).is_error, "no process has read it");
    fixture::read(&mut one, "a.txt");
    assert!(!other.call("edit_file", &edit("a.txt", "two", "2")).is_error, "and that it had asked before does not matter");
    let back = one.call("edit_file", &edit("a.txt", "one", "1"));
    assert!(!back.is_error, "the other's edit is the session's own: {}", back.text);
    assert_eq!(content(dir.path(), "a.txt"), "1\n2\n");
    assert!(one.call("edit_file", &edit("b.txt", "one", "1")).is_error);
}

#[test]
fn views_forgotten_by_one_process_are_forgotten_in_the_other() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let (mut one, mut other) = (shared(dir.path(), "s"), shared(dir.path(), "s"));
    fixture::read(&mut one, "a.txt");
    other.reset();
    assert!(one.call("edit_file", &edit("a.txt", "one", "1")).text.contains("was not read"));
    fixture::read(&mut other, "a.txt");
    assert!(!one.call("edit_file", &edit("a.txt", "one", "1")).is_error);
}

#[test]
fn sessions_of_other_names_know_nothing_of_it() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    fixture::read(&mut shared(dir.path(), "s"), "a.txt");
    assert!(shared(dir.path(), "t").call("edit_file", &edit("a.txt", "one", "1")).is_error);
}

#[test]
fn instructions_are_given_once_by_any_process() {
    let dir = lay_out(&[("AGENTS.md", "be kind\n"), ("a.txt", "one\n")]);
    let (mut one, mut other) = (shared(dir.path(), "s"), shared(dir.path(), "s"));
    let read = json!({ "path": "a.txt" });
    assert!(one.call("read_file", &read).text.contains("be kind"));
    assert!(!other.call("read_file", &read).text.contains("be kind"));
}

#[test]
fn an_outside_change_is_reported_once_by_any_process() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let (mut one, mut other) = (shared(dir.path(), "s"), shared(dir.path(), "s"));
    fixture::read(&mut one, "a.txt");
    fs::write(dir.path().join("a.txt"), "two\n").unwrap();
    let read = json!({ "path": "b.txt" });
    assert!(other.call("read_file", &read).text.contains("changed since you read it: a.txt"));
    assert!(!one.call("read_file", &read).text.contains("changed since"));
}

#[test]
fn a_cancelled_walk_ends_and_another_one_counts() {
    let dir = lay_out(&[("a.txt", "one\n"), ("sub/b.txt", "one\n"), ("sub/c.txt", "two\n")]);
    let mut session = fixture::session(dir.path());
    let search = json!({ "pattern": "one" });
    let course = CallProgress::default();
    assert!(!session.run_tool(&course, "search_files", &search).is_refused());
    assert_eq!(course.files(), 3);
    let stopped = CallProgress::default();
    stopped.stop();
    for (tool, arguments) in [("search_files", &search), ("list_files", &json!({}))] {
        let outcome = session.run_tool(&stopped, tool, arguments);
        assert!(outcome.refusal().unwrap().to_string().contains("cancelled"), "{outcome:?}");
    }
    assert_eq!(stopped.files(), 0);
    assert!(!session.call("search_files", &search).is_error, "the next call is another one");
}
