//! The state of the repository: touches of files, exported after every change, shared by processes, rebuilt when lost.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{collections::BTreeMap, fs, path::Path};

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{
    ReplyGroup, RepoTracker, Session, Workspace,
    core::{ContentHash, FileStatus, TaskList},
};

/// The exported entries by path: status and hash.
fn written(dir: &Path) -> BTreeMap<String, (String, String)> {
    let state = state(dir);
    let files = state["files"].as_array().unwrap().iter();
    let text = |file: &Value, field: &str| file[field].as_str().unwrap().to_owned();
    files.map(|file| (text(file, "path"), (text(file, "status"), text(file, "hash")))).collect()
}

fn state(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join(".surehand/repostate.json")).unwrap()).unwrap()
}

fn entry(status: &str, content: &str) -> (String, String) {
    (status.to_owned(), ContentHash::of(content.as_bytes()).to_string())
}

#[test]
fn every_change_is_written_down_at_once_in_the_promised_shape() {
    let dir = lay_out(&[("a.rs", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n"), ("unseen.txt", "x\n")]);
    let mut session = session(dir.path());
    ["a.rs", "b.txt", "c.txt"].iter().for_each(|path| read(&mut session, path));
    session.call("edit_file", &edit("a.rs", "one", "1"));
    let state = state(dir.path());
    assert_eq!(
        state.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["files", "last_updated", "open_tasks", "story_id", "work_dir"]
    );
    let file = &state["files"][0];
    let text = std::fs::read_to_string(dir.path().join(".surehand/repostate.json")).unwrap();
    for keys in [
        &["work_dir", "story_id", "files", "open_tasks", "last_updated"][..],
        &["path", "hash", "size", "mod_time", "type", "status"],
    ] {
        let places: Vec<usize> = keys.iter().map(|key| text.find(&format!("\"{key}\":")).unwrap()).collect();
        assert!(places.is_sorted(), "{keys:?}: {text}");
    }
    assert_eq!(file.as_object().unwrap().len(), 6, "{file}");
    assert_eq!((file["path"].as_str(), file["size"].as_u64(), file["type"].as_str()), (Some("a.rs"), Some(2), Some("rs")));
    for moment in [&file["mod_time"], &state["last_updated"]] {
        let moment = moment.as_str().unwrap();
        assert!(moment.ends_with('Z') && moment.contains('T'), "{moment}");
    }

    session.call("write_file", &json!({ "path": "new.txt", "content": "new\n" }));
    session.call("edit_file", &edit("new.txt", "new", "newer"));
    session.call("delete_file", &json!({ "path": "b.txt" }));
    session.call("move_file", &json!({ "from": "c.txt", "to": "d.txt" }));
    let expected = [
        ("a.rs", entry("modified", "1\n")),
        ("b.txt", entry("deleted", "two\n")),
        ("c.txt", entry("deleted", "three\n")),
        ("d.txt", entry("modified", "three\n")),
        ("new.txt", entry("created", "newer\n")),
    ];
    assert_eq!(written(dir.path()), expected.map(|(path, entry)| (path.to_owned(), entry)).into());
}

#[test]
fn a_created_file_that_is_moved_is_still_a_created_one() {
    let dir = lay_out(&[("old.txt", "old\n")]);
    let mut session = session(dir.path());
    read(&mut session, "old.txt");
    session.call("write_file", &json!({ "path": "a.txt", "content": "one\n" }));
    session.call("move_file", &json!({ "from": "a.txt", "to": "b.txt" }));
    session.call("move_file", &json!({ "from": "old.txt", "to": "new.txt" }));
    let patch = "*** Begin Patch\n*** Update File: b.txt\n*** Move to: c.txt\n@@\n-one\n+two\n*** End Patch";
    let patched = session.call("apply_patch", &json!({ "patch": patch }));
    assert!(!patched.is_error, "{}", patched.text);
    let written = written(dir.path());
    assert_eq!(written["c.txt"], entry("created", "two\n"));
    assert_eq!(written["new.txt"], entry("modified", "old\n"));
    assert_eq!(written["b.txt"].0, "deleted");
    let shown = session.call("repo_state", &json!({})).text;
    assert!(shown.contains("Files: 2 and 3 deleted"), "{shown}");
}

/// The work of a process that runs for a short time beside a server.
#[test]
fn changes_of_another_process_are_in_the_next_answer() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let mut server = session(dir.path());
    ["a.txt", "b.txt"].iter().for_each(|path| read(&mut server, path));
    server.call("edit_file", &edit("a.txt", "one", "1"));
    server.call("update_tasks", &json!({ "add": [{ "description": "First" }] }));
    assert!(server.call("repo_state", &json!({})).text.contains("First"));
    {
        let mut other = session(dir.path());
        other.call("update_tasks", &json!({ "add": [{ "description": "Second" }], "set": [{ "id": 1, "status": "completed" }] }));
        other.call("write_file", &json!({ "path": "new.txt", "content": "new\n" }));
    }
    let shown = server.call("repo_state", &json!({})).text;
    assert!(shown.contains("Second") && !shown.contains("First") && shown.contains("new.txt"), "{shown}");
    // The next export does not restore the old list.
    server.call("edit_file", &edit("b.txt", "two", "2"));
    let state = state(dir.path());
    let open: Vec<&str> =
        state["open_tasks"].as_array().unwrap().iter().map(|task| task["description"].as_str().unwrap()).collect();
    assert_eq!(open, ["Second"]);
    assert_eq!(written(dir.path())["new.txt"], entry("created", "new\n"));
}

/// Like the CLI, this opens the workspace only for one change.
#[test]
fn a_change_of_tasks_alone_is_written_down() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let tasks = || {
        let state = state(dir.path());
        state["open_tasks"].as_array().unwrap().iter().map(|task| task["description"].to_string()).collect::<Vec<_>>()
    };
    for count in 1..=3 {
        session(dir.path()).call("update_tasks", &json!({ "add": [{ "description": format!("Task {count}") }] }));
        assert_eq!(tasks().len(), count);
    }
}

#[test]
fn an_entry_belongs_to_one_version_also_after_an_outside_change() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let mut session = session(dir.path());
    ["a.txt", "b.txt"].iter().for_each(|path| read(&mut session, path));
    session.call("edit_file", &edit("b.txt", "two", "2"));
    fs::write(dir.path().join("a.txt"), "somebody wrote more\n").unwrap();
    // Reports the change and exports it.
    session.call("edit_file", &edit("b.txt", "2", "3"));
    session.call("edit_file", &edit("b.txt", "3", "4"));
    let state = state(dir.path());
    let file = &state["files"][0];
    assert_eq!(file["hash"], ContentHash::of(b"somebody wrote more\n").to_string());
    assert_eq!((&file["size"], &file["changed_outside"]), (&json!(20), &json!(true)));
}

