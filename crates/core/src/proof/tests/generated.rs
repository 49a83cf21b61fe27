//! Proofs over generated changes. Every line has an identity, so the test knows which line became which, and checks
//! that everything proven is true.

use std::ops::Range;

use proptest::{prelude::*, strategy::ValueTree};

use super::*;
use crate::{
    Anchor, Limits, OnChange, Policy, Present, Refusal, RelPath, Target, View,
    edit::{lines::LineEdit, replace::Replace},
    gate::Tracking,
    plan::{self, Planned},
};

/// A line keeps its identity when it is moved. A copy gets a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    id: usize,
    text: &'static str,
}

/// A file of lines with identities.
#[derive(Debug, Clone)]
struct Page {
    lines: Vec<Line>,
    next_id: usize,
}

/// A change by another writer, in numbers that are scaled to its length.
#[derive(Debug, Clone)]
enum OutsideAct {
    Insert {
        at: usize,
        lines: Vec<&'static str>,
    },
    Remove {
        at: usize,
        count: usize,
    },
    Replace {
        at: usize,
        count: usize,
        lines: Vec<&'static str>,
    },
    Copy {
        at: usize,
        count: usize,
        to: usize,
    },
    Move {
        at: usize,
        count: usize,
        to: usize,
    },
    /// Removes the first or the second of two equal blocks.
    RemoveTwin {
        at: usize,
        count: usize,
        second: bool,
    },
}

impl Page {
    fn of(lines: Vec<&'static str>) -> Self {
        let mut page = Self { lines: Vec::new(), next_id: 0 };
        page.lines = page.fresh(&lines);
        page
    }

