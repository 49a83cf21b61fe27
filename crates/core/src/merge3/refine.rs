//! Narrows conflicts down to the lines that differ between the two versions, and unites those that are close together.

use std::ops::Range;

use super::{Comparison, Conflict, NotMerged, Origin, Region, Token};
use crate::line_map::{Hunk, moved, shift_after};

/// A part of the merged text that differs from the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MergePart {
    pub origin: Origin,
    pub mine: Range<usize>,
    pub theirs: Range<usize>,
    /// The part of the base that its region covers.
    base: Range<usize>,
}

/// Conflicts with this many lines or fewer between them become one.
const FEW: usize = 3;

/// The parts of a merge. Regions in which both versions are the same are left out.
pub(super) fn parts(
    regions: Vec<Region>,
    my_lines: &[&[u8]],
    [mine, theirs]: [&[Token]; 2],
    comparison: &mut Comparison<'_>,
) -> Result<Vec<MergePart>, NotMerged> {
    // `None` is a region in which both versions have the same lines. Like any region, it keeps conflicts above and
    // below it apart.
    let mut parts: Vec<Option<MergePart>> = Vec::new();
    for region in regions {
        if region.origin != Origin::Both || region.mine.is_empty() || region.theirs.is_empty() {
            parts.push(Some(MergePart::of(region)));
            continue;
        }
        let hunks = comparison.hunks(&mine[region.mine.clone()], &theirs[region.theirs.clone()])?;
        if hunks.is_empty() {
            parts.push(None);
        }
        let narrowed = hunks.into_iter().map(|hunk| MergePart {
            origin: Origin::Both,
            mine: region.mine.start + hunk.before.start..region.mine.start + hunk.before.end,
            theirs: region.theirs.start + hunk.after.start..region.theirs.start + hunk.after.end,
            base: region.base.clone(),
        });
        parts.extend(narrowed.map(Some));
    }
    Ok(unite(parts, my_lines))
}

/// Unites conflicts that have only a few lines between them, or only lines without a letter or a digit.
fn unite(refined: Vec<Option<MergePart>>, my_lines: &[&[u8]]) -> Vec<MergePart> {
    let has_word = |line: &&[u8]| line.iter().any(u8::is_ascii_alphanumeric);
    let is_close = |between: Range<usize>| between.len() <= FEW || !my_lines[between].iter().any(has_word);
    let mut parts: Vec<MergePart> = Vec::new();
    let mut follows_conflict = false;
    for part in refined {
        let Some(part) = part else {
            follows_conflict = false;
            continue;
        };
        let is_conflict = part.origin == Origin::Both;
        match parts.last_mut() {
            Some(last) if is_conflict && follows_conflict && is_close(last.mine.end..part.mine.start) => {
                last.mine.end = part.mine.end;
                last.theirs.end = part.theirs.end;
                last.base.end = part.base.end;
            }
            _ => parts.push(part),
        }
        follows_conflict = is_conflict;
    }
    parts
}

impl MergePart {
    pub(super) fn of(region: Region) -> Self {
        Self { origin: region.origin, mine: region.mine, theirs: region.theirs, base: region.base }
    }

    pub(super) fn conflict(&self, my_hunks: &[Hunk], their_hunks: &[Hunk]) -> Conflict {
        let is_inside = |hunk: &&Hunk| self.base.start <= hunk.before.start && hunk.before.end <= self.base.end;
        let hull = |runs: &mut dyn Iterator<Item = Range<usize>>| {
            runs.reduce(|hull, run| hull.start..run.end).unwrap_or(self.mine.clone())
        };
        let in_mine = |hunk: &Hunk| {
            let start = place_in(my_hunks, hunk.before.start).start;
            start..place_in(my_hunks, hunk.before.end).end.max(start)
        };
        Conflict {
            mine: self.mine.clone(),
            theirs: self.theirs.clone(),
            my_change: hull(&mut my_hunks.iter().filter(is_inside).map(|hunk| hunk.after.clone())),
            their_change: hull(&mut their_hunks.iter().filter(is_inside).map(in_mine)),
        }
    }
}

/// The place of a base line in the version with these hunks: the line itself, or everything that replaced it.
fn place_in(hunks: &[Hunk], line: usize) -> Range<usize> {
    let above = hunks.partition_point(|hunk| hunk.before.end <= line);
    match hunks.get(above) {
        Some(hunk) if hunk.before.start < line => hunk.after.clone(),
        _ => {
            let place = moved(line, shift_after(&hunks[..above]));
            place..place
        }
    }
}
