//! Finds the lines that differ between two texts, with the same choices as git's default algorithm.
//!
//! A merge is made of differences, so a merge that equals git's needs git's differences, not shorter ones. The
//! algorithm is that of Myers in linear space with the shortcuts of GNU diff: frequent lines among lines without a
//! match are left out, and a search that becomes expensive settles for a good place to divide. Every comparison, order
//! and limit here can decide which of several equal lines counts as kept. A property test against `git merge-file`
//! checks them.

use std::ops::Range;

use super::{Effort, NotMerged, Token};

/// For each line of two texts, whether it was removed or added.
#[derive(Debug)]
pub(super) struct ChangedLines {
    pub old: Vec<bool>,
    pub new: Vec<bool>,
}

/// A line with this many equal lines in the other text is frequent, even in a very large text.
const ALWAYS_FREQUENT: usize = 1024;

/// The number of neighbours that are examined on each side of a frequent line.
const NEIGHBOURS: usize = 100;

/// The least number of rounds after which a search gives up. A large text gets more rounds.
const FEWEST_ROUNDS: i64 = 256;

/// The number of rounds after which a search may also end at a place that looks good.
const ROUNDS_BEFORE_SHORTCUTS: i64 = 256;

/// The number of equal lines in a row that make a good place.
const LONG_RUN: i64 = 20;

/// A good place is farther from the start than this many times the number of rounds.
const FAR: i64 = 4;

/// Marks the lines that differ. `counts` has a zero for each token, and has zeros again afterwards.
pub(super) fn mark(old: &[Token], new: &[Token], counts: &mut [u32], effort: &mut Effort) -> Result<ChangedLines, NotMerged> {
    effort.spend(old.len() + new.len())?;
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, new_middle) = (head..old.len() - tail, head..new.len() - tail);

    let mut marks = ChangedLines { old: vec![false; old.len()], new: vec![false; new.len()] };
    if old_middle.is_empty() || new_middle.is_empty() {
        marks.old[old_middle].fill(true);
        marks.new[new_middle].fill(true);
        return Ok(marks);
    }
    let old_matches = matches(old, old_middle.clone(), new, counts);
    let new_matches = matches(new, new_middle.clone(), old, counts);
    let old_sifted = SearchedLines::of(old, old_middle, &old_matches, &mut marks.old, effort)?;
    let new_sifted = SearchedLines::of(new, new_middle, &new_matches, &mut marks.new, effort)?;
    Search::new(&old_sifted, &new_sifted, effort).run(&mut marks)?;
    Ok(marks)
}

/// How often the other text has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matches {
    None,
    Some,
    Frequent,
}

/// Counts how often the lines of a part of `text` are in the whole of `other`.
fn matches(text: &[Token], part: Range<usize>, other: &[Token], counts: &mut [u32]) -> Vec<Matches> {
    let frequent = rough_root(text.len()).min(ALWAYS_FREQUENT);
    other.iter().for_each(|token| counts[*token as usize] += 1);
    let kind = |token: &Token| match counts[*token as usize] as usize {
        0 => Matches::None,
        count if count >= frequent => Matches::Frequent,
        _ => Matches::Some,
    };
    let matches = text[part].iter().map(kind).collect();
    other.iter().for_each(|token| counts[*token as usize] = 0);
    matches
}

/// A power of two between the square root and about twice the square root.
fn rough_root(number: usize) -> usize {
    1 << (usize::BITS - number.leading_zeros()).div_ceil(2)
}

/// The lines that take part in the search.
struct SearchedLines {
    tokens: Vec<Token>,
    places: Vec<usize>,
}

impl SearchedLines {
    /// Leaves out and marks the lines that have no match, and frequent lines that are surrounded by such lines.
    fn of(
        text: &[Token],
        part: Range<usize>,
        matches: &[Matches],
        marks: &mut [bool],
        effort: &mut Effort,
    ) -> Result<Self, NotMerged> {
        let mut sifted = Self { tokens: Vec::new(), places: Vec::new() };
        for (index, place) in part.enumerate() {
            let takes_part = match matches[index] {
                Matches::None => false,
                Matches::Some => true,
                Matches::Frequent => {
                    effort.spend(2 * NEIGHBOURS)?;
                    !is_noise(matches, index)
                }
            };
            if takes_part {
                sifted.tokens.push(text[place]);
                sifted.places.push(place);
            } else {
                marks[place] = true;
            }
        }
        Ok(sifted)
    }

