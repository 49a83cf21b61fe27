//! A view: which lines of which version of a file a session has seen, and under which number each line was last shown.
//!
//! A view only grows by lines that the model was actually shown. When the file changes, lines that stayed the same are
//! carried over by a line map and keep the number they were *shown* under; the rest drop out. So an anchor such as
//! `12#ab` means the line that was last shown as 12, wherever that line is now. If the line that has number 12 now also
//! fits the anchor, the edit is refused as ambiguous.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    hash::ContentHash,
    line_map::{Hunk, LineMap},
    lines::{LineNo, LineRange, LineSet},
    proof::Proof,
    text::Text,
};

/// Everything a session knows about one file, at one version. When the file changes, unchanged lines are carried
/// over to the new version and the others drop out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    version: ContentHash,
    total_lines: usize,
    seen: Vec<Span>,
    /// Lines that have been shown under another number since, by the earlier number. An anchor with an earlier number
    /// means that line, not the line that has the number now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<Span>,
    /// Numbers of lines that are gone. An anchor with one of them means a line that no longer exists.
    #[serde(default, skip_serializing_if = "LineSet::is_empty")]
    gone: LineSet,
    unknown: bool,
    /// The state of the file that was last reported to the session. `None` if that is `version`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "told")]
    reported: Option<OutsideState>,
}

/// The state of a file after a change from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutsideState {
    /// The file has this version.
    Version(ContentHash),
    /// The file was deleted, or cannot be read.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Span {
    lines: LineRange,
    /// The number under which the first line was last shown; `None` if the session wrote the lines and was never shown
    /// a number for them.
    shown: Option<LineNo>,
    /// Whether other lines have been shown under these numbers since. Then the numbers serve only to resolve an old
    /// anchor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    superseded: bool,
}

impl Span {
    fn part(self, lines: LineRange) -> Option<Span> {
        let lines = LineRange::new(self.lines.start.max(lines.start), self.lines.end.min(lines.end))?;
        let by = i64::from(lines.start.get()) - i64::from(self.lines.start.get());
        Some(Span { lines, shown: self.shown.and_then(|shown| shown.moved(by)), ..self })
    }

    fn shown_range(self) -> Option<LineRange> {
        let start = self.shown?;
        LineRange::new(start, start.moved(i64::from(self.lines.count()) - 1)?)
    }

    /// The part of the span that was last shown under these numbers.
    fn shown_within(self, numbers: LineRange) -> Option<Span> {
        let (shown, by) = (self.shown_range()?, self.moved()?);
        let numbers = LineRange::new(numbers.start.max(shown.start), numbers.end.min(shown.end))?;
        self.part(LineRange { start: numbers.start.moved(by)?, end: numbers.end.moved(by)? })
    }

    /// The distance of its lines from the numbers they were shown under.
    fn moved(self) -> Option<i64> {
        Some(i64::from(self.lines.start.get()) - i64::from(self.shown?.get()))
    }
}

impl View {
    /// A view of this text with nothing seen yet.
    pub fn of(text: &Text) -> Self {
        Self { seen: Vec::new(), ..Self::whole(text) }
    }

    /// A view of the whole text, each line shown under its own number.
    pub fn whole(text: &Text) -> Self {
        Self::whole_of(text.version(), text.line_count())
    }

    /// A view in which every line of a text with this many lines was shown under its own number.
    pub fn whole_of(version: ContentHash, lines: usize) -> Self {
        let span = |lines: LineRange| Span { lines, shown: Some(lines.start), superseded: false };
        let seen = LineRange::from_indexes(0..lines).map(span).into_iter().collect();
        Self { version, total_lines: lines, seen, former: Vec::new(), gone: LineSet::new(), unknown: false, reported: None }
    }

    /// The version that the view describes.
    pub fn version(&self) -> ContentHash {
        self.version
    }

    /// The number of lines in that version.
    pub fn total_lines(&self) -> usize {
        self.total_lines
    }

    /// Whether the file was invalidated: it must be read again, whatever its content is.
    pub fn is_unknown(&self) -> bool {
        self.unknown
    }

