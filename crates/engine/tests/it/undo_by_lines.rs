//! Undo by lines, in files that others have changed since.
#![expect(clippy::disallowed_methods, reason = "tests play other programs")]

use std::{fs, path::Path};

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{
    Outcome, Session, ToolNames,
    core::{
        edit::{UndoRequest, UndoTarget, WhoseChanges},
        outcome::undo::{NotUndoneCause, UndoExtent},
    },
    render,
};

#[track_caller]
fn pass(session: &mut Session, tool: &str, call: Value) {
    let reply = session.call(tool, &call);
    assert!(!reply.is_error, "{tool} {call}: {}", reply.text);
    session.workspace().flush();
}

/// Replaces a text after a read, so that the gate allows it.
#[track_caller]
fn replace(session: &mut Session, path: &str, old: &str, new: &str) {
    read(session, path);
    pass(session, "edit_file", edit(path, old, new));
}

fn undo(session: &mut Session, which: UndoTarget) -> Outcome {
    session.undo(&UndoRequest { which, by: WhoseChanges::Mine, force: false })
}

#[track_caller]
fn undo_all(session: &mut Session) -> Outcome {
    undone(session, UndoTarget::All)
}

/// An undo that must succeed.
#[track_caller]
fn undone(session: &mut Session, which: UndoTarget) -> Outcome {
    let outcome = undo(session, which);
    assert!(!outcome.is_refused(), "{}", render::text(&outcome, &ToolNames::default()));
    outcome
}

fn extents(outcome: &Outcome) -> Vec<UndoExtent> {
    outcome.changed().unwrap().undid.iter().map(|undid| undid.extent).collect()
}

fn left(outcome: &Outcome) -> Vec<NotUndoneCause> {
    let left = match outcome.refusal() {
        Some(surehand_engine::Refusal { cause: surehand_engine::core::Cause::ChangedSince { left, .. }, .. }) => left,
        Some(refusal) => panic!("{refusal}"),
        None => &outcome.changed().unwrap().left,
    };
    left.iter().flat_map(|left| left.hunks.iter().map(|hunk| hunk.why.clone()).chain(left.why.clone())).collect()
}

fn append(dir: &Path, path: &str, text: &str) {
    let old = content(dir, path);
    fs::write(dir.join(path), old + text).unwrap();
}

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

#[test]
fn a_change_is_undone_and_later_changes_of_others_stay() {
    let dir = lay_out(&[("a.txt", LINES)]);
    let (mut ann, mut bob) = (session(dir.path()), session(dir.path()));
    replace(&mut ann, "a.txt", "two", "TWO");
    replace(&mut bob, "a.txt", "six", "6\n6b");
    append(dir.path(), "a.txt", "by hand\n");
    let outcome = undo(&mut ann, UndoTarget::Last);
    assert_eq!((extents(&outcome), left(&outcome)), (vec![UndoExtent::ByLines], vec![]));
    assert_eq!(content(dir.path(), "a.txt"), LINES.replace("six", "6\n6b") + "by hand\n");
    // Again, in the other order: nothing of Ann's is left to undo.
    assert_eq!(undo(&mut ann, UndoTarget::Last).refusal().unwrap().code().as_str(), "no_change");
    let outcome = undo_all(&mut bob);
    assert_eq!(extents(&outcome), [UndoExtent::ByLines]);
    assert_eq!(content(dir.path(), "a.txt"), LINES.to_owned() + "by hand\n");
}

#[test]
fn an_older_change_is_undone_under_newer_ones_of_the_same_session() {
    let dir = lay_out(&[("a.txt", LINES)]);
    let mut ann = session(dir.path());
    replace(&mut ann, "a.txt", "two", "TWO");
    let first = ann.workspace().log(&Default::default(), 1).unwrap()[0].change.clone();
    replace(&mut ann, "a.txt", "one", "zero\none");
    let outcome = undo(&mut ann, UndoTarget::Change(first));
    assert_eq!(extents(&outcome), [UndoExtent::ByLines]);
    assert_eq!(content(dir.path(), "a.txt"), format!("zero\n{LINES}"));
    assert_eq!(left(&undo_all(&mut ann)), []);
    assert_eq!(content(dir.path(), "a.txt"), LINES);
}

