//! If every change of a file went through Surehand, the recorded line maps identify each line, even among equal lines.
//! Otherwise, contents must prove it.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{fs, path::Path, sync::Arc};

use crate::fixture::{content, edit, fast, lay_out, read};
use serde_json::{Value, json};
use surehand_engine::{
    Session, SessionId, Workspace,
    core::{Anchor, Edit, LineNo, OnChange, edit::TextReplacement},
};

const BEFORE: &str = "start\n}\n}\n}\n}\nend\n";

fn workspace(dir: &Path) -> Arc<Workspace> {
    let mut config = fast();
    config.policy.on_change = OnChange::Rebase;
    Workspace::open(dir, config).unwrap()
}

/// An edit of the line with this number, by its anchor.
fn at_line(line: u32, of: &str, change: &Value) -> Value {
    let mut change = change.clone();
    change["at"] = json!(Anchor::of(LineNo::new(line).unwrap(), of).to_string());
    json!({ "path": "a.txt", "edits": [change] })
}

/// A session that has read the file, and the reply to its edit of the last of the equal lines after `meanwhile`.
fn edit_after(dir: &Path, meanwhile: impl FnOnce(&Arc<Workspace>)) -> (bool, String) {
    let workspace = workspace(dir);
    let mut session = Session::new(workspace.clone());
    read(&mut session, "a.txt");
    meanwhile(&workspace);
    let reply = session.call("edit_lines", &at_line(5, "}", &json!({ "op": "replace", "text": "]" })));
    (!reply.is_error, content(dir, "a.txt"))
}

fn delete_second_line(workspace: &Arc<Workspace>) {
    let mut other = Session::new(workspace.clone());
    read(&mut other, "a.txt");
    let reply = other.call("edit_lines", &at_line(2, "}", &json!({ "op": "delete" })));
    assert!(!reply.is_error, "{}", reply.text);
}

#[test]
fn equal_lines_are_distinguished_if_the_other_change_is_recorded() {
    let dir = lay_out(&[("a.txt", BEFORE)]);
    assert_eq!(edit_after(dir.path(), delete_second_line), (true, "start\n}\n}\n]\nend\n".to_owned()));
}

#[test]
fn the_record_of_another_process_counts() {
    let dir = lay_out(&[("a.txt", BEFORE)]);
    // The process has written its records to the store when it ends.
    let done = edit_after(dir.path(), |_| delete_second_line(&workspace(dir.path())));
    assert_eq!(done, (true, "start\n}\n}\n]\nend\n".to_owned()));
}

#[test]
fn several_changes_on_record_are_followed_one_by_one() {
    let dir = lay_out(&[("a.txt", BEFORE)]);
    let done = edit_after(dir.path(), |workspace| {
        delete_second_line(workspace);
        let mut other = Session::new(workspace.clone());
        read(&mut other, "a.txt");
        let edits = json!([edit("a.txt", "start\n", "start\n}\n"), edit("a.txt", "start\n", "begin\n}\n")]);
        let reply = other.call("multi_edit", &json!({ "edits": edits }));
        assert!(!reply.is_error, "{}", reply.text);
    });
    assert_eq!(done, (true, "begin\n}\n}\n}\n}\n]\nend\n".to_owned()));
}

#[test]
fn without_a_record_equal_lines_stay_in_doubt() {
    let after = "start\n}\n}\n}\nend\n".to_owned();
    let dir = lay_out(&[("a.txt", BEFORE)]);
    assert_eq!(edit_after(dir.path(), |_| fs::write(dir.path().join("a.txt"), &after).unwrap()), (false, after.clone()));

    // A write of the whole file has no line map.
    let dir = lay_out(&[("a.txt", BEFORE)]);
    let done = edit_after(dir.path(), |workspace| {
        let mut other = Session::new(workspace.clone());
        read(&mut other, "a.txt");
        assert!(!other.call("write_file", &json!({ "path": "a.txt", "content": after })).is_error);
    });
    assert_eq!(done, (false, after.clone()));

    // The line maps do not count either if another program wrote in between.
    let dir = lay_out(&[("a.txt", BEFORE)]);
    let done = edit_after(dir.path(), |workspace| {
        delete_second_line(workspace);
        fs::write(dir.path().join("a.txt"), BEFORE).unwrap();
        fs::write(dir.path().join("a.txt"), "start\n}\n}\nend\n").unwrap();
    });
    assert_eq!(done, (false, "start\n}\n}\nend\n".to_owned()));
}

#[test]
fn edits_of_another_agents_tool_are_recorded_as_well() {
    let dir = lay_out(&[("a.txt", BEFORE)]);
    let done = edit_after(dir.path(), |workspace| {
        let mut other = Session::shared(workspace.clone(), SessionId("hooked".to_owned()));
        let mut tools = other.foreign_tools();
        tools.record_shown("a.txt", 1, BEFORE);
        let (old, new) = ("start\n}\n".to_owned(), "start\n".to_owned());
        let edit = Edit::Replace(TextReplacement { path: "a.txt".to_owned(), old, new, all: false });
        let allowed = tools.judge(&edit, &[]).unwrap();
        fs::write(dir.path().join("a.txt"), "start\n}\n}\n}\nend\n").unwrap();
        assert!(tools.adopt(&allowed.edit, &[]).is_none());
    });
    assert_eq!(done, (true, "start\n}\n}\n]\nend\n".to_owned()));
}

#[test]
fn a_refusal_says_where_equal_lines_are_now() {
    let dir = lay_out(&[("a.txt", BEFORE)]);
    let workspace = Workspace::open(dir.path(), fast()).unwrap();
    let mut session = Session::new(workspace.clone());
    read(&mut session, "a.txt");
    delete_second_line(&workspace);
    let reply = session.call("edit_lines", &at_line(5, "}", &json!({ "op": "replace", "text": "]" })));
    let (from, to) = (Anchor::of(LineNo::new(5).unwrap(), "}").to_string(), Anchor::of(LineNo::new(4).unwrap(), "}").to_string());
    let remaps = reply.result["refusal"]["remaps"].to_string();
    assert!(remaps.contains(&from) && remaps.contains(&to), "{}", reply.text);
}
