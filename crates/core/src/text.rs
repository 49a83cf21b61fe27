//! The text of a file: its exact bytes, and its lines. Line endings, a byte order mark, the encoding and a missing
//! final newline are preserved, but hidden from code that works on lines.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use crate::{
    encoding::{self, Decoded, Encoding},
    hash::ContentHash,
    lines::{LineNo, LineRange},
};

const BOM: &str = "\u{feff}";

/// Text with its lines. Cheap to clone.
#[derive(Clone)]
pub struct Text(Arc<TextInner>);

struct TextInner {
    content: String,
    encoding: Encoding,
    /// The bytes of the file, if they differ from `content`.
    encoded: Option<Vec<u8>>,
    /// Whether encoding `content` gives the bytes of the file again.
    is_exact: bool,
    /// The start of the first line: after a byte order mark, if the text has one.
    body: usize,
    starts: Vec<u32>,
    version: OnceLock<ContentHash>,
}

/// The reason why bytes cannot be edited as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotText {
    /// The bytes have a NUL near the start.
    Binary,
    /// The bytes are not valid in the encoding that they claim.
    Encoding {
        /// Offset of the first invalid byte.
        at: usize,
    },
    /// The text is longer than 4 GiB.
    TooLarge,
}

/// The reason why a text cannot take new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// The new content is not text.
    NotText(NotText),
    /// The file's encoding does not allow the new content.
    Unencodable {
        /// Why the content cannot be encoded.
        why: Unencodable,
        /// The encoding of the file.
        encoding: Encoding,
    },
}

/// The reason why a text cannot be written in an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unencodable {
    /// The encoding does not have this character.
    Character(char),
    /// Encoding the file's text does not give the bytes of the file, so an edit would change other bytes, too.
    Inexact,
    /// The result would be detected as another encoding, and read as something else.
    Mistakable,
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
    /// The last line, without a line ending.
    None,
}

impl LineEnding {
    /// The bytes of the ending.
    pub fn as_str(self) -> &'static str {
        match self {
            LineEnding::Lf => "\n",
            LineEnding::CrLf => "\r\n",
            LineEnding::None => "",
        }
    }
}

impl Text {
    /// Decodes these bytes and indexes their lines.
    pub fn new(bytes: Vec<u8>) -> Result<Self, NotText> {
        Self::try_new(bytes).map_err(|(_, not_text)| not_text)
    }

    /// Like [`Text::new`], but returns the bytes if they are not text.
    pub(crate) fn try_new(bytes: Vec<u8>) -> Result<Self, (Vec<u8>, NotText)> {
        if let Some(encoding) = encoding::marked(&bytes) {
            return Self::decoded(encoding::decode_utf16(&bytes, encoding), bytes);
        }
        if memchr::memchr(0, &bytes[..bytes.len().min(8192)]).is_some() {
            return Err((bytes, NotText::Binary));
        }
        match String::from_utf8(bytes) {
            Ok(content) => Self::indexed(Decoded { content, encoding: Encoding::Utf8, is_exact: true }, None),
            Err(error) => {
                let bytes = error.into_bytes();
                Self::decoded(encoding::decode_legacy(&bytes), bytes)
            }
        }
    }

    /// A new text in UTF-8.
    pub fn of(content: String) -> Result<Self, NotText> {
        if memchr::memchr(0, &content.as_bytes()[..content.len().min(8192)]).is_some() {
            return Err(NotText::Binary);
        }
        let decoded = Decoded { content, encoding: Encoding::Utf8, is_exact: true };
        Self::indexed(decoded, None).map_err(|(_, not_text)| not_text)
    }

    /// This text with new content, in the same encoding.
    pub fn with(&self, content: String) -> Result<Self, Unfit> {
        let encoding = self.encoding();
        if encoding == Encoding::Utf8 {
            return self.edited(content).map_err(Unfit::NotText);
        }
        let unfit = |why| Unfit::Unencodable { why, encoding };
        if !self.0.is_exact {
            return Err(unfit(Unencodable::Inexact));
        }
        if content.contains('\0') {
            return Err(Unfit::NotText(NotText::Binary));
        }
        let bytes = encoding.encode(&content).map_err(|char| unfit(Unencodable::Character(char)))?;
        // Encodings are guessed from the bytes, and a short text may look like another encoding.
        if !Self::new(bytes.clone()).is_ok_and(|read| read.as_str() == content) {
            return Err(unfit(Unencodable::Mistakable));
        }
        let decoded = Decoded { content, encoding, is_exact: true };
        Self::indexed(decoded, Some(bytes)).map_err(|(_, not_text)| Unfit::NotText(not_text))
    }

