//! The text of a file: its exact bytes with an index of lines. Line endings, a byte order mark and a missing final newline are
//! kept as they are; they are only hidden from whoever looks at a line.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use crate::{
    hash::ContentHash,
    lines::{LineNo, LineRange},
};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// UTF-8 text with its lines. Cheap to clone.
#[derive(Clone)]
pub struct Text(Arc<Inner>);

struct Inner {
    content: String,
    /// Where the first line starts: after a byte order mark, if there is one.
    body: usize,
    /// Where each line starts.
    starts: Vec<u32>,
    version: OnceLock<ContentHash>,
}

/// Why bytes are not text that we edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotText {
    /// There are NUL bytes near the start.
    Binary,
    /// Not valid UTF-8 from this byte on.
    Encoding {
        /// Offset of the first byte that is not UTF-8.
        at: usize,
    },
    /// More than 4 GiB.
    TooLarge,
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
    /// The last line, without a line ending.
    None,
}

impl Ending {
    /// The bytes of the ending.
    pub fn as_str(self) -> &'static str {
        match self {
            Ending::Lf => "\n",
            Ending::CrLf => "\r\n",
            Ending::None => "",
        }
    }
}

impl Text {
    /// Indexes the lines of these bytes.
    pub fn new(bytes: Vec<u8>) -> Result<Self, NotText> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(NotText::TooLarge);
        }
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            return Err(NotText::Encoding { at: 0 });
        }
        if memchr::memchr(0, &bytes[..bytes.len().min(8192)]).is_some() {
            return Err(NotText::Binary);
        }
        let content = String::from_utf8(bytes).map_err(|error| NotText::Encoding { at: error.utf8_error().valid_up_to() })?;
        let bytes = content.as_bytes();
        let body = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let mut starts = Vec::with_capacity(bytes.len() / 32 + 1);
        if body < bytes.len() {
            starts.push(body as u32);
            let after_newlines = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
            starts.extend(after_newlines.filter(|&at| at < bytes.len()).map(|at| at as u32));
        }
        Ok(Self(Arc::new(Inner { content, body, starts, version: OnceLock::new() })))
    }

    /// The exact bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.0.content.as_bytes()
    }

    /// All of it as a string, a byte order mark included.
    pub fn as_str(&self) -> &str {
        &self.0.content
    }

    /// Where the first line starts: 3 after a byte order mark, else 0.
    pub fn body_start(&self) -> usize {
        self.0.body
    }

    /// Whether it starts with a byte order mark.
    pub fn has_bom(&self) -> bool {
        self.0.body > 0
    }

    /// Its version.
    pub fn version(&self) -> ContentHash {
        *self.0.version.get_or_init(|| ContentHash::of(self.bytes()))
    }

    /// How many lines it has. A final newline does not start another line; an empty file has none.
    pub fn line_count(&self) -> usize {
        self.0.starts.len()
    }

    /// The last line; `None` in an empty file.
    pub fn last_line(&self) -> Option<LineNo> {
        self.line_count().checked_sub(1).map(LineNo::at_index)
    }

    /// Whether there is such a line.
    pub fn has_line(&self, line: LineNo) -> bool {
        line.index() < self.line_count()
    }

    /// The bytes of these lines with their endings. Lines past the end are left out.
    pub fn span(&self, range: LineRange) -> Range<usize> {
        let start = self.start_of(range.start.index());
        start..self.start_of(range.end.index() + 1).max(start)
    }

    /// Where the line at this index starts; the end of the text past the last line.
    pub fn start_of(&self, index: usize) -> usize {
        self.0.starts.get(index).map_or(self.bytes().len(), |&start| start as usize)
    }

    /// A line with its ending; empty past the end.
    pub fn full_line(&self, line: LineNo) -> &str {
        &self.as_str()[self.span(LineRange::line(line))]
    }

    /// A line without its ending; empty past the end.
    pub fn line(&self, line: LineNo) -> &str {
        let full = self.full_line(line);
        let line = full.strip_suffix('\n').unwrap_or(full);
        if line.len() < full.len() { line.strip_suffix('\r').unwrap_or(line) } else { line }
    }

    /// How a line ends.
    pub fn ending(&self, line: LineNo) -> Ending {
        let full = self.full_line(line);
        if full.ends_with("\r\n") {
            Ending::CrLf
        } else if full.ends_with('\n') {
            Ending::Lf
        } else {
            Ending::None
        }
    }

    /// The line that holds this byte; the last line at and past the end.
    pub fn line_at(&self, offset: usize) -> LineNo {
        LineNo::at_index(self.0.starts.partition_point(|&start| start as usize <= offset).saturating_sub(1))
    }

    /// All lines with their numbers, without endings.
    pub fn lines(&self) -> impl Iterator<Item = (LineNo, &str)> {
        (0..self.line_count()).map(LineNo::at_index).map(|line| (line, self.line(line)))
    }

    /// All lines with their endings.
    pub fn full_lines(&self) -> impl Iterator<Item = &str> {
        (0..self.line_count()).map(LineNo::at_index).map(|line| self.full_line(line))
    }

    /// The ending that most lines have; `\n` where there is none.
    pub fn usual_ending(&self) -> Ending {
        let newlines = memchr::memchr_iter(b'\n', self.bytes()).count();
        let with_return = memchr::memmem::find_iter(self.bytes(), b"\r\n").count();
        if with_return * 2 > newlines { Ending::CrLf } else { Ending::Lf }
    }

    /// Whether any line ends with `\r\n`.
    pub fn has_crlf(&self) -> bool {
        memchr::memmem::find(self.bytes(), b"\r\n").is_some()
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.bytes() == other.bytes()
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes, {} lines)", self.bytes().len(), self.line_count())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Text {
        Text::new(text.as_bytes().to_vec()).unwrap()
    }

    #[track_caller]
    fn check(content: &str, lines: &[&str]) {
        assert_eq!(text(content).lines().map(|(_, line)| line).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn lines_hide_their_endings() {
        check("", &[]);
        check("a", &["a"]);
        check("a\n", &["a"]);
        check("a\nb", &["a", "b"]);
        check("a\r\nb\n\n", &["a", "b", ""]);
        check("\n", &[""]);
        check("a\rb\n", &["a\rb"]);
        check("a\r", &["a\r"]);
        check("\u{feff}a\nb\n", &["a", "b"]);
        check("\u{feff}", &[]);
    }

    #[test]
    fn what_is_not_text_says_why() {
        assert_eq!(Text::new(b"a\0b".to_vec()), Err(NotText::Binary));
        assert_eq!(Text::new(b"caf\xe9".to_vec()), Err(NotText::Encoding { at: 3 }));
        assert_eq!(Text::new(b"\xff\xfea\0".to_vec()), Err(NotText::Encoding { at: 0 }));
    }

    #[test]
    fn the_usual_ending_is_the_one_of_most_lines() {
        assert_eq!(text("a\r\nb\r\nc\n").usual_ending(), Ending::CrLf);
        assert_eq!(text("a\nb\r\nc\n").usual_ending(), Ending::Lf);
        assert_eq!(text("a").usual_ending(), Ending::Lf);
    }

    proptest! {
        #[test]
        fn full_lines_put_together_are_the_file(content in "(\u{feff})?([ab\u{e9}]|\r\n|\n|\r){0,40}") {
            let text = text(&content);
            let bom = if text.has_bom() { "\u{feff}" } else { "" };
            prop_assert_eq!(format!("{bom}{}", text.full_lines().collect::<String>()), content.clone());
            for (line, shown) in text.lines() {
                prop_assert_eq!(format!("{shown}{}", text.ending(line).as_str()), text.full_line(line));
                prop_assert_eq!(text.line_at(text.span(LineRange::line(line)).start), line);
            }
        }
    }
}
