//! Line numbers, ranges of them, and sets of ranges. Every number that a person or a model sees is 1-based and
//! inclusive; only this module converts between numbers and indexes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A 1-based line number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineNo(u32);

impl LineNo {
    /// The first line of a file.
    pub const FIRST: Self = Self(1);

    /// The line with this number; `None` for 0, which no line has.
    pub fn new(number: u32) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// The line at a 0-based index.
    pub fn at_index(index: usize) -> Self {
        Self(u32::try_from(index).map_or(u32::MAX, |index| index.saturating_add(1)))
    }

    /// The number, counted from 1.
    pub fn get(self) -> u32 {
        self.0
    }

    /// The index, counted from 0.
    pub fn index(self) -> usize {
        self.0 as usize - 1
    }

    /// This line moved by `by` lines; `None` if that is before the first line.
    pub fn moved(self, by: i64) -> Option<Self> {
        u32::try_from(i64::from(self.0) + by).ok().and_then(Self::new)
    }
}

impl fmt::Display for LineNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A run of lines, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineRange {
    /// The first line of the run.
    pub start: LineNo,
    /// The last line of the run, at or after `start`.
    pub end: LineNo,
}

impl LineRange {
    /// The range from `start` to `end`; `None` if `end` comes first.
    pub fn new(start: LineNo, end: LineNo) -> Option<Self> {
        (start <= end).then_some(Self { start, end })
    }

    /// The range of a single line.
    pub fn line(line: LineNo) -> Self {
        Self { start: line, end: line }
    }

    /// The lines at these 0-based, half-open indexes; `None` if the range is empty.
    pub fn from_indexes(indexes: std::ops::Range<usize>) -> Option<Self> {
        (!indexes.is_empty()).then(|| Self { start: LineNo::at_index(indexes.start), end: LineNo::at_index(indexes.end - 1) })
    }

    /// The 0-based, half-open indexes of the lines.
    pub(crate) fn indexes(self) -> std::ops::Range<usize> {
        self.start.index()..self.end.index() + 1
    }

    /// The number of lines, at least 1.
    pub fn count(self) -> u32 {
        self.end.0 - self.start.0 + 1
    }

    /// Whether the line is in the range.
    pub fn contains(self, line: LineNo) -> bool {
        (self.start..=self.end).contains(&line)
    }

    /// The lines of the range, in order.
    pub fn iter(self) -> impl Iterator<Item = LineNo> {
        (self.start.0..=self.end.0).map(LineNo)
    }
}

impl fmt::Display for LineRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.start == self.end { write!(f, "{}", self.start) } else { write!(f, "{}-{}", self.start, self.end) }
    }
}

/// A set of lines, kept as sorted ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineSet {
    ranges: Vec<LineRange>,
}

impl LineSet {
    /// A set without any lines.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of lines 1 to `total`.
    pub fn whole(total: usize) -> Self {
        Self { ranges: LineRange::from_indexes(0..total).into_iter().collect() }
    }

    /// Adds a range, and merges it with ranges that overlap or touch it.
    pub fn insert(&mut self, range: LineRange) {
        let from = self.ranges.partition_point(|r| r.end.0.saturating_add(1) < range.start.0);
        let to = self.ranges.partition_point(|r| r.start.0 <= range.end.0.saturating_add(1));
        let merged = self.ranges[from..to]
            .iter()
            .fold(range, |sum, r| LineRange { start: sum.start.min(r.start), end: sum.end.max(r.end) });
        self.ranges.splice(from..to, [merged]);
    }

    /// The merged ranges, in order.
    pub fn ranges(&self) -> &[LineRange] {
        &self.ranges
    }

    /// The lines, in order.
    pub fn iter(&self) -> impl Iterator<Item = LineNo> {
        self.ranges.iter().flat_map(|r| r.iter())
    }

    /// Whether the line is in the set.
    pub fn contains(&self, line: LineNo) -> bool {
        let at = self.ranges.partition_point(|r| r.end < line);
        self.ranges.get(at).is_some_and(|r| r.contains(line))
    }

    /// Whether the set has no lines.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The number of lines in the set.
    pub fn count(&self) -> u32 {
        self.ranges.iter().map(|r| r.count()).sum()
    }