    /// Records that this state was reported to the session. Returns `false` if the session knew it already.
    pub fn record_told(&mut self, now: OutsideState) -> bool {
        if self.last_known() == now {
            return false;
        }
        // A return to the version seen needs no notice, but the next change after it does.
        self.reported = (now != OutsideState::Version(self.version)).then_some(now);
        self.reported.is_some()
    }

    /// The state of the file as the session knows it: the last one reported, else the version it saw.
    pub fn last_known(&self) -> OutsideState {
        self.reported.unwrap_or(OutsideState::Version(self.version))
    }

    /// Marks the file as unknown until it is read again.
    pub fn invalidate(&mut self) {
        self.unknown = true;
    }

    /// Whether every line has been seen in full.
    pub fn is_whole(&self) -> bool {
        self.seen_lines().count() as usize == self.total_lines
    }

    /// The lines that were seen.
    pub fn seen_lines(&self) -> LineSet {
        self.seen.iter().map(|span| span.lines).collect()
    }

    /// The lines that were not seen.
    pub fn unseen_lines(&self) -> LineSet {
        LineSet::whole(self.total_lines).minus(&self.seen_lines())
    }

    /// Whether a line was seen in full.
    pub fn has_seen(&self, line: LineNo) -> bool {
        self.seen.iter().any(|span| span.lines.contains(line))
    }

    /// Whether all these lines were last shown under the numbers that they have now.
    pub fn are_fresh(&self, lines: &LineSet) -> bool {
        let fresh: LineSet =
            self.seen.iter().filter(|span| span.moved() == Some(0) && !span.superseded).map(|span| span.lines).collect();
        lines.minus(&fresh).is_empty()
    }

    /// The line that was last shown under this number; it may be elsewhere now.
    pub fn line_shown_as(&self, number: LineNo) -> Option<LineNo> {
        self.lines_shown_as(number, false).next()
    }

    /// The line that was shown under this number before another line was; `None` if there were several.
    pub fn line_once_shown_as(&self, number: LineNo) -> Option<LineNo> {
        let mut lines = self.lines_shown_as(number, true);
        lines.next().filter(|_| lines.next().is_none())
    }

    fn lines_shown_as(&self, number: LineNo, superseded: bool) -> impl Iterator<Item = LineNo> {
        let shown =
            move |span: &&Span| span.superseded == superseded && span.shown_range().is_some_and(|range| range.contains(number));
        self.seen.iter().chain(&self.former).filter(shown).filter_map(move |span| number.moved(span.moved()?))
    }

    /// Records that these lines were shown in full under their current numbers.
    pub fn show_set(&mut self, lines: &LineSet) {
        lines.ranges().iter().for_each(|range| self.show(*range));
    }

    /// A copy of this view after these lines were shown in full under their current numbers.
    #[must_use]
    pub fn showing(mut self, lines: &LineSet) -> Self {
        self.show_set(lines);
        self
    }

    /// Records that these lines were shown in full under their current numbers.
    pub fn show(&mut self, lines: LineRange) {
        // These numbers now mean these lines, so lines that had these numbers before lose them.
        let mut spans = Vec::with_capacity(self.seen.len() + 2);
        let mut former = std::mem::take(&mut self.former);
        for span in self.seen.drain(..) {
            // The lines get these numbers now, but an anchor with an earlier number still means them.
            former.extend(span.part(lines).filter(|part| !part.superseded && part.moved().is_some_and(|by| by != 0)));
            for span in parts_outside(span, lines) {
                match span.shown_within(lines).filter(|_| !span.superseded) {
                    Some(taken) => {
                        spans.extend(parts_outside(span, taken.lines));
                        spans.push(Span { superseded: true, ..taken });
                    }
                    None => spans.push(span),
                }
            }
        }
        for span in former {
            match span.shown_within(lines) {
                Some(taken) => self.former.extend(parts_outside(span, taken.lines)),
                None => self.former.push(span),
            }
        }
        spans.push(Span { lines, shown: Some(lines.start), superseded: false });
        self.seen = join_neighbours(spans);
        if !self.gone.is_empty() {
            self.gone = self.gone.minus(&[lines].into_iter().collect());
        }
    }

