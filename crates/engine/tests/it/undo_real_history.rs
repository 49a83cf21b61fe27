//! A real history, replayed by two sessions in turns: each applies every other commit. All changes of one session are
//! undone, and the result must be git's merge of the file without them.

use std::fs;

use serde_json::json;
use surehand_engine::{
    Outcome, Session,
    core::{
        Done,
        edit::{UndoRequest, UndoTarget, WhoseChanges},
        merge3::{MarkerNames, merge3},
    },
};

use crate::fixture::*;

const HISTORY: &str = include_str!("histories/ripgrep-types.txt");
const PATH: &str = "types.rs";

/// The number of commits that are replayed at a time.
const WINDOW: usize = 6;

/// The text at the first commit, and the patches of the commits after it.
fn history() -> (String, Vec<String>) {
    let mut commits = HISTORY.split("\n=== ").skip(1).map(|commit| commit.split_once('\n').unwrap().1);
    let first = format!("{}\n", commits.next().unwrap());
    (first, commits.map(|commit| format!("--- a/{PATH}\n+++ b/{PATH}\n{commit}\n")).collect())
}

fn apply(session: &mut Session, patch: &str) {
    read(session, PATH);
    let reply = session.call("apply_patch", &json!({ "patch": patch }));
    assert!(!reply.is_error, "{}\n{patch}", reply.text);
}

/// The first text, and the text after each of these patches.
fn texts(first: &str, patches: &[String]) -> Vec<String> {
    let dir = lay_out(&[(PATH, first)]);
    let mut session = session(dir.path());
    let after = patches.iter().map(|patch| {
        apply(&mut session, patch);
        content(dir.path(), PATH)
    });
    [first.to_owned()].into_iter().chain(after).collect()
}

fn undo(session: &mut Session, which: UndoTarget) -> Outcome {
    session.undo(&UndoRequest { which, by: WhoseChanges::Mine, force: false })
}

/// Git's merge if only every other commit is applied, from the second one on; `None` if some of them conflict.
fn without_first_author(texts: &[String]) -> Option<String> {
    let mut text = texts[0].clone().into_bytes();
    for pair in texts.windows(2).skip(1).step_by(2) {
        let merge = merge3(pair[0].as_bytes(), &text, pair[1].as_bytes()).ok().filter(|merge| merge.is_clean())?;
        text = merge.text(MarkerNames { mine: "", theirs: "" });
    }
    String::from_utf8(text).ok()
}

#[test]
fn one_author_of_a_real_history_is_undone_exactly() {
    let (first, patches) = history();
    let texts = texts(&first, &patches);
    let mut exact = 0;
    for start in (0..=patches.len() - WINDOW).step_by(2) {
        let texts = &texts[start..=start + WINDOW];
        let dir = lay_out(&[(PATH, &texts[0])]);
        let mut sessions = [session(dir.path()), session(dir.path())];
        for (nth, patch) in patches[start..start + WINDOW].iter().enumerate() {
            apply(&mut sessions[nth % 2], patch);
        }
        let last = fs::read_to_string(dir.path().join(PATH)).unwrap();
        assert_eq!(last, texts[WINDOW]);
        let undone = undo(&mut sessions[0], UndoTarget::All);
        let is_whole = matches!(&undone.result, Ok(Done::Changed(changed)) if changed.left.is_empty());
        let now = content(dir.path(), PATH);
        if let (true, Some(expected)) = (is_whole, without_first_author(texts)) {
            assert_eq!(now, expected, "commits {start} to {}", start + WINDOW);
            exact += 1;
        }
        // In spite of lines that are left, no line that the other session added is gone.
        for pair in texts.windows(2).skip(1).step_by(2) {
            let added = pair[1].lines().filter(|line| !pair[0].lines().any(|known| known == *line));
            for line in added.filter(|line| last.lines().any(|line_after| line_after == *line)) {
                assert!(now.lines().any(|line_after| line_after == line), "{line} is lost");
            }
        }
        if undone.refusal().is_none() {
            assert!(undo(&mut sessions[0], UndoTarget::LastUndo).refusal().is_none());
            assert_eq!(content(dir.path(), PATH), last, "redo is not the inverse");
        }
    }
    assert!(exact >= 5, "only {exact} were compared");
}
