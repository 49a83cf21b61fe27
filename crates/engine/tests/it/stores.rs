//! A workspace opens with any store. Views, changes and undo work with each; commits do not depend on the choice.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{fs, path::Path, sync::Arc};

use crate::fixture::*;
use serde_json::json;
use surehand_engine::{
    Config, OpenError, Session, SessionId, StoreChoice, Workspace, WorkspaceOptions,
    change_log::LoggedChange,
    core::{ContentHash, RelPath},
    store::{EventFilter, SqliteStore, Store, StoreError, StoreScope},
    testing::{CommitProbe, CommitStep},
};

fn open(dir: &Path, store: StoreChoice) -> Arc<Workspace> {
    try_open(dir, store, None).unwrap()
}

fn try_open(dir: &Path, store: StoreChoice, probe: Option<CommitProbe>) -> Result<Arc<Workspace>, OpenError> {
    Workspace::open_with(dir, WorkspaceOptions { config: fast(), store, probe, ..WorkspaceOptions::default() })
}

#[track_caller]
fn pass(session: &mut Session, tool: &str, call: serde_json::Value) {
    let reply = session.call(tool, &call);
    assert!(!reply.is_error, "{}", reply.text);
}

fn log(workspace: &Workspace) -> Vec<LoggedChange> {
    workspace.log(&EventFilter::default(), 10).unwrap()
}

#[test]
fn in_memory_files_are_read_edited_and_brought_back() {
    let dir = lay_out(&[("a.txt", "one\ntwo\n"), ("b.txt", "b\n")]);
    let workspace = open(dir.path(), StoreChoice::InMemory);
    let mut session = Session::new(workspace.clone());
    assert!(session.call("edit_file", &edit("a.txt", "two", "2")).text.contains("was not read"));
    read(&mut session, "a.txt");
    pass(&mut session, "edit_file", edit("a.txt", "two", "2"));
    pass(&mut session, "delete_file", json!({ "path": "a.txt" }));
    assert_eq!(log(&workspace).len(), 2);
    pass(&mut session, "undo", json!({ "all": true }));
    assert_eq!(content(dir.path(), "a.txt"), "one\ntwo\n");
    drop((session, workspace));
    assert_tidy(dir.path());
}

#[test]
fn in_memory_a_session_goes_on_as_long_as_the_workspace_is_open() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let workspace = open(dir.path(), StoreChoice::InMemory);
    let continued = |workspace: &Arc<Workspace>| Session::continued(workspace.clone(), SessionId("s".to_owned()));
    read(&mut continued(&workspace), "a.txt");
    workspace.flush();
    pass(&mut continued(&workspace), "edit_file", edit("a.txt", "one", "1"));
    drop(workspace);
    let reply = continued(&open(dir.path(), StoreChoice::InMemory)).call("edit_file", &edit("a.txt", "1", "one"));
    assert!(reply.text.contains("was not read"), "{}", reply.text);
}

#[test]
fn in_memory_nothing_is_left_for_another_process() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let workspace = open(dir.path(), StoreChoice::InMemory);
    let mut session = Session::new(workspace.clone());
    read(&mut session, "a.txt");
    pass(&mut session, "edit_file", edit("a.txt", "one", "1"));
    let state = dir.path().join(".git/surehand");
    assert!(!state.join("state.db").exists());
    assert_eq!(fs::read_dir(state.join("checkouts/main/outbox")).unwrap().count(), 0);
    assert_eq!(log(&workspace).len(), 1);
    assert_eq!(log(&open(dir.path(), StoreChoice::InMemory)), []);
    assert_eq!(log(&open(dir.path(), StoreChoice::StateDirectory)), []);
}

#[test]
fn in_memory_tasks_are_changed_and_shown() {
    let dir = lay_out(&[]);
    let mut session = Session::new(open(dir.path(), StoreChoice::InMemory));
    pass(&mut session, "update_tasks", json!({ "add": [{ "description": "water the plants" }] }));
    assert!(session.call("repo_state", &json!({})).text.contains("water the plants"));
}

/// Files are in the journal with any store, so the next start recovers from a crash.
#[test]
fn in_memory_a_crash_is_recovered_from() {
    let files = [("a.txt", "one\n"), ("b.txt", "one\n")];
    let dir = lay_out(&files);
    let probe: CommitProbe = Arc::new(crash_after(CommitStep::Swap(0)));
    let mut session = Session::new(try_open(dir.path(), StoreChoice::InMemory, Some(probe)).unwrap());
    files.iter().for_each(|(path, _)| read(&mut session, path));
    let batch = json!({ "edits": [edit("a.txt", "one", "two"), edit("b.txt", "one", "two")] });
    assert!(session.call("multi_edit", &batch).is_error);
    assert_eq!((content(dir.path(), "a.txt"), content(dir.path(), "b.txt")), ("two\n".to_owned(), "one\n".to_owned()));
    let next = open(dir.path(), StoreChoice::InMemory);
    assert_eq!((content(dir.path(), "a.txt"), content(dir.path(), "b.txt")), ("one\n".to_owned(), "one\n".to_owned()));
    assert_eq!(next.take_notices().len(), 1);
    drop((session, next));
    assert_tidy(dir.path());
}