    /// Whether the line that was last shown under this number is gone.
    pub fn is_gone(&self, number: LineNo) -> bool {
        self.gone.contains(number)
    }

    /// The view after a change by another writer, from `from` to `to`. Unchanged lines are still seen. A number leads
    /// to a line only if the line is proven to be the one that was shown under it.
    pub fn carried(&self, from: &Text, map: &LineMap, to: &Text) -> View {
        self.carried_by(&Proof::by_contents(Cow::Borrowed(map), from, to), to)
    }

    /// Like [`View::carried`], with a proof of where the lines are now.
    pub(crate) fn carried_by(&self, proof: &Proof<'_>, to: &Text) -> View {
        let map = proof.map();
        let proven = proof.proven_of(&self.seen.iter().chain(&self.former).map(|span| span.lines).collect());
        let doubtful = |span: &Span| [span.lines].into_iter().collect::<LineSet>().minus(&proven);
        let sure = |span: &Span| {
            let (all, span): (LineSet, Span) = ([span.lines].into_iter().collect(), *span);
            let sure = all.minus(&doubtful(&span));
            sure.ranges().iter().filter_map(|range| span.part(*range)).collect::<Vec<_>>()
        };
        let mut spans = Vec::with_capacity(self.seen.len());
        for span in &self.seen {
            spans.extend(sure(span));
            let parts = doubtful(span);
            spans.extend(parts.ranges().iter().filter_map(|range| span.part(*range)).map(|part| Span { shown: None, ..part }));
        }
        let former: Vec<Span> = self.former.iter().flat_map(sure).collect();
        self.moved_to(
            to.version(),
            to,
            join_neighbours(carried_spans(&join_neighbours(spans), map)),
            carried_formers(&former, map),
        )
    }

    /// Like [`View::carried`], for a session that was not shown the change. The lines beside a removal no longer count
    /// as seen: otherwise a session that still believes in the removed lines would count as having seen the whole file.
    pub fn carried_unshown(&self, from: &Text, map: &LineMap, to: &Text) -> View {
        let mut view = self.carried(from, map, to);
        view.hide_set(&map.affected());
        view
    }

    fn hide_set(&mut self, lines: &LineSet) {
        for range in lines.ranges() {
            self.seen = self.seen.drain(..).flat_map(|span| parts_outside(span, *range)).collect();
        }
    }

    /// The view of another text with these spans. Numbers that no longer lead to a line are kept as gone.
    fn moved_to(&self, version: ContentHash, to: &Text, seen: Vec<Span>, former: Vec<Span>) -> View {
        let numbers = |seen: &[Span], former: &[Span]| -> LineSet {
            seen.iter().chain(former).filter(|span| !span.superseded).filter_map(|span| span.shown_range()).collect()
        };
        let lost = numbers(&self.seen, &self.former).minus(&numbers(&seen, &former));
        let gone = self.gone.ranges().iter().chain(lost.ranges()).copied().collect();
        View { version, total_lines: to.line_count(), seen, former, gone, unknown: self.unknown, reported: None }
    }

    /// The view after the session's own edit. The session knows the lines that it wrote, but no numbers for them. It
    /// does not know a line that it changed in part without having seen the rest. The view keeps its old version until
    /// it is [settled](View::settled), because more edits may follow, and hashing each text would take longer than the
    /// edits.
    pub(crate) fn during_own_edits(&self, map: &LineMap, to: &Text) -> View {
        let mut spans = carried_spans(&self.seen, map);
        let seen = self.seen_lines();
        let knew = |hunk: &&Hunk| {
            let before: LineSet = LineRange::from_indexes(hunk.before.clone()).into_iter().collect();
            before.minus(&seen).is_empty()
        };
        let written = map.hunks().iter().filter(knew).filter_map(|hunk| LineRange::from_indexes(hunk.after.clone()));
        spans.extend(written.map(|lines| Span { lines, shown: None, superseded: false }));
        self.moved_to(self.version, to, join_neighbours(spans), carried_formers(&self.former, map))
    }

