//! Decides which lines a read shows.

use crate::{
    excerpt::clip,
    line_numbers::LineNumbers,
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    policy::Limits,
    text::Text,
};

/// The lines of a file that a reply shows, within the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadResult {
    /// The path of the file.
    pub path: RelPath,
    /// The content of the file.
    pub text: Text,
    /// The lines that were requested.
    pub wanted: LineSet,
    /// The lines that are shown, including truncated ones.
    pub lines: LineSet,
    /// The lines that are shown in full. Only these count as seen.
    pub full: LineSet,
    /// Whether the lines are shown with anchors.
    pub numbers: LineNumbers,
    /// A line with more characters is truncated.
    pub line_chars: usize,
}

/// Lines that the session was shown before and that have not changed since.
#[derive(Debug, Clone, PartialEq)]
pub struct UnchangedRead {
    /// The path of the file.
    pub path: RelPath,
    /// The content of the file.
    pub text: Text,
    /// The lines that were requested.
    pub lines: LineSet,
    /// Whether the session has seen the whole file.
    pub is_whole: bool,
}

impl ReadResult {
    /// Chooses which of the wanted lines are shown.
    pub fn of(path: RelPath, text: Text, wanted: LineSet, numbers: LineNumbers, limits: &Limits) -> Self {
        let mut room = RowBudget { rows: limits.read_lines, bytes: limits.read_bytes, is_first: true };
        let (mut lines, mut full) = (LineSet::new(), LineSet::new());
        for (index, range) in wanted.clipped(text.line_count()).ranges().iter().enumerate() {
            if index > 0 {
                room.bytes = room.bytes.saturating_sub("…\n".len());
            }
            // Most reads are far below the limits, and measuring each line would take a large part of the time for
            // rendering it.
            if !text.has_line_over(*range, limits.line_chars) && room.take_all(text.span(*range).len(), *range) {
                lines.insert(*range);
                full.insert(*range);
                continue;
            }
            let mut full_from = range.start;
            let mut end = Some(range.end);
            for line in range.iter() {
                // The line ending counts, so this may be a byte or two too many. An exact measure would take as long as
                // rendering.
                let bytes = text.start_of(line.index() + 1) - text.start_of(line.index());
                let is_long = bytes > limits.line_chars && is_long(text.line(line), limits.line_chars);
                let bytes = if is_long { clip(text.line(line), limits.line_chars).len() + 1 } else { bytes };
                let numbers = if is_long { LineNumbers::Plain } else { numbers };
                if !room.take(bytes + numbers.width(line)) {
                    end = line.moved(-1);
                    break;
                }
                if is_long {
                    extend_to(&mut full, full_from, line.moved(-1));
                    full_from = line.moved(1).unwrap_or(line);
                }
            }
            extend_to(&mut lines, range.start, end);
            extend_to(&mut full, full_from, end);
            if end != Some(range.end) {
                break;
            }
        }
        Self { path, text, wanted, lines, full, numbers, line_chars: limits.line_chars }
    }

    /// The requested lines that the limits leave out.
    pub fn left(&self) -> LineSet {
        self.wanted.clipped(self.text.line_count()).minus(&self.lines)
    }
}

struct RowBudget {
    rows: usize,
    bytes: usize,
    is_first: bool,
}

impl RowBudget {
    /// Takes lines with this many bytes, if they certainly fit.
    fn take_all(&mut self, bytes: usize, lines: LineRange) -> bool {
        let rows = lines.count() as usize;
        let bytes = bytes + rows * LineNumbers::Anchors.width(lines.end);
        let fits = rows <= self.rows && bytes <= self.bytes;
        if fits {
            *self = Self { rows: self.rows - rows, bytes: self.bytes - bytes, is_first: false };
        }
        fits
    }

    /// Takes a row with this many bytes, if it fits. The first row is always shown.
    fn take(&mut self, bytes: usize) -> bool {
        let is_first = std::mem::take(&mut self.is_first);
        if self.rows == 0 || (self.bytes < bytes && !is_first) {
            return false;
        }
        self.rows -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        true
    }
}

/// Whether a line has more characters than `chars`.
pub(crate) fn is_long(line: &str, chars: usize) -> bool {
    line.len() > chars && line.chars().nth(chars).is_some()
}

fn extend_to(set: &mut LineSet, start: LineNo, end: Option<LineNo>) {
    if let Some(range) = end.and_then(|end| LineRange::new(start, end)) {
        set.insert(range);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::render;

    proptest! {
        #[test]
        fn shown_lines_are_a_prefix_of_the_requested_ones_within_the_limits(
            content in prop::collection::vec("[xé]{0,12}", 0..30),
            (start, length) in (0_usize..30, 0_usize..30),
            (read_lines, read_bytes, line_chars) in (1_usize..40, 1_usize..300, 4_usize..14),
            anchors: bool,
        ) {
            let text = Text::of(content.join("\n")).unwrap();
            let wanted: LineSet = [start..start + length, 40..50, 1..2].into_iter().filter_map(LineRange::from_indexes).collect();
            let limits = Limits { read_lines, read_bytes, line_chars, ..Limits::default() };
            let numbers = LineNumbers::with_anchors(anchors);
            let path = RelPath::new("a").unwrap();
            let reading = ReadResult::of(path, text.clone(), wanted.clone(), numbers, &limits);
            let inside = wanted.clipped(text.line_count());
            let shown: Vec<LineNo> = reading.lines.iter().collect();
            prop_assert_eq!(&shown[..], &inside.iter().take(shown.len()).collect::<Vec<_>>()[..]);
            let rows = render::read::rows(&reading);
            prop_assert!(shown.len() <= read_lines);
            // A last line without an ending is shown with one.
            prop_assert!(rows.len() <= read_bytes + 1 || shown.len() == 1, "{} bytes of {}", rows.len(), read_bytes);
            prop_assert_eq!(shown.is_empty(), inside.is_empty());
            let is_short = |line: &LineNo| !is_long(text.line(*line), line_chars);
            prop_assert_eq!(reading.full.iter().collect::<Vec<_>>(), shown.into_iter().filter(is_short).collect::<Vec<_>>());
        }
    }
}