/// A custom store, and a second connection to it.
fn custom(dir: &Path) -> (StoreChoice, SqliteStore) {
    let connect = || SqliteStore::open(&dir.join("custom.db"), &StoreScope::default()).unwrap().store;
    (StoreChoice::Custom(Box::new(connect())), connect())
}

#[test]
fn a_custom_store_has_a_change_before_it_is_answered_for() {
    let (dir, elsewhere) = (lay_out(&[("a.txt", "one\n"), ("b.txt", "one\n")]), tempfile::tempdir().unwrap());
    let (store, theirs) = custom(elsewhere.path());
    let mut session = Session::new(open(dir.path(), store));
    let events = || theirs.events(&EventFilter::default(), 10).unwrap();
    read(&mut session, "a.txt");
    read(&mut session, "b.txt");
    pass(&mut session, "edit_file", edit("a.txt", "one", "two"));
    assert_eq!(events().len(), 1);
    pass(&mut session, "multi_edit", json!({ "edits": [edit("a.txt", "two", "three"), edit("b.txt", "one", "three")] }));
    assert_eq!(events().len(), 3);
    pass(&mut session, "undo", json!({ "all": true }));
    assert_eq!(events().len(), 5);
    assert_eq!((content(dir.path(), "a.txt"), content(dir.path(), "b.txt")), ("one\n".to_owned(), "one\n".to_owned()));
}

#[test]
fn a_custom_store_knows_the_session_in_the_next_workspace() {
    let (dir, elsewhere) = (lay_out(&[("sub/a.txt", "one\n")]), tempfile::tempdir().unwrap());
    let root = dir.path().join("sub");
    let session = || Session::continued(open(&root, custom(elsewhere.path()).0), SessionId("s".to_owned()));
    read(&mut session(), "a.txt");
    pass(&mut session(), "edit_file", edit("a.txt", "one", "two"));
    pass(&mut session(), "undo", json!({}));
    assert_eq!(content(&root, "a.txt"), "one\n");
    let (_, theirs) = custom(elsewhere.path());
    assert_eq!(theirs.tracked(None).unwrap().files[0].path, RelPath::new("a.txt").unwrap(), "paths are those of the root");
    assert!(!dir.path().join(".git/surehand/state.db").exists());
}

/// Data about files comes from the store, by the paths of the work tree.
#[test]
fn the_state_of_the_repository_comes_from_any_store() {
    let (dir, elsewhere) = (lay_out(&[("sub/a.txt", "one\n")]), tempfile::tempdir().unwrap());
    let root = dir.path().join("sub");
    let session = || Session::new(open(&root, custom(elsewhere.path()).0));
    pass(&mut session(), "write_file", json!({ "path": "new.txt", "content": "new\n" }));
    fs::remove_file(dir.path().join(".surehand/repostate.json")).unwrap();
    let state = session().workspace().snapshot();
    let paths: Vec<&str> = state.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["new.txt"]);
}

/// The database has the format of the whole state directory, so it is checked even if it is not used.
#[test]
fn state_of_a_newer_program_is_not_opened_with_any_store() {
    /// The bytes of a database with its format number.
    const USER_VERSION: std::ops::Range<usize> = 60..64;
    let (dir, elsewhere) = (lay_out(&[]), tempfile::tempdir().unwrap());
    drop(Workspace::open(dir.path(), Config::default()).unwrap());
    let database = dir.path().join(".git/surehand/state.db");
    let mut bytes = fs::read(&database).unwrap();
    bytes[USER_VERSION].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&database, bytes).unwrap();
    for store in [StoreChoice::StateDirectory, StoreChoice::InMemory, custom(elsewhere.path()).0] {
        let opened = try_open(dir.path(), store, None);
        assert!(matches!(opened, Err(OpenError::Store(StoreError::Newer { found: 99, .. }))), "{opened:?}");
    }
}

/// Many short processes, each of which writes a part of the data that the bound allows to keep.
#[test]
fn the_record_for_undo_is_bounded_also_by_processes_that_end_at_once() {
    let dir = lay_out(&[]);
    let mut versions = fast().versions;
    versions.bytes = 500_000;
    for process in 0..24 {
        let is_for_one_call = process % 2 == 0;
        let options = WorkspaceOptions { config: Config { versions, ..fast() }, is_for_one_call, ..WorkspaceOptions::default() };
        let workspace = Workspace::open_with(dir.path(), options).unwrap();
        let mut session = Session::new(workspace.clone());
        let line = |line: usize| format!("{}\n", ContentHash::of(format!("{process} {line}").as_bytes()));
        let content: String = (0..4000).map(line).collect();
        pass(&mut session, "write_file", json!({ "path": format!("{process}.txt"), "content": content }));
        drop(session);
        match is_for_one_call {
            true => workspace.close_quickly(),
            false => drop(workspace),
        }
    }
    let workspace = open(dir.path(), StoreChoice::StateDirectory);
    assert!(!log(&workspace).is_empty(), "the last changes are on record");
    drop(workspace);
    let size = fs::metadata(dir.path().join(".git/surehand/state.db")).unwrap().len();
    assert!(size < 1_000_000, "{size}");
}
