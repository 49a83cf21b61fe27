//! Tests of undo by lines: single cases here, and generated histories in `generated`.

mod generated;

use super::*;

fn text(content: &str) -> Text {
    Text::new(content.as_bytes().to_vec()).unwrap()
}

fn change(name: &str) -> ChangeId {
    ChangeId(name.to_owned())
}

fn back_at(hunk: Hunk, at: Range<usize>) -> UndoneHunk {
    UndoneHunk { hunk, at: std::iter::once(at).collect(), is_back: true }
}

/// Undoes a change in a text that others have changed since.
fn undo(before: &Text, after: &Text, lines: Option<&str>, now: &Text) -> UndoneText {
    let lines = lines.map(|lines| lines.parse::<LineMap>().unwrap());
    let change = change("c");
    let mut draft = UndoDraft::new(now.clone());
    draft.pass_texts(after, now);
    draft.take_back(&TextStep { change: &change, before, after, lines: lines.as_ref() }, &[]);
    draft.finish()
}

/// Checks an undo. `left` are the reasons for the hunks that are left.
#[track_caller]
fn check(before: &str, after: &str, now: &str, expected: &str, left: &[NotUndoneCause]) {
    let (before, after, now) = (text(before), text(after), text(now));
    let undone = undo(&before, &after, None, &now);
    assert_eq!(undone.text.as_str(), expected);
    assert_eq!(undone.left.iter().map(|left| left.why.clone()).collect::<Vec<_>>(), left);
    assert!(undone.lines.unwrap().fits(&now, &undone.text));
}

#[test]
fn lines_are_taken_back_wherever_they_have_moved_to() {
    check("a\nb\nc\nd\n", "a\nB\nc\nd\n", "new\na\nB\nc\nD\n", "new\na\nb\nc\nD\n", &[]);
    check("a\nb\nc\n", "a\nb\nx\ny\nc\n", "0\na\nb\nx\ny\nc\nd\n", "0\na\nb\nc\nd\n", &[]);
    check("a\nb\nc\nd\n", "a\nd\n", "0\na\nd\nz\n", "0\na\nb\nc\nd\nz\n", &[]);
    check("a\nb\n", "a\nb\nx\n", "A\nb\nx\n", "A\nb\n", &[]);
    check("a\nb\n", "b\n", "b\nc\n", "a\nb\nc\n", &[]);
}

