//! Which lines a read shows.

use crate::{
    excerpt::clip,
    lines::{LineNo, LineRange, LineSet},
    numbers::Numbers,
    path::RelPath,
    policy::Limits,
    text::Text,
};

/// Lines of a file that are shown, as far as the limits allow.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The file.
    pub path: RelPath,
    /// What it holds.
    pub text: Text,
    /// The lines that were asked for.
    pub wanted: LineSet,
    /// The lines that are shown, also those that are cut.
    pub lines: LineSet,
    /// The lines that are shown in full: these were seen.
    pub full: LineSet,
    /// How they are numbered.
    pub numbers: Numbers,
    /// A line with more characters is cut.
    pub line_chars: usize,
}

/// Lines of a file that the session was shown before and that have not changed since.
#[derive(Debug, Clone, PartialEq)]
pub struct Unchanged {
    /// The file.
    pub path: RelPath,
    /// What it holds.
    pub text: Text,
    /// The lines that were asked for.
    pub lines: LineSet,
    /// Whether the session has seen the whole file.
    pub is_whole: bool,
}

impl Reading {
    /// Chooses the lines that are shown of those that are wanted.
    pub fn of(path: RelPath, text: Text, wanted: LineSet, numbers: Numbers, limits: &Limits) -> Self {
        const GAP: usize = "…\n".len();
        let line_chars = limits.line_chars;
        let (mut lines, mut full) = (LineSet::new(), LineSet::new());
        let (mut rows, mut bytes) = (0, 0);
        'ranges: for (index, range) in wanted.clipped(text.line_count()).ranges().iter().enumerate() {
            let mut gap = if index > 0 { GAP } else { 0 };
            let mut full_from = range.start;
            for line in range.iter() {
                let content = text.line(line);
                let is_long = is_long(content, line_chars);
                let length = if is_long { clip(content, line_chars).len() } else { content.len() };
                if rows == limits.read_lines || (rows > 0 && bytes + length > limits.read_bytes) {
                    extend_to(&mut lines, range.start, line.moved(-1));
                    extend_to(&mut full, full_from, line.moved(-1));
                    break 'ranges;
                }
                let numbers = if is_long { Numbers::Plain } else { numbers };
                bytes += std::mem::take(&mut gap) + numbers.width(line) + length + 1;
                rows += 1;
                if is_long {
                    extend_to(&mut full, full_from, line.moved(-1));
                    full_from = line.moved(1).unwrap_or(line);
                }
            }
            lines.insert(*range);
            extend_to(&mut full, full_from, Some(range.end));
        }
        Self { path, text, wanted, lines, full, numbers, line_chars }
    }

    /// The lines that were asked for and that the limits do not allow to show.
    pub fn left(&self) -> LineSet {
        self.wanted.clipped(self.text.line_count()).minus(&self.lines)
    }
}

/// Whether a line has more characters than this.
pub(crate) fn is_long(line: &str, chars: usize) -> bool {
    line.len() > chars && line.chars().nth(chars).is_some()
}

fn extend_to(set: &mut LineSet, start: LineNo, end: Option<LineNo>) {
    if let Some(range) = end.and_then(|end| LineRange::new(start, end)) {
        set.insert(range);
    }
}