    /// The view with the version of this text.
    pub(crate) fn settled(self, to: &Text) -> View {
        View { version: to.version(), ..self }
    }

    /// Ends the invalidation, because the session was shown what changed.
    pub fn know_again(&mut self) {
        self.unknown = false;
    }
}

/// The spans in new numbers. Both lists are sorted, so one pass is enough.
fn carried_spans(spans: &[Span], map: &LineMap) -> Vec<Span> {
    let mut carried = Vec::with_capacity(spans.len());
    let mut from = 0;
    for (run, shift) in map.kept() {
        let Some(run) = LineRange::from_indexes(run) else { continue };
        while spans.get(from).is_some_and(|span| span.lines.end < run.start) {
            from += 1;
        }
        let touching = spans[from..].iter().take_while(|span| span.lines.start <= run.end);
        carried.extend(touching.filter_map(|span| moved_with(*span, run, shift)));
    }
    carried
}

/// Like [`carried_spans`], for earlier numbers. There are few of them, and they may overlap.
fn carried_formers(spans: &[Span], map: &LineMap) -> Vec<Span> {
    if spans.is_empty() {
        return Vec::new();
    }
    let runs: Vec<(LineRange, i64)> =
        map.kept().filter_map(|(run, shift)| Some((LineRange::from_indexes(run)?, shift))).collect();
    let carried = |span: &Span| {
        let from = runs.partition_point(|(run, _)| run.end < span.lines.start);
        let (span, until) = (*span, span.lines.end);
        runs[from..]
            .iter()
            .take_while(move |(run, _)| run.start <= until)
            .filter_map(move |(run, by)| moved_with(span, *run, *by))
    };
    spans.iter().flat_map(carried).collect()
}

/// The part of a span that lies in a run of lines that has moved.
fn moved_with(span: Span, run: LineRange, by: i64) -> Option<Span> {
    let part = span.part(run)?;
    let moved = |line: LineNo| line.moved(by).expect("a kept line has a place in the new text");
    Some(Span { lines: LineRange { start: moved(part.lines.start), end: moved(part.lines.end) }, ..part })
}

/// The parts of a span before and after `hole`.
fn parts_outside(span: Span, hole: LineRange) -> impl Iterator<Item = Span> {
    let before = hole.start.moved(-1).and_then(|end| LineRange::new(LineNo::FIRST, end));
    let after = hole.end.moved(1).and_then(|start| LineRange::new(start, span.lines.end.max(start)));
    [before, after].into_iter().flatten().filter_map(move |side| span.part(side))
}