    /// This text in UTF-8 with new content. Lines in the common prefix and suffix are not indexed again, so an edit of
    /// a large file only examines the changed part.
    fn edited(&self, content: String) -> Result<Self, NotText> {
        let (old, new) = (self.as_str().as_bytes(), content.as_bytes());
        let prefix = same_start(old, new);
        if prefix <= BOM.len() || new.len() > u32::MAX as usize {
            return Self::of(content);
        }
        if memchr::memchr(0, &new[..new.len().min(8192)]).is_some() {
            return Err(NotText::Binary);
        }
        let suffix = same_end(&old[prefix..], &new[prefix..]);
        let (old_end, new_end) = (old.len() - suffix, new.len() - suffix);
        // A line starts after a line break. The starts up to `prefix` and after `old_end` are known already.
        let starts = &self.0.starts;
        let (above, below) =
            (starts.partition_point(|&at| at as usize <= prefix), starts.partition_point(|&at| at as usize <= old_end));
        let between = memchr::memchr_iter(b'\n', &new[prefix..new_end]).map(|at| (prefix + at + 1) as u32);
        let moved = |at: &u32| (*at as usize - old_end + new_end) as u32;
        // A line break at the end of the text starts a line only if something follows it.
        let continued = (prefix == old.len() && old.ends_with(b"\n")).then_some(prefix as u32);
        let above = starts[..above].iter().copied().chain(continued);
        let all = above.chain(between).chain(starts[below..].iter().map(moved));
        let mut indexed = Vec::with_capacity(starts.len() + 16);
        indexed.extend(all);
        // The last line may have lost the text after its line break.
        indexed.pop_if(|at| *at as usize >= new.len());
        let (encoding, body) = (Encoding::Utf8, self.0.body);
        let version = OnceLock::new();
        Ok(Self(Arc::new(TextInner { content, encoding, encoded: None, is_exact: true, body, starts: indexed, version })))
    }

    fn decoded(decoded: Result<Decoded, NotText>, bytes: Vec<u8>) -> Result<Self, (Vec<u8>, NotText)> {
        match decoded {
            Ok(decoded) => Self::indexed(decoded, Some(bytes)),
            Err(not_text) => Err((bytes, not_text)),
        }
    }

    fn indexed(decoded: Decoded, encoded: Option<Vec<u8>>) -> Result<Self, (Vec<u8>, NotText)> {
        let Decoded { content, encoding, is_exact } = decoded;
        if u32::try_from(content.len()).is_err() {
            return Err((encoded.unwrap_or(content.into_bytes()), NotText::TooLarge));
        }
        let bytes = content.as_bytes();
        let body = if content.starts_with(BOM) { BOM.len() } else { 0 };
        let mut starts = Vec::with_capacity(bytes.len() / 32 + 1);
        if body < bytes.len() {
            starts.push(body as u32);
            let after_newlines = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
            starts.extend(after_newlines.filter(|&at| at < bytes.len()).map(|at| at as u32));
        }
        Ok(Self(Arc::new(TextInner { content, encoding, encoded, is_exact, body, starts, version: OnceLock::new() })))
    }

