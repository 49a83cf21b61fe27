//! Combines the changes of both sides into regions that belong to one side, or to both and so conflict.

use std::ops::Range;

use crate::line_map::{Hunk, shift_after};

/// The side that changed a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Mine,
    Theirs,
    Both,
}

/// A part of the base that at least one side changed, and its place in each version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub origin: Origin,
    pub base: Range<usize>,
    pub mine: Range<usize>,
    pub theirs: Range<usize>,
}

/// A region in signed numbers. The region of a hunk that overlaps the one above may start before the beginning of the
/// file, until the two are united.
struct Draft {
    origin: Origin,
    base: Range<i64>,
    mine: Range<i64>,
    theirs: Range<i64>,
}

/// The regions of two lists of hunks, from top to bottom.
///
/// Hunks that overlap or touch become one region of both sides. Hunks that are the same change according to `is_same`
/// become no region.
pub(super) fn regions(mine: &[Hunk], theirs: &[Hunk], is_same: impl Fn(&Hunk, &Hunk) -> bool) -> Vec<Region> {
    let mut drafts = Vec::new();
    let (mut next_mine, mut next_theirs) = (0, 0);
    while let (Some(my), Some(their)) = (mine.get(next_mine), theirs.get(next_theirs)) {
        if my.before.end < their.before.start {
            append(&mut drafts, Draft::of_mine(my, before_shift(their)));
            next_mine += 1;
        } else if their.before.end < my.before.start {
            append(&mut drafts, Draft::of_theirs(their, before_shift(my)));
            next_theirs += 1;
        } else {
            if !is_same(my, their) {
                append(&mut drafts, Draft::of_both(my, their));
            }
            let (my_end, their_end) = (my.before.end, their.before.end);
            next_theirs += usize::from(my_end >= their_end);
            next_mine += usize::from(their_end >= my_end);
        }
    }
    let (my_shift, their_shift) = (shift_after(mine), shift_after(theirs));
    mine[next_mine..].iter().for_each(|hunk| append(&mut drafts, Draft::of_mine(hunk, their_shift)));
    theirs[next_theirs..].iter().for_each(|hunk| append(&mut drafts, Draft::of_theirs(hunk, my_shift)));
    drafts.into_iter().map(Draft::finish).collect()
}

/// The distance by which the lines above a hunk have moved.
fn before_shift(hunk: &Hunk) -> i64 {
    hunk.after.start as i64 - hunk.before.start as i64
}

fn signed(range: &Range<usize>) -> Range<i64> {
    range.start as i64..range.end as i64
}

fn moved(range: &Range<i64>, by: i64) -> Range<i64> {
    range.start + by..range.end + by
}

impl Draft {
    fn of_mine(hunk: &Hunk, their_shift: i64) -> Self {
        let base = signed(&hunk.before);
        Self { origin: Origin::Mine, mine: signed(&hunk.after), theirs: moved(&base, their_shift), base }
    }

    fn of_theirs(hunk: &Hunk, my_shift: i64) -> Self {
        let base = signed(&hunk.before);
        Self { origin: Origin::Theirs, mine: moved(&base, my_shift), theirs: signed(&hunk.after), base }
    }

    /// The hull of both hunks.
    fn of_both(my: &Hunk, their: &Hunk) -> Self {
        let base = my.before.start.min(their.before.start) as i64..my.before.end.max(their.before.end) as i64;
        let side = |hunk: &Hunk| {
            let (before, after) = (signed(&hunk.before), signed(&hunk.after));
            after.start - (before.start - base.start)..after.end + (base.end - before.end)
        };
        Self { origin: Origin::Both, mine: side(my), theirs: side(their), base: base.clone() }
    }

    fn finish(self) -> Region {
        let unsigned = |range: Range<i64>| range.start.max(0) as usize..range.end.max(0) as usize;
        Region { origin: self.origin, base: unsigned(self.base), mine: unsigned(self.mine), theirs: unsigned(self.theirs) }
    }
}

/// Appends a region, or unites it with the last one if they overlap or touch in a version.
fn append(drafts: &mut Vec<Draft>, next: Draft) {
    match drafts.last_mut() {
        Some(last) if next.mine.start <= last.mine.end || next.theirs.start <= last.theirs.end => {
            if next.origin != last.origin {
                last.origin = Origin::Both;
            }
            last.base.end = next.base.end;
            last.mine.end = next.mine.end;
            last.theirs.end = next.theirs.end;
        }
        _ => drafts.push(next),
    }
}
