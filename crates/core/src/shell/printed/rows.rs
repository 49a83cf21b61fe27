//! The rows of an output without terminal control sequences, and the forms in which programs print a line of a file.

use std::{borrow::Cow, ops::Range};

/// Output beyond this size is ignored.
const MOST_BYTES: usize = 1 << 20;

/// The rows of an output without control sequences and byte order marks.
#[derive(Debug)]
pub(in crate::shell) struct OutputRows {
    text: String,
    ranges: Vec<Range<usize>>,
}

impl OutputRows {
    pub(in crate::shell) fn of(output: &str) -> Self {
        let text = without_control_sequences(&output[..output.floor_char_boundary(MOST_BYTES)]);
        let mut ranges = Vec::new();
        let mut start = 0;
        for row in text.split_inclusive('\n') {
            let shown = row.strip_suffix('\n').unwrap_or(row).trim_end_matches('\r');
            let mark = if shown.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
            ranges.push(start + mark..start + shown.len());
            start += row.len();
        }
        Self { text, ranges }
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn row(&self, index: usize) -> &str {
        &self.text[self.ranges[index].clone()]
    }

    pub(in crate::shell) fn iter(&self) -> impl Iterator<Item = &str> {
        self.ranges.iter().map(|range| &self.text[range.clone()])
    }
}

/// Removes colours, links and cursor movements: CSI (`ESC [ … letter`), OSC (`ESC ] … BEL`), character
/// sets (`ESC ( B`) and escapes of one character.
fn without_control_sequences(output: &str) -> String {
    let mut clean = String::with_capacity(output.len());
    let mut rest = output;
    while let Some(at) = memchr::memchr(0x1b, rest.as_bytes()) {
        clean.push_str(&rest[..at]);
        rest = after_control_sequence(&rest[at + 1..]);
    }
    clean.push_str(rest);
    clean
}

fn after_control_sequence(rest: &str) -> &str {
    let mut chars = rest.chars();
    match chars.next() {
        // An unterminated sequence ends at the end of its row.
        Some('[') => match rest[1..].find(|c: char| ('\u{40}'..='\u{7e}').contains(&c) || c == '\n') {
            Some(end) => &rest[1 + end + usize::from(rest.as_bytes()[1 + end] != b'\n')..],
            None => "",
        },
        Some(']') => match rest.find(['\u{7}', '\u{1b}', '\n']) {
            Some(end) if rest[end..].starts_with("\u{1b}\\") => &rest[end + 2..],
            Some(end) if rest.as_bytes()[end] == 7 => &rest[end + 1..],
            Some(end) => &rest[end..],
            None => "",
        },
        Some('(' | ')') => rest.get(2..).unwrap_or_default(),
        Some('\n') | None => rest,
        Some(_) => chars.as_str(),
    }
}

/// The form in which a program printed a line of a file, other than with its line number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowForm {
    /// The unchanged line.
    Plain,
    /// With a number that is not the line number (`nl` without `-ba`, or a part of a file numbered from 1):
    /// `3<TAB>text`, `3: text`.
    Renumbered,
    /// A context line or an added line of a diff: ` text`, `+text`.
    Marked,
    /// A line of one of two compared files: `< text`, `> text`.
    Angled,
    /// `cat -A`: `text$`, with `^I` for a tab.
    Dollar,
}

impl RowForm {
    pub(super) const DECORATED: [RowForm; 4] = [RowForm::Renumbered, RowForm::Marked, RowForm::Angled, RowForm::Dollar];

