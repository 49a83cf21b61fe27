//! Tests of the part that some steps of a history contribute.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{AnyHunk, any_step, fitted, text};
use crate::{
    attribution::{LeftCause, LinePlaces, PartialText, Weave, WeaveState},
    line_map::LineMap,
    lines::LineNo,
    text::Text,
};

/// A history whose lines are distinguished by their texts.
struct Story {
    weave: Weave,
    texts: Vec<Text>,
    states: Vec<WeaveState>,
}

impl Story {
    fn of(texts: &[&str]) -> Self {
        let mut story = Self::begin(text(texts[0]));
        for next in &texts[1..] {
            let next = text(next);
            let map = LineMap::between(story.present(), &next);
            story.step(next, &map);
        }
        story
    }

    fn begin(oldest: Text) -> Self {
        let weave = Weave::new(oldest.line_count());
        Self { states: vec![weave.state()], weave, texts: vec![oldest] }
    }

    fn step(&mut self, next: Text, map: &LineMap) {
        self.weave.change(map).unwrap();
        self.states.push(self.weave.state());
        self.texts.push(next);
    }

    fn present(&self) -> &Text {
        self.texts.last().unwrap()
    }

    /// The steps applied to a text of the history.
    fn part(&self, base: usize, chosen: &[usize]) -> PartialText {
        let places = LinePlaces::from(&self.states[base]);
        self.weave.part((&self.texts[base], &places), self.present(), |step| chosen.contains(&step))
    }

    /// The steps applied to a text that is not part of the history.
    fn part_on(&self, base: &Text, chosen: &[usize]) -> PartialText {
        let places = self
            .weave
            .place(base, self.present(), |step, line| Some(self.texts[step].full_line(LineNo::at_index(line)).to_owned()));
        self.weave.part((base, &places), self.present(), |step| chosen.contains(&step))
    }
}

#[track_caller]
fn check(texts: &[&str], chosen: &[usize], expected: &str) {
    let part = Story::of(texts).part(0, chosen);
    assert_eq!((part.content.as_str(), part.left.as_slice()), (expected, &[][..]));
}

#[test]
fn adjacent_lines_of_different_steps_are_separate() {
    check(&["a\nz\n", "a\nx\nz\n", "a\nx\ny\nz\n"], &[1], "a\nx\nz\n");
    check(&["a\nz\n", "a\nx\nz\n", "a\nx\ny\nz\n"], &[2], "a\ny\nz\n");
    check(&["a\nb\nc\n", "A\nb\nc\n", "A\nb\n"], &[1], "A\nb\nc\n");
    check(&["a\nb\nc\n", "A\nb\nc\n", "A\nb\n"], &[2], "a\nb\n");
}

#[test]
fn lines_of_others_between_chosen_lines_are_left_out() {
    check(&["a\n", "a\nx\ny\n", "a\nx\nof another\ny\n"], &[1], "a\nx\ny\n");
}

#[test]
fn lines_that_others_removed_are_not_taken() {
    check(&["a\n", "a\nx\nsecret\ny\n", "a\nx\ny\n"], &[1], "a\nx\ny\n");
    check(&["a\n", "a\nx\nsecret\ny\n", "a\nx\ny\n"], &[2], "a\n");
}

#[test]
fn changed_and_changed_back_is_no_change() {
    check(&["a\nb\n", "a\nX\n", "a\nb\n"], &[1], "a\nb\n");
    check(&["a\nb\n", "a\nX\n", "a\nb\n"], &[2], "a\nb\n");
}

#[test]
fn restored_lines_and_removals_belong_to_their_authors() {
    let mut story = Story::of(&["a\nb\nc\n", "a\nB\nc\n", "a\nB\nC\n"]);
    // As with `git stash; git stash pop`, for all of the changes and for a part.
    for state in [0, 2, 1, 2] {
        story.weave.go_back_to(&story.states[state].clone());
        story.texts.push(story.texts[state].clone());
    }
    assert_eq!(story.part(0, &[1]), PartialText { content: "a\nB\nc\n".to_owned(), left: Vec::new() });
    assert_eq!(story.part(0, &[2]), PartialText { content: "a\nb\nC\n".to_owned(), left: Vec::new() });
}

#[test]
fn a_line_gets_an_ending_when_others_come_below_it() {
    check(&["a", "a\nx\n", "a\nx\ny\n"], &[2], "a\ny\n");
    check(&["a\r\nb", "a\r\nx\r\nb"], &[1], "a\r\nx\r\nb");
}

#[track_caller]
fn check_left(texts: &[&str], chosen: usize, expected: &str, why: LeftCause, others: &[usize]) {
    let part = Story::of(texts).part(0, &[chosen]);
    assert_eq!(part.content, expected);
    let [left] = &part.left[..] else { panic!("{:?}", part.left) };
    assert_eq!((left.why, left.others.as_slice()), (why, others));
}

#[test]
fn lines_that_others_have_replaced_are_left() {
    let texts = ["a\nb\nc\n", "a\nx\ny\nc\n", "a\nx\nY\nc\n"];
    check_left(&texts, 1, "a\nb\nc\n", LeftCause::ReplacedByOthers, &[2]);
    check_left(&texts, 2, "a\nb\nc\n", LeftCause::ReplacesOthers, &[1]);
    let story = Story::of(&texts);
    assert_eq!(story.part(0, &[1, 2]).content, "a\nx\nY\nc\n");
    let left = &story.part(0, &[1]).left[0];
    assert_eq!((left.lines.clone(), left.removed.clone()), (1..2, 1..2));
}

