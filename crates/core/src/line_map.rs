//! Where each line of an old text is in a new one.
//!
//! A map comes from a diff ([`LineMap::between`]) or from the edits themselves ([`exact_map`]). A diff only guesses
//! which of several equal lines was kept; the map of an edit knows. Code that must not follow a guess asks
//! `crate::proof` which lines are beyond doubt, or uses an exact map. Maps compose ([`LineMap::then`]) and invert
//! ([`LineMap::inverse`]), so a chain of recorded edits carries a line across many versions.

mod line_tokens;

use std::{borrow::Cow, fmt, ops::Range, str::FromStr};

use imara_diff::{Algorithm, Diff, IndentHeuristic};

use crate::{
    hash::serde_as_text,
    line_map::line_tokens::LineTokens,
    lines::{LineNo, LineRange, LineSet},
    text::Text,
};

/// A run of lines that was replaced by another. Either may be empty. Indexes are 0-based and half-open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The lines of the old text that were removed.
    pub before: Range<usize>,
    /// The lines of the new text in their place.
    pub after: Range<usize>,
}

impl Hunk {
    /// The distance by which the lines below move.
    pub fn shift(&self) -> i64 {
        self.after.len() as i64 - self.before.len() as i64
    }
}

/// Compares two lists of lines, and shifts each difference to where a reader expects it.
fn compare(old: &[&str], new: &[&str]) -> Diff {
    let tokens = LineTokens::of(old, new);
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Histogram, &tokens.old, &tokens.new, tokens.end());
    diff.postprocess_with(&tokens.old, &tokens.new, IndentHeuristic::new(|token| tokens.indent(token)));
    diff
}

/// Where each line of an old text is in a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMap {
    hunks: Vec<Hunk>,
    before_lines: usize,
    after_lines: usize,
}

impl LineMap {
    /// Compares two texts line by line, endings included.
    pub fn between(before: &Text, after: &Text) -> Self {
        let old: Vec<&str> = before.full_lines().collect();
        let new: Vec<&str> = after.full_lines().collect();
        Self::of_lines(&old, &new)
    }

    /// Compares two lists of lines.
    pub fn of_lines(old: &[&str], new: &[&str]) -> Self {
        let same_head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let same_tail = old[same_head..].iter().rev().zip(new[same_head..].iter().rev()).take_while(|(a, b)| a == b).count();
        let (old_middle, new_middle) = (&old[same_head..old.len() - same_tail], &new[same_head..new.len() - same_tail]);

        let mut hunks = Vec::new();
        if old_middle.is_empty() || new_middle.is_empty() {
            // A pure insertion or removal needs no search.
            if old_middle.len() + new_middle.len() > 0 {
                hunks.push(Hunk { before: 0..old_middle.len(), after: 0..new_middle.len() });
            }
        } else {
            hunks.extend(compare(old_middle, new_middle).hunks().map(|hunk| Hunk {
                before: hunk.before.start as usize..hunk.before.end as usize,
                after: hunk.after.start as usize..hunk.after.end as usize,
            }));
        }
        for hunk in &mut hunks {
            for side in [&mut hunk.before, &mut hunk.after] {
                *side = side.start + same_head..side.end + same_head;
            }
        }
        Self { hunks, before_lines: old.len(), after_lines: new.len() }
    }

    /// The map of an edit that is known exactly, so it is certain which of several equal lines was kept.
    ///
    /// `hunks` are in order and do not overlap.
    pub(crate) fn exact(hunks: Vec<Hunk>, before_lines: usize, after_lines: usize) -> Self {
        Self { hunks, before_lines, after_lines }
    }

    /// The map of a new file with this many lines.
    pub(crate) fn added(lines: usize) -> Self {
        let hunk = Hunk { before: 0..0, after: 0..lines };
        Self::exact(if lines > 0 { vec![hunk] } else { Vec::new() }, 0, lines)
    }

    /// The map of a file whose lines do not change.
    pub(crate) fn same() -> Self {
        Self::exact(Vec::new(), 0, 0)
    }

    /// The map of a text that does not change.
    pub(crate) fn unchanged(lines: usize) -> Self {
        Self::exact(Vec::new(), lines, lines)
    }