#[test]
fn lines_that_others_changed_are_left_and_shown() {
    let dir = lay_out(&[("a.txt", LINES)]);
    let (mut ann, mut bob) = (session(dir.path()), session(dir.path()));
    read(&mut ann, "a.txt");
    let edits = [("two", "TWO"), ("seven", "SEVEN")].map(|(old, new)| edit("a.txt", old, new));
    pass(&mut ann, "multi_edit", json!({ "edits": edits }));
    replace(&mut bob, "a.txt", "TWO", "II");
    let outcome = undo(&mut ann, UndoTarget::Last);
    assert_eq!((extents(&outcome), left(&outcome)), (vec![UndoExtent::Partly], vec![NotUndoneCause::LinesChanged]));
    assert_eq!(content(dir.path(), "a.txt"), LINES.replace("two", "II"));
    // There is no older change, and this one is not selected again.
    assert_eq!(undo(&mut ann, UndoTarget::Last).refusal().unwrap().code().as_str(), "no_change");
    // If it is named, the rest is tried again, and is undone once its lines are present again.
    assert_eq!(left(&undo(&mut ann, UndoTarget::All)), [NotUndoneCause::LinesChanged]);
    assert_eq!(left(&undone(&mut bob, UndoTarget::Last)), []);
    assert_eq!(left(&undone(&mut ann, UndoTarget::All)), []);
    assert_eq!(content(dir.path(), "a.txt"), LINES);
}

#[test]
fn nothing_is_written_if_nothing_is_proven() {
    let dir = lay_out(&[("a.txt", LINES)]);
    let mut ann = session(dir.path());
    replace(&mut ann, "a.txt", "two", "TWO");
    fs::write(dir.path().join("a.txt"), LINES.replace("two", "II")).unwrap();
    let outcome = undo(&mut ann, UndoTarget::Last);
    assert_eq!(left(&outcome), [NotUndoneCause::LinesChanged]);
    assert_eq!(content(dir.path(), "a.txt"), LINES.replace("two", "II"));
    // With force, the file is as it was.
    let force = UndoRequest { which: UndoTarget::Last, by: WhoseChanges::Mine, force: true };
    assert!(!ann.undo(&force).is_refused());
    assert_eq!(content(dir.path(), "a.txt"), LINES);
}

#[test]
fn one_file_that_must_be_left_does_not_hold_up_the_others() {
    let dir = lay_out(&[("a.txt", LINES), ("b.txt", LINES), ("c.bin", "\0one\n")]);
    let mut ann = session(dir.path());
    ["a.txt", "b.txt"].iter().for_each(|path| replace(&mut ann, path, "two", "TWO"));
    pass(&mut ann, "delete_file", json!({ "path": "c.bin" }));
    fs::remove_file(dir.path().join("a.txt")).unwrap();
    fs::write(dir.path().join("c.bin"), "\0two\n").unwrap();
    let outcome = undo_all(&mut ann);
    assert_eq!(left(&outcome), [NotUndoneCause::NotText, NotUndoneCause::Deleted]);
    assert_eq!(content(dir.path(), "b.txt"), LINES);
    assert_eq!(content(dir.path(), "c.bin"), "\0two\n");
    assert!(!dir.path().join("a.txt").exists());
}

#[test]
fn undoing_a_creation_keeps_the_lines_of_others() {
    for others in [None, Some("mine\n")] {
        let dir = lay_out(&[]);
        let mut ann = session(dir.path());
        pass(&mut ann, "write_file", json!({ "path": "new.txt", "content": LINES }));
        pass(&mut ann, "edit_file", edit("new.txt", "two", "TWO"));
        match others {
            Some(others) => append(dir.path(), "new.txt", others),
            // Another program has removed a line.
            None => fs::write(dir.path().join("new.txt"), LINES.replace("two", "TWO").replace("four\n", "")).unwrap(),
        }
        assert_eq!(left(&undo_all(&mut ann)), []);
        let now = fs::read_to_string(dir.path().join("new.txt")).ok();
        assert_eq!(now.as_deref(), others);
    }
}

#[test]
fn a_file_that_was_moved_gets_its_name_back_with_what_others_wrote() {
    let dir = lay_out(&[("a.txt", LINES)]);
    let mut ann = session(dir.path());
    replace(&mut ann, "a.txt", "two", "TWO");
    pass(&mut ann, "move_file", json!({ "from": "a.txt", "to": "b.txt" }));
    append(dir.path(), "b.txt", "mine\n");
    let outcome = undo_all(&mut ann);
    assert_eq!(left(&outcome), []);
    assert_eq!(content(dir.path(), "a.txt"), format!("{LINES}mine\n"));
    assert!(!dir.path().join("b.txt").exists());
}

