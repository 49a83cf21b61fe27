//! Proof: which lines of an old text are certainly where a line map puts them. A diff guesses which of several equal lines was
//! removed or inserted, and an edit must not follow a guess.
//!
//! Evidence is content. A kept line is proven if, above it and below it, a line that occurs once in both texts stands between it
//! and the next change. Where that is not enough, lines are counted again without the proven ones, because a line that occurs
//! once among the rest is as good as unique. A property test (`tests/generated.rs`) knows the true origin of every line and
//! checks that no line is ever taken for another one.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
    collections::HashMap,
    ops::Range,
};

use crate::{
    line_map::LineMap,
    lines::{LineNo, LineRange, LineSet},
    text::Text,
};

/// What is proven of a line map between two texts.
///
/// If the map is known exactly, every line that it keeps is proven. If it is a diff, contents must prove it, in two steps:
///
/// 1. *Unique lines.* A line is proven if a line that stands once in both texts, perhaps the line itself, lies between it and
///    every change, above and below. The start and the end of the file count as unique lines.
/// 2. *Elimination.* A proven line is the source of no other line, and its image is the image of no other. So lines are counted
///    once more, without the proven ones and their images; whatever stands once in both remainders is as good as a unique line.
///    This is repeated until nothing is added. Lines that were removed or added and lines in doubt stay in the count, so that a
///    copy, a move or a removal still raises doubt about the lines that read the same.
///
/// The second step is taken only if somebody asks for a line that the first one leaves in doubt.
///
/// Contents cannot show that a line was removed and an equal one put in the same place; it counts as the same line.
pub(crate) struct Proof<'a> {
    map: Cow<'a, LineMap>,
    evidence: Evidence<'a>,
}

enum Evidence<'a> {
    /// The map was made from the edits themselves.
    Exact,
    /// The map is a diff.
    Contents { before: &'a Text, after: &'a Text, runs: Vec<KeptRun>, eliminated: OnceCell<LineSet> },
}

impl<'a> Proof<'a> {
    /// What is known of the way from one text to another: what is on record, or else what a comparison proves.
    pub(crate) fn between(provenance: Option<&'a LineMap>, before: &'a Text, after: &'a Text) -> Self {
        match provenance {
            Some(map) => Self { map: Cow::Borrowed(map), evidence: Evidence::Exact },
            None => Self::by_contents(Cow::Owned(LineMap::between(before, after)), before, after),
        }
    }

    /// What the contents prove of a diff between these texts.
    pub(crate) fn by_contents(map: Cow<'a, LineMap>, before: &'a Text, after: &'a Text) -> Self {
        let runs = proven_by_unique_lines(&map, before, after);
        Self { map, evidence: Evidence::Contents { before, after, runs, eliminated: OnceCell::new() } }
    }

    /// The map.
    pub(crate) fn map(&self) -> &LineMap {
        &self.map
    }

    /// Those of these old lines that are proven.
    pub(crate) fn proven_of(&self, lines: &LineSet) -> LineSet {
        let without = |proven: &LineSet| lines.minus(&lines.minus(proven));
        match &self.evidence {
            Evidence::Exact => without(&self.map.kept().filter_map(|(run, _)| LineRange::from_indexes(run)).collect()),
            Evidence::Contents { before, after, runs, eliminated } => {
                let by_unique_lines = proven_lines(runs);
                if lines.minus(&by_unique_lines).is_empty() {
                    return lines.clone();
                }
                let eliminate = || proven_lines(&Elimination::new(before, after, runs.clone()).finish());
                without(eliminated.get_or_init(eliminate))
            }
        }
    }

    /// Whether all these old lines are proven.
    pub(crate) fn covers(&self, lines: &LineSet) -> bool {
        lines.minus(&self.proven_of(lines)).is_empty()
    }
}

/// A run of lines that a map keeps together.
#[derive(Debug, Clone)]
struct KeptRun {
    /// Old indexes.
    lines: Range<usize>,
    /// By how much they moved.
    shift: i64,
    /// Whether lines were changed right above it. If not, it begins the file.
    is_changed_above: bool,
    /// Whether lines were changed right below it. If not, it ends the file.
    is_changed_below: bool,
    /// The part of it that is proven.
    proven: Range<usize>,
}

impl KeptRun {
    /// Takes in that one more line is beyond doubt. So is all between it and what was proven before, because both ends hold it. Gives
    /// the lines that are proven by it.
    fn prove(&mut self, line: usize) -> [Range<usize>; 2] {
        let start = if self.is_changed_above { line } else { self.lines.start };
        let end = if self.is_changed_below { line + 1 } else { self.lines.end };
        if self.proven.is_empty() {
            self.proven = start..end;
            return [start..end, 0..0];
        }
        let grown = self.proven.start.min(start)..self.proven.end.max(end);
        let known = std::mem::replace(&mut self.proven, grown.clone());
        [grown.start..known.start, known.end..grown.end]
    }
}

fn proven_lines(runs: &[KeptRun]) -> LineSet {
    runs.iter().filter_map(|run| LineRange::from_indexes(run.proven.clone())).collect()
}

