//! Compares a weave with a simple model that keeps every line by itself.

mod part;

use proptest::prelude::*;

use super::*;
use crate::text::Text;

pub(super) fn text(content: &str) -> Text {
    Text::of(content.to_owned()).unwrap()
}

/// The owner of each present line.
fn owners(weave: &Weave) -> Vec<usize> {
    weave.lines(&LinePlaces::default()).into_iter().flat_map(|owned| owned.lines.map(move |_| owned.step)).collect()
}

fn map(stored: &str) -> LineMap {
    stored.parse().unwrap()
}

#[test]
fn a_line_belongs_to_the_step_that_wrote_it() {
    let mut weave = Weave::new(4);
    weave.change(&map("4 1-1+2")).unwrap();
    weave.change(&map("5 0-0+1 4-1+0")).unwrap();
    assert_eq!(owners(&weave), [2, 0, 1, 1, 0]);
    assert_eq!(weave.lines(&LinePlaces::default())[2], OwnedLines { lines: 2..4, step: 1, base: None });
    assert_eq!(weave.change(&map("4 0-0+1")), Err(OtherText { expected: 4, found: 5 }));
}

#[test]
fn restored_lines_belong_to_their_authors() {
    let mut weave = Weave::new(2);
    weave.change(&map("2 1-1+1")).unwrap();
    let state = weave.state();
    weave.replace(3);
    assert_eq!(owners(&weave), [2, 2, 2]);
    weave.go_back_to(&state);
    assert_eq!(owners(&weave), [0, 1]);
    weave.replace(0);
    assert_eq!(owners(&weave), [0; 0]);
}

/// A hunk in numbers that are scaled to the text: lines kept above it, lines removed, lines added.
type AnyHunk = (usize, usize, usize);

fn any_step() -> impl Strategy<Value = Vec<AnyHunk>> {
    prop::collection::vec((0..4usize, 0..4usize, 0..4usize), 0..4)
}

fn fitted(hunks: &[AnyHunk], lines: usize) -> LineMap {
    let (mut stored, mut at) = (lines.to_string(), 0);
    for (nth, (above, removed, added)) in hunks.iter().enumerate() {
        let start = at + above + usize::from(nth > 0);
        if start > lines {
            break;
        }
        let removed = (*removed).min(lines - start);
        if removed + added > 0 {
            stored.push_str(&format!(" {start}-{removed}+{added}"));
            at = start + removed;
        }
    }
    map(&stored)
}

proptest! {
    #[test]
    fn runs_say_what_single_lines_say(lines in 0..12usize, steps in prop::collection::vec((any_step(), any::<bool>()), 0..12)) {
        let mut weave = Weave::new(lines);
        let mut model: Vec<usize> = vec![0; lines];
        let mut known = vec![(weave.state(), model.clone())];
        for (nth, (hunks, goes_back)) in steps.iter().enumerate() {
            if *goes_back {
                let (state, then) = known[hunks.len() % known.len()].clone();
                weave.go_back_to(&state);
                model = then;
            } else {
                let map = fitted(hunks, model.len());
                weave.change(&map).unwrap();
                for hunk in map.hunks().iter().rev() {
                    model.splice(hunk.before.clone(), std::iter::repeat_n(nth + 1, hunk.after.len()));
                }
            }
            prop_assert_eq!(owners(&weave), model.clone());
            prop_assert_eq!(weave.line_count(), model.len());
            known.push((weave.state(), model.clone()));
        }
        // Whatever the text was in between, its lines are at their places again.
        for (state, then) in known {
            let mut back = weave.clone();
            back.go_back_to(&state);
            prop_assert_eq!(back.state().ids(), state.ids());
            prop_assert_eq!(owners(&back), then.clone());
            let owned = weave.lines(&LinePlaces::from(&state));
            let in_base: usize = owned.iter().filter(|owned| owned.base.is_some()).map(|owned| owned.lines.len()).sum();
            let ids = state.ids();
            let kept = weave.state().ids().iter().filter(|id| ids.contains(id)).count();
            prop_assert_eq!(in_base, kept);
        }
    }
}

impl WeaveState {
    fn ids(&self) -> Vec<LineId> {
        let of_span = |span: &Run| {
            let Run { id, len, .. } = *span;
            (0..len).map(move |nth| LineId { line: id.line + nth, ..id })
        };
        self.alive().flat_map(of_span).collect()
    }
}
