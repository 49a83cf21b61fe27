//! Compares the three-way merge with `git merge-file`, which must write the same bytes.
#![expect(clippy::disallowed_methods, reason = "tests lay out files")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use proptest::prelude::*;
use surehand_core::merge3::{MarkerNames, NotMerged, merge3};

/// The exit code of `git merge-file`, which is the number of conflicts (at most 127), and its output.
fn git_merge_file(dir: &Path, base: &[u8], mine: &[u8], theirs: &[u8]) -> (i32, Vec<u8>) {
    for (name, content) in [("base", base), ("mine", mine), ("theirs", theirs)] {
        fs::write(dir.join(name), content).unwrap();
    }
    let mut git = Command::new("git");
    git.args(["merge-file", "-p", "-L", "mine", "-L", "base", "-L", "theirs", "mine", "base", "theirs"]);
    // Outside a repository, no configuration of the user applies.
    git.current_dir(dir).env("GIT_DIR", "/dev/null").env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.stderr(Stdio::null()).output().unwrap();
    (output.status.code().unwrap(), output.stdout)
}

#[track_caller]
fn check(base: &[u8], mine: &[u8], theirs: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let (code, written) = git_merge_file(dir.path(), base, mine, theirs);
    let merge = merge3(base, mine, theirs).unwrap();
    let text = merge.text(MarkerNames { mine: "mine", theirs: "theirs" });
    assert_eq!(String::from_utf8_lossy(&text), String::from_utf8_lossy(&written));
    assert_eq!(merge.conflicts().len().min(127), usize::try_from(code).unwrap());
    assert_eq!(merge.is_clean(), code == 0);
}

#[test]
fn changes_of_the_same_or_of_adjacent_lines_conflict() {
    check(b"a\nb\nc\n", b"a\nX\nc\n", b"a\nY\nc\n");
    check(b"a\nb\nc\nd\n", b"a\nX\nc\nd\n", b"a\nb\nY\nd\n");
    check(b"a\nb\nc\nd\n", b"X\nb\nc\nd\n", b"a\nb\nY\nd\n");
    check(b"a\n", b"a\nX\n", b"a\nY\n");
    check(b"a\nb\n", b"a\nX\nb\n", b"Y\nb\n");
}

#[test]
fn the_same_change_on_both_sides_does_not_conflict() {
    check(b"a\nb\nc\n", b"a\nX\nc\n", b"a\nX\nc\n");
    check(b"a\nb\nc\nd\ne\n", b"a\nX\nc\nd\nE\n", b"a\nX\nc\nd\ne\n");
    check(b"a\nb\nc\n", b"a\nc\n", b"a\nc\n");
    check(b"", b"a\n", b"a\n");
}

#[test]
fn a_deletion_and_a_change_of_the_same_line_conflict() {
    check(b"a\nb\nc\n", b"a\nc\n", b"a\nB\nc\n");
    check(b"a\nb\nc\n", b"", b"a\nB\nc\n");
}

#[test]
fn empty_files_and_missing_final_line_breaks_are_merged() {
    check(b"", b"", b"");
    check(b"", b"a", b"b");
    check(b"a", b"", b"");
    check(b"a\nb", b"a\nb\n", b"a\nb\nc");
    check(b"a\nb\n", b"a\nb", b"a\nb\nc\n");
}

#[test]
fn line_endings_are_content_and_markers_follow_them() {
    check(b"a\r\nb\r\nc\r\n", b"a\r\nX\r\nc\r\n", b"a\r\nY\r\nc\r\n");
    check(b"a\r\nb\r\n", b"a\nb\n", b"a\r\nB\r\n");
    check(b"a\r\nb", b"a\r\nX", b"a\r\nY");
    check(b"a\r\n", b"X", b"Y");
    check(b"a ", b"a  ", b" a");
}

