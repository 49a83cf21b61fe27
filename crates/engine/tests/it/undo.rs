//! Undo over several changes: of moved files, of other sessions, and of names that two files had.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{
    Session,
    core::edit::{UndoRequest, UndoTarget, WhoseChanges},
};
use surehand_testkit::scenario::tree;

#[track_caller]
fn pass(session: &mut Session, tool: &str, call: Value) {
    let reply = session.call(tool, &call);
    assert!(!reply.is_error, "{}", reply.text);
}

fn move_file(session: &mut Session, from: &str, to: &str) {
    pass(session, "move_file", json!({ "from": from, "to": to }));
}

#[track_caller]
fn assert_nothing_is_left_to_undo(session: &mut Session) {
    let reply = session.call("undo", &json!({}));
    assert!(reply.text.contains("there is no change to undo"), "{}", reply.text);
}

#[test]
fn changes_under_several_names_are_all_undone() {
    for last in [None, Some(("two", "one")), Some(("two", "three"))] {
        let dir = lay_out(&[("a.txt", "one\n")]);
        let before = tree(dir.path());
        let mut session = session(dir.path());
        read(&mut session, "a.txt");
        pass(&mut session, "edit_file", edit("a.txt", "one", "two"));
        move_file(&mut session, "a.txt", "b.txt");
        move_file(&mut session, "b.txt", "c.txt");
        if let Some((old, new)) = last {
            pass(&mut session, "edit_file", edit("c.txt", old, new));
        }
        pass(&mut session, "undo", json!({ "all": true }));
        assert_eq!(tree(dir.path()), before);
        assert_nothing_is_left_to_undo(&mut session);
        for path in ["a.txt", "b.txt", "c.txt"] {
            let reply = session.call("undo", &json!({ "path": path }));
            assert!(reply.text.contains("there is no change of"), "{}", reply.text);
        }
        let log = session.workspace().log(&Default::default(), 10).unwrap();
        assert!(log.iter().skip(1).all(|change| change.is_undone), "{log:?}");
        // The undo can be undone, too.
        let undo = &log[0].change;
        pass(&mut session, "undo", json!({ "change": undo }));
        assert!(dir.path().join("c.txt").exists());
        pass(&mut session, "undo", json!({ "all": true }));
        assert_eq!(tree(dir.path()), before);
    }
}

#[test]
fn a_change_undone_by_another_session_is_not_undone_again() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    pass(&mut session, "edit_file", edit("a.txt", "one", "two"));
    pass(&mut session, "edit_file", edit("a.txt", "two", "three"));
    session.workspace().flush();
    let mut people = self::session(dir.path());
    assert!(!people.undo(&UndoRequest { which: UndoTarget::Last, by: WhoseChanges::Anyone, force: false }).is_refused());
    people.workspace().flush();
    for selection in [json!({}), json!({ "path": "a.txt" })] {
        pass(&mut session, "undo", selection);
        assert_eq!(content(dir.path(), "a.txt"), "one\n");
        pass(&mut session, "edit_file", edit("a.txt", "one", "two"));
    }
}

#[test]
fn a_file_that_was_edited_and_deleted_comes_back_with_its_mode() {
    let dir = lay_out(&[("run.sh", "one\n")]);
    let mode = || fs::metadata(dir.path().join("run.sh")).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(dir.path().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["run.sh", "moved.sh"] {
        let mut session = session(dir.path());
        read(&mut session, "run.sh");
        pass(&mut session, "edit_file", edit("run.sh", "one", "two"));
        if name != "run.sh" {
            move_file(&mut session, "run.sh", name);
        }
        pass(&mut session, "delete_file", json!({ "path": name }));
        pass(&mut session, "undo", json!({ "all": true }));
        assert_eq!((content(dir.path(), "run.sh"), mode()), ("one\n".to_owned(), 0o755), "deleted as {name}");
    }
}

#[test]
fn a_name_that_two_files_had_is_undone_one_by_one() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let before = tree(dir.path());
    for force in [false, true] {
        let mut session = session(dir.path());
        ["a.txt", "b.txt"].iter().for_each(|path| read(&mut session, path));
        pass(&mut session, "delete_file", json!({ "path": "a.txt" }));
        move_file(&mut session, "b.txt", "a.txt");
        let reply = session.call("undo", &json!({ "all": true, "force": force }));
        assert!(reply.is_error && reply.text.contains("one by one"), "{}", reply.text);
        pass(&mut session, "undo", json!({}));
        pass(&mut session, "undo", json!({}));
        assert_eq!(tree(dir.path()), before);
        assert_nothing_is_left_to_undo(&mut session);
    }
}