    fn len(&self) -> i64 {
        self.tokens.len() as i64
    }
}

/// Whether a frequent line is in a run in which lines without a match prevail.
fn is_noise(matches: &[Matches], index: usize) -> bool {
    /// In a run, lines without a match prevail if there are more of them than this many times the frequent ones.
    const PREVAIL: usize = 3;
    let mut frequent = 2;
    let mut count = |neighbours: &mut dyn Iterator<Item = &Matches>| {
        let mut lone = 0;
        for neighbour in neighbours.take(NEIGHBOURS).take_while(|neighbour| **neighbour != Matches::Some) {
            match neighbour {
                Matches::None => lone += 1,
                _ => frequent += 1,
            }
        }
        lone
    };
    let above = count(&mut matches[..index].iter().rev());
    if above == 0 {
        return false;
    }
    let below = count(&mut matches[index + 1..].iter());
    below > 0 && frequent * PREVAIL < above + below
}

/// A rectangle of the edit graph: lines of the old text against lines of the new one.
#[derive(Debug, Clone)]
struct Area {
    old: Range<i64>,
    new: Range<i64>,
    /// Whether the search takes no shortcut.
    is_exact: bool,
}

/// The search for a shortest edit script, by divide and conquer.
struct Search<'a> {
    old: &'a SearchedLines,
    new: &'a SearchedLines,
    forward: Frontier,
    backward: Frontier,
    most_rounds: i64,
    effort: &'a mut Effort,
}

impl<'a> Search<'a> {
    fn new(old: &'a SearchedLines, new: &'a SearchedLines, effort: &'a mut Effort) -> Self {
        let diagonals = old.len() + new.len() + 3;
        Self {
            old,
            new,
            forward: Frontier::new(diagonals, new.len() + 1),
            backward: Frontier::new(diagonals, new.len() + 1),
            most_rounds: (rough_root(diagonals as usize) as i64).max(FEWEST_ROUNDS),
            effort,
        }
    }

    fn run(mut self, marks: &mut ChangedLines) -> Result<(), NotMerged> {
        let mut open = vec![Area { old: 0..self.old.len(), new: 0..self.new.len(), is_exact: false }];
        while let Some(mut area) = open.pop() {
            self.shrink(&mut area);
            if area.old.is_empty() {
                area.new.for_each(|line| marks.new[self.new.places[line as usize]] = true);
            } else if area.new.is_empty() {
                area.old.for_each(|line| marks.old[self.old.places[line as usize]] = true);
            } else {
                let split = self.split(&area)?;
                open.push(Area {
                    old: area.old.start..split.old,
                    new: area.new.start..split.new,
                    is_exact: split.is_exact_above,
                });
                open.push(Area { old: split.old..area.old.end, new: split.new..area.new.end, is_exact: split.is_exact_below });
            }
        }
        Ok(())
    }

    fn is_same(&self, old: i64, new: i64) -> bool {
        self.old.tokens[old as usize] == self.new.tokens[new as usize]
    }

    /// Removes equal lines at the start and at the end.
    fn shrink(&self, area: &mut Area) {
        while !area.old.is_empty() && !area.new.is_empty() && self.is_same(area.old.start, area.new.start) {
            area.old.start += 1;
            area.new.start += 1;
        }
        while !area.old.is_empty() && !area.new.is_empty() && self.is_same(area.old.end - 1, area.new.end - 1) {
            area.old.end -= 1;
            area.new.end -= 1;
        }
    }