    /// The map that keeps exactly these runs of old lines, which are in order.
    pub(crate) fn keeping(runs: impl Iterator<Item = (Range<usize>, i64)>, before_lines: usize, after_lines: usize) -> Self {
        let end = (before_lines..before_lines, after_lines as i64 - before_lines as i64);
        let (mut hunks, mut old, mut new) = (Vec::new(), 0, 0);
        for (run, shift) in runs.chain([end]) {
            let place = moved(run.start, shift);
            if old < run.start || new < place {
                hunks.push(Hunk { before: old..run.start, after: new..place });
            }
            (old, new) = (run.end, moved(run.end, shift));
        }
        Self { hunks, before_lines, after_lines }
    }

    /// The map of two changes, one after the other: `next` begins where this one ends. It is exact if both are.
    ///
    /// ```
    /// use surehand_core::{LineMap, LineNo};
    ///
    /// let first = LineMap::of_lines(&["a", "b", "c"], &["x", "a", "b", "c"]);
    /// let next = LineMap::of_lines(&["x", "a", "b", "c"], &["x", "b", "c"]);
    /// let both = first.then(&next);
    /// assert_eq!(both.new_place(LineNo::at_index(2)), Some(LineNo::at_index(2)));
    /// assert_eq!(both.new_place(LineNo::at_index(0)), None);
    /// ```
    #[must_use]
    pub fn then(&self, next: &LineMap) -> LineMap {
        let onward: Vec<(Range<usize>, i64)> = next.kept().collect();
        let continued = |(run, shift): (Range<usize>, i64)| {
            let between = moved(run.start, shift)..moved(run.end, shift);
            let from = onward.partition_point(|(run, _)| run.end <= between.start);
            let end = between.end;
            let part = move |(run, onward): &(Range<usize>, i64)| {
                let part = run.start.max(between.start)..run.end.min(between.end);
                (moved(part.start, -shift)..moved(part.end, -shift), shift + onward)
            };
            onward[from..].iter().take_while(move |(run, _)| run.start < end).map(part)
        };
        Self::keeping(self.kept().flat_map(continued), self.before_lines, next.after_lines)
    }

    /// The map of the inverse change.
    #[must_use]
    pub fn inverse(&self) -> LineMap {
        let swap = |hunk: &Hunk| Hunk { before: hunk.after.clone(), after: hunk.before.clone() };
        Self { hunks: self.hunks.iter().map(swap).collect(), before_lines: self.after_lines, after_lines: self.before_lines }
    }

    /// Like this map, but lines that were replaced by equal lines are kept: they were changed, and changed back.
    #[must_use]
    pub fn without_restored(mut self, before: &Text, after: &Text) -> LineMap {
        let is_restored = |hunk: &Hunk| {
            let same =
                |(old, new): (usize, usize)| before.full_line(LineNo::at_index(old)) == after.full_line(LineNo::at_index(new));
            hunk.before.len() == hunk.after.len() && hunk.before.clone().zip(hunk.after.clone()).all(same)
        };
        self.hunks.retain(|hunk| !is_restored(hunk));
        self
    }

    /// Like this map, but the replaced lines are compared, and equal ones are kept.
    #[must_use]
    pub(crate) fn refined(&self, before: &Text, after: &Text) -> LineMap {
        let within = |hunk: &Hunk| {
            let compared = Self::of_lines(&lines_of(before, &hunk.before), &lines_of(after, &hunk.after));
            let (above, above_after) = (hunk.before.start, hunk.after.start);
            let moved = move |hunk: Hunk| Hunk {
                before: hunk.before.start + above..hunk.before.end + above,
                after: hunk.after.start + above_after..hunk.after.end + above_after,
            };
            compared.hunks.into_iter().map(moved)
        };
        let hunks = self.hunks.iter().flat_map(within).collect();
        Self { hunks, before_lines: self.before_lines, after_lines: self.after_lines }
    }

    /// Whether this can be a map between these texts: the line counts agree, and the lines that it keeps are equal.
    pub fn fits(&self, before: &Text, after: &Text) -> bool {
        let same = |(run, shift): (Range<usize>, i64)| {
            let bytes = |text: &Text, from: usize, to: usize| text.start_of(from)..text.start_of(to);
            let old = &before.as_str()[bytes(before, run.start, run.end)];
            old == &after.as_str()[bytes(after, moved(run.start, shift), moved(run.end, shift))]
        };
        (self.before_lines, self.after_lines) == (before.line_count(), after.line_count()) && self.kept().all(same)
    }

    /// The replaced lines, from top to bottom.
    pub fn hunks(&self) -> &[Hunk] {
        &self.hunks
    }