/// The runs of a map, with what unique lines prove of each.
fn proven_by_unique_lines(map: &LineMap, before: &Text, after: &Text) -> Vec<KeptRun> {
    let once = StandsOnce::new(before, after);
    let stands_once = |index: &usize| once.ask(before.line(LineNo::at_index(*index)));
    let run = |(lines, shift): (Range<usize>, i64)| {
        let is_changed_above = map.hunks().binary_search_by_key(&lines.start, |hunk| hunk.before.end).is_ok();
        let is_changed_below = map.hunks().binary_search_by_key(&lines.end, |hunk| hunk.before.start).is_ok();
        let start = if is_changed_above { lines.clone().find(stands_once) } else { Some(lines.start) };
        let end = match start {
            Some(_) if is_changed_below => lines.clone().rev().find(stands_once).map(|last| last + 1),
            start => start.map(|_| lines.end),
        };
        let proven = start.zip(end).map_or(0..0, |(start, end)| start..end);
        KeptRun { lines, shift, is_changed_above, is_changed_below, proven }
    };
    map.kept().map(run).collect()
}

/// Which lines stand once in each of two texts, whatever their endings are: the last line gets one when others are added below it,
/// and is still that line. A few questions are answered by looking; many, by counting all lines first.
struct StandsOnce<'a> {
    before: &'a Text,
    after: &'a Text,
    asked: Cell<usize>,
    counts: OnceCell<HashMap<&'a str, (u32, u32)>>,
}

impl<'a> StandsOnce<'a> {
    const FEW: usize = 8;

    fn new(before: &'a Text, after: &'a Text) -> Self {
        Self { before, after, asked: Cell::new(0), counts: OnceCell::new() }
    }

    fn ask(&self, line: &str) -> bool {
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() <= Self::FEW {
            let once = |text: &Text| text.lines().filter(|(_, other)| *other == line).take(2).count() == 1;
            return once(self.before) && once(self.after);
        }
        let counts = self.counts.get_or_init(|| {
            let mut counts: HashMap<&str, (u32, u32)> = HashMap::new();
            self.before.lines().for_each(|(_, line)| counts.entry(line).or_default().0 += 1);
            self.after.lines().for_each(|(_, line)| counts.entry(line).or_default().1 += 1);
            counts
        });
        counts.get(line) == Some(&(1, 1))
    }
}

/// Counts what is not proven yet, and proves what stands once in it. Every line is counted once and taken out of the count once, so
/// the time is linear.
struct Elimination<'a> {
    before: &'a Text,
    runs: Vec<KeptRun>,
    remainders: HashMap<&'a str, Remainder>,
    /// Old lines whose text stands once in both remainders.
    once: Vec<usize>,
}

/// The lines in doubt that have the same text.
#[derive(Debug, Default, Clone, Copy)]
struct Remainder {
    before: usize,
    after: usize,
    /// The sum of the old indexes: where one line is left, its index.
    indexes: usize,
}

impl<'a> Elimination<'a> {
    fn new(before: &'a Text, after: &'a Text, runs: Vec<KeptRun>) -> Self {
        let mut remainders: HashMap<&str, Remainder> = HashMap::new();
        let proven = runs.iter().map(|run| run.proven.clone()).filter(|proven| !proven.is_empty());
        for (index, line) in unproven(before, proven) {
            let remainder = remainders.entry(line).or_default();
            remainder.before += 1;
            remainder.indexes += index;
        }
        let images = runs.iter().filter(|run| !run.proven.is_empty()).map(|run| moved(&run.proven, run.shift));
        for (_, line) in unproven(after, images) {
            remainders.entry(line).or_default().after += 1;
        }
        let once = remainders.values().filter(|left| left.stands_once()).map(|left| left.indexes).collect();
        Self { before, runs, remainders, once }
    }

    /// Proves until nothing is added.
    fn finish(mut self) -> Vec<KeptRun> {
        while let Some(line) = self.once.pop() {
            let place = self.runs.partition_point(|run| run.lines.end <= line);
            let Some(run) = self.runs.get_mut(place).filter(|run| run.lines.contains(&line)) else {
                // It was removed; that the same text came elsewhere tells nothing.
                continue;
            };
            for proven in run.prove(line) {
                self.leave_out(proven);
            }
        }
        self.runs
    }

    /// Takes lines that are proven now out of the count, each with its image.
    fn leave_out(&mut self, proven: Range<usize>) {
        for index in proven {
            let left = self.remainders.get_mut(self.before.line(LineNo::at_index(index))).expect("it was counted");
            left.before -= 1;
            left.after -= 1;
            left.indexes -= index;
            if left.stands_once() {
                self.once.push(left.indexes);
            }
        }
    }
}

impl Remainder {
    fn stands_once(self) -> bool {
        (self.before, self.after) == (1, 1)
    }
}

/// The lines of a text that are in none of these ranges, which are in order.
fn unproven(text: &Text, mut proven: impl Iterator<Item = Range<usize>>) -> impl Iterator<Item = (usize, &str)> {
    let mut next = proven.next();
    text.lines().map(|(number, line)| (number.index(), line)).filter(move |(index, _)| {
        while next.as_ref().is_some_and(|range| range.end <= *index) {
            next = proven.next();
        }
        next.as_ref().is_none_or(|range| *index < range.start)
    })
}

fn moved(lines: &Range<usize>, by: i64) -> Range<usize> {
    let moved = |line: usize| usize::try_from(line as i64 + by).expect("a kept line has a place in the new text");
    moved(lines.start)..moved(lines.end)
}

#[cfg(test)]
mod tests;
