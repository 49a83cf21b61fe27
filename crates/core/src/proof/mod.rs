//! Proves which lines of an old text are certainly where a line map puts them. A diff guesses which of several equal
//! lines was removed or inserted, and an edit must not follow a guess.
//!
//! The evidence is content. A kept line is proven if, above it and below it, a line that occurs once in both texts lies
//! between it and the next change. If that is not enough, lines are counted again without the proven ones, because a
//! line that occurs once among the rest is as good as unique. A property test (`tests/generated.rs`) knows the true
//! origin of every line and checks that no line is ever mistaken for another one.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
    collections::HashMap,
    ops::Range,
};

use crate::{
    line_map::{LineMap, moved},
    lines::{LineNo, LineRange, LineSet},
    text::Text,
};

/// The proven part of a line map between two texts.
///
/// If the map is recorded, every line that it keeps is proven. If it is a diff, contents must prove it, in two steps:
///
/// 1. *Unique lines.* A line is proven if a line that occurs once in both texts, perhaps the line itself, lies between
///    it and every change, above and below. The start and the end of the file count as unique lines.
/// 2. *Elimination.* A proven line is the source of no other line, and its image is the image of no other. So lines are
///    counted again without the proven ones and their images. A line that occurs once in both remainders is as good as
///    a unique line. This repeats until nothing new is proven. Removed lines, added lines and lines in doubt stay in
///    the count, so a copy, a move or a removal still raises doubt about equal lines.
///
/// The second step runs only when a caller asks for a line that the first one leaves in doubt.
///
/// Contents cannot show that a line was removed and an equal one inserted in the same place; it counts as the same
/// line.
pub(crate) struct Proof<'a> {
    map: Cow<'a, LineMap>,
    evidence: Evidence<'a>,
}

enum Evidence<'a> {
    /// The map comes from the edits themselves.
    Exact,
    /// The map is a diff.
    Contents { before: &'a Text, after: &'a Text, runs: Vec<KeptRun>, eliminated: OnceCell<LineSet> },
}

impl<'a> Proof<'a> {
    /// The proof for a change from one text to another: the recorded map if it exists, otherwise a comparison.
    pub(crate) fn between(provenance: Option<&'a LineMap>, before: &'a Text, after: &'a Text) -> Self {
        match provenance {
            Some(map) => Self { map: Cow::Borrowed(map), evidence: Evidence::Exact },
            None => Self::by_contents(Cow::Owned(LineMap::between(before, after)), before, after),
        }
    }

    /// Examines which part of a diff of these texts the contents prove.
    pub(crate) fn by_contents(map: Cow<'a, LineMap>, before: &'a Text, after: &'a Text) -> Self {
        let runs = proven_by_unique_lines(&map, before, after);
        Self { map, evidence: Evidence::Contents { before, after, runs, eliminated: OnceCell::new() } }
    }

    pub(crate) fn map(&self) -> &LineMap {
        &self.map
    }

    /// The map without the lines in doubt, which count as replaced. So a hunk that could as well be a line further up
    /// or down covers all lines that it could affect.
    pub(crate) fn proven_map(self) -> LineMap {
        match self.evidence {
            Evidence::Exact => self.map.into_owned(),
            Evidence::Contents { before, after, runs, .. } => {
                let proven = Elimination::new(before, after, runs).finish();
                let kept = proven.into_iter().filter(|run| !run.proven.is_empty()).map(|run| (run.proven, run.shift));
                LineMap::keeping(kept, before.line_count(), after.line_count())
            }
        }
    }

    /// The lines among these old lines that are proven.
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

    pub(crate) fn covers(&self, lines: &LineSet) -> bool {
        lines.minus(&self.proven_of(lines)).is_empty()
    }
}

/// A run of lines that a map keeps together.
#[derive(Debug, Clone)]
struct KeptRun {
    /// The lines of the run in the old text, 0-based.
    lines: Range<usize>,
    shift: i64,
    /// Whether the lines right above changed. If not, the run starts the file.
    is_changed_above: bool,
    /// Whether the lines right below changed. If not, the run ends the file.
    is_changed_below: bool,
    proven: Range<usize>,
}

impl KeptRun {
    /// Marks one more line as proven. The lines between it and the proven part are proven too, because both ends fix
    /// them. Returns the newly proven lines.
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

/// The runs of a map, with the part of each that unique lines prove.
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

/// Finds out which lines occur once in each of two texts. Line endings are ignored: if others add lines after the last
/// line, it gets an ending but is still the same line. The first few questions are answered by a search; after that,
/// all lines are counted.
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

/// Counts the lines that are not proven yet, and proves those that occur once among them. Every line enters the count
/// once and leaves it once, so the time is linear.
struct Elimination<'a> {
    before: &'a Text,
    runs: Vec<KeptRun>,
    remainders: HashMap<&'a str, EqualLines>,
    /// Old lines whose text occurs once in both remainders.
    once: Vec<usize>,
}

/// Lines in doubt that have the same text.
#[derive(Debug, Default, Clone, Copy)]
struct EqualLines {
    before: usize,
    after: usize,
    /// The sum of the old indexes. If one line is left, the sum is its index.
    indexes: usize,
}

impl<'a> Elimination<'a> {
    fn new(before: &'a Text, after: &'a Text, runs: Vec<KeptRun>) -> Self {
        let mut remainders: HashMap<&str, EqualLines> = HashMap::new();
        let proven = runs.iter().map(|run| run.proven.clone()).filter(|proven| !proven.is_empty());
        for (index, line) in lines_outside(before, proven) {
            let remainder = remainders.entry(line).or_default();
            remainder.before += 1;
            remainder.indexes += index;
        }
        let images = runs
            .iter()
            .filter(|run| !run.proven.is_empty())
            .map(|run| moved(run.proven.start, run.shift)..moved(run.proven.end, run.shift));
        for (_, line) in lines_outside(after, images) {
            remainders.entry(line).or_default().after += 1;
        }
        let once = remainders.values().filter(|left| left.stands_once()).map(|left| left.indexes).collect();
        Self { before, runs, remainders, once }
    }

    /// Repeats until nothing new is proven.
    fn finish(mut self) -> Vec<KeptRun> {
        while let Some(line) = self.once.pop() {
            let place = self.runs.partition_point(|run| run.lines.end <= line);
            let Some(run) = self.runs.get_mut(place).filter(|run| run.lines.contains(&line)) else {
                // The line was removed. An equal line elsewhere proves nothing.
                continue;
            };
            for proven in run.prove(line) {
                self.leave_out(proven);
            }
        }
        self.runs
    }

    /// Removes newly proven lines and their images from the count.
    fn leave_out(&mut self, proven: Range<usize>) {
        for index in proven {
            let left =
                self.remainders.get_mut(self.before.line(LineNo::at_index(index))).expect("every unproven line was counted");
            left.before -= 1;
            left.after -= 1;
            left.indexes -= index;
            if left.stands_once() {
                self.once.push(left.indexes);
            }
        }
    }
}

impl EqualLines {
    fn stands_once(self) -> bool {
        (self.before, self.after) == (1, 1)
    }
}

/// The lines of a text outside these ranges, which are sorted.
fn lines_outside(text: &Text, mut proven: impl Iterator<Item = Range<usize>>) -> impl Iterator<Item = (usize, &str)> {
    let mut next = proven.next();
    text.lines().map(|(number, line)| (number.index(), line)).filter(move |(index, _)| {
        while next.as_ref().is_some_and(|range| range.end <= *index) {
            next = proven.next();
        }
        next.as_ref().is_none_or(|range| *index < range.start)
    })
}

#[cfg(test)]
mod tests;