    /// The runs of lines that are the same in both: old indexes, and by how much they moved.
    pub fn kept(&self) -> impl Iterator<Item = (Range<usize>, i64)> {
        let starts = std::iter::once((0, 0)).chain(self.hunks.iter().map(|h| (h.before.end, h.after.end)));
        let ends = self.hunks.iter().map(|h| h.before.start).chain([self.before_lines]);
        starts.zip(ends).map(|((old, new), end)| (old..end, new as i64 - old as i64)).filter(|(run, _)| !run.is_empty())
    }

    /// Where an old line is now; `None` if it was changed or removed.
    pub fn new_place(&self, line: LineNo) -> Option<LineNo> {
        let index = line.index();
        let (above, below) = self.hunks.split_at(self.hunks.partition_point(|hunk| hunk.before.end <= index));
        let is_kept = index < self.before_lines && below.first().is_none_or(|hunk| index < hunk.before.start);
        if is_kept { line.moved(shift_after(above)) } else { None }
    }

    /// The number of lines in the old text.
    pub fn before_lines(&self) -> usize {
        self.before_lines
    }

    /// The number of lines in the new text.
    pub fn after_lines(&self) -> usize {
        self.after_lines
    }

    /// The lines of the new text that a reader of the old one must see: new and changed lines, and the neighbours of
    /// removed lines.
    pub fn affected(&self) -> LineSet {
        let around = |hunk: &Hunk| {
            if hunk.after.is_empty() {
                hunk.after.start.saturating_sub(1)..(hunk.after.end + 1).min(self.after_lines)
            } else {
                hunk.after.clone()
            }
        };
        self.hunks.iter().filter_map(|hunk| LineRange::from_indexes(around(hunk))).collect()
    }

    /// How the line numbers moved: after this new line, by this much. Hunks that move nothing are left out.
    pub fn shifts(&self) -> Vec<LineShift> {
        let mut total = 0;
        let mut shifts = Vec::new();
        for hunk in self.hunks.iter().filter(|hunk| hunk.shift() != 0) {
            total += hunk.shift();
            if hunk.after.end < self.after_lines {
                shifts.push(LineShift { after: hunk.after.end, by: total });
            }
        }
        shifts
    }
}

fn lines_of<'a>(text: &'a Text, indexes: &Range<usize>) -> Vec<&'a str> {
    indexes.clone().map(|index| text.full_line(LineNo::at_index(index))).collect()
}

/// The distance by which the lines right after these hunks have moved.
pub(crate) fn shift_after(hunks: &[Hunk]) -> i64 {
    hunks.last().map_or(0, |last| last.after.end as i64 - last.before.end as i64)
}

/// The new index of a kept line.
pub(crate) fn moved(line: usize, by: i64) -> usize {
    usize::try_from(line as i64 + by).expect("a kept line has a place in both texts")
}

/// The stored form: the number of lines, then for each hunk `START-REMOVED+ADDED`, where `START` is the number of lines
/// above it.
impl fmt::Display for LineMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.before_lines)?;
        self.hunks.iter().try_for_each(|Hunk { before, after }| write!(f, " {}-{}+{}", before.start, before.len(), after.len()))
    }
}

/// The text is not a stored line map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a line map")]
pub struct NotALineMap;

impl FromStr for LineMap {
    type Err = NotALineMap;

    fn from_str(stored: &str) -> Result<Self, NotALineMap> {
        let number = |digits: &str| digits.parse::<u32>().map(|number| number as usize).map_err(|_| NotALineMap);
        let mut words = stored.split(' ');
        let before_lines = number(words.next().unwrap_or_default())?;
        let (mut hunks, mut old, mut new) = (Vec::new(), 0, 0);
        for word in words {
            let (start, counts) = word.split_once('-').ok_or(NotALineMap)?;
            let (removed, added) = counts.split_once('+').ok_or(NotALineMap)?;
            let (start, removed, added) = (number(start)?, number(removed)?, number(added)?);
            let is_apart = hunks.is_empty() || start > old;
            if !is_apart || start < old || start + removed > before_lines || removed + added == 0 {
                return Err(NotALineMap);
            }
            let place = new + (start - old);
            hunks.push(Hunk { before: start..start + removed, after: place..place + added });
            (old, new) = (start + removed, place + added);
        }
        Ok(Self { hunks, before_lines, after_lines: new + (before_lines - old) })
    }
}

serde_as_text!(LineMap);

