//! The notices to a session about files that changed after it saw them: each change once, with its author if known.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::fs;

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{Session, SessionId, Workspace};

/// A session with or without a file watcher.
fn session_that(watches: bool, dir: &std::path::Path) -> Session {
    let workspace = Workspace::open(dir, fast()).unwrap();
    if watches {
        workspace.start_watching();
    }
    Session::new(workspace)
}

/// The files that the next reply names.
fn named(session: &mut Session) -> Vec<(String, bool, String)> {
    let reply = session.call("forget", &json!({ "paths": [] }));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let files = reply.result["changed_elsewhere"].as_array().cloned().unwrap_or_default();
    assert_eq!(reply.text.contains("changed since you read"), !files.is_empty(), "{}", reply.text);
    files.iter().map(|file| (text(&file["path"]), file["deleted"].as_bool().unwrap(), text(&file["by"]))).collect()
}

fn modified(path: &str, by: &str) -> (String, bool, String) {
    (path.to_owned(), false, by.to_owned())
}

#[test]
fn a_change_from_outside_is_named_once() {
    for watches in [true, false] {
        let dir = lay_out(&[("a.txt", "one\n"), ("b/b.txt", "two\n"), ("c.txt", "three\n"), ("unseen.txt", "four\n")]);
        let mut session = session_that(watches, dir.path());
        ["a.txt", "b/b.txt", "c.txt"].iter().for_each(|path| read(&mut session, path));
        assert_eq!(named(&mut session), []);

        fs::write(dir.path().join("b/b.txt"), "TWO\n").unwrap();
        fs::write(dir.path().join("unseen.txt"), "FOUR\n").unwrap();
        fs::remove_file(dir.path().join("c.txt")).unwrap();
        // The same bytes again are not a change.
        fs::write(dir.path().join("a.txt"), "one\n").unwrap();
        let deleted = ("c.txt".to_owned(), true, "unknown".to_owned());
        assert_eq!(named(&mut session), [modified("b/b.txt", "unknown"), deleted], "watches: {watches}");
        assert_eq!(named(&mut session), [], "each once");

        fs::write(dir.path().join("b/b.txt"), "2\n").unwrap();
        assert_eq!(named(&mut session), [modified("b/b.txt", "unknown")], "another change is another one");
        // The reply about the file itself already says everything.
        fs::write(dir.path().join("b/b.txt"), "zwei\n").unwrap();
        let reply = session.call("edit_file", &edit("b/b.txt", "zwei", "deux"));
        assert_eq!(reply.result["refusal"]["code"], "stale");
        assert!(!reply.text.contains("changed since you read"), "{}", reply.text);
        assert_eq!(named(&mut session), []);
    }
}

#[test]
fn own_changes_are_not_news() {
    for watches in [true, false] {
        let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
        let mut session = session_that(watches, dir.path());
        ["a.txt", "b.txt"].iter().for_each(|path| read(&mut session, path));
        session.call("edit_file", &edit("a.txt", "one", "1"));
        session.call("move_file", &json!({ "from": "b.txt", "to": "c.txt" }));
        session.call("delete_file", &json!({ "path": "a.txt" }));
        session.call("undo", &json!({}));
        assert_eq!(named(&mut session), []);
    }
}

#[test]
fn another_session_is_named_as_such() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let mut session = session_that(true, dir.path());
    ["a.txt", "b.txt"].iter().for_each(|path| read(&mut session, path));
    let mut other = session_that(false, dir.path());
    ["a.txt", "b.txt"].iter().for_each(|path| read(&mut other, path));
    other.call("edit_file", &edit("a.txt", "one", "1"));
    other.call("delete_file", &json!({ "path": "b.txt" }));
    other.workspace().flush();
    let deleted = ("b.txt".to_owned(), true, "another_session".to_owned());
    assert_eq!(named(&mut session), [modified("a.txt", "another_session"), deleted]);
    assert_eq!(named(&mut other), []);
}

