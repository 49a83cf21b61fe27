//! Finds every exact place of an edit's text in a file. If there is none, [`nearest`] finds the most similar lines.

use std::{borrow::Cow, ops::Range};

use memchr::memmem;

pub use super::not_found::nearest;
use crate::text::Text;

/// A range of bytes of [`Text::as_str`] that matches.
pub type Match = Range<usize>;

/// How overlapping places are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlaps {
    /// Each place counts, because an edit of one place must know whether it is the only one. The search stops at many.
    Count,
    /// A place that overlaps an earlier one does not count.
    Skip,
}

/// All places of `needle` (not empty) in the text, from top to bottom.
///
/// A needle with carriage returns is first searched exactly, because line endings are part of the edit. If that finds
/// nothing, or the needle has none, the kind of line endings does not matter.
pub fn find(text: &Text, needle: &str, overlaps: Overlaps) -> Vec<Match> {
    let body = &text.as_str()[text.body_start()..];
    let place = |start: usize, end: usize| text.body_start() + start..text.body_start() + end;
    if needle.contains('\r') {
        let places: Vec<Match> = occurrences(body, needle, overlaps).map(|at| place(at, at + needle.len())).collect();
        if !places.is_empty() {
            return places;
        }
    }
    if !needle.contains('\n') || !text.has_crlf() {
        let needle = without_returns(needle);
        return occurrences(body, &needle, overlaps).map(|at| place(at, at + needle.len())).collect();
    }
    let needle = without_returns(needle);
    let plain = Normalized::of(body);
    occurrences(&plain.text, &needle, overlaps)
        .map(|at| place(plain.original_offset(at), plain.original_offset(at + needle.len())))
        .collect()
}

fn occurrences<'a>(haystack: &'a str, needle: &'a str, overlaps: Overlaps) -> impl Iterator<Item = usize> + 'a {
    // In a repetitive text, almost every place overlaps another one, and comparing each takes time.
    const MANY: usize = 1000;
    let finder = memmem::Finder::new(needle.as_bytes()).into_owned();
    let (step, most) = match overlaps {
        Overlaps::Count => (1, MANY),
        Overlaps::Skip => (needle.len(), usize::MAX),
    };
    let mut from = 0;
    let next = move || {
        let at = from + finder.find(haystack.as_bytes().get(from..)?)?;
        from = at + step;
        Some(at)
    };
    std::iter::from_fn(next).take(most)
}

fn without_returns(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// A text with `\n` for every `\r\n`, and the way back to the original offsets.
struct Normalized {
    text: String,
    /// Offsets in the normalized text where a carriage return was left out.
    returns: Vec<usize>,
}

impl Normalized {
    fn of(text: &str) -> Self {
        let mut plain = String::with_capacity(text.len());
        let mut returns = Vec::new();
        for line in text.split_inclusive('\n') {
            match line.strip_suffix("\r\n") {
                Some(body) => {
                    plain.push_str(body);
                    returns.push(plain.len());
                    plain.push('\n');
                }
                None => plain.push_str(line),
            }
        }
        Self { text: plain, returns }
    }

    /// The original offset of the character at `at`; a `\n` whose return was left out starts at the return.
    fn original_offset(&self, at: usize) -> usize {
        at + self.returns.partition_point(|&left_out| left_out < at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str) -> Text {
        Text::new(content.as_bytes().to_vec()).unwrap()
    }

    #[track_caller]
    fn check(content: &str, needle: &str, places: &[&str]) {
        let text = text(content);
        let found: Vec<&str> = find(&text, needle, Overlaps::Count).into_iter().map(|place| &text.as_str()[place]).collect();
        assert_eq!(found, places);
    }

    #[test]
    fn line_endings_do_not_stand_in_the_way() {
        check("a\r\nb\r\n", "a\nb", &["a\r\nb"]);
        check("a\r\nb\r\n", "a\nb\n", &["a\r\nb\r\n"]);
        check("a\r\nb\na\nb\r\n", "a\nb", &["a\r\nb", "a\nb"]);
        check("a\nb\n", "a\r\nb", &["a\nb"]);
        check("x\r\n\r\ny", "\n\n", &["\r\n\r\n"]);
    }

    #[test]
    fn a_byte_order_mark_is_not_text() {
        check("\u{feff}a\n", "a", &["a"]);
        check("\u{feff}a\n", "\u{feff}a", &[]);
    }
}
