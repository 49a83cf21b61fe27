//! Finding the text of an edit in a file: every exact place, and when there is none, the lines that come nearest.

use std::{borrow::Cow, ops::Range};

use memchr::memmem;

use crate::{
    lines::{LineNo, LineRange, LineSet},
    refusal::{Cause, Divergence, Excerpt, Nearest},
    text::Text,
};

/// Bytes of the file that match.
pub type Match = Range<usize>;

/// How the places were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// Byte for byte, with carriage returns named by the caller: line endings are part of the edit.
    Verbatim,
    /// Up to the kind of line endings.
    ByLines,
}

/// All places of a text, overlapping ones included, so that ambiguity is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// From top to bottom.
    pub places: Vec<Match>,
    /// How they were found.
    pub matching: Matching,
}

/// What to do about places that overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlaps {
    /// Each is a place: whoever wants the only one must know. Many are as good as all.
    Count,
    /// The first of them is the place.
    Skip,
}

/// Finds `needle` (not empty) in the text.
pub fn find(text: &Text, needle: &str, overlaps: Overlaps) -> Found {
    let body = &text.as_str()[text.body_start()..];
    let place = |start: usize, end: usize| text.body_start() + start..text.body_start() + end;
    if needle.contains('\r') {
        let places: Vec<Match> = occurrences(body, needle, overlaps).map(|at| place(at, at + needle.len())).collect();
        if !places.is_empty() {
            return Found { places, matching: Matching::Verbatim };
        }
    }
    if !needle.contains('\n') || !text.has_crlf() {
        let needle = without_returns(needle);
        let places = occurrences(body, &needle, overlaps).map(|at| place(at, at + needle.len())).collect();
        return Found { places, matching: Matching::ByLines };
    }
    let needle = without_returns(needle);
    let plain = Normalized::of(body);
    let places = occurrences(&plain.text, &needle, overlaps)
        .map(|at| place(plain.original(at), plain.original(at + needle.len())))
        .collect();
    Found { places, matching: Matching::ByLines }
}

fn occurrences<'a>(haystack: &'a str, needle: &'a str, overlaps: Overlaps) -> impl Iterator<Item = usize> + 'a {
    // A text that repeats itself overlaps itself almost everywhere, and looking at each place again takes its time.
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
    /// Where, in the normalized text, a carriage return was left out.
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
    fn original(&self, at: usize) -> usize {
        at + self.returns.partition_point(|&left_out| left_out < at)
    }
}

/// Why a text was not found: what comes nearest, and whether the edit was made already.
pub fn nearest(text: &Text, old: &str, new: &str) -> Cause {
    // A lone brace is there anyway and says nothing.
    let already_at = (new.trim().len() > 4)
        .then(|| find(text, new, Overlaps::Count).places)
        .and_then(|places| places.first().map(|place| text.line_at(place.start)));
    Cause::NotFound { nearest: nearest_lines(text, old), already_at }
}

const MAX_LINES_SEARCHED: usize = 20_000;

fn nearest_lines(text: &Text, old: &str) -> Option<Nearest> {
    let wanted: Vec<&str> = old.lines().collect();
    if wanted.is_empty() || text.line_count() == 0 {
        return None;
    }
    // The longest line says most about the place; the others are compared where it fits best.
    let (key, key_line) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let key_pairs = Pairs::of(key_line);
    let (at, score) = text
        .lines()
        .take(MAX_LINES_SEARCHED)
        .map(|(number, line)| (number.index(), Pairs::of(line).likeness(&key_pairs)))
        .filter(|(index, _)| *index >= key)
        .fold(None, |best: Option<(usize, f64)>, next| match best {
            Some(best) if best.1 >= next.1 => Some(best),
            _ => Some(next),
        })?;
    if score < 0.4 {
        return None;
    }
    let first = at - key;
    let lines = LineRange::from_indexes(first..(first + wanted.len()).min(text.line_count()))?;
    let same_words = |a: &str, b: &str| a.split_whitespace().eq(b.split_whitespace());
    let pairs = || wanted.iter().copied().zip(lines.iter().map(|number| (number, text.line(number))));
    let only_white_space = lines.count() as usize == wanted.len() && pairs().all(|(want, (_, have))| same_words(want, have));
    let first_line = lines.start;
    let diverges = pairs()
        .find(|(want, (line, have))| !(want == have || *line == first_line && have.ends_with(want)))
        .map(|(want, (line, have))| diverge(line, want, have, line == first_line));
    let fresh = Excerpt::of(text, &[lines].into_iter().collect::<LineSet>());
    Some(Nearest { lines, fresh, only_white_space, diverges })
}