#[test]
fn a_session_continued_in_another_process_is_notified_once_as_well() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let again = || Session::continued(Workspace::open(dir.path(), fast()).unwrap(), SessionId("s".to_owned()));
    read(&mut again(), "a.txt");
    fs::write(dir.path().join("a.txt"), "two\n").unwrap();
    assert_eq!(named(&mut again()), [modified("a.txt", "unknown")]);
    assert_eq!(named(&mut again()), []);
    assert_eq!(again().call("edit_file", &edit("a.txt", "one", "1")).result["refusal"]["code"], "stale");
}

#[test]
fn a_switch_of_branches_is_reported_over_several_replies() {
    let names: Vec<String> = (0..1200).map(|number| format!("d{}/{number}.txt", number % 7)).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "old\n")).collect();
    for watches in [true, false] {
        let dir = lay_out(&files);
        let mut session = session_that(watches, dir.path());
        names.iter().for_each(|name| read(&mut session, name));
        names.iter().for_each(|name| fs::write(dir.path().join(name), "new\n").unwrap());
        let mut named: Vec<String> = (0..40).flat_map(|_| named(&mut session)).map(|(path, ..)| path).collect();
        named.sort();
        let mut all = names.clone();
        all.sort();
        assert_eq!(named, all, "each once, watches: {watches}");
    }
}

#[test]
fn a_version_restored_by_another_program_has_no_author() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut other = session_that(false, dir.path());
    read(&mut other, "a.txt");
    other.call("edit_file", &edit("a.txt", "one", "two"));
    other.workspace().flush();
    fs::write(dir.path().join("a.txt"), "three\n").unwrap();
    let mut session = session_that(false, dir.path());
    read(&mut session, "a.txt");
    fs::write(dir.path().join("a.txt"), "two\n").unwrap();
    assert_eq!(named(&mut session), [modified("a.txt", "unknown")]);
    // Several changes of the other session in a row lead to the present version.
    read(&mut other, "a.txt");
    other.call("edit_file", &edit("a.txt", "two", "2"));
    other.call("edit_file", &edit("a.txt", "2", "zwei"));
    other.workspace().flush();
    assert_eq!(named(&mut session), [modified("a.txt", "another_session")]);
}

#[test]
fn a_file_that_changes_back_and_forth_is_named_each_time() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut session = session_that(false, dir.path());
    read(&mut session, "a.txt");
    for _ in 0..2 {
        fs::write(dir.path().join("a.txt"), "two\n").unwrap();
        assert_eq!(named(&mut session), [modified("a.txt", "unknown")]);
        fs::write(dir.path().join("a.txt"), "one\n").unwrap();
        assert_eq!(named(&mut session), []);
    }
}

#[test]
fn a_refusal_for_another_reason_does_not_hide_a_change() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut session = session_that(false, dir.path());
    read(&mut session, "a.txt");
    fs::write(dir.path().join("a.txt"), "two\n").unwrap();
    let reply = session.call("read_file", &json!({ "path": "a.txt", "ranges": [{ "start": 5, "end": 2 }] }));
    assert_eq!(reply.result["refusal"]["code"], "bad_range");
    assert_eq!(reply.result["changed_elsewhere"], json!([{ "path": "a.txt", "deleted": false, "by": "unknown" }]));
    assert_eq!(named(&mut session), []);
}

#[test]
fn files_written_or_moved_into_an_ignored_directory_are_watched_as_well() {
    let dir = lay_out(&[("a.txt", "one\n"), (".gitignore", "target/\n"), ("target/x.txt", "x\n"), (".git/HEAD", "")]);
    let mut session = session_that(true, dir.path());
    read(&mut session, "a.txt");
    surehand_engine::testing::wait_for_watcher(session.workspace());
    assert_eq!(named(&mut session), []);
    session.call("write_file", &json!({ "path": "target/new.txt", "content": "new\n" }));
    session.call("move_file", &json!({ "from": "a.txt", "to": "target/a.txt" }));
    assert_eq!(named(&mut session), []);
    ["target/new.txt", "target/a.txt"].iter().for_each(|path| fs::write(dir.path().join(path), "theirs\n").unwrap());
    assert_eq!(named(&mut session), [modified("target/a.txt", "unknown"), modified("target/new.txt", "unknown")]);
}
