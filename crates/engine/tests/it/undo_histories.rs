//! Replayed histories: two sessions and other programs change one file in turns, and undo and redo their changes. Each
//! author keeps to blocks of his own, so that the content without him is known. Many lines are equal.
#![expect(clippy::disallowed_methods, reason = "tests play other programs")]

use std::fs;

use crate::fixture::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use surehand_engine::{
    Outcome, Session, ToolNames,
    core::edit::{UndoRequest, UndoTarget, WhoseChanges},
    render,
};
use tempfile::TempDir;

const PATH: &str = "a.txt";
const TEXTS: [&str; 6] = ["}", "", "    x();", "fn a() {", "one", "two"];

type Lines = Vec<&'static str>;

#[derive(Debug, Clone)]
enum Act {
    /// Replaces lines in a block of the author.
    Edit { author: usize, block: usize, at: usize, removed: usize, added: Lines, means: Means },
    /// Undoes the author's last change.
    Undo(usize),
    /// Redoes the author's last undo.
    Redo(usize),
}

/// The means of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// An edit of lines, which records a line map.
    Lines,
    /// A write of the whole file.
    Write,
    /// A write by another program, which Surehand does not see.
    Outside,
}

/// A change of a block.
#[derive(Debug, Clone)]
struct BlockChange {
    block: usize,
    before: Lines,
    after: Lines,
}

/// The history and the expected content of the file.
struct History {
    dir: TempDir,
    sessions: [Session; 2],
    first: Vec<Lines>,
    blocks: Vec<Lines>,
    done: [Vec<BlockChange>; 2],
    undone: [Vec<BlockChange>; 2],
}

impl History {
    fn begin(blocks: Vec<Lines>) -> Self {
        let dir = lay_out(&[]);
        fs::write(dir.path().join(PATH), text_of(&blocks)).unwrap();
        let sessions = [session(dir.path()), session(dir.path())];
        Self { dir, sessions, first: blocks.clone(), blocks, done: Default::default(), undone: Default::default() }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Edit { author, block, at, removed, added, means } => {
                let own: Vec<usize> = (0..self.blocks.len()).filter(|block| block % 2 == *author).collect();
                let block = own[block % own.len()];
                let before = self.blocks[block].clone();
                let at = at % (before.len() + 1);
                let end = (at + removed).min(before.len());
                // Without a line map, contents cannot show that a line was replaced by an equal one.
                let is_new = |text: &&&str| *means == Means::Lines || !before[at..end].contains(*text);
                let added: Lines = added.iter().filter(is_new).copied().collect();
                let mut after = before.clone();
                after.splice(at..end, added.iter().copied());
                if before == after {
                    return;
                }
                self.blocks[block].clone_from(&after);
                let line = self.blocks[..block].iter().map(|block| block.len() + 1).sum::<usize>() + 1 + at;
                self.write(*author, *means, line..line + (end - at), &added);
                if *means != Means::Outside {
                    self.done[*author].push(BlockChange { block, before, after });
                    self.undone[*author].clear();
                }
            }
            Act::Undo(author) => {
                let Some(change) = self.done[*author].pop() else { return };
                self.must_undo(*author, UndoTarget::Last);
                self.blocks[change.block].clone_from(&change.before);
                self.undone[*author].push(change);
            }
            Act::Redo(author) => {
                let Some(change) = self.undone[*author].pop() else { return };
                self.must_undo(*author, UndoTarget::LastUndo);
                self.blocks[change.block].clone_from(&change.after);
                self.done[*author].push(change);
            }
        }
        self.assert_is_as_expected();
    }

    /// Replaces the lines with these indexes.
    fn write(&mut self, author: usize, means: Means, lines: std::ops::Range<usize>, added: &[&str]) {
        let session = &mut self.sessions[author];
        match means {
            Means::Outside => fs::write(self.dir.path().join(PATH), text_of(&self.blocks)).unwrap(),
            Means::Write => {
                call(session, "read_file", json!({ "path": PATH }));
                call(session, "write_file", json!({ "path": PATH, "content": text_of(&self.blocks) }));
            }
            Means::Lines => {
                let shown = call(session, "read_file", json!({ "path": PATH, "anchors": true }));
                let anchors: Vec<&str> = shown.lines().skip(1).filter_map(|row| row.split('|').next()).collect();
                let text: String = added.iter().map(|line| format!("{line}\n")).collect();
                // A fixed line precedes every block.
                let edit = match (lines.is_empty(), added.is_empty()) {
                    (true, _) => json!({ "op": "insert_after", "at": anchors[lines.start - 1], "text": text }),
                    (false, true) => json!({ "op": "delete", "at": anchors[lines.start], "to": anchors[lines.end - 1] }),
                    (false, false) => {
                        json!({ "op": "replace", "at": anchors[lines.start], "to": anchors[lines.end - 1], "text": text })
                    }
                };
                call(session, "edit_lines", json!({ "path": PATH, "edits": [edit] }));
            }
        }
        session.workspace().flush();
    }

    /// Runs an undo that must succeed.
    #[track_caller]
    fn must_undo(&mut self, author: usize, which: UndoTarget) {
        let outcome = self.undo(author, which);
        assert!(!outcome.is_refused(), "{}", rendered(&outcome));
    }

    fn undo(&mut self, author: usize, which: UndoTarget) -> Outcome {
        let session = &mut self.sessions[author];
        let outcome = session.undo(&UndoRequest { which, by: WhoseChanges::Mine, force: false });
        session.workspace().flush();
        outcome
    }

    #[track_caller]
    fn assert_is_as_expected(&self) {
        assert_eq!(content(self.dir.path(), PATH), text_of(&self.blocks));
    }

    /// Undoes all changes of an author, and returns the expected content without him.
    fn without(&mut self, author: usize) -> (Outcome, String) {
        let outcome = self.undo(author, UndoTarget::All);
        let own = |block: usize| block % 2 == author;
        let blocks = (0..self.blocks.len()).map(|block| if own(block) { &self.first[block] } else { &self.blocks[block] });
        (outcome, text_of(&blocks.cloned().collect::<Vec<_>>()))
    }
}

