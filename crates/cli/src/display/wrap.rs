//! Measures and wraps text for a terminal. Widths are never underestimated: a line that is too short does no harm, but
//! one that is too long takes two rows. Expects text without control characters.

/// The columns of a character, at most. Joiners and marks count as one.
fn columns(c: char) -> usize {
    match u32::from(c) {
        0..0x1100 => 1,
        0x1100..=0x115f | 0x2300..=0x23ff | 0x25fd..=0x25fe | 0x2600..=0x27bf | 0x2b00..=0x2bff | 0x2e80..=0xa4cf => 2,
        0xa960..=0xa97f | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0xfe10..=0xfe6f | 0xff01..=0xff60 | 0xffe0..=0xffe6 => 2,
        0x16fe0.. => 2,
        _ => 1,
    }
}

pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Truncates a text to this width, with `…` at the end.
pub(super) fn truncate(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub(1) else { return String::new() };
    format!("{}…", &text[..fitting(text, room)])
}

/// Keeps the end of a text within this width, with `…` at the beginning.
pub(super) fn keep_end(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let Some(mut left) = room.checked_sub(1) else { return String::new() };
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        let Some(after) = left.checked_sub(columns(c)) else { break };
        (left, start) = (after, at);
    }
    format!("…{}", &text[start..])
}

fn fitting(text: &str, room: usize) -> usize {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += columns(c);
        if taken > room {
            return at;
        }
    }
    text.len()
}

/// Wraps a line between words. A word that is too long is split. Blanks at a break are dropped.
pub(crate) fn wrap_words(line: &str, room: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut rest = line.trim_end();
    while width(rest) > room {
        let fits = at_least_one(rest, room);
        // A blank right after the last column is a good place to break.
        let end = fits + rest[fits..].chars().next().filter(|c| *c == ' ').map_or(0, char::len_utf8);
        let at = rest[..end].rfind(' ').filter(|at| !rest[..*at].trim().is_empty()).unwrap_or(fits);
        rows.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    if !rest.is_empty() || rows.is_empty() {
        rows.push(rest.to_owned());
    }
    rows
}

/// Splits a line into full rows, which together are the line again.
pub(super) fn split_columns(line: &str, room: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut rest = line;
    while width(rest) > room {
        let (row, more) = rest.split_at(at_least_one(rest, room));
        rows.push(row);
        rest = more;
    }
    if !rest.is_empty() || rows.is_empty() {
        rows.push(rest);
    }
    rows
}

/// The number of bytes that fit, at least one character.
fn at_least_one(text: &str, room: usize) -> usize {
    fitting(text, room).max(text.chars().next().map_or(0, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        for (text, columns) in [("", 0), ("abc", 3), ("grün", 4), ("漢字", 4), ("한", 2), ("👍", 2), ("⠹ · … └ ● ↻ ▸", 13)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[track_caller]
    fn check_cut(text: &str, room: usize, expected: &str) {
        assert_eq!(truncate(text, room), expected);
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        check_cut("abcdef", 6, "abcdef");
        check_cut("abcdef", 5, "abcd…");
        check_cut("abcdef", 1, "…");
        check_cut("abcdef", 0, "");
        check_cut("漢字漢字", 8, "漢字漢字");
        check_cut("漢字漢字", 6, "漢字…");
        check_cut("漢字漢字", 2, "…");
    }

    #[track_caller]
    fn check_words(line: &str, room: usize, expected: &[&str]) {
        assert_eq!(wrap_words(line, room), expected);
    }

    #[test]
    fn lines_break_between_words() {
        check_words("", 5, &[""]);
        check_words("one two three", 20, &["one two three"]);
        check_words("one two three", 7, &["one two", "three"]);
        check_words("one two three", 6, &["one", "two", "three"]);
        check_words("abcdefgh ij", 5, &["abcde", "fgh", "ij"]);
        check_words("  indented and long", 10, &["  indented", "and long"]);
        check_words("漢字漢字", 5, &["漢字", "漢字"]);
        check_words("漢", 1, &["漢"]);
    }

    proptest! {
        #[test]
        fn nothing_takes_more_room_than_there_is(text in "[a-c 漢👍]{0,30}", room in 2..12usize) {
            prop_assert!(width(&truncate(&text, room)) <= room);
            prop_assert!(wrap_words(&text, room).iter().all(|row| width(row) <= room));
            prop_assert!(split_columns(&text, room).iter().all(|row| width(row) <= room));
        }

        #[test]
        fn no_word_is_lost(text in "[a-c 漢]{0,30}", room in 0..12usize) {
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&wrap_words(&text, room).concat()), letters(&text));
            prop_assert_eq!(split_columns(&text, room).concat(), text);
        }
    }
}