    /// Finds the place to divide an area whose corners differ: on a shortest path or, if that takes too long, at the
    /// farthest point of a path.
    fn split(&mut self, area: &Area) -> Result<AreaSplit, NotMerged> {
        let bounds = area.old.start - area.new.end..area.old.end - area.new.start;
        let (start, end) = (area.old.start - area.new.start, area.old.end - area.new.end);
        let is_odd = (start - end) & 1 != 0;
        self.forward.begin(start, area.old.start);
        self.backward.begin(end, area.old.end);
        for round in 1.. {
            self.effort.spend((2 * round) as usize)?;
            self.forward.widen(&bounds, -1);
            let mut has_long_run = false;
            for diagonal in self.forward.diagonals() {
                let from = self.forward.step_forward(diagonal);
                let to = self.slide_forward(area, from, diagonal)?;
                has_long_run |= to - from > LONG_RUN;
                self.forward.set(diagonal, to);
                if is_odd && self.backward.reaches(diagonal) && self.backward.get(diagonal) <= to {
                    return Ok(AreaSplit::exact(to, to - diagonal));
                }
            }
            self.backward.widen(&bounds, i64::MAX);
            for diagonal in self.backward.diagonals() {
                let from = self.backward.step_backward(diagonal);
                let to = self.slide_backward(area, from, diagonal)?;
                has_long_run |= from - to > LONG_RUN;
                self.backward.set(diagonal, to);
                if !is_odd && self.forward.reaches(diagonal) && to <= self.forward.get(diagonal) {
                    return Ok(AreaSplit::exact(to, to - diagonal));
                }
            }
            if area.is_exact {
                continue;
            }
            let shortcut = has_long_run && round > ROUNDS_BEFORE_SHORTCUTS;
            if let Some(split) = shortcut.then(|| self.good_place(area, round)).flatten() {
                return Ok(split);
            }
            if round >= self.most_rounds {
                return Ok(self.farthest_place(area));
            }
        }
        unreachable!("the frontiers meet")
    }

    fn slide_forward(&mut self, area: &Area, from: i64, diagonal: i64) -> Result<i64, NotMerged> {
        let mut old = from;
        while old < area.old.end && old - diagonal < area.new.end && self.is_same(old, old - diagonal) {
            old += 1;
        }
        self.effort.spend((old - from) as usize)?;
        Ok(old)
    }

    fn slide_backward(&mut self, area: &Area, from: i64, diagonal: i64) -> Result<i64, NotMerged> {
        let mut old = from;
        while old > area.old.start && old - diagonal > area.new.start && self.is_same(old - 1, old - 1 - diagonal) {
            old -= 1;
        }
        self.effort.spend((from - old) as usize)?;
        Ok(old)
    }

    /// The farthest place near the middle diagonal that follows a long run of equal lines.
    fn good_place(&self, area: &Area, round: i64) -> Option<AreaSplit> {
        let mut best = (0, None);
        for diagonal in self.forward.diagonals() {
            let old = self.forward.get(diagonal);
            let new = old - diagonal;
            let off_middle = (diagonal - (area.old.start - area.new.start)).abs();
            let reach = (old - area.old.start) + (new - area.new.start) - off_middle;
            let is_inside =
                area.old.start + LONG_RUN <= old && old < area.old.end && area.new.start + LONG_RUN <= new && new < area.new.end;
            if reach > FAR * round && reach > best.0 && is_inside && (1..=LONG_RUN).all(|by| self.is_same(old - by, new - by)) {
                best = (reach, Some(AreaSplit { old, new, is_exact_above: true, is_exact_below: false }));
            }
        }
        if best.1.is_some() {
            return best.1;
        }
        for diagonal in self.backward.diagonals() {
            let old = self.backward.get(diagonal);
            let new = old - diagonal;
            let off_middle = (diagonal - (area.old.end - area.new.end)).abs();
            let reach = (area.old.end - old) + (area.new.end - new) - off_middle;
            let is_inside =
                area.old.start < old && old <= area.old.end - LONG_RUN && area.new.start < new && new <= area.new.end - LONG_RUN;
            if reach > FAR * round && reach > best.0 && is_inside && (0..LONG_RUN).all(|by| self.is_same(old + by, new + by)) {
                best = (reach, Some(AreaSplit { old, new, is_exact_above: false, is_exact_below: true }));
            }
        }
        best.1
    }

