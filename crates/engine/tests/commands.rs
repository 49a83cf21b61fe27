//! Commands that an agent runs in a shell: what they print of a file counts as read, what they change is put down to them.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

mod fixture;

use std::{fs, path::Path, process};

use fixture::*;
use serde_json::json;
use surehand_engine::{
    Command, RepoTracker, Session, Workspace,
    core::{By, outcome::CommandEffects},
    render,
    store::Which,
};

/// Runs a command in the workspace, as an agent's shell tool does.
fn run(session: &mut Session, dir: &Path, line: &str) -> CommandEffects {
    let running = session.command_begins();
    let output = process::Command::new("sh").args(["-c", line]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout).unwrap();
    session.command_ended(running, &Command { line, directory: dir.to_str().unwrap(), output: &output })
}

fn watching(dir: &Path) -> Session {
    let workspace = Workspace::open(dir, fast()).unwrap();
    workspace.start_watching();
    Session::new(workspace)
}

#[test]
fn what_a_plain_read_prints_counts_as_read() {
    let ten: String = (1..=10).map(|line| format!("line {line}\n")).collect();
    let dir = lay_out(&[("a.txt", &ten), ("sub/b.txt", "alpha\nbeta\n"), ("c.txt", &ten)]);
    let mut session = watching(dir.path());
    let reply = run(&mut session, dir.path(), "sed -n '3,5p' a.txt");
    let read: Vec<(&str, String)> = reply.read.iter().map(|read| (read.path.as_str(), read.lines.to_string())).collect();
    assert_eq!(read, [("a.txt", "3-5".to_owned())]);
    assert!(!session.call("edit_file", &edit("a.txt", "line 4", "LINE 4")).is_error);
    // Not the whole file, and not what went through a pipe.
    let overwrite = json!({ "path": "a.txt", "content": "all\n" });
    assert_eq!(session.call("write_file", &overwrite).result["refusal"]["code"], "partial");
    run(&mut session, dir.path(), "cat c.txt | head -3");
    assert_eq!(session.call("edit_file", &edit("c.txt", "line 1\n", "x\n")).result["refusal"]["code"], "unread");
    // A directory in front, and two files.
    let reply = run(&mut session, dir.path(), "cd sub && cat b.txt ../c.txt");
    assert_eq!(reply.read.len(), 2, "{reply:?}");
    assert!(!session.call("edit_file", &edit("sub/b.txt", "beta", "BETA")).is_error);
    assert!(!session.call("write_file", &json!({ "path": "c.txt", "content": "all\n" })).is_error);
}

#[test]
fn what_a_plain_read_prints_is_in_the_state_of_the_repository() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")]);
    let mut session = Session::new(Workspace::open(dir.path(), fast()).unwrap());
    run(&mut session, dir.path(), "cat a.txt b.txt");
    run(&mut session, dir.path(), "cat c.txt | wc -l");
    drop(session);
    fs::write(dir.path().join("b.txt"), "TWO\n").unwrap();
    let state = RepoTracker::load(Workspace::open(dir.path(), fast()).unwrap()).snapshot();
    let files: Vec<_> = state.files.iter().map(|file| (file.path.as_str(), file.changed_outside)).collect();
    assert_eq!(files, [("a.txt", false), ("b.txt", true)]);
}

#[test]
fn what_a_command_changes_is_put_down_to_it() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")]);
    let mut session = watching(dir.path());
    ["a.txt", "b.txt", "c.txt"].iter().for_each(|path| read(&mut session, path));
    surehand_engine::testing::wait_for_watcher(session.workspace());
    // Changed before the command began, by somebody else.
    fs::write(dir.path().join("c.txt"), "3\n").unwrap();
    let reply = run(&mut session, dir.path(), "sed -i s/one/1/ a.txt; rm b.txt; echo new > generated.txt");
    assert_eq!(
        json!(reply.changed),
        json!([
            { "path": "a.txt", "deleted": false, "by": "command" },
            { "path": "b.txt", "deleted": true, "by": "command" },
            { "path": "c.txt", "deleted": false, "by": "unknown" },
        ])
    );
    let told = render::command(&reply);
    assert!(told.contains("a.txt (by your command), b.txt (gone by your command), c.txt\n"), "{told}");
    assert!(reply.touched.iter().any(|path| path.as_str() == "generated.txt"), "{reply:?}");
    assert_eq!(session.call("edit_file", &edit("a.txt", "one", "two")).result["refusal"]["code"], "stale");

    // Another session learns who it was, and people can take it back.
    session.workspace().flush();
    let log = session.workspace().log(&Which::default(), 10).unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!(
        (log[0].files.len(), log[0].tool.as_str()),
        (2, "command: sed -i s/one/1/ a.txt; rm b.txt; echo new > generated.txt")
    );
    let reply = session.call("undo", &json!({}));
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!((content(dir.path(), "a.txt"), content(dir.path(), "b.txt")), ("one\n".to_owned(), "two\n".to_owned()));
}

#[test]
fn without_a_watcher_the_files_are_looked_at() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let mut session = session(dir.path());
    let mut other = self::session(dir.path());
    for session in [&mut session, &mut other] {
        ["a.txt", "b.txt"].iter().for_each(|path| read(session, path));
    }
    let reply = run(&mut session, dir.path(), "printf 'more\\n' >> a.txt; touch b.txt");
    assert_eq!(json!(reply.changed), json!([{ "path": "a.txt", "deleted": false, "by": "command" }]));
    // Also where there are more files than one call looks at.
    let names: Vec<String> = (0..120).map(|number| format!("{number}.txt")).collect();
    names.iter().for_each(|name| fs::write(dir.path().join(name), "x\n").unwrap());
    names.iter().for_each(|name| read(&mut session, name));
    let reply = run(&mut session, dir.path(), "for file in [0-9]*.txt; do echo y > $file; done");
    assert_eq!((reply.changed.len(), reply.changed.iter().all(|file| file.by == By::Command)), (120, true));
    session.workspace().flush();
    let reply = other.call("forget", &json!({ "paths": [] }));
    assert!(reply.text.contains("a.txt (by a command of another session)"), "{}", reply.text);
}

/// Somebody changes a file, the session is told or is not, then a command changes it once more: only that is the command's.
#[test]
fn undoing_a_command_keeps_what_somebody_did_before_it() {
    for (watches, is_told) in [(false, false), (true, false), (false, true), (true, true)] {
        let dir = lay_out(&[("a.txt", "one\n")]);
        let mut session = if watches { watching(dir.path()) } else { session(dir.path()) };
        read(&mut session, "a.txt");
        surehand_engine::testing::wait_for_watcher(session.workspace());
        fs::write(dir.path().join("a.txt"), "one\ntheirs\n").unwrap();
        if is_told {
            let reply = session.call("forget", &json!({ "paths": [] }));
            assert!(reply.text.contains("a.txt"), "{}", reply.text);
        }
        run(&mut session, dir.path(), "echo more >> a.txt");
        let reply = session.call("undo", &json!({}));
        assert!(!reply.is_error, "{}", reply.text);
        assert_eq!(content(dir.path(), "a.txt"), "one\ntheirs\n", "watches: {watches}, is told: {is_told}");
    }
}
