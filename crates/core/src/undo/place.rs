//! Finds the place of a hunk of an older change in the present text.

use std::ops::Range;

use crate::{
    line_map::{Hunk, LineMap, moved, shift_after},
    outcome::undo::NotUndoneCause,
    text::Text,
};

/// The action for one hunk of a change that is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HunkPlace {
    /// The old lines replace these runs of lines. If lines are only removed, there may be several runs, with lines of
    /// others between them. If lines are only put back, there is one empty run.
    Runs(Vec<Range<usize>>),
    /// The old lines are present already, or the new ones are gone, so nothing has to be done.
    AlreadySo,
    /// The place is not proven.
    Left {
        why: NotUndoneCause,
        /// The lines that are in its place now.
        now: Range<usize>,
    },
}

/// Places hunks of a change from `before` to `after` in the text `now`. Every line that `to_draft` keeps is proven to
/// be the line that it leads to.
pub(super) struct HunkPlacer<'a> {
    pub(super) before: &'a Text,
    pub(super) after: &'a Text,
    pub(super) now: &'a Text,
    pub(super) to_draft: &'a LineMap,
}

impl HunkPlacer<'_> {
    pub(super) fn place(&self, hunk: &Hunk) -> HunkPlace {
        match hunk.after.is_empty() {
            true => self.place_gap(hunk),
            false => self.place_lines(hunk),
        }
    }

    /// Places a hunk that only removed lines. They come back where the lines around them are still adjacent.
    fn place_gap(&self, hunk: &Hunk) -> HunkPlace {
        let gap = hunk.after.start;
        let hunks = self.to_draft.hunks();
        let touching =
            hunks.get(hunks.partition_point(|theirs| theirs.before.end < gap)).filter(|theirs| theirs.before.start <= gap);
        match touching {
            None => {
                let place = moved(gap, self.shift_above(gap));
                HunkPlace::Runs(std::iter::once(place..place).collect())
            }
            Some(theirs) if theirs.before.is_empty() && self.is_old_again(hunk, &theirs.after) => HunkPlace::AlreadySo,
            Some(theirs) => {
                let around = gap.saturating_sub(1)..(gap + 1).min(self.after.line_count());
                HunkPlace::Left { why: self.why(&around, &theirs.after), now: theirs.after.clone() }
            }
        }
    }

    /// Places a hunk that added or replaced lines. All of them must still be present, or have been deleted. Between
    /// added lines, others may have inserted some; between replacing lines they may not, because the place of those
    /// would be a guess.
    fn place_lines(&self, hunk: &Hunk) -> HunkPlace {
        let lines = &hunk.after;
        let hunks = self.to_draft.hunks();
        let from = hunks.partition_point(|theirs| theirs.before.end <= lines.start);
        let to = from + hunks[from..].partition_point(|theirs| theirs.before.start < lines.end);
        let theirs = &hunks[from..to];
        let is_replaced = |theirs: &Hunk| !theirs.before.is_empty() && !theirs.after.is_empty();
        let is_only_added = hunk.before.is_empty();
        if theirs.is_empty() || (is_only_added && !theirs.iter().any(is_replaced)) {
            let runs = self.kept_runs(lines, theirs);
            return match runs.first() {
                Some(_) => HunkPlace::Runs(runs),
                None => HunkPlace::AlreadySo,
            };
        }
        let now = self.region(lines, theirs);
        match theirs {
            [only] if only.before == *lines && self.is_old_again(hunk, &only.after) => HunkPlace::AlreadySo,
            _ => HunkPlace::Left { why: self.why(lines, &now), now },
        }
    }

    /// The present places of those lines that are kept. `theirs` are the hunks among them.
    fn kept_runs(&self, lines: &Range<usize>, theirs: &[Hunk]) -> Vec<Range<usize>> {
        let starts = std::iter::once(lines.start).chain(theirs.iter().map(|theirs| theirs.before.end.max(lines.start)));
        let ends = theirs.iter().map(|theirs| theirs.before.start.min(lines.end)).chain([lines.end]);
        let now = |run: Range<usize>| {
            let shift = self.shift_above(run.start);
            moved(run.start, shift)..moved(run.end, shift)
        };
        starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| now(start..end)).collect()
    }

    /// All lines that are now in the place of these lines.
    fn region(&self, lines: &Range<usize>, theirs: &[Hunk]) -> Range<usize> {
        let start = match theirs.first() {
            Some(first) if first.before.start <= lines.start => first.after.start,
            _ => moved(lines.start, self.shift_above(lines.start)),
        };
        let end = match theirs.last() {
            Some(last) if last.before.end >= lines.end => last.after.end,
            _ => moved(lines.end, self.shift_above(lines.end - 1)),
        };
        start..end
    }

    /// The distance by which a kept line has moved.
    fn shift_above(&self, line: usize) -> i64 {
        let hunks = self.to_draft.hunks();
        shift_after(&hunks[..hunks.partition_point(|theirs| theirs.before.end <= line)])
    }

    fn is_old_again(&self, hunk: &Hunk, now: &Range<usize>) -> bool {
        bytes(self.before, &hunk.before) == bytes(self.now, now)
    }

    /// The reason why these lines of the change are not found: they may be unchanged, but cannot be distinguished from
    /// equal ones.
    fn why(&self, lines: &Range<usize>, now: &Range<usize>) -> NotUndoneCause {
        let around = now.start.saturating_sub(1)..(now.end + 1).min(self.now.line_count());
        let is_at = |start: usize| bytes(self.now, &(start..start + lines.len())) == bytes(self.after, lines);
        let is_in_doubt = (around.start..(around.end + 1).saturating_sub(lines.len())).any(is_at);
        if is_in_doubt { NotUndoneCause::LinesInDoubt } else { NotUndoneCause::LinesChanged }
    }
}

/// The text of these lines, with their endings.
pub(super) fn bytes<'a>(text: &'a Text, lines: &Range<usize>) -> &'a str {
    &text.as_str()[text.start_of(lines.start)..text.start_of(lines.end)]
}