    /// The lines of this set that are not in `other`.
    pub fn minus(&self, other: &LineSet) -> LineSet {
        let mut rest = LineSet::new();
        for range in &self.ranges {
            let mut start = range.start;
            let from = other.ranges.partition_point(|taken| taken.end < range.start);
            for taken in other.ranges[from..].iter().take_while(|taken| taken.start <= range.end) {
                if let Some(end) = taken.start.moved(-1).filter(|end| *end >= start) {
                    rest.insert(LineRange { start, end });
                }
                start = LineNo(taken.end.0.saturating_add(1)).max(start);
            }
            if let Some(last) = LineRange::new(start, range.end) {
                rest.insert(last);
            }
        }
        rest
    }

    /// A set of at most `max` ranges that covers this one: the smallest gaps are filled.
    pub fn coarsened(&self, max: usize) -> LineSet {
        let mut set = self.clone();
        let mut gap = 1;
        while set.ranges.len() > max.max(1) {
            gap *= 2;
            let mut ranges: Vec<LineRange> = Vec::with_capacity(set.ranges.len());
            for range in set.ranges {
                match ranges.last_mut() {
                    Some(last) if range.start.0 - last.end.0 <= gap => last.end = range.end,
                    _ => ranges.push(range),
                }
            }
            set = LineSet { ranges };
        }
        set
    }

    /// The set without the lines after `total`.
    pub fn clipped(&self, total: usize) -> LineSet {
        let ranges = self.ranges.iter().filter(|r| r.start.index() < total);
        LineSet { ranges: ranges.map(|r| LineRange { start: r.start, end: r.end.min(LineNo::at_index(total - 1)) }).collect() }
    }
}

impl FromIterator<LineRange> for LineSet {
    fn from_iter<I: IntoIterator<Item = LineRange>>(ranges: I) -> Self {
        let mut set = Self::new();
        ranges.into_iter().for_each(|range| set.insert(range));
        set
    }
}

impl FromIterator<LineNo> for LineSet {
    fn from_iter<I: IntoIterator<Item = LineNo>>(lines: I) -> Self {
        lines.into_iter().map(LineRange::line).collect()
    }
}

impl fmt::Display for LineSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.ranges.iter().enumerate() {
            write!(f, "{}{range}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn range(start: u32, end: u32) -> LineRange {
        LineRange { start: LineNo(start), end: LineNo(end) }
    }

    #[track_caller]
    fn check(ranges: &[(u32, u32)], merged: &str) {
        let set: LineSet = ranges.iter().map(|&(start, end)| range(start, end)).collect();
        assert_eq!(set.to_string(), merged);
    }

    #[test]
    fn overlapping_and_touching_ranges_merge() {
        check(&[], "");
        check(&[(3, 3)], "3");
        check(&[(1, 2), (3, 4)], "1-4");
        check(&[(10, 20), (1, 2), (15, 30)], "1-2, 10-30");
        check(&[(1, 2), (8, 9), (5, 6), (3, 7)], "1-9");
    }

    #[test]
    fn lines_past_the_end_are_clipped() {
        let set: LineSet = [range(1, 2), range(5, 9), range(20, 30)].into_iter().collect();
        assert_eq!(set.clipped(7).to_string(), "1-2, 5-7");
        assert_eq!(set.clipped(0).to_string(), "");
    }

    proptest! {
        #[test]
        fn a_line_set_is_the_set_of_its_lines(a in ranges(), b in ranges()) {
            let model = |ranges: &[(u32, u32)]| ranges.iter().flat_map(|&(s, e)| s..=e).collect::<BTreeSet<_>>();
            let set = |ranges: &[(u32, u32)]| ranges.iter().map(|&(s, e)| range(s, e)).collect::<LineSet>();
            let lines = |set: &LineSet| set.iter().map(LineNo::get).collect::<BTreeSet<_>>();
            prop_assert_eq!(lines(&set(&a)), model(&a));
            prop_assert_eq!(lines(&set(&a).minus(&set(&b))), &model(&a) - &model(&b));
            prop_assert_eq!(set(&a).count() as usize, model(&a).len());
            for line in 1..40 {
                prop_assert_eq!(set(&a).contains(LineNo(line)), model(&a).contains(&line));
            }
        }
    }

    #[test]
    fn a_coarser_set_covers_the_finer_one() {
        let set: LineSet = (0..1000).map(|i| range(1 + i * 3, 1 + i * 3)).collect();
        let coarse = set.coarsened(10);
        assert!(coarse.ranges().len() <= 10 && set.minus(&coarse).is_empty());
        assert_eq!(set.coarsened(1000), set);
    }

    fn ranges() -> impl Strategy<Value = Vec<(u32, u32)>> {
        prop::collection::vec((1u32..30, 0u32..8).prop_map(|(start, more)| (start, start + more)), 0..8)
    }
}