/// Sorts the spans, and joins neighbours that continue each other.
fn join_neighbours(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.lines.start);
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last)
                if last.lines.end.moved(1) == Some(span.lines.start)
                    && last.moved() == span.moved()
                    && last.superseded == span.superseded =>
            {
                last.lines.end = span.lines.end;
            }
            _ => joined.push(span),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(lines: usize) -> Text {
        Text::new((0..lines).map(|i| format!("{i}\n")).collect::<String>().into_bytes()).unwrap()
    }

    fn range(start: u32, end: u32) -> LineRange {
        LineRange::new(LineNo::new(start).unwrap(), LineNo::new(end).unwrap()).unwrap()
    }

    fn line(number: u32) -> LineNo {
        LineNo::new(number).unwrap()
    }

    fn insert(at: usize, count: usize, total: usize) -> LineMap {
        LineMap::exact(vec![crate::line_map::Hunk { before: at..at, after: at..at + count }], total, total + count)
    }

    #[test]
    fn pieces_add_up_to_the_whole() {
        let mut view = View::of(&text(10));
        view.show(range(1, 4));
        assert!(!view.is_whole());
        view.show(range(3, 10));
        assert!(view.is_whole());
        assert!(View::of(&text(0)).is_whole());
    }

    fn after_own_edit(view: &View, map: &LineMap, to: &Text) -> View {
        view.during_own_edits(map, to).settled(to)
    }

    /// Whether the line was last shown under the number that it has now.
    fn is_fresh(view: &View, line: LineNo) -> bool {
        view.line_shown_as(line) == Some(line)
    }

    #[test]
    fn an_own_insert_moves_lines_away_from_their_shown_numbers() {
        let view = after_own_edit(&View::whole(&text(10)), &insert(4, 3, 10), &text(13));
        assert!(view.is_whole());
        assert_eq!(view.line_shown_as(line(10)), Some(line(13)));
        assert!(is_fresh(&view, line(4)) && !is_fresh(&view, line(10)) && !is_fresh(&view, line(5)));
        assert_eq!(view.line_shown_as(line(11)), None);
    }

    #[test]
    fn the_last_showing_of_a_number_wins() {
        let mut view = after_own_edit(&View::whole(&text(10)), &insert(4, 3, 10), &text(13));
        view.show(range(5, 9));
        assert_eq!(view.line_shown_as(line(8)), Some(line(8)));
        assert_eq!(view.line_shown_as(line(10)), Some(line(13)));
        // Line 8 is still known, but the number 8 is only its former number.
        assert_eq!(view.line_once_shown_as(line(8)), Some(line(11)));
        assert!(view.has_seen(line(11)) && !is_fresh(&view, line(11)));
    }

    #[test]
    fn a_number_still_means_its_line_when_that_was_shown_again_under_another() {
        let mut view = after_own_edit(&View::whole(&text(10)), &insert(2, 2, 10), &text(12));
        view.show(range(4, 6));
        // The line that was line 3 has been shown as 5 since; the new line 3 was inserted.
        assert_eq!(view.line_shown_as(line(3)), Some(line(5)));
        let view = after_own_edit(&view, &insert(0, 1, 12), &text(13));
        assert_eq!((view.line_shown_as(line(3)), view.line_shown_as(line(5))), (Some(line(6)), Some(line(6))));
        let mut view = view;
        view.show(range(3, 3));
        assert_eq!(view.line_shown_as(line(3)), Some(line(3)));
    }

    proptest! {
        #[test]
        fn spans_follow_a_plain_model(steps in prop::collection::vec((0usize..2, 1u32..12, 0u32..6), 0..12)) {
            // The model: for every line, the number it was last shown under (0 = known without a number), or nothing;
            // and for every number the line that it was last shown for, by a name that moves with it.
            let mut total = 12;
            let mut model: Vec<Option<u32>> = vec![None; total];
            let mut names: Vec<u32> = (0..12).collect();
            let mut meant = std::collections::HashMap::new();
            let mut view = View::of(&text(total));
            for (kind, at, len) in steps {
                let at = at.min(total as u32);
                if kind == 0 {
                    let end = (at + len).min(total as u32);
                    view.show(range(at, end));
                    for slot in model.iter_mut().flatten() {
                        if (at..=end).contains(slot) { *slot = 0; }
                    }
                    for number in at..=end {
                        model[number as usize - 1] = Some(number);
                        meant.insert(number, names[number as usize - 1]);
                    }
                } else {
                    let len = len as usize;
                    view = after_own_edit(&view, &insert(at as usize, len, total), &text(total + len));
                    model.splice(at as usize..at as usize, vec![Some(0); len]);
                    let next = names.len() as u32;
                    names.splice(at as usize..at as usize, next..next + len as u32);
                    total += len;
                }
            }
            for (index, slot) in model.iter().enumerate() {
                let now = LineNo::at_index(index);
                prop_assert_eq!(view.has_seen(now), slot.is_some());
                prop_assert_eq!(is_fresh(&view, now), *slot == Some(now.get()));
            }
            for number in 1..=30 {
                let place = meant.get(&number).and_then(|name| names.iter().position(|known| known == name)).map(LineNo::at_index);
                prop_assert_eq!(view.line_shown_as(line(number)), place);
            }
        }
    }
}