#[test]
fn a_restart_goes_on_where_it_was_and_sees_what_changed_meanwhile() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")]);
    let mut first = session(dir.path());
    ["a.txt", "b.txt", "c.txt"].iter().for_each(|path| read(&mut first, path));
    first.call("edit_file", &edit("a.txt", "one", "1"));
    drop(first);
    fs::write(dir.path().join("b.txt"), "TWO\n").unwrap();
    fs::remove_file(dir.path().join("c.txt")).unwrap();
    let tracker = RepoTracker::load(Workspace::open(dir.path(), fast()).unwrap()).unwrap();
    let state = tracker.snapshot();
    let files: Vec<_> = state.files.iter().map(|file| (file.path.as_str(), file.status, file.changed_outside)).collect();
    assert_eq!(
        files,
        [("a.txt", FileStatus::Modified, false), ("b.txt", FileStatus::Modified, true), ("c.txt", FileStatus::Deleted, true)]
    );
    tracker.persist().unwrap();
    assert_eq!(written(dir.path())["b.txt"], entry("modified", "TWO\n"));
}

#[test]
fn a_reader_does_not_clear_the_mark_of_an_outside_change() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")]);
    let mut first = session(dir.path());
    ["a.txt", "b.txt", "c.txt"].iter().for_each(|path| read(&mut first, path));
    first.call("edit_file", &edit("c.txt", "three", "3"));
    drop(first);
    fs::write(dir.path().join("a.txt"), "ONE\n").unwrap();
    fs::remove_file(dir.path().join("b.txt")).unwrap();
    // Each snapshot is taken by another process.
    let changed_outside = || {
        let state = Workspace::open(dir.path(), fast()).unwrap().snapshot();
        state.files.iter().filter(|file| file.changed_outside).map(|file| file.path.to_string()).collect::<Vec<_>>()
    };
    for _ in 0..3 {
        assert_eq!(changed_outside(), ["a.txt", "b.txt"]);
    }
    assert_eq!(state(dir.path())["files"][0]["changed_outside"], true);
    read(&mut session(dir.path()), "a.txt");
    assert_eq!(changed_outside(), ["b.txt"], "a session has seen it");
    fs::write(dir.path().join("a.txt"), "1\n").unwrap();
    assert_eq!(changed_outside(), ["a.txt", "b.txt"], "that was another version");
}