#[test]
fn lines_that_others_changed_are_left() {
    check("a\nb\nc\n", "a\nB\nc\n", "a\nBB\nc\n", "a\nBB\nc\n", &[NotUndoneCause::LinesChanged]);
    // One hunk is undone, the other is left.
    check("a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "AA\nb\nc\nd\nE\n", "AA\nb\nc\nd\ne\n", &[NotUndoneCause::LinesChanged]);
    // Another writer inserted lines where lines were deleted: their order would be a guess.
    check("a\nb\nc\n", "a\nc\n", "a\nx\nc\n", "a\nx\nc\n", &[NotUndoneCause::LinesChanged]);
    // The same between the lines that replaced one line.
    check("a\nb\nc\n", "a\nx\ny\nc\n", "a\nx\n1\ny\nc\n", "a\nx\n1\ny\nc\n", &[NotUndoneCause::LinesChanged]);
}

#[test]
fn others_may_have_put_lines_between_lines_that_only_came() {
    check("", "a\nb\nc\n", "a\nmine\nb\nc\nmore\n", "mine\nmore\n", &[]);
    check("z\n", "a\nb\nc\nz\n", "a\nc\nmine\nz\n", "mine\nz\n", &[]);
    check("z\n", "a\nb\nc\nz\n", "a\nc\nz\n", "z\n", &[]);
    check("z\n", "a\nb\nz\n", "a\nB\nz\n", "a\nB\nz\n", &[NotUndoneCause::LinesChanged]);
}

#[test]
fn a_change_undone_by_hand_counts_as_undone() {
    for now in ["a\nb\nc\n", "a\nb\nc\nd\n"] {
        check("a\nb\nc\n", "a\nB\nc\n", now, now, &[]);
        check("a\nb\nc\n", "a\nb\nx\nc\n", now, now, &[]);
        check("a\nb\nc\n", "a\nc\n", now, now, &[]);
    }
}

#[test]
fn equal_lines_are_not_taken_for_each_other() {
    // A brace was inserted, and another writer has removed one: it may be this one or the other.
    let (before, after, now) = (text("a\n}\nb\n"), text("a\n}\n}\nb\n"), text("a\n}\nb\nc\n"));
    let undone = undo(&before, &after, Some("3 2-0+1"), &now);
    assert_eq!((undone.text, undone.left[0].why.clone()), (now, NotUndoneCause::LinesInDoubt));
    // Both readings have the same result.
    check("a\n}\nb\n", "a\n}\n}\nb\n", "a\n}\nb\nc\n", "a\n}\nb\nc\n", &[]);
    // A whole-file write may have inserted either of the braces. Both readings agree while no lines are inserted
    // between them.
    check("a\n}\nc\n", "a\n}\nx\n}\nc\n", "a\n}\nx\n}\nc\nd\n", "a\n}\nc\nd\n", &[]);
    check("a\n}\nc\n", "a\n}\nx\n}\nc\n", "a\n}\nmine\nx\n}\nc\n", "a\n}\nmine\nx\n}\nc\n", &[NotUndoneCause::LinesChanged]);
}

#[test]
fn an_edit_says_itself_which_of_two_equal_lines_it_made() {
    let (before, after) = (text("a\n}\nc\n"), text("a\n}\nx\n}\nc\n"));
    let undone = undo(&before, &after, Some("3 1-0+2"), &text("a\n}\nx\nmine\n}\nc\n"));
    assert_eq!((undone.text.as_str(), undone.left.len()), ("a\nmine\n}\nc\n", 0));
    // A map that does not fit these texts is ignored.
    let undone = undo(&before, &after, Some("3 0-0+2"), &text("a\n}\nx\nmine\n}\nc\n"));
    assert_eq!((undone.text.as_str(), undone.left.len()), ("a\n}\nx\nmine\n}\nc\n", 1));
}

#[test]
fn endings_stay_what_they_are() {
    check("a\r\nb\nc\r\n", "a\r\nB\r\nc\r\n", "a\r\nB\r\nc\r\nd\n", "a\r\nb\nc\r\nd\n", &[]);
    check("\u{feff}a\nb\n", "\u{feff}a\nB\n", "\u{feff}0\na\nB\n", "\u{feff}0\na\nb\n", &[]);
    // The file ended without a newline, and others have appended lines to the line that the change ended.
    check("a\nb", "a\nc\r\n", "a\nc\r\nmine\n", "a\nb\r\nmine\n", &[]);
    check("a\nb", "a\nc\n", "0\na\nc\n", "0\na\nb", &[]);
    check("a\n", "a\nb", "0\na\nb", "0\na\n", &[]);
}

#[test]
fn an_encoding_is_kept_or_the_change_is_left() {
    let latin = |text: &str| Text::new(text.chars().map(|c| c as u8).collect()).unwrap();
    let (before, after) = (latin("Gr\u{fc}\u{df}e aus K\u{f6}ln\nb\nc\n"), latin("Gr\u{fc}\u{df}e aus K\u{f6}ln\nB\nc\n"));
    let now = latin("Gr\u{fc}\u{df}e aus K\u{f6}ln\nB\nc\nd\n");
    let undone = undo(&before, &after, None, &now);
    assert_eq!(undone.text, latin("Gr\u{fc}\u{df}e aus K\u{f6}ln\nb\nc\nd\n"));
    // The file now has an encoding that cannot represent the lines to restore.
    let (before, after) = (text("Gr\u{fc}\u{df}e\n\u{2192}\nc\n"), text("Gr\u{fc}\u{df}e\nB\nc\n"));
    let now = latin("Gr\u{fc}\u{df}e\nB\nc\nd\n");
    let undone = undo(&before, &after, None, &now);
    assert_eq!((undone.text, undone.left[0].why.clone()), (now, NotUndoneCause::Unencodable));
    // The change itself changed the encoding.
    let undone = undo(&latin("\u{fc}b\nb\n"), &text("\u{fc}b\nB\n"), None, &text("\u{fc}b\nB\nc\n"));
    assert_eq!(undone.left[0].why, NotUndoneCause::EncodingChanged);
}

#[test]
fn a_left_hunk_has_its_present_and_its_wanted_lines() {
    let undone = undo(&text("a\nb\nc\nd\n"), &text("A\nb\nC\nd\n"), None, &text("0\nAA\nb\nC\nd\n"));
    let left = LeftHunk { change: change("c"), why: NotUndoneCause::LinesChanged, now: 0..2, wanted: vec!["a".to_owned()] };
    assert_eq!(undone.text.as_str(), "0\nAA\nb\nc\nd\n");
    assert_eq!(undone.left, [left]);
    let hunk = Hunk { before: 2..3, after: 2..3 };
    let part = UndonePart { change: change("c"), hunks: vec![back_at(hunk, 3..4)], of: 2 };
    assert_eq!(undone.undone, [part]);
}

#[test]
fn the_rest_of_a_change_is_taken_back_later_and_nothing_twice() {
    let (before, after) = (text("a\nb\nc\nd\n"), text("A\nb\nC\nd\n"));
    let first = undo(&before, &after, None, &text("AA\nb\nC\nd\n"));
    let done: Vec<Hunk> = first.undone[0].hunks.iter().map(|undone| undone.hunk.clone()).collect();
    // Its line is present again, and so is the one that had been undone.
    let mut draft = UndoDraft::new(text("A\nb\nC\nd\n"));
    let (name, lines) = (change("c"), LineMap::between(&before, &after));
    draft.take_back(&TextStep { change: &name, before: &before, after: &after, lines: Some(&lines) }, &done);
    let undone = draft.finish();
    assert_eq!(undone.text.as_str(), "a\nb\nC\nd\n");
    assert_eq!((undone.undone[0].hunks.len(), undone.undone[0].of), (1, 2));
}

#[test]
fn a_part_is_stored_as_short_json() {
    let hunk = Hunk { before: 2..3, after: 2..5 };
    let part = UndonePart { change: change("c"), hunks: vec![back_at(hunk, 3..4)], of: 2 };
    let stored = serde_json::to_string(&part).unwrap();
    assert_eq!(stored, r#"{"change":"c","hunks":[[2,1,2,3,[[3,1]],true]],"of":2}"#);
    assert_eq!(serde_json::from_str::<UndonePart>(&stored).unwrap(), part);
}

#[test]
fn lines_that_a_whole_undo_put_back_are_the_same_lines() {
    // Two braces were inserted between two others, the first two were removed, and all of that was undone.
    let (first, added, cut) = (text("}\n}\n"), text("}\n}\n}\n}\n"), text("}\n}\n"));
    let now = text("new\n}\n}\n}\n}\n");
    let [add, remove, undo, others] = ["2 1-0+2", "4 0-2+0", "2 0-0+2", "4 0-0+1"].map(|lines| lines.parse::<LineMap>().unwrap());
    assert!(remove.fits(&added, &cut) && undo.fits(&cut, &added) && others.fits(&added, &now));
    let mut draft = UndoDraft::new(now);
    draft.pass(&change("others"), &others);
    draft.note_all_put_back(&change("remove"));
    draft.pass(&change("undo"), &undo);
    draft.pass(&change("remove"), &remove);
    draft.take_back(&TextStep { change: &change("add"), before: &first, after: &added, lines: Some(&add) }, &[]);
    let undone = draft.finish();
    assert_eq!((undone.text.as_str(), undone.left), ("new\n}\n}\n", vec![]));
}