    fn fresh(&mut self, lines: &[&'static str]) -> Vec<Line> {
        let first = self.next_id;
        self.next_id += lines.len();
        lines.iter().enumerate().map(|(index, text)| Line { id: first + index, text }).collect()
    }

    fn range(&self, at: usize, count: usize) -> Range<usize> {
        let at = at % (self.lines.len() + 1);
        at..(at + count).min(self.lines.len())
    }

    fn after(&self, act: &OutsideAct) -> Self {
        let mut page = self.clone();
        match act {
            OutsideAct::Insert { at, lines } => page.replace(self.range(*at, 0), lines),
            OutsideAct::Remove { at, count } => page.replace(self.range(*at, *count), &[]),
            OutsideAct::Replace { at, count, lines } => page.replace(self.range(*at, *count), lines),
            OutsideAct::Copy { at, count, to } => {
                let copied: Vec<&'static str> = self.lines[self.range(*at, *count)].iter().map(|line| line.text).collect();
                page.replace(self.range(*to, 0), &copied);
            }
            OutsideAct::Move { at, count, to } => {
                let moved: Vec<Line> = page.lines.drain(self.range(*at, *count)).collect();
                let to = page.range(*to, 0);
                page.lines.splice(to, moved);
                if page.text() == self.text() {
                    // Swapping equal lines changes nothing.
                    return self.clone();
                }
            }
            OutsideAct::RemoveTwin { at, count, second } => {
                let first = self.range(*at, *count);
                let is_twin = |start: &usize| {
                    let twin = self.lines.get(*start..start + first.len()).unwrap_or_default();
                    !twin.is_empty()
                        && twin.iter().map(|line| line.text).eq(self.lines[first.clone()].iter().map(|line| line.text))
                };
                if let Some(twin) = (first.end..self.lines.len()).find(is_twin) {
                    page.replace(if *second { twin..twin + first.len() } else { first }, &[]);
                }
            }
        }
        page
    }

    /// Replaces lines by new ones. Equal lines at the edges keep their identity. Between them, no line is removed for
    /// which an equal one is inserted: contents cannot distinguish these two, and an edit of either is the same edit.
    fn replace(&mut self, range: Range<usize>, lines: &[&'static str]) {
        let old = &self.lines[range.clone()];
        let head = old.iter().zip(lines).take_while(|(old, new)| old.text == **new).count();
        let tail = old[head..].iter().rev().zip(lines[head..].iter().rev()).take_while(|(old, new)| old.text == **new).count();
        let gone = &old[head..old.len() - tail];
        let comes = |new: &&&'static str| gone.iter().all(|old| old.text != **new);
        let new: Vec<&'static str> = lines[head..lines.len() - tail].iter().filter(comes).copied().collect();
        let new = self.fresh(&new);
        self.lines.splice(range.start + head..range.end - tail, new);
    }

    fn text(&self) -> Text {
        Text::of(self.lines.iter().map(|line| format!("{}\n", line.text)).collect()).unwrap()
    }

    fn place(&self, id: usize) -> Option<usize> {
        self.lines.iter().position(|line| line.id == id)
    }
}

/// Generates code-like lines: blocks of a few kinds that share many lines, and some unique lines.
fn blocks() -> impl Strategy<Value = Vec<&'static str>> {
    const BLOCKS: [&[&str]; 9] = [
        &["fn a() {", "    one();", "}", ""],
        &["fn b() {", "    one();", "    two();", "}", ""],
        &["    if x {", "        return;", "    }"],
        &["    }", "}", ""],
        &[""],
        &["}"],
        &["#[test]", "fn t() {", "    one();", "}", ""],
        &["use p;"],
        &["// unique 1"],
    ];
    const UNIQUE: [&str; 8] = ["u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"];
    let block = prop_oneof![
        6 => (0..BLOCKS.len()).prop_map(|block| BLOCKS[block].to_vec()),
        2 => (0..UNIQUE.len()).prop_map(|line| vec![UNIQUE[line]]),
    ];
    prop::collection::vec(block, 0..5).prop_map(|blocks| blocks.concat())
}

fn page() -> impl Strategy<Value = Page> {
    (blocks(), blocks(), prop::bool::ANY).prop_map(|(one, other, twice)| {
        let mut lines = [one.clone(), other].concat();
        if twice {
            lines.extend(one);
        }
        lines.push("end");
        Page::of(lines)
    })
}

fn act() -> impl Strategy<Value = OutsideAct> {
    let (at, count, to) = (0usize..30, 1usize..7, 0usize..30);
    prop_oneof![
        (at.clone(), blocks()).prop_map(|(at, lines)| OutsideAct::Insert { at, lines }),
        (at.clone(), count.clone()).prop_map(|(at, count)| OutsideAct::Remove { at, count }),
        (at.clone(), count.clone(), blocks()).prop_map(|(at, count, lines)| OutsideAct::Replace { at, count, lines }),
        (at.clone(), count.clone(), to.clone()).prop_map(|(at, count, to)| OutsideAct::Copy { at, count, to }),
        (at.clone(), count.clone(), to).prop_map(|(at, count, to)| OutsideAct::Move { at, count, to }),
        (at, count, prop::bool::ANY).prop_map(|(at, count, second)| OutsideAct::RemoveTwin { at, count, second }),
    ]
}

/// The edit of a session that saw `seen`, applied to `now`; `None` if it is refused.
fn rebased(seen: &Page, now: &Page, edit: impl FnOnce(&Target<'_>) -> Result<Planned, Refusal>) -> Option<String> {
    let (seen, present) = (seen.text(), Present::Text(now.text()));
    let (path, limits, view) = (RelPath::new("f").unwrap(), Limits::default(), View::whole(&seen));
    let policy = Policy { on_change: OnChange::Rebase, ..Policy::default() };
    let tracking = Tracking::Seen { view: &view, text: Some(&seen), provenance: None };
    let planned = edit(&Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits }).ok()?;
    Some(planned.text().unwrap().as_str().to_owned())
}

/// The expected text after replacing these lines of `seen`; `None` if they are no longer there, or no longer adjacent.
fn expected(seen: &Page, now: &Page, lines: &Range<usize>) -> Option<String> {
    let places: Vec<usize> = seen.lines[lines.clone()].iter().map(|line| now.place(line.id)).collect::<Option<_>>()?;
    let is_together = places.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let (first, last) = (*places.first()?, *places.last()?);
    let all = |lines: &[Line]| lines.iter().map(|line| format!("{}\n", line.text)).collect::<String>();
    is_together.then(|| all(&now.lines[..first]) + "MINE\n" + &all(&now.lines[last + 1..]))
}

fn by_anchors(seen: &Page, now: &Page, lines: &Range<usize>) -> Option<String> {
    let anchor = |index: usize| Anchor::of(LineNo::at_index(index), seen.lines[index].text);
    let edit = LineEdit::Replace { at: anchor(lines.start), to: anchor(lines.end - 1), text: "MINE".into() };
    rebased(seen, now, |target| plan::edit_lines(target, &[edit]))
}

fn by_quote(seen: &Page, now: &Page, lines: &Range<usize>) -> Option<String> {
    let old: String = seen.lines[lines.clone()].iter().map(|line| format!("{}\n", line.text)).collect();
    rebased(seen, now, |target| plan::edit_file(target, &Replace { old: &old, new: "MINE\n", all: false }))
}

/// The lines that count as proven although the map takes them for other lines.
fn wrongly_proven(seen: &Page, now: &Page, map: &LineMap, proven: &LineSet) -> Vec<LineNo> {
    let is_wrong = |line: &LineNo| {
        let place = map.new_place(*line).expect("a proven line is kept");
        now.lines[place.index()].id != seen.lines[line.index()].id
    };
    proven.iter().filter(is_wrong).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    /// After one outside change, no line is mistaken for another.
    #[test]
    fn one_act_never_makes_a_proof_wrong(seen in page(), act in act()) {
        let now = seen.after(&act);
        let (before, after) = (seen.text(), now.text());
        let proof = Proof::between(None, &before, &after);
        let proven = proof.proven_of(&LineSet::whole(before.line_count()));
        prop_assert_eq!(wrongly_proven(&seen, &now, proof.map(), &proven), []);
    }

    /// After one outside change, an edit lands where it belongs or is refused.
    #[test]
    fn one_act_never_leads_an_edit_astray(seen in page(), act in act(), at in 0usize..40, count in 1usize..4) {
        let now = seen.after(&act);
        let lines = seen.range(at.min(seen.lines.len() - 1), count);
        for done in [by_anchors(&seen, &now, &lines), by_quote(&seen, &now, &lines)].into_iter().flatten() {
            prop_assert_eq!(Some(done), expected(&seen, &now, &lines));
        }
    }
}

/// How many lines could carry an edit, and how many of them are mistaken for others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    placed: usize,
    wrong: usize,
}

