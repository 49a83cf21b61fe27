//! The remaining lines of a text that a client truncated. The line at a cut does not count, even if it might be
//! complete.

/// Marks a cut. No line of a text file equals it.
const GAP: &str = "\u{0}\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutSize {
    Bytes(usize),
    /// UTF-16 code units, which JavaScript counts as characters.
    Units(usize),
}

impl CutSize {
    /// The end of the first part of a text, if that part has this size.
    fn end_in(self, text: &str) -> usize {
        let mut left = match self {
            CutSize::Bytes(bytes) => return text.floor_char_boundary(bytes.min(text.len())),
            CutSize::Units(units) => units,
        };
        for (at, character) in text.char_indices() {
            match left.checked_sub(character.len_utf16()) {
                Some(rest) => left = rest,
                None => return at,
            }
        }
        text.len()
    }

    /// The start of the last part of a text, if that part has this size.
    fn start_in(self, text: &str) -> usize {
        let mut left = match self {
            CutSize::Bytes(bytes) => return text.ceil_char_boundary(text.len().saturating_sub(bytes)),
            CutSize::Units(units) => units,
        };
        for (at, character) in text.char_indices().rev() {
            match left.checked_sub(character.len_utf16()) {
                Some(rest) => left = rest,
                None => return at + character.len_utf8(),
            }
        }
        0
    }

    pub(super) fn is_exceeded_by(self, text: &str) -> bool {
        self.end_in(text) < text.len()
    }
}

/// The whole lines in the first part of a text.
pub(super) fn head(text: &str, size: CutSize) -> &str {
    let end = size.end_in(text);
    if end == text.len() { text } else { &text[..text[..end].rfind('\n').map_or(0, |end| end + 1)] }
}

/// The whole lines in the last part of a text.
pub(super) fn tail(text: &str, size: CutSize) -> &str {
    let start = size.start_in(text);
    match start {
        0 => text,
        _ if text[..start].ends_with('\n') => &text[start..],
        _ => without_first_line(&text[start..]),
    }
}

/// The text itself, if it is at most this long; or else the whole lines in its first and last part, which do not
/// overlap.
pub(super) fn ends(text: &str, most: CutSize, first: CutSize, last: CutSize) -> String {
    if !most.is_exceeded_by(text) {
        return text.to_owned();
    }
    format!("{}{GAP}{}", head(text, first), tail(text, last))
}

pub(super) fn without_first_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

/// All but an unfinished last line.
pub(super) fn without_part_line(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

/// A text in which the client replaced a cut by a marker line: without the marker and the partial lines on either side.
/// Empty lines next to the marker belong to it.
pub(super) fn without_marker(text: &str, is_marker: impl Fn(&str) -> bool) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut kept: Vec<&str> = Vec::new();
    let mut index = 0;
    while let Some(line) = lines.get(index) {
        index += 1;
        if !is_marker(line.trim_end()) {
            kept.push(line);
            continue;
        }
        while kept.last().is_some_and(|line| line.trim_end().is_empty()) {
            kept.pop();
        }
        kept.pop();
        kept.push(GAP);
        while lines.get(index).is_some_and(|line| line.trim_end().is_empty()) {
            index += 1;
        }
        index += 1;
    }
    kept.concat()
}

/// A text in which the client put a marker into a line that it cut: without that line.
pub(super) fn without_marked_line(text: &str, is_marked: impl Fn(&str) -> bool) -> String {
    text.split_inclusive('\n').map(|line| if is_marked(line) { GAP } else { line }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "alpha\nbeta\ngamma\n";

    #[test]
    fn what_fits_is_whole() {
        assert_eq!(head(ABC, CutSize::Units(17)), ABC);
        assert_eq!(tail(ABC, CutSize::Bytes(17)), ABC);
        assert!(!CutSize::Units(17).is_exceeded_by(ABC) && CutSize::Units(16).is_exceeded_by(ABC));
    }

    #[test]
    fn a_cut_line_is_no_line() {
        assert_eq!(head(ABC, CutSize::Units(8)), "alpha\n");
        assert_eq!(head(ABC, CutSize::Units(11)), "alpha\nbeta\n");
        assert_eq!(head(ABC, CutSize::Units(3)), "");
        assert_eq!(tail(ABC, CutSize::Units(8)), "gamma\n");
        assert_eq!(tail(ABC, CutSize::Units(6)), "gamma\n");
        assert_eq!(tail(ABC, CutSize::Units(3)), "");
        assert_eq!(ends(ABC, CutSize::Bytes(16), CutSize::Bytes(7), CutSize::Bytes(7)), "alpha\n\0\ngamma\n");
        assert_eq!(ends(ABC, CutSize::Bytes(17), CutSize::Bytes(7), CutSize::Bytes(7)), ABC);
    }

    #[test]
    fn javascript_counts_two_for_a_face() {
        let faces = "😀😀\n😀\n";
        assert_eq!(head(faces, CutSize::Units(6)), "😀😀\n");
        assert_eq!(head(faces, CutSize::Units(4)), "");
        assert_eq!(tail(faces, CutSize::Units(3)), "😀\n");
        assert_eq!(head(faces, CutSize::Bytes(10)), "😀😀\n");
        assert_eq!(tail(faces, CutSize::Bytes(7)), "😀\n");
    }

    #[test]
    fn a_marker_takes_the_lines_beside_it() {
        let is_marker = |line: &str| line.starts_with("... [");
        let cut = "one\ntw\n\n... [7 characters truncated] ...\n\nee\nfour\n";
        assert_eq!(without_marker(cut, is_marker), "one\n\0\nfour\n");
        assert_eq!(without_marker("... [7]", is_marker), "\0\n");
        assert_eq!(without_marker(ABC, is_marker), ABC);
        let within = |line: &str| line.contains(" tokens truncated…");
        assert_eq!(without_marked_line("one\ntw…9 tokens truncated…ee\nfour\n", within), "one\n\0\nfour\n");
    }
}