    /// The line that a row shows in this form; `None` if the row does not have the form.
    pub(super) fn line_of(self, row: &str) -> Option<Cow<'_, str>> {
        match self {
            RowForm::Plain => Some(Cow::Borrowed(row)),
            RowForm::Renumbered if row.trim_matches(' ').is_empty() => Some(Cow::Borrowed("")),
            RowForm::Renumbered => number_in_front(row).map(|(_, line)| Cow::Borrowed(line)),
            RowForm::Marked => {
                let is_header = ["+++ ", "--- "].iter().any(|start| row.starts_with(start));
                row.strip_prefix(['+', ' ']).filter(|_| !is_header).map(Cow::Borrowed)
            }
            RowForm::Angled => match row {
                "<" | ">" => Some(Cow::Borrowed("")),
                _ => row.strip_prefix("< ").or_else(|| row.strip_prefix("> ")).map(Cow::Borrowed),
            },
            RowForm::Dollar => made_visible(row.strip_suffix('$')?),
        }
    }
}

/// The number at the start of a row, and the rest. A single blank is not a separator, because `uniq -c` uses it after a
/// count.
pub(super) fn number_in_front(row: &str) -> Option<(u32, &str)> {
    let (number, rest) = leading_number(row.trim_start_matches(' '))?;
    let line = rest.strip_prefix('\t').or_else(|| rest.strip_prefix(": ")).or_else(|| rest.strip_prefix(':'))?;
    Some((number, line))
}

/// The digits at the start of a text, and the rest.
pub(super) fn leading_number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..=7).contains(&digits).then(|| Some((text[..digits].parse().ok()?, &text[digits..])))?
}

/// Decodes `cat -A`: `^I` is a tab, `M-` sets the high bit.
fn made_visible(row: &str) -> Option<Cow<'_, str>> {
    if !row.contains(['^', 'M']) {
        return Some(Cow::Borrowed(row));
    }
    let mut bytes = Vec::with_capacity(row.len());
    let mut rest = row.as_bytes();
    loop {
        let (byte, length) = match rest {
            [] => break,
            [b'M', b'-', b'^', b'?', ..] => (0xff, 4),
            [b'M', b'-', b'^', control @ b'@'..=b'_', ..] => ((control ^ 0x40) | 0x80, 4),
            [b'M', b'-', plain, ..] => (plain | 0x80, 3),
            [b'^', b'?', ..] => (0x7f, 2),
            [b'^', control @ b'@'..=b'_', ..] => (control ^ 0x40, 2),
            [plain, ..] => (*plain, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    let line = String::from_utf8(bytes).ok()?;
    Some(Cow::Owned(line.strip_suffix('\r').map(str::to_owned).unwrap_or(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_links_and_returns_are_no_part_of_a_row() {
        let rows = |output: &str| OutputRows::of(output).iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rows("\u{1b}[32m\u{1b}[K1\u{1b}[m:a\r\nb"), ["1:a", "b"]);
        assert_eq!(rows("\u{1b}]8;;file://x\u{7}name\u{1b}]8;;\u{1b}\\ \u{1b}(Bx\n"), ["name x"]);
        assert_eq!(rows("a\u{1b}[3\nb\u{1b}]x\nc\u{1b}\nd\u{1b}"), ["a", "b", "c", "d"]);
        assert_eq!(rows("\u{feff}a\n\n"), ["a", ""]);
    }

    #[test]
    fn forms_give_the_line() {
        let line = |form: RowForm, row| form.line_of(row).map(Cow::into_owned);
        assert_eq!(line(RowForm::Renumbered, "     3\t  x").as_deref(), Some("  x"));
        assert_eq!(line(RowForm::Renumbered, "       ").as_deref(), Some(""));
        assert_eq!(line(RowForm::Renumbered, "      2 dog"), None);
        assert_eq!(line(RowForm::Marked, "+ x").as_deref(), Some(" x"));
        assert_eq!(line(RowForm::Marked, "+++ b/x"), None);
        assert_eq!(line(RowForm::Marked, "-x"), None);
        assert_eq!(line(RowForm::Angled, "> ").as_deref(), Some(""));
        assert_eq!(line(RowForm::Dollar, "^Iif^M$").as_deref(), Some("\tif"));
        assert_eq!(line(RowForm::Dollar, "M-CM-)t^^$").as_deref(), Some("ét\u{1e}"));
        assert_eq!(line(RowForm::Dollar, "no"), None);
    }
}