impl Count {
    fn add(&mut self, seen: &Page, now: &Page, map: &LineMap, proven: &LineSet) {
        let is_placed = |line: &LineNo| {
            let window = line.index().saturating_sub(1)..(line.index() + 2).min(seen.lines.len());
            map.kept().any(|(run, _)| run.start <= window.start && window.end <= run.end)
        };
        let placed: LineSet = proven.iter().filter(is_placed).collect();
        self.placed += placed.count() as usize;
        self.wrong += wrongly_proven(seen, now, map, &placed).len();
    }

    fn per_mille(self) -> f64 {
        self.wrong as f64 * 1000.0 / self.placed as f64
    }
}

/// Several changes can hide each other: one removes a line, another inserts an equal one in its place. No proof from
/// contents can detect that. Elimination places more edits, and its error rate must stay close to the rate with unique
/// lines alone. Most of these errors are lines that were removed while an equal one was inserted in the same place.
#[test]
fn several_acts_make_elimination_no_less_sure_than_unique_lines() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let story = (page(), prop::collection::vec(act(), 2..4));
    let (mut unique, mut all) = (Count::default(), Count::default());
    for _ in 0..20_000 {
        let (seen, acts) = story.new_tree(&mut runner).unwrap().current();
        let now = acts.iter().fold(seen.clone(), |page, act| page.after(act));
        let (before, after) = (seen.text(), now.text());
        let proof = Proof::between(None, &before, &after);
        unique.add(&seen, &now, proof.map(), &proven_lines(&proven_by_unique_lines(proof.map(), &before, &after)));
        all.add(&seen, &now, proof.map(), &proof.proven_of(&LineSet::whole(before.line_count())));
    }
    assert!(all.placed * 100 > unique.placed * 105, "elimination places more: {unique:?} {all:?}");
    assert!(all.per_mille() < unique.per_mille() * 1.15, "{unique:?} {all:?}");
    assert!(all.per_mille() < 6.5, "{all:?}");
}
