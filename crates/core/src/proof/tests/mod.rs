//! Hand-written cases for proofs. Generated changes are in `generated`.

mod generated;

use super::*;

fn text(content: &str) -> Text {
    Text::of(content.to_owned()).unwrap()
}

#[track_caller]
fn check(before: &str, after: &str, proven: &str) {
    let (before, after) = (text(before), text(after));
    let proof = Proof::between(None, &before, &after);
    assert_eq!(proof.proven_of(&LineSet::whole(before.line_count())).to_string(), proven);
}

#[test]
fn equal_lines_beside_a_change_prove_nothing() {
    // One of three equal lines was removed. Which one is unknown.
    check("a\n}\n}\n}\nb\n", "a\n}\n}\nb\n", "1, 5");
    check("}\n}\n", "}\n", "");
    check("a\nb\n", "a\nb\n", "1-2");
    check("a\n}\nb\n}\n", "a\n}\nB\n}\n", "1");
    check("a\n}", "a\n}\nb\n}", "1");
}

#[test]
fn a_line_is_proven_when_all_others_that_read_the_same_are() {
    // A line is added above the first brace. Unique lines fix the second one.
    check("fn a() {\n  x\n}\nfn b() {\n  y\n}\n", "fn a() {\n  x\n  z\n}\nfn b() {\n  y\n}\n", "1-6");
    // The same, but a brace was removed, which may be this one.
    check("a\n}\n}\nb\n}\nc\n", "a\nz\n}\nb\n}\nc\n", "1, 4-6");
    // One brace proves the next: the last one, the one above it, and so on.
    check("{\na\n}\n{\nb\n}\n", "{\nA\n}\n{\nb\n}\n", "1, 3-6");
}

#[test]
fn a_copy_raises_doubt_about_its_original() {
    check("a\nx\ny\nb\nc\n", "a\nx\ny\nb\nx\ny\nc\n", "1-5");
    check("a\nx\ny\nb\n", "a\nx\ny\nx\ny\nb\n", "1, 4");
    check("a\nx\nb\nx\nc\n", "a\nb\nx\nc\n", "1, 3-5");
}

#[test]
fn a_map_that_is_known_proves_all_that_it_keeps() {
    let (before, after) = (text("}\n}\n}\n"), text("}\n}\n"));
    let map = "3 1-1+0".parse().unwrap();
    let proof = Proof::between(Some(&map), &before, &after);
    assert_eq!(proof.proven_of(&LineSet::whole(3)).to_string(), "1, 3");
    assert!(proof.covers(&[LineNo::FIRST].into_iter().collect()));
}
