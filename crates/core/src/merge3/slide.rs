//! Decides where a group of changed lines is placed if it could as well be a few lines further up or down.
//!
//! A group slides up and down as far as equal lines let it, and unites with groups that it meets. It ends at the lowest
//! position, or at one beside changed lines of the other text, if there is one. Both texts have the same unchanged
//! lines, so the groups between those, which may be empty, correspond to each other.

use super::{Effort, NotMerged, Token};

const IN_STEP: &str = "both texts have the same unchanged lines";

/// A text with marks on the lines that differ from the other one.
struct MarkedText<'a> {
    tokens: &'a [Token],
    marks: &'a mut [bool],
}

/// The changed lines between two unchanged ones; may be empty.
#[derive(Debug, Clone, Copy)]
struct Group {
    start: usize,
    end: usize,
}

impl Group {
    fn first(marks: &[bool]) -> Self {
        Self { start: 0, end: run_end(marks, 0) }
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn next(self, marks: &[bool]) -> Option<Self> {
        let start = self.end + 1;
        (self.end < marks.len()).then(|| Self { start, end: run_end(marks, start) })
    }

    fn previous(self, marks: &[bool]) -> Option<Self> {
        let end = self.start.checked_sub(1)?;
        Some(Self { start: run_start(marks, end), end })
    }
}

/// The end of the run of marked lines that starts at `from`.
pub(super) fn run_end(marks: &[bool], from: usize) -> usize {
    from + marks[from..].iter().take_while(|is_marked| **is_marked).count()
}

fn run_start(marks: &[bool], from: usize) -> usize {
    from - marks[..from].iter().rev().take_while(|is_marked| **is_marked).count()
}

impl MarkedText<'_> {
    fn slide_up(&mut self, group: &mut Group) -> bool {
        let is_possible = group.start > 0 && self.tokens[group.start - 1] == self.tokens[group.end - 1];
        if is_possible {
            self.marks[group.start - 1] = true;
            self.marks[group.end - 1] = false;
            *group = Group { start: run_start(self.marks, group.start - 1), end: group.end - 1 };
        }
        is_possible
    }

    fn slide_down(&mut self, group: &mut Group) -> bool {
        let is_possible = group.end < self.tokens.len() && self.tokens[group.start] == self.tokens[group.end];
        if is_possible {
            self.marks[group.start] = false;
            self.marks[group.end] = true;
            *group = Group { start: group.start + 1, end: run_end(self.marks, group.end + 1) };
        }
        is_possible
    }
}

/// Moves the groups of changed lines of one text. `other` has the marks of the other text.
pub(super) fn settle(tokens: &[Token], marks: &mut [bool], other: &[bool], effort: &mut Effort) -> Result<(), NotMerged> {
    let mut text = MarkedText { tokens, marks };
    let (mut group, mut opposite) = (Group::first(text.marks), Group::first(other));
    loop {
        if !group.is_empty() {
            let (highest, beside) = reach(&mut text, &mut group, &mut opposite, other, effort)?;
            if group.end != highest && beside {
                while opposite.is_empty() {
                    effort.spend(1)?;
                    let slid = text.slide_up(&mut group);
                    debug_assert!(slid, "it has been further up");
                    opposite = opposite.previous(other).expect(IN_STEP);
                }
            }
        }
        let Some(next) = group.next(text.marks) else { return Ok(()) };
        group = next;
        opposite = opposite.next(other).expect(IN_STEP);
    }
}

/// Slides a group up and then down as far as it goes, until it meets no other group. Returns the end of its highest
/// position, and whether any of its positions was beside changed lines of the other text.
fn reach(
    text: &mut MarkedText<'_>,
    group: &mut Group,
    opposite: &mut Group,
    other: &[bool],
    effort: &mut Effort,
) -> Result<(usize, bool), NotMerged> {
    loop {
        let size = group.end - group.start;
        while text.slide_up(group) {
            effort.spend(1)?;
            *opposite = opposite.previous(other).expect(IN_STEP);
        }
        let highest = group.end;
        let mut beside = !opposite.is_empty();
        while text.slide_down(group) {
            effort.spend(1)?;
            *opposite = opposite.next(other).expect(IN_STEP);
            beside |= !opposite.is_empty();
        }
        if size == group.end - group.start {
            return Ok((highest, beside));
        }
    }
}