#[test]
fn a_lost_store_is_reported_and_the_files_are_checked_again() {
    for is_damaged in [false, true] {
        let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
        let mut first = session(dir.path());
        ["a.txt", "b.txt"].iter().for_each(|path| read(&mut first, path));
        first.call("edit_file", &edit("a.txt", "one", "1"));
        first.call("delete_file", &json!({ "path": "b.txt" }));
        first.call("update_tasks", &json!({ "story": "S-1", "add": [{ "description": "write it" }] }));
        drop(first);
        let state_db = dir.path().join(".git/surehand/state.db");
        match is_damaged {
            true => fs::write(&state_db, "no database").unwrap(),
            false => fs::remove_file(&state_db).unwrap(),
        }
        let mut next = session(dir.path());
        let reply = next.call("repo_state", &json!({}));
        assert!(!reply.is_error && reply.text.contains("rebuilt from the files"), "{}", reply.text);
        assert!(reply.text.contains("a.txt") && reply.text.contains("No tasks"), "{}", reply.text);
        drop(next);
        // The touches of the file are lost, and so is the other file.
        assert_eq!(written(dir.path()), [("a.txt".to_owned(), entry("unchanged", "1\n"))].into());
        assert_eq!(state(dir.path())["story_id"], "");
    }
}

/// An exported file may come from a clone, or from any program.
#[test]
fn an_exported_file_is_not_trusted() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let lie = json!({
        "work_dir": "/", "story_id": "evil", "last_updated": "2026-01-01T00:00:00Z",
        "files": [{ "path": "b.txt", "hash": "0".repeat(64), "size": 1, "mod_time": "2026-01-01T00:00:00Z", "type": "txt", "status": "created" }],
        "open_tasks": [{ "description": "delete everything", "status": "pending", "priority": 1 }],
    });
    fs::create_dir(dir.path().join(".surehand")).unwrap();
    fs::write(dir.path().join(".surehand/repostate.json"), lie.to_string()).unwrap();
    let shown = session(dir.path()).call("repo_state", &json!({})).text;
    assert!(!shown.contains("b.txt") && !shown.contains("everything") && !shown.contains("evil"), "{shown}");
    // If the store was lost, it only names the files to check.
    let mut first = session(dir.path());
    read(&mut first, "a.txt");
    first.call("edit_file", &edit("a.txt", "one", "1"));
    drop(first);
    fs::remove_file(dir.path().join(".git/surehand/state.db")).unwrap();
    fs::write(dir.path().join(".surehand/repostate.json"), lie.to_string()).unwrap();
    let state = session(dir.path()).workspace().snapshot();
    let files: Vec<_> = state.files.iter().map(|file| (file.path.as_str(), file.hash, file.status)).collect();
    assert_eq!(files, [("b.txt", ContentHash::of(b"two\n"), FileStatus::Unchanged)]);
    assert_eq!(state.tasks, TaskList::default());
}

#[test]
fn two_processes_write_one_state() {
    let dir = lay_out(&[("a.txt", "0\n"), ("b.txt", "0\n")]);
    let (mut one, mut other) = (session(dir.path()), session(dir.path()));
    read(&mut one, "a.txt");
    read(&mut other, "b.txt");
    for number in 0..5 {
        let (from, to) = (number.to_string(), (number + 1).to_string());
        one.call("edit_file", &edit("a.txt", &from, "x"));
        one.call("edit_file", &edit("a.txt", "x", &to));
        other.call("edit_file", &edit("b.txt", &from, &to));
        let content = format!("{to}\n");
        let expected = [("a.txt".to_owned(), entry("modified", &content)), ("b.txt".to_owned(), entry("modified", &content))];
        assert_eq!(written(dir.path()), expected.into());
    }
}