/// The lines after `after` (0 means the top) are `by` lines further down than before.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LineShift {
    /// The last line that is not covered, in new numbers.
    pub after: usize,
    /// The sum of all moves so far.
    pub by: i64,
}

/// One replacement in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice<'a> {
    /// The replaced bytes, as offsets into [`Text::as_str`].
    pub range: Range<usize>,
    /// The new text for these bytes.
    pub with: Cow<'a, str>,
}

/// Applies splices (in order, not overlapping), and returns exactly which bytes replaced which.
pub fn splice(text: &Text, splices: &[Splice<'_>]) -> (String, Vec<SplicedBytes>) {
    let grown: usize = splices.iter().map(|s| s.with.len()).sum();
    let mut content = String::with_capacity(text.as_str().len() + grown);
    let mut sources = Vec::with_capacity(splices.len());
    let mut copied = 0;
    for splice in splices {
        content.push_str(&text.as_str()[copied..splice.range.start]);
        let start = content.len();
        content.push_str(&splice.with);
        sources.push(SplicedBytes { before: splice.range.clone(), after: start..content.len() });
        copied = splice.range.end;
    }
    content.push_str(&text.as_str()[copied..]);
    (content, sources)
}

/// Bytes of an old text, and the bytes of the new text that replaced them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplicedBytes {
    before: Range<usize>,
    after: Range<usize>,
}

/// The line map of an edit, computed from the bytes that it replaced. Lines at the edge of a replacement that do not
/// change count as kept.
pub fn exact_map(before: &Text, after: &Text, sources: &[SplicedBytes]) -> LineMap {
    let mut places: Vec<TouchedLines<'_>> = Vec::new();
    for source in sources {
        let hunk = Hunk { before: touched_lines(before, &source.before), after: touched_lines(after, &source.after) };
        match places.last_mut() {
            Some(TouchedLines { hunk: last, sources: (_, until) })
                if hunk.before.start < last.before.end || hunk.after.start < last.after.end =>
            {
                *last = Hunk { before: last.before.start..hunk.before.end, after: last.after.start..hunk.after.end };
                *until = source;
            }
            _ => places.push(TouchedLines { hunk, sources: (source, source) }),
        }
    }
    let hunks = places.into_iter().map(|place| place.trimmed(before, after));
    let hunks = hunks.filter(|hunk| !hunk.before.is_empty() || !hunk.after.is_empty());
    LineMap::exact(hunks.collect(), before.line_count(), after.line_count())
}

/// Lines that one replacement touches, or several adjacent ones.
struct TouchedLines<'a> {
    hunk: Hunk,
    /// The first and the last replacement.
    sources: (&'a SplicedBytes, &'a SplicedBytes),
}

impl TouchedLines<'_> {
    /// The hunk without the lines at its edges that do not change.
    fn trimmed(self, before: &Text, after: &Text) -> Hunk {
        let TouchedLines { mut hunk, sources: (first, last) } = self;
        let same = |old: usize, new: usize| before.full_line(LineNo::at_index(old)) == after.full_line(LineNo::at_index(new));
        if !std::ptr::eq(first, last) {
            // One replacement may insert what another removed, so only lines that no replacement touches are the same
            // lines.
            let start = (before.start_of(hunk.before.start), after.start_of(hunk.after.start));
            let is_above = start.0 + first.after.start == start.1 + first.before.start;
            let is_below = |old: usize, new: usize| {
                let (old, new) = (before.start_of(old), after.start_of(new));
                old >= last.before.end && new >= last.after.end && old - last.before.end == new - last.after.end
            };
            trim_tail(&mut hunk, |old, new| is_below(old, new) && same(old, new));
            trim_head(&mut hunk, |old, new| is_above && before.start_of(old + 1) <= first.before.start && same(old, new));
            return hunk;
        }
        // Of two equal lines, the old one is the lower one if the insertion was above it, and the upper one if the
        // insertion was below it.
        let (line, at) = (before.start_of(hunk.before.start), first.before.start);
        if at == line {
            trim_tail(&mut hunk, same);
            trim_head(&mut hunk, same);
        } else if at < line + before.line(LineNo::at_index(hunk.before.start)).len() {
            trim_head(&mut hunk, same);
            trim_tail(&mut hunk, same);
        } else {
            // The replacement begins at the ending of the line.
            let first = hunk.before.start;
            trim_head(&mut hunk, same);
            // Its first line is the first inserted line, even if the line gained or lost an ending and so is not
            // exactly the same.
            let kept = usize::from(hunk.before.start == first);
            let mut rest =
                Hunk { before: hunk.before.start + kept..hunk.before.end, after: hunk.after.start + kept..hunk.after.end };
            trim_tail(&mut rest, same);
            (hunk.before.end, hunk.after.end) = (rest.before.end, rest.after.end);
        }
        hunk
    }
}

