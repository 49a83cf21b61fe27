//! Parts of a text: lines that a model knows, and excerpts that are bounded.

use crate::{
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    text::Text,
};

/// Lines of a file that a model knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLines {
    /// The path of the file.
    pub path: RelPath,
    /// The version that the numbers refer to.
    pub text: Text,
    /// The lines that the model knows.
    pub lines: LineSet,
}

/// Some lines of a text, bounded. Lines that do not fit are listed by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The lines that are shown, cut where they are too long.
    pub rows: Vec<(LineNo, String)>,
    /// The lines that are shown in full.
    pub shown: LineSet,
    /// The lines that are not shown.
    pub omitted: LineSet,
}

impl Excerpt {
    const MAX_LINES: usize = 80;
    const MAX_CHARS: usize = 6000;
    const LINE_CHARS: usize = 500;

    /// The given lines of a text, as many as fit.
    pub fn of(text: &Text, lines: &LineSet) -> Self {
        let mut excerpt = Self::default();
        let (mut count, mut room) = (0, Self::MAX_CHARS);
        for line in lines.clipped(text.line_count()).iter() {
            let full = text.line(line);
            let row = clip(full, Self::LINE_CHARS);
            if count == Self::MAX_LINES || row.len() > room {
                excerpt.omitted.insert(LineRange::line(line));
                continue;
            }
            count += 1;
            room -= row.len();
            if row.len() == full.len() {
                excerpt.shown.insert(LineRange::line(line));
            }
            excerpt.rows.push((line, row));
        }
        excerpt
    }
}

/// The first `chars` characters of a line, with a note on how many follow.
pub fn clip(line: &str, chars: usize) -> String {
    match line.char_indices().nth(chars) {
        None => line.to_owned(),
        Some((at, _)) => format!("{}…[+{} chars]", &line[..at], line[at..].chars().count()),
    }
}