#[test]
fn a_file_that_others_moved_keeps_its_name() {
    let dir = lay_out(&[("a.txt", LINES)]);
    let (mut ann, mut bob) = (session(dir.path()), session(dir.path()));
    replace(&mut ann, "a.txt", "two", "TWO");
    read(&mut bob, "a.txt");
    pass(&mut bob, "move_file", json!({ "from": "a.txt", "to": "b.txt" }));
    pass(&mut bob, "edit_file", edit("b.txt", "seven", "7"));
    let outcome = undo_all(&mut ann);
    assert_eq!((extents(&outcome), left(&outcome)), (vec![UndoExtent::ByLines], vec![]));
    assert_eq!(content(dir.path(), "b.txt"), LINES.replace("seven", "7"));
    assert!(!dir.path().join("a.txt").exists());
    // It is recorded as undone.
    assert_eq!(undo(&mut ann, UndoTarget::Last).refusal().unwrap().code().as_str(), "no_change");
}

#[test]
fn a_file_that_was_deleted_comes_back_with_the_lines_of_others_and_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let dir = lay_out(&[("a.sh", LINES)]);
    fs::set_permissions(dir.path().join("a.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let (mut ann, mut bob) = (session(dir.path()), session(dir.path()));
    replace(&mut ann, "a.sh", "two", "TWO");
    replace(&mut bob, "a.sh", "seven", "7");
    read(&mut ann, "a.sh");
    pass(&mut ann, "delete_file", json!({ "path": "a.sh" }));
    let outcome = undo_all(&mut ann);
    assert_eq!(left(&outcome), []);
    assert_eq!(content(dir.path(), "a.sh"), LINES.replace("seven", "7"));
    assert_eq!(fs::metadata(dir.path().join("a.sh")).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn endings_encodings_and_open_ends_stay() {
    let dir = lay_out(&[("crlf.txt", "one\r\ntwo\r\nthree"), ("bom.txt", "\u{feff}one\ntwo\nthree\n")]);
    let latin: Vec<u8> = "Gr\u{fc}\u{df}e aus K\u{f6}ln\ntwo\nthree\n".chars().map(|char| char as u8).collect();
    fs::write(dir.path().join("latin.txt"), &latin).unwrap();
    let before: Vec<Vec<u8>> = ["crlf.txt", "bom.txt", "latin.txt"].map(|path| fs::read(dir.path().join(path)).unwrap()).to_vec();
    let (mut ann, mut bob) = (session(dir.path()), session(dir.path()));
    for (path, before) in ["crlf.txt", "bom.txt", "latin.txt"].into_iter().zip(before) {
        replace(&mut ann, path, "two", "TWO\nmore");
        replace(&mut bob, path, "three", "3");
        assert!(!undo(&mut ann, UndoTarget::File(path.to_owned())).is_refused());
        let now = fs::read(dir.path().join(path)).unwrap();
        let expected = String::from_utf8_lossy(&before).replace("three", "3");
        assert_eq!(String::from_utf8_lossy(&now), expected, "{path}");
        assert!(!undo(&mut bob, UndoTarget::File(path.to_owned())).is_refused());
        assert_eq!(fs::read(dir.path().join(path)).unwrap(), before, "{path}");
    }
}

#[test]
fn a_redo_names_the_edit_that_it_restores() {
    let dir = lay_out(&[("a.txt", LINES)]);
    let mut session = session(dir.path());
    replace(&mut session, "a.txt", "two", "2");
    let edited = content(dir.path(), "a.txt");
    let logged = session.workspace().log(&Default::default(), 1).unwrap().remove(0);
    let first_line = |outcome: &Outcome| render::text(outcome, &ToolNames::default()).lines().next().unwrap().to_owned();
    for _ in 0..3 {
        // The last change is the edit or, after a redo, the redo: either way, the edit is undone.
        let undo = undone(&mut session, UndoTarget::Last);
        assert_eq!(first_line(&undo), "Undid edit_file. The files are as they were before:");
        let redo = undone(&mut session, UndoTarget::LastUndo);
        assert_eq!(first_line(&redo), "Redid edit_file. The files are as they were before the undo:");
        for outcome in [undo, redo] {
            let changed = outcome.changed().unwrap();
            let edits: Vec<_> = changed.undid.iter().flat_map(|undid| &undid.edits).collect();
            assert_eq!(
                edits.iter().map(|edit| (&edit.change, &edit.session)).collect::<Vec<_>>(),
                [(&logged.change, &logged.session)]
            );
        }
        assert_eq!(content(dir.path(), "a.txt"), edited);
    }
}