fn trim_head(hunk: &mut Hunk, same: impl Fn(usize, usize) -> bool) {
    while !hunk.before.is_empty() && !hunk.after.is_empty() && same(hunk.before.start, hunk.after.start) {
        hunk.before.start += 1;
        hunk.after.start += 1;
    }
}

fn trim_tail(hunk: &mut Hunk, same: impl Fn(usize, usize) -> bool) {
    while !hunk.before.is_empty() && !hunk.after.is_empty() && same(hunk.before.end - 1, hunk.after.end - 1) {
        hunk.before.end -= 1;
        hunk.after.end -= 1;
    }
}

/// The lines that contain these bytes, and the line that the following bytes are on.
fn touched_lines(text: &Text, bytes: &Range<usize>) -> Range<usize> {
    let count = text.line_count();
    let behind_last_line = bytes.start >= text.as_str().len() && (text.as_str().is_empty() || text.as_str().ends_with('\n'));
    if count == 0 || behind_last_line {
        return count..count;
    }
    text.line_at(bytes.start).index()..text.line_at(bytes.end).index() + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Text {
        Text::new(text.as_bytes().to_vec()).unwrap()
    }

    #[track_caller]
    fn check_affected(before: &str, after: &str, affected: &str) {
        assert_eq!(LineMap::between(&text(before), &text(after)).affected().to_string(), affected);
    }

    #[test]
    fn affected_lines_are_in_new_numbers() {
        check_affected("a\nb\nc\n", "a\nb\nc\n", "");
        check_affected("a\nb\nc\n", "a\nX\nc\n", "2");
        check_affected("a\nb\nc\n", "0\na\nb\nc\n", "1");
        check_affected("a\nb\nc\nd\n", "a\nd\n", "1-2");
        check_affected("a\nb\n", "a\n", "1");
        check_affected("a\nb\n", "b\n", "1");
        check_affected("a\n", "", "");
        check_affected("a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "1, 5");
        check_affected("a", "a\n", "1");
    }

    #[test]
    fn shifts_say_how_the_numbers_below_moved() {
        let map = LineMap::between(&text("a\nb\nc\nd\ne\n"), &text("a\nB\nBB\nc\nd\n"));
        assert_eq!(map.shifts(), [LineShift { after: 3, by: 1 }]);
    }

    #[test]
    fn a_line_that_was_removed_is_not_taken_for_an_equal_one_above_it() {
        let before = text("a\nb\nb");
        let (content, sources) = splice(&before, &[Splice { range: 3..5, with: "".into() }]);
        let map = exact_map(&before, &text(&content), &sources);
        assert_eq!((content.as_str(), map.new_place(LineNo::at_index(2))), ("a\nb", None));
    }

    #[test]
    fn edits_that_touch_each_other_do_not_give_back_each_others_lines() {
        // A line is inserted above, and the second of two equal ones is removed.
        let before = text("b\nb");
        let edits = [Splice { range: 0..0, with: "a\n".into() }, Splice { range: 1..3, with: "".into() }];
        let (content, sources) = splice(&before, &edits);
        let map = exact_map(&before, &text(&content), &sources);
        assert_eq!((content.as_str(), map.new_place(LineNo::at_index(1))), ("a\nb", None));
        // A line that no edit touches stays the same line.
        let before = text("a\nb\nc\nd\n");
        let edits = [Splice { range: 2..4, with: "B\n".into() }, Splice { range: 4..4, with: "x\n".into() }];
        let (content, sources) = splice(&before, &edits);
        let map = exact_map(&before, &text(&content), &sources);
        let places: Vec<Option<u32>> = (0..4).map(|line| map.new_place(LineNo::at_index(line)).map(LineNo::get)).collect();
        assert_eq!(places, [Some(1), None, Some(4), Some(5)]);
    }

    #[test]
    fn a_line_is_not_taken_for_an_equal_one_that_was_put_behind_it() {
        let place = |content: &str, at: usize, with: &'static str| {
            let before = text(content);
            let (content, sources) = splice(&before, &[Splice { range: at..at, with: with.into() }]);
            exact_map(&before, &text(&content), &sources).new_place(LineNo::FIRST)
        };
        // It has an ending now, so it is not exactly the same line; but the other one is a different line.
        assert_eq!(place("a", 1, "\na"), None);
        assert_eq!(place("a\n", 2, "a\n"), Some(LineNo::FIRST));
        assert_eq!(place("  a\n", 2, "b\n  "), LineNo::new(2));
    }

    #[test]
    fn a_line_map_is_stored_as_a_short_text() {
        let stored = "9 0-0+2 3-1+0 5-2+3";
        let map: LineMap = stored.parse().unwrap();
        let hunk = |before, after| Hunk { before, after };
        assert_eq!(map.hunks(), [hunk(0..0, 0..2), hunk(3..4, 5..5), hunk(5..7, 6..9)]);
        assert_eq!((map.before_lines, map.after_lines), (9, 11));
        assert_eq!(map.to_string(), stored);
        for bad in [
            "",
            "x",
            "3 1",
            "3 1-1",
            "3 1-x+1",
            "3 2-2+0",
            "3 1-0+0",
            "3 2-1+0 1-1+0",
            "5 1-1+0 2-1+0",
            "3  1-1+1",
            "-1",
            "99999999999",
        ] {
            assert_eq!(bad.parse::<LineMap>(), Err(NotALineMap), "{bad:?}");
        }
    }

    #[test]
    fn lines_that_were_changed_back_are_kept() {
        let (one, two) = (text("a\nb\nc\n"), text("a\nX\nc\n"));
        let there_and_back = LineMap::between(&one, &two).then(&LineMap::between(&two, &one));
        assert_eq!(there_and_back.new_place(LineNo::at_index(1)), None);
        assert_eq!(there_and_back.without_restored(&one, &one).hunks(), []);
    }

    proptest! {
        /// A line that both maps keep is kept at the place that both lead to. No other line is kept.
        #[test]
        fn maps_compose_line_by_line(one in "([abc]\n){0,9}", two in "([abc]\n){0,9}", three in "([abc]\n){0,9}") {
            let (one, two, three) = (text(&one), text(&two), text(&three));
            let (first, next) = (LineMap::between(&one, &two), LineMap::between(&two, &three));
            let both = first.then(&next);
            for line in (0..one.line_count()).map(LineNo::at_index) {
                prop_assert_eq!(both.new_place(line), first.new_place(line).and_then(|line| next.new_place(line)));
            }
            prop_assert!(both.fits(&one, &three));
            prop_assert_eq!(both.inverse(), next.inverse().then(&first.inverse()));
            prop_assert_eq!(both.to_string().parse::<LineMap>(), Ok(both));
        }

        #[test]
        fn kept_lines_are_the_same_lines(before in "([abc]\n){0,12}", after in "([abc]\n){0,12}") {
            let (before, after) = (text(&before), text(&after));
            let map = LineMap::between(&before, &after);
            let mut rebuilt = vec![None; after.line_count()];
            for (number, old) in before.lines() {
                if let Some(place) = map.new_place(number) {
                    prop_assert_eq!(old, after.line(place));
                    rebuilt[place.index()] = Some(());
                }
            }
            for hunk in map.hunks() {
                rebuilt[hunk.after.clone()].fill(Some(()));
            }
            prop_assert!(rebuilt.iter().all(Option::is_some), "every new line is kept or in a hunk");
        }

        #[test]
        fn the_map_of_a_splice_keeps_only_equal_lines(
            content in "([ab]{0,2}(\r\n|\n)){0,8}[ab]{0,2}", at in 0usize..30, len in 0usize..10, with in "([ab]|\n){0,6}",
        ) {
            let before = text(&content);
            let start = at.min(content.len());
            let end = (start + len).min(content.len());
            prop_assume!(content.is_char_boundary(start) && content.is_char_boundary(end));
            let (bytes, sources) = splice(&before, &[Splice { range: start..end, with: Cow::Borrowed(&with) }]);
            let after = Text::of(bytes).unwrap();
            let map = exact_map(&before, &after, &sources);
            let mut covered = 0;
            for (run, shift) in map.kept() {
                for old in run {
                    let new = (old as i64 + shift) as usize;
                    prop_assert_eq!(before.full_line(LineNo::at_index(old)), after.full_line(LineNo::at_index(new)));
                    covered += 1;
                }
            }
            covered += map.hunks().iter().map(|h| h.after.len()).sum::<usize>();
            prop_assert_eq!(covered, after.line_count());
        }
    }
}