#[test]
fn binary_versions_are_not_merged() {
    let dir = tempfile::tempdir().unwrap();
    let versions: [&[u8]; 3] = [b"a\n", b"a\0\n", b"b\n"];
    assert_eq!(git_merge_file(dir.path(), versions[0], versions[1], versions[2]).0, 255);
    assert_eq!(merge3(versions[0], versions[1], versions[2]).unwrap_err(), NotMerged::Binary);
    // A zero byte far from the start does not make a file binary.
    let far = [&[b'a'; 8000][..], b"\0\nend\n"].concat();
    check(&far, &[&far[..], b"x\n"].concat(), &[b"y\n", &far[..]].concat());
}

/// A change of a text, at a place given in thousandths.
#[derive(Debug, Clone)]
struct Act {
    at: usize,
    removed: usize,
    added: Vec<u8>,
}

fn carry_out(lines: &[u8], acts: &[Act]) -> Vec<u8> {
    let mut lines = lines.to_vec();
    for act in acts {
        let at = act.at * lines.len() / 1000;
        let end = (at + act.removed).min(lines.len());
        lines.splice(at..end, act.added.iter().copied());
    }
    lines
}

/// The text of some lines, each given by a number. The numbers below 8 mean lines that resemble each other.
fn text(lines: &[u8], is_windows: bool, has_end: bool) -> Vec<u8> {
    const LINES: [&str; 8] = ["", "}", "a", "b", "  a", "{", "return", " "];
    let line_break = if is_windows { "\r\n" } else { "\n" };
    let line = |number: &u8| LINES.get(usize::from(*number)).map_or_else(|| format!("line {number}"), |line| (*line).to_owned());
    let mut text: String = lines.iter().map(|number| line(number) + line_break).collect();
    if !has_end && text.ends_with(line_break) {
        text.truncate(text.len() - line_break.len());
    }
    text.into_bytes()
}

fn acts(line: impl Strategy<Value = u8> + Clone, most: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = (0_usize..=1000, 0_usize..4, prop::collection::vec(line, 0..4));
    prop::collection::vec(act.prop_map(|(at, removed, added)| Act { at, removed, added }), 0..most)
}

/// A base and two versions of it.
fn versions(length: usize, kinds: u8, most: usize) -> impl Strategy<Value = [Vec<u8>; 3]> {
    let line = 0..kinds;
    let base = prop::collection::vec(line.clone(), 0..length);
    let form = || (prop::bool::weighted(0.1), prop::bool::weighted(0.8));
    (base, acts(line.clone(), most), acts(line, most), form(), form(), form()).prop_map(|(base, my_acts, their_acts, b, m, t)| {
        let (mine, theirs) = (carry_out(&base, &my_acts), carry_out(&base, &their_acts));
        [text(&base, b.0, b.1), text(&mine, m.0 ^ b.0, m.1), text(&theirs, t.0 ^ b.0, t.1)]
    })
}

/// This many of a hundred cases; `PROPTEST_CASES` scales them.
fn cases(percent: u32) -> ProptestConfig {
    let cases = ProptestConfig::default().cases * percent / 100;
    ProptestConfig { cases, max_shrink_iters: 400, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(300))]
    #[test]
    fn small_merges_are_gits(
        [base, mine, theirs] in prop_oneof![versions(12, 4, 4), versions(30, 10, 5), versions(60, 200, 6), versions(120, 20, 12)]
    ) {
        check(&base, &mine, &theirs);
    }
}

proptest! {
    #![proptest_config(cases(15))]
    #[test]
    fn large_merges_are_gits([base, mine, theirs] in prop_oneof![versions(2500, 8, 60), versions(2500, 60, 400)]) {
        check(&base, &mine, &theirs);
    }

    /// Versions that have little in common, some of them with long runs of equal lines: the search takes its shortcuts.
    #[test]
    fn merges_of_unlike_versions_are_gits(
        versions in prop::array::uniform3(prop::collection::vec(0_u8..40, 0..1500)),
        run_length in prop_oneof![Just(1), 18_u8..30],
    ) {
        let runs = |lines: &Vec<u8>| -> Vec<u8> {
            let kept = &lines[..lines.len() / if run_length > 1 { 6 } else { 1 }];
            kept.iter().flat_map(|line| *line..line + run_length).collect()
        };
        let [base, mine, theirs] = versions.map(|lines| text(&runs(&lines), false, true));
        check(&base, &mine, &theirs);
    }
}