#[test]
fn lines_among_those_of_another_have_no_place_without_them() {
    check_left(&["a\n", "a\nx\ny\n", "a\nx\nz\ny\n"], 2, "a\n", LeftCause::AmongOthers, &[1]);
    // Once these lines are in the text, the others have a place.
    let story = Story::of(&["a\n", "a\nx\ny\n", "a\nx\nz\ny\n"]);
    assert_eq!(story.part_on(&text("a\nx\ny\n"), &[2]), PartialText { content: "a\nx\nz\ny\n".to_owned(), left: Vec::new() });
}

#[test]
fn uncommitted_lines_of_a_person_are_others() {
    // The history begins with a line that the other text does not have.
    let story = Story::of(&["a\nmine\nz\n", "a\nmine\nx\nz\n"]);
    assert_eq!(story.part_on(&text("a\nz\n"), &[1]).content, "a\nx\nz\n");
    let story = Story::of(&["a\nmine\nz\n", "a\ntheirs\nz\n"]);
    let part = story.part_on(&text("a\nz\n"), &[1]);
    assert_eq!((part.content.as_str(), part.left[0].why), ("a\nz\n", LeftCause::ReplacesOthers));
}

#[test]
fn equal_lines_belong_to_steps_with_other_lines_in_the_text() {
    let texts = ["a\n}\nz\n", "a\n}\nfn s\n}\nz\n", "a\n}\nfn s\n}\nfn t\n}\nz\n"];
    let story = Story::of(&texts);
    for (first, next) in [(1, 2), (2, 1)] {
        let committed = story.part(0, &[first]);
        let both = story.part_on(&text(&committed.content), &[next]);
        assert_eq!((both.content.as_str(), both.left.as_slice()), (texts[2], &[][..]), "{next} after {first}");
    }
}

#[test]
fn an_unknown_line_of_the_other_text_stays() {
    let story = Story::of(&["a\nb\nc\n", "a\nB\nc\n"]);
    assert_eq!(story.part_on(&text("a\nb\nc\npulled\n"), &[1]).content, "a\nB\nc\npulled\n");
    assert_eq!(story.part_on(&text("a\npulled\nb\nc\n"), &[1]).content, "a\npulled\nB\nc\n");
}

/// Every added line has a unique text.
fn story(lines: usize, steps: &[Vec<AnyHunk>]) -> Story {
    let text_of = |lines: &[String]| text(&lines.concat());
    let mut present: Vec<String> = (0..lines).map(|line| format!("0.{line}\n")).collect();
    let mut story = Story::begin(text_of(&present));
    for (nth, hunks) in steps.iter().enumerate() {
        let map = fitted(hunks, present.len());
        for hunk in map.hunks().iter().rev() {
            let added = hunk.after.clone().map(|line| format!("{}.{line}\n", nth + 1));
            present.splice(hunk.before.clone(), added.collect::<Vec<_>>());
        }
        story.step(text_of(&present), &map);
    }
    story
}

fn lines_of(content: &str) -> BTreeSet<&str> {
    content.lines().collect()
}

proptest! {
    #[test]
    fn a_part_has_the_lines_of_its_steps_and_of_the_base(
        lines in 0..10usize, steps in prop::collection::vec(any_step(), 0..8), base in 0..8usize, chosen in prop::collection::vec(any::<bool>(), 8),
    ) {
        let story = story(lines, &steps);
        let base = base % story.texts.len();
        let chosen: Vec<usize> = (1..=steps.len()).filter(|step| chosen[step - 1]).collect();
        let others: Vec<usize> = (1..=steps.len()).filter(|step| !chosen.contains(step)).collect();
        let all: Vec<usize> = (1..=steps.len()).collect();

        // All steps make the present text, and no steps make the base.
        prop_assert_eq!(story.part(0, &all), PartialText { content: story.present().as_str().to_owned(), left: Vec::new() });
        prop_assert_eq!(story.part(base, &[]), PartialText { content: story.texts[base].as_str().to_owned(), left: Vec::new() });

        let part = story.part(base, &chosen);
        let (base_lines, present_lines) = (lines_of(story.texts[base].as_str()), lines_of(story.present().as_str()));
        let is_chosen = |line: &str| chosen.contains(&line.split('.').next().unwrap().parse().unwrap());
        for line in part.content.lines() {
            prop_assert!(base_lines.contains(line) || present_lines.contains(line) && is_chosen(line), "{line}");
        }
        // The lines of the chosen steps are in it, or reported as left.
        let left: BTreeSet<&str> = part.left.iter().flat_map(|left| left.lines.clone()).map(|line| story.present().as_str().lines().nth(line).unwrap()).collect();
        for line in present_lines.iter().filter(|line| is_chosen(line)) {
            prop_assert!(part.content.lines().any(|there| there == *line) || left.contains(line), "{line} is lost");
        }
        prop_assert!(left.iter().all(|line| is_chosen(line)));
        // If nothing is left, the remaining steps, applied to the result, make the present text.
        let committed = text(&part.content);
        if part.left.is_empty() && base == 0 {
            let rest = story.part_on(&committed, &others);
            if rest.left.is_empty() {
                prop_assert_eq!(rest.content.as_str(), story.present().as_str());
            }
        }
        // Applying the same steps again changes nothing.
        prop_assert_eq!(story.part_on(&committed, &chosen).content, part.content);
    }
}