/// Where two lines first differ. The first line of a text may start anywhere in a line: it is laid where most of it fits.
fn diverge(line: LineNo, expected: &str, found: &str, may_start_inside: bool) -> Divergence {
    let have: Vec<char> = found.chars().take(2000).collect();
    let fits_from = |start: usize| expected.chars().zip(&have[start..]).take_while(|(a, b)| a == *b).count();
    let starts = if may_start_inside { have.len() + 1 } else { 1 };
    // The first of the best, so that a line that differs from its start is compared from its start.
    let best = (0..starts).rev().max_by_key(|start| fits_from(*start)).unwrap_or_default();
    let start = if fits_from(best) >= 4 { best } else { 0 };
    let column = start + fits_from(start) + 1;
    Divergence { line, column, expected: expected.to_owned(), found: found.to_owned(), start }
}

/// The pairs of neighbouring bytes of a line, blanks left out: a cheap measure of likeness.
struct Pairs(Vec<[u8; 2]>);

impl Pairs {
    fn of(line: &str) -> Self {
        let bytes: Vec<u8> = line.bytes().filter(|byte| !byte.is_ascii_whitespace()).take(400).collect();
        let mut pairs: Vec<[u8; 2]> = bytes.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        if let [only] = bytes[..] {
            pairs.push([only, 0]);
        }
        pairs.sort_unstable();
        Self(pairs)
    }

    /// From 0, nothing in common, to 1, the same pairs.
    fn likeness(&self, other: &Pairs) -> f64 {
        if self.0.is_empty() || other.0.is_empty() {
            return 0.0;
        }
        let (mut a, mut b, mut common) = (0, 0, 0);
        while a < self.0.len() && b < other.0.len() {
            match self.0[a].cmp(&other.0[b]) {
                std::cmp::Ordering::Less => a += 1,
                std::cmp::Ordering::Greater => b += 1,
                std::cmp::Ordering::Equal => {
                    common += 1;
                    a += 1;
                    b += 1;
                }
            }
        }
        2.0 * f64::from(common) / (self.0.len() + other.0.len()) as f64
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
        let found: Vec<&str> =
            find(&text, needle, Overlaps::Count).places.into_iter().map(|place| &text.as_str()[place]).collect();
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

    #[test]
    fn white_space_is_not_guessed_but_shown() {
        let Cause::NotFound { nearest: Some(nearest), .. } = nearest(&text("x\n\tif a {\n"), "    if a {", "y") else { panic!() };
        assert!(nearest.only_white_space);
        assert_eq!(nearest.diverges.unwrap().column, 1);
    }

    #[test]
    fn the_first_divergence_is_named() {
        let cause = nearest(&text("fn a() {\n    let total = 1;\n}\n"), "fn a() {\n    let totel = 1;\n}", "");
        let Cause::NotFound { nearest: Some(nearest), already_at } = cause else { panic!() };
        assert_eq!(already_at, None);
        let diverges = nearest.diverges.unwrap();
        assert_eq!((diverges.line.get(), diverges.column), (2, 12));
    }

    #[test]
    fn an_edit_that_was_made_already_is_recognised() {
        let cause = nearest(&text("a\nnew text\n"), "old", "new text");
        assert_eq!(cause, Cause::NotFound { nearest: None, already_at: LineNo::new(2) });
    }
}