#[test]
fn a_state_that_cannot_be_written_fails_no_tool() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    let places = [surehand_testkit::state_of(dir.path()).join("generation"), dir.path().join(".surehand/repostate.json")];
    for (place, (from, to)) in places.into_iter().zip([("one", "1"), ("1", "2")]) {
        drop(fs::remove_file(&place));
        fs::create_dir_all(&place).unwrap();
        let reply = session.call("edit_file", &edit("a.txt", from, to));
        assert!(!reply.is_error, "{}", reply.text);
        assert!(reply.text.contains("repostate.json"), "{}", reply.text);
        assert_eq!(content(dir.path(), "a.txt"), format!("{to}\n"));
        fs::remove_dir(&place).unwrap();
    }
}

/// A server answers calls that are in flight together at once. If a process dies before the export, the next process
/// does it.
#[test]
fn replies_that_are_sent_together_wait_for_one_export() {
    for dies in [false, true] {
        let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
        let mut session = session(dir.path());
        ["a.txt", "b.txt"].iter().for_each(|path| read(&mut session, path));
        session.set_reply_group(ReplyGroup::WithOthers);
        session.call("edit_file", &edit("a.txt", "one", "1"));
        session.call("edit_file", &edit("b.txt", "two", "2"));
        if dies {
            std::mem::forget(session);
            self::session(dir.path()).call("repo_state", &json!({}));
        } else {
            session.workspace().complete_replies().unwrap();
        }
        let expected = [("a.txt", entry("modified", "1\n")), ("b.txt", entry("modified", "2\n"))];
        assert_eq!(written(dir.path()), expected.map(|(path, entry)| (path.to_owned(), entry)).into());
    }
}