#[track_caller]
fn call(session: &mut Session, tool: &str, call: Value) -> String {
    let reply = session.call(tool, &call);
    assert!(!reply.is_error, "{tool} {call}: {}", reply.text);
    reply.text
}

/// Each block is preceded by a fixed line.
fn text_of(blocks: &[Lines]) -> String {
    let block = |(number, lines): (usize, &Lines)| {
        format!("// block {number}\n{}", lines.iter().map(|line| format!("{line}\n")).collect::<String>())
    };
    blocks.iter().enumerate().map(block).collect()
}

fn is_left(outcome: &Outcome) -> bool {
    outcome.changed().is_none_or(|changed| !changed.left.is_empty())
}

fn lines(most: usize) -> impl Strategy<Value = Lines> {
    prop::collection::vec((0..TEXTS.len()).prop_map(|text| TEXTS[text]), 0..most)
}

fn blocks() -> impl Strategy<Value = Vec<Lines>> {
    prop::collection::vec(lines(6), 2..6)
}

fn edit_act(means: &'static [Means]) -> impl Strategy<Value = Act> {
    (0usize..2, 0usize..3, 0usize..6, 0usize..4, lines(4), 0..means.len())
        .prop_map(|(author, block, at, removed, added, by)| Act::Edit { author, block, at, removed, added, means: means[by] })
}

fn act(means: &'static [Means]) -> impl Strategy<Value = Act> {
    prop_oneof![4 => edit_act(means), 1 => (0usize..2).prop_map(Act::Undo), 1 => (0usize..2).prop_map(Act::Redo)]
}

fn rendered(outcome: &Outcome) -> String {
    render::text(outcome, &ToolNames::default())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Undo and redo of the last change are exact at each step. At the end, one author is undone and redone exactly.
    #[test]
    fn one_author_is_undone_exactly(blocks in blocks(), acts in prop::collection::vec(act(&[Means::Lines]), 1..10)) {
        let mut history = History::begin(blocks);
        acts.iter().for_each(|act| history.act(act));
        for author in [0, 1] {
            if history.done[author].is_empty() {
                continue;
            }
            let present = content(history.dir.path(), PATH);
            let (outcome, expected) = history.without(author);
            if expected != present {
                prop_assert!(!is_left(&outcome), "{}", rendered(&outcome));
                prop_assert_eq!(content(history.dir.path(), PATH), expected.clone());
                history.must_undo(author, UndoTarget::LastUndo);
                prop_assert_eq!(content(history.dir.path(), PATH), present);
                history.must_undo(author, UndoTarget::Last);
                prop_assert_eq!(content(history.dir.path(), PATH), expected);
                history.must_undo(author, UndoTarget::LastUndo);
            }
        }
    }

    /// With whole-file writes and other programs, each line is either undone correctly or left.
    #[test]
    fn with_other_programs_it_is_right_or_left(
        blocks in blocks(),
        acts in prop::collection::vec(edit_act(&[Means::Lines, Means::Write, Means::Outside]), 1..8),
    ) {
        let mut history = History::begin(blocks);
        // Writes of other programs count as Bob's.
        let acts = acts.into_iter().map(|act| match act {
            Act::Edit { block, at, removed, added, means: Means::Outside, .. } => {
                Act::Edit { author: 1, block, at, removed, added, means: Means::Outside }
            }
            act => act,
        });
        acts.for_each(|act| history.act(&act));
        if !history.done[0].is_empty() {
            let (outcome, expected) = history.without(0);
            let now = content(history.dir.path(), PATH);
            if !is_left(&outcome) {
                prop_assert_eq!(now, expected);
            } else {
                // Only lines of Ann may be left: the blocks of Bob are untouched.
                for block in (0..history.blocks.len()).filter(|block| block % 2 == 1) {
                    let own = text_of(&history.blocks);
                    let begin = own.find(&format!("// block {block}\n")).unwrap();
                    let end = own.find(&format!("// block {}\n", block + 1)).unwrap_or(own.len());
                    prop_assert!(now.contains(&own[begin..end]), "{}\n{}", now, rendered(&outcome));
                }
            }
        }
    }
}