    /// The exact bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.0.encoded.as_deref().unwrap_or(self.0.content.as_bytes())
    }

    /// The encoding of the file.
    pub fn encoding(&self) -> Encoding {
        self.0.encoding
    }

    /// The decoded content, including a byte order mark if the file has one.
    pub fn as_str(&self) -> &str {
        &self.0.content
    }

    /// The start of the first line: 3 after a byte order mark, else 0.
    pub fn body_start(&self) -> usize {
        self.0.body
    }

    /// Whether the text starts with a byte order mark.
    pub fn has_bom(&self) -> bool {
        self.0.body > 0
    }

    /// The version of the exact bytes, computed on the first call.
    pub fn version(&self) -> ContentHash {
        *self.0.version.get_or_init(|| ContentHash::of(self.bytes()))
    }

    /// The number of lines. A final newline does not start another line; an empty file has none.
    pub fn line_count(&self) -> usize {
        self.0.starts.len()
    }

    /// The last line; `None` in an empty file.
    pub fn last_line(&self) -> Option<LineNo> {
        self.line_count().checked_sub(1).map(LineNo::at_index)
    }

    /// Whether the line exists.
    pub fn has_line(&self, line: LineNo) -> bool {
        line.index() < self.line_count()
    }

    /// The bytes of these lines with their endings. Lines past the end are left out.
    pub fn span(&self, range: LineRange) -> Range<usize> {
        let start = self.start_of(range.start.index());
        start..self.start_of(range.end.index() + 1).max(start)
    }

    /// Whether one of these lines is longer than this many bytes, ending included.
    pub(crate) fn has_line_over(&self, range: LineRange, bytes: usize) -> bool {
        let starts = self.0.starts.get(range.start.index()..=range.end.index()).unwrap_or_default();
        let is_over = |pair: &[u32]| (pair[1] - pair[0]) as usize > bytes;
        let last = starts.last().map_or(0, |last| self.start_of(range.end.index() + 1) - *last as usize);
        starts.windows(2).any(is_over) || last > bytes
    }

    /// The offset at which the line with this index starts; the end of the text for an index past the last line.
    pub fn start_of(&self, index: usize) -> usize {
        self.0.starts.get(index).map_or(self.as_str().len(), |&start| start as usize)
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

    /// The ending of a line; `None` past the end.
    pub fn ending(&self, line: LineNo) -> LineEnding {
        let full = self.full_line(line);
        if full.ends_with("\r\n") {
            LineEnding::CrLf
        } else if full.ends_with('\n') {
            LineEnding::Lf
        } else {
            LineEnding::None
        }
    }

    /// The line that contains this byte; the last line for an offset at or past the end.
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

    /// The most common line ending; `\n` if the text has no line break.
    pub fn usual_ending(&self) -> LineEnding {
        let newlines = memchr::memchr_iter(b'\n', self.as_str().as_bytes()).count();
        let with_return = memchr::memmem::find_iter(self.as_str().as_bytes(), b"\r\n").count();
        if with_return * 2 > newlines { LineEnding::CrLf } else { LineEnding::Lf }
    }

    /// Whether any line ends with `\r\n`.
    pub fn has_crlf(&self) -> bool {
        memchr::memmem::find(self.as_str().as_bytes(), b"\r\n").is_some()
    }
}

/// The number of bytes that are compared at once: large pieces first, then smaller ones where they differ.
const PIECES: [usize; 3] = [4096, 64, 1];

/// The length of the common prefix, in bytes.
pub fn same_start(one: &[u8], other: &[u8]) -> usize {
    PIECES.iter().fold(0, |same, &piece| {
        let (one, other) = (one[same..].chunks_exact(piece), other[same..].chunks_exact(piece));
        same + one.zip(other).take_while(|(a, b)| a == b).count() * piece
    })
}

/// The length of the common suffix, in bytes.
pub fn same_end(one: &[u8], other: &[u8]) -> usize {
    PIECES.iter().fold(0, |same, &piece| {
        let (one, other) = (&one[..one.len() - same], &other[..other.len() - same]);
        same + one.rchunks_exact(piece).zip(other.rchunks_exact(piece)).take_while(|(a, b)| a == b).count() * piece
    })
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
    fn bytes_that_are_not_text_have_a_reason() {
        assert_eq!(Text::new(b"a\0b".to_vec()), Err(NotText::Binary));
        assert_eq!(Text::of("a\0b".to_owned()), Err(NotText::Binary));
    }

    #[test]
    fn the_usual_ending_is_the_one_of_most_lines() {
        assert_eq!(text("a\r\nb\r\nc\n").usual_ending(), LineEnding::CrLf);
        assert_eq!(text("a\nb\r\nc\n").usual_ending(), LineEnding::Lf);
        assert_eq!(text("a").usual_ending(), LineEnding::Lf);
    }

    proptest! {
        #[test]
        fn an_edited_text_has_the_lines_of_a_new_one(
            (start, old, new, end) in
                ("(\u{feff})?([ab\u{e9}]|\r\n|\n){0,12}", "([ab]|\n){0,4}", "([ab]|\n){0,4}", "([ab]|\n){0,8}"),
        ) {
            let (before, after) = (format!("{start}{old}{end}"), format!("{start}{new}{end}"));
            let edited = text(&before).with(after.clone()).unwrap();
            let fresh = text(&after);
            prop_assert_eq!(edited.lines().collect::<Vec<_>>(), fresh.lines().collect::<Vec<_>>());
            prop_assert_eq!((edited.body_start(), edited.version()), (fresh.body_start(), fresh.version()));
        }

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