#[test]
fn a_large_state_is_exported_after_a_delay() {
    let names: Vec<String> = (0..1600).map(|number| format!("d/{number}.txt")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x\n")).collect();
    let dir = lay_out(&files);
    let mut session = session(dir.path());
    names.iter().for_each(|name| read(&mut session, name));
    session.call("edit_file", &edit("d/7.txt", "x", "y"));
    drop(session);
    let written = written(dir.path());
    assert_eq!((written.len(), &written["d/7.txt"]), (1600, &entry("modified", "y\n")));
}

#[test]
fn tasks_outlive_a_restart_and_are_in_the_state() {
    let dir = lay_out(&[]);
    let mut first = session(dir.path());
    let reply = first.call(
        "update_tasks",
        &json!({ "story": "S-7", "add": [{ "description": "write it" }, { "description": "test it" }, { "description": "now", "priority": 1 }] }),
    );
    assert!(!reply.is_error, "{}", reply.text);
    let shown = |dir: &Path| state(dir)["open_tasks"].clone();
    assert_eq!(
        shown(dir.path()),
        json!([
            { "description": "write it", "status": "pending", "priority": 1 },
            { "description": "now", "status": "pending", "priority": 1 },
            { "description": "test it", "status": "pending", "priority": 2 },
        ])
    );
    drop(first);
    let mut next: Session = session(dir.path());
    let done = |id: u32| json!({ "set": [{ "id": id, "status": "completed" }] });
    next.call("update_tasks", &done(1));
    next.call("update_tasks", &done(2));
    let reply = next.call("update_tasks", &json!({ "set": [{ "id": 3, "status": "in_progress" }] }));
    assert!(reply.text.contains("3. [in_progress] now"), "{}", reply.text);
    assert_eq!((state(dir.path())["story_id"].as_str(), shown(dir.path()).as_array().unwrap().len()), (Some("S-7"), 1));
    let reply = next.call("update_tasks", &done(3));
    assert!(reply.text.contains("everything is done") && reply.text.contains("done"), "{}", reply.text);
    assert_eq!(next.call("update_tasks", &done(4)).result["refusal"]["code"], "bad_arguments");
}

#[test]
fn scanned_files_are_counted_beside_touched_ones() {
    let dir = lay_out(&[("a.txt", "one\n"), ("src/b.rs", "two\n"), ("src/c.rs", "three\n"), ("src-gen/d.rs", "four\n")]);
    let workspace = Workspace::open(dir.path(), fast()).unwrap();
    let untouched = || workspace.snapshot().files.untouched().to_vec();
    assert_eq!(untouched(), []);
    surehand_engine::scan::scan(&workspace, &|_| {}).unwrap();
    let counts = |counts: &[(&str, usize)]| counts.iter().map(|(path, files)| (path.to_string(), *files)).collect::<Vec<_>>();
    assert_eq!(untouched(), counts(&[("", 1), ("src-gen/", 1), ("src/", 2)]));
    let mut session = Session::new(workspace.clone());
    read(&mut session, "src/b.rs");
    session.call("write_file", &json!({ "path": "src/new.rs", "content": "new\n" }));
    assert_eq!(untouched(), counts(&[("", 1), ("src-gen/", 1), ("src/", 1)]));
    let text = session.call("repo_state", &json!({})).text;
    assert!(text.contains("Files: 5"), "{text}");
    fs::write(dir.path().join("e.txt"), "five\n").unwrap();
    surehand_engine::scan::scan(&workspace, &|_| {}).unwrap();
    assert_eq!(untouched()[0], (String::new(), 2));
}

#[test]
fn with_a_watcher_only_the_reported_files_are_checked() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let workspace = Workspace::open(dir.path(), fast()).unwrap();
    workspace.start_watching();
    let mut session = Session::new(workspace.clone());
    ["a.txt", "b.txt"].iter().for_each(|path| read(&mut session, path));
    surehand_engine::testing::wait_for_watcher(&workspace);
    let changed = || {
        let state = workspace.snapshot();
        state.files.iter().filter(|file| file.changed_outside).map(|file| file.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(changed(), Vec::<String>::new());
    fs::write(dir.path().join("b.txt"), "TWO\n").unwrap();
    assert_eq!(changed(), ["b.txt"]);
    read(&mut session, "b.txt");
    assert_eq!(changed(), Vec::<String>::new(), "it has been seen again");
    fs::remove_file(dir.path().join("a.txt")).unwrap();
    assert_eq!(changed(), ["a.txt"]);
}

/// Whatever the change counter contains, and even if it is missing, other processes see the next change.
#[test]
fn a_lost_or_damaged_count_hides_no_change() {
    let dir = lay_out(&[]);
    let (mut one, mut other) = (session(dir.path()), session(dir.path()));
    let count = surehand_testkit::state_of(dir.path()).join("generation");
    let contents: [Option<&[u8]>; 6] = [None, Some(b""), None, Some(b"x"), Some(&[0xff; 16]), Some(&[0xff; 100])];
    for (number, content) in contents.into_iter().enumerate() {
        drop(fs::remove_file(&count));
        if let Some(content) = content {
            fs::write(&count, content).unwrap();
        }
        let path = format!("{number}.txt");
        let reply = one.call("write_file", &json!({ "path": path, "content": "x\n" }));
        assert!(!reply.is_error, "{}", reply.text);
        assert!(written(dir.path()).contains_key(&path), "{content:?}");
        assert!(other.call("repo_state", &json!({})).text.contains(&path), "{content:?}");
    }
}

#[test]
fn an_invalid_task_update_is_refused_as_a_whole() {
    let dir = lay_out(&[]);
    let mut session = session(dir.path());
    session.call("update_tasks", &json!({ "add": [{ "description": "one" }] }));
    let (long_story, long_task) = ("s".repeat(201), "t".repeat(10_001));
    for (plan, why) in [
        (json!({ "add": [{ "description": "two" }, { "description": " \n" }] }), "a task needs a description"),
        (json!({ "set": [{ "id": 1, "description": "" }] }), "a task needs a description"),
        (json!({ "set": [{ "id": 1 }] }), "task 1: nothing to change"),
        (json!({ "add": [{ "description": long_task }] }), "at most 10000 characters"),
        (json!({ "add": [{ "description": "two" }], "story": long_story }), "at most 200 characters"),
        (json!({ "set": [{ "id": [1, 7], "status": "completed" }] }), "there is no task 7"),
        (json!({ "remove": [1, 7] }), "there is no task 7"),
    ] {
        let reply = session.call("update_tasks", &plan);
        assert!(reply.is_error && reply.text.contains(why), "{plan}: {}", reply.text);
    }
    // A name is stored as it is shown.
    let reply = session.call("update_tasks", &json!({ "story": " S\n 1\u{0} " }));
    assert!(reply.text.contains("Story: S 1\n1 task open, 0 completed:\n1. [pending] one\n"), "{}", reply.text);
    assert_eq!(state(dir.path())["story_id"], "S 1");
    // The story added last is named, however many there are.
    let add: Vec<Value> = (0..80).map(|number| json!({ "description": format!("task {number}") })).collect();
    let reply = session.call("update_tasks", &json!({ "add": add }));
    assert!(reply.text.contains("… 31 more, and the last that were added:\n77. [pending]"), "{}", reply.text);
    assert!(reply.text.contains("\n81. [pending] task 79\n"), "{}", reply.text);
}