    /// The place that is farthest from its corner.
    fn farthest_place(&self, area: &Area) -> AreaSplit {
        let (mut ahead, mut ahead_old) = (-1, -1);
        for diagonal in self.forward.diagonals() {
            let mut old = self.forward.get(diagonal).min(area.old.end);
            if area.new.end < old - diagonal {
                old = area.new.end + diagonal;
            }
            if ahead < 2 * old - diagonal {
                (ahead, ahead_old) = (2 * old - diagonal, old);
            }
        }
        let (mut behind, mut behind_old) = (i64::MAX, i64::MAX);
        for diagonal in self.backward.diagonals() {
            let mut old = self.backward.get(diagonal).max(area.old.start);
            if old - diagonal < area.new.start {
                old = area.new.start + diagonal;
            }
            if 2 * old - diagonal < behind {
                (behind, behind_old) = (2 * old - diagonal, old);
            }
        }
        if area.old.end + area.new.end - behind < ahead - (area.old.start + area.new.start) {
            AreaSplit { old: ahead_old, new: ahead - ahead_old, is_exact_above: true, is_exact_below: false }
        } else {
            AreaSplit { old: behind_old, new: behind - behind_old, is_exact_above: false, is_exact_below: true }
        }
    }
}

/// The place where an area is divided, and whether its parts must be searched without shortcuts.
#[derive(Debug, Clone, Copy)]
struct AreaSplit {
    old: i64,
    new: i64,
    is_exact_above: bool,
    is_exact_below: bool,
}

impl AreaSplit {
    fn exact(old: i64, new: i64) -> Self {
        Self { old, new, is_exact_above: true, is_exact_below: true }
    }
}

/// The farthest points of the paths from one corner, as a line of the old text for each diagonal.
struct Frontier {
    reached: Vec<i64>,
    zero: i64,
    lowest: i64,
    highest: i64,
}

impl Frontier {
    fn new(diagonals: i64, zero: i64) -> Self {
        Self { reached: vec![0; diagonals as usize + 1], zero, lowest: 0, highest: 0 }
    }

    fn begin(&mut self, diagonal: i64, at: i64) {
        (self.lowest, self.highest) = (diagonal, diagonal);
        self.set(diagonal, at);
    }

    fn get(&self, diagonal: i64) -> i64 {
        self.reached[(diagonal + self.zero) as usize]
    }

    fn set(&mut self, diagonal: i64, to: i64) {
        self.reached[(diagonal + self.zero) as usize] = to;
    }

    /// Widens the frontier by a diagonal on each side. At the bounds of the area it narrows instead, so that only every
    /// second diagonal is used.
    fn widen(&mut self, bounds: &Range<i64>, outside: i64) {
        if self.lowest > bounds.start {
            self.lowest -= 1;
            self.set(self.lowest - 1, outside);
        } else {
            self.lowest += 1;
        }
        if self.highest < bounds.end {
            self.highest += 1;
            self.set(self.highest + 1, outside);
        } else {
            self.highest -= 1;
        }
    }

    /// Every second diagonal, from the highest one.
    fn diagonals(&self) -> impl Iterator<Item = i64> + use<> {
        let lowest = self.lowest;
        std::iter::successors(Some(self.highest), |diagonal| Some(diagonal - 2)).take_while(move |diagonal| *diagonal >= lowest)
    }

    fn reaches(&self, diagonal: i64) -> bool {
        (self.lowest..=self.highest).contains(&diagonal)
    }

    fn step_forward(&self, diagonal: i64) -> i64 {
        let (below, above) = (self.get(diagonal - 1), self.get(diagonal + 1));
        if below >= above { below + 1 } else { above }
    }

    fn step_backward(&self, diagonal: i64) -> i64 {
        let (below, above) = (self.get(diagonal - 1), self.get(diagonal + 1));
        if below < above { below } else { above - 1 }
    }
}
