//! A short diff for a model: the changed lines with some context, bounded. This module decides which lines are shown,
//! because shown lines count as seen.

use std::ops::Range;

use crate::{
    excerpt::clip,
    line_map::{Hunk, LineMap},
    lines::{LineNo, LineRange, LineSet},
    text::Text,
};

/// A short diff with current numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShortDiff {
    /// The rows, from top to bottom.
    pub rows: Vec<ShortDiffRow>,
    /// The lines of the new text that are shown in full.
    pub shown: LineSet,
}

/// A row of a diff. Removed lines have their old numbers, all others their new ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShortDiffRow {
    /// Unchanged lines that are omitted.
    Gap,
    /// A line of context, which both texts have.
    Same(LineNo),
    /// A line that only the old text has.
    Removed(LineNo),
    /// A line that only the new text has.
    Added(LineNo),
    /// The number of further removed lines.
    MoreRemoved(usize),
    /// Further added lines, by their numbers.
    MoreAdded(LineRange),
    /// The number of further changes, and the lines that they touch.
    MoreChanges(usize, LineSet),
}

impl ShortDiff {
    /// The diff of two texts, given their line map.
    pub fn between(base: &Text, text: &Text, map: &LineMap) -> Self {
        let mut layout = DiffLayout { base, text, diff: Self::default(), rows: 0 };
        layout.hunks(map.hunks());
        layout.diff
    }
}

const CONTEXT: usize = 2;
const MAX_ROWS: usize = 60;

/// The number of characters that are shown of a longer line.
pub(crate) const ROW_CHARS: usize = 300;

struct DiffLayout<'a> {
    base: &'a Text,
    text: &'a Text,
    diff: ShortDiff,
    /// The number of rows that show a line.
    rows: usize,
}

impl DiffLayout<'_> {
    /// Adds hunks with the lines around them, until there are too many rows.
    fn hunks(&mut self, hunks: &[Hunk]) {
        let mut written = 0;
        for (index, hunk) in hunks.iter().enumerate() {
            if self.rows >= MAX_ROWS {
                let left = &hunks[index..];
                let rest = left.iter().filter_map(|hunk| LineRange::from_indexes(hunk.after.clone())).collect();
                self.diff.rows.push(ShortDiffRow::MoreChanges(left.len(), rest));
                return;
            }
            let start = hunk.after.start.saturating_sub(CONTEXT).max(written);
            if index > 0 && start > written {
                self.diff.rows.push(ShortDiffRow::Gap);
            }
            self.same_rows(start..hunk.after.start);
            self.old_rows(hunk.before.clone());
            self.new_rows(hunk.after.clone());
            let next = hunks.get(index + 1).map_or(self.text.line_count(), |next| next.after.start);
            written = (hunk.after.end + CONTEXT).min(next);
            self.same_rows(hunk.after.end..written);
        }
    }

    fn same_rows(&mut self, indexes: Range<usize>) {
        for line in indexes.map(LineNo::at_index) {
            self.diff.rows.push(ShortDiffRow::Same(line));
            self.show(line);
        }
    }

    fn old_rows(&mut self, indexes: Range<usize>) {
        debug_assert!(indexes.end <= self.base.line_count());
        let fits = MAX_ROWS.saturating_sub(self.rows) / 2;
        let count = indexes.len();
        for line in indexes.take(fits).map(LineNo::at_index) {
            self.diff.rows.push(ShortDiffRow::Removed(line));
            self.rows += 1;
        }
        if count > fits {
            self.diff.rows.push(ShortDiffRow::MoreRemoved(count - fits));
        }
    }

    fn new_rows(&mut self, indexes: Range<usize>) {
        let fits = MAX_ROWS.saturating_sub(self.rows);
        for line in indexes.clone().take(fits).map(LineNo::at_index) {
            self.diff.rows.push(ShortDiffRow::Added(line));
            self.show(line);
        }
        if let Some(rest) = LineRange::from_indexes(indexes.start + fits.min(indexes.len())..indexes.end) {
            self.diff.rows.push(ShortDiffRow::MoreAdded(rest));
        }
    }

    fn show(&mut self, line: LineNo) {
        let content = self.text.line(line);
        if clip(content, ROW_CHARS).len() == content.len() {
            self.diff.shown.insert(LineRange::line(line));
        }
        self.rows += 1;
    }
}
