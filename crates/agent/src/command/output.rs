//! Turns the output of a command into plain text of bounded length, as it arrives. Escape sequences and
//! overwritten lines are removed first, so that the bounds are spent on readable text.

use super::CommandLimits;
use crate::secrets::{Redactor, Secrets};

#[derive(Default)]
pub(super) struct CommandOutput {
    /// The first bytes of an incomplete character.
    undecoded: Vec<u8>,
    terminal: TerminalFilter,
    kept: HeadAndTail,
}

/// The output of a command: readable, redacted and of bounded length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownOutput {
    /// The kept text. A note marks the gap, if there is one.
    pub text: String,
    /// The amount that was left out; `None` if the text is complete.
    pub cut: Option<OmittedOutput>,
}

/// How much output was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OmittedOutput {
    /// Number of bytes.
    pub bytes: usize,
    /// Number of line feeds among them.
    pub lines: usize,
}

impl CommandOutput {
    /// Secrets are redacted before the text is cut, so that no part of one is left.
    pub(super) fn new(limits: &CommandLimits, secrets: &Secrets) -> Self {
        let (head_bytes, tail_bytes, redactor) = (limits.head_bytes, limits.tail_bytes, secrets.redactor());
        Self { kept: HeadAndTail { head_bytes, tail_bytes, redactor, ..HeadAndTail::default() }, ..Self::default() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut pending = std::mem::take(&mut self.undecoded);
        pending.extend_from_slice(bytes);
        let mut chunks = pending.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.terminal.push(chunk.valid(), &mut self.kept);
            let may_go_on = || std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if chunk.invalid().is_empty() {
                continue;
            }
            if chunks.peek().is_none() && may_go_on() {
                self.undecoded = chunk.invalid().to_vec();
            } else {
                self.terminal.push(REPLACEMENT, &mut self.kept);
            }
        }
    }

    /// Takes the new output since the last call, while the command runs. Once this reaches the size that is kept of all
    /// output, it ends with [`MUTED`].
    pub(super) fn take_news(&mut self) -> String {
        std::mem::take(&mut self.kept.news)
    }

    pub(super) fn finish(mut self) -> ShownOutput {
        if !self.undecoded.is_empty() {
            self.terminal.push(REPLACEMENT, &mut self.kept);
        }
        self.kept.push(&self.terminal.line);
        self.kept.finish()
    }
}

/// Replaces bytes that are not UTF-8.
const REPLACEMENT: &str = "\u{fffd}";

/// Removes escape sequences. An overwritten line appears in its last state.
#[derive(Default)]
struct TerminalFilter {
    state: EscapeState,
    /// Length of the current escape sequence.
    hidden: usize,
    line: String,
    /// After a carriage return: the next text replaces the line.
    is_returned: bool,
}

#[derive(Clone, Copy, PartialEq, Default)]
enum EscapeState {
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// In a control sequence, which ends with a letter: colours, cursor movements.
    Control,
    /// In a sequence with a text, such as a title or a link.
    Message,
}

/// A longer line is passed on in pieces and can no longer be overwritten.
const LONGEST_LINE: usize = 64 * 1024;

/// A longer sequence is taken for text.
const LONGEST_SEQUENCE: usize = 4096;

impl TerminalFilter {
    fn push(&mut self, text: &str, kept: &mut HeadAndTail) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.state == EscapeState::Text {
                let plain = rest.bytes().position(may_be_control).unwrap_or(rest.len());
                self.write(&rest[..plain], kept);
                rest = &rest[plain..];
            }
            let Some(c) = rest.chars().next() else { break };
            rest = &rest[c.len_utf8()..];
            if !self.is_hidden(c) {
                self.handle(c, kept);
            }
        }
    }

    /// Whether a character is part of an escape sequence.
    fn is_hidden(&mut self, c: char) -> bool {
        let next = match (self.state, c) {
            (EscapeState::Text, _) => None,
            (EscapeState::Escape, '[') => Some(EscapeState::Control),
            (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => Some(EscapeState::Message),
            (EscapeState::Escape, ' '..='/') => Some(EscapeState::Escape),
            (EscapeState::Control, ' '..='?') => Some(EscapeState::Control),
            (EscapeState::Escape, '0'..='~') | (EscapeState::Control, '@'..='~') | (EscapeState::Message, '\u{7}' | '\u{9c}') => {
                Some(EscapeState::Text)
            }
            // It ends with an escape character and a backslash, and never spans lines.
            (EscapeState::Message, '\u{1b}') => Some(EscapeState::Escape),
            (EscapeState::Message, '\n') => None,
            (EscapeState::Message, _) => Some(EscapeState::Message),
            (EscapeState::Escape | EscapeState::Control, _) => None,
        };
        self.hidden = if self.state == EscapeState::Text { 0 } else { self.hidden + 1 };
        self.state = next.filter(|_| self.hidden < LONGEST_SEQUENCE).unwrap_or(EscapeState::Text);
        next.is_some()
    }

    fn handle(&mut self, c: char, kept: &mut HeadAndTail) {
        match c {
            '\u{1b}' => self.state = EscapeState::Escape,
            '\r' => self.is_returned = true,
            '\u{8}' => drop(self.line.pop()),
            '\n' | '\t' => self.write(c.encode_utf8(&mut [0; 4]), kept),
            c if c.is_control() => {}
            c => self.write(c.encode_utf8(&mut [0; 4]), kept),
        }
    }

    fn write(&mut self, text: &str, kept: &mut HeadAndTail) {
        if text.is_empty() {
            return;
        }
        // A carriage return before a newline belongs to the line ending.
        if std::mem::take(&mut self.is_returned) && !text.starts_with('\n') {
            self.line.clear();
        }
        match text.rfind('\n') {
            Some(last) => {
                kept.push(&self.line);
                kept.push(&text[..=last]);
                self.line.clear();
                self.line.push_str(&text[last + 1..]);
            }
            None => self.line.push_str(text),
        }
        if self.line.len() > LONGEST_LINE {
            kept.push(&self.line);
            self.line.clear();
        }
    }
}

/// Whether a character with this first byte may be a control character. Those above U+007F begin with C2.
fn may_be_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\n' | b'\t') || matches!(byte, 0x7f | 0xc2)
}

/// Keeps the start and the end of a text.
#[derive(Default)]
struct HeadAndTail {
    head_bytes: usize,
    tail_bytes: usize,
    redactor: Redactor,
    head: String,
    /// The text after the head. It may grow to twice its limit, so that not every piece has to be cut.
    tail: String,
    is_tail_whole: bool,
    /// The amount that was dropped between head and tail.
    left_out: OmittedOutput,
    /// Text that has not been shown yet.
    news: String,
    /// Bytes of text that were added to the news so far.
    news_bytes: usize,
}

/// The last line of the live output, if it exceeds the size that is kept.
pub const MUTED: &str = "… (more output is not shown while it runs)\n";

impl HeadAndTail {
    fn push(&mut self, text: &str) {
        let redacted = self.redactor.push(text);
        self.keep(&redacted);
    }

    fn keep(&mut self, text: &str) {
        self.add_news(text);
        let is_head_full = !self.tail.is_empty() || self.left_out.bytes > 0;
        let room = if is_head_full { 0 } else { self.head_bytes.saturating_sub(self.head.len()) };
        let (head, tail) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(head);
        self.tail.push_str(tail);
        if self.tail.len() > 2 * self.tail_bytes {
            self.shorten_tail();
        }
    }

    /// Adds a text to the news, up to the limit of the whole output.
    fn add_news(&mut self, text: &str) {
        let most = self.head_bytes + self.tail_bytes;
        if text.is_empty() || self.news_bytes > most {
            return;
        }
        let end = text.floor_char_boundary(most - self.news_bytes);
        self.news_bytes += text.len();
        self.news.push_str(&text[..end]);
        if end < text.len() {
            if !self.news.is_empty() && !self.news.ends_with('\n') {
                self.news.push('\n');
            }
            self.news.push_str(MUTED);
        }
    }

    fn shorten_tail(&mut self) {
        let from = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(self.tail_bytes));
        self.leave_out_of_tail(from);
    }

    fn leave_out_of_tail(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.is_tail_whole = self.tail[..bytes].ends_with('\n');
        self.left_out.add(&self.tail[..bytes]);
        self.tail.drain(..bytes);
    }

    fn finish(mut self) -> ShownOutput {
        let held = self.redactor.finish();
        self.keep(&held);
        self.shorten_tail();
        if self.left_out.bytes == 0 {
            return ShownOutput { text: self.head + &self.tail, cut: None };
        }
        self.cut_at_lines();
        let mut text = self.head;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&self.left_out.note());
        text.push_str(&self.tail);
        ShownOutput { text, cut: Some(self.left_out) }
    }

    /// Drops the partial lines at the cut, unless that would be most of what is kept.
    fn cut_at_lines(&mut self) {
        if let Some(end) = self.head.rfind('\n').filter(|end| *end >= self.head.len() / 2) {
            self.left_out.add(&self.head[end + 1..]);
            self.head.truncate(end + 1);
        }
        if !self.is_tail_whole
            && let Some(end) = self.tail.find('\n').filter(|end| *end < self.tail.len() / 2)
        {
            self.leave_out_of_tail(end + 1);
        }
    }
}

impl OmittedOutput {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.lines += text.bytes().filter(|byte| *byte == b'\n').count();
    }

    fn note(&self) -> String {
        let bytes = with_commas(self.bytes);
        match self.lines {
            0 => format!("[… {bytes} bytes left out …]\n"),
            1 => format!("[… {bytes} bytes (1 line) left out …]\n"),
            lines => format!("[… {bytes} bytes ({} lines) left out …]\n", with_commas(lines)),
        }
    }
}

/// A number with commas: `1,234,567`.
fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use surehand_engine::CommandConfig;

    use super::*;

    fn shown(pieces: &[&[u8]], head_bytes: usize, tail_bytes: usize) -> ShownOutput {
        shown_without(&Secrets::default(), pieces, head_bytes, tail_bytes)
    }

    fn shown_without(secrets: &Secrets, pieces: &[&[u8]], head_bytes: usize, tail_bytes: usize) -> ShownOutput {
        let mut output = CommandOutput::new(
            &CommandLimits { head_bytes, tail_bytes, ..CommandLimits::from(&CommandConfig::default()) },
            secrets,
        );
        pieces.iter().for_each(|piece| output.push(piece));
        output.finish()
    }

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        let whole = shown(&[raw.as_bytes()], 1000, 1000);
        assert_eq!(whole, ShownOutput { text: expected.to_owned(), cut: None });
        let bytes: Vec<&[u8]> = raw.as_bytes().chunks(1).collect();
        assert_eq!(shown(&bytes, 1000, 1000), whole, "byte by byte");
    }

    #[track_caller]
    fn check_cut(raw: &str, head_bytes: usize, tail_bytes: usize, expected: &str) {
        assert_eq!(shown(&[raw.as_bytes()], head_bytes, tail_bytes).text, expected);
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        check("", "");
        check("a\tb\n\n  ü → 漢 🦀\nno end", "a\tb\n\n  ü → 漢 🦀\nno end");
        check("\u{a0}non-breaking\u{ad}", "\u{a0}non-breaking\u{ad}");
    }

    #[test]
    fn what_is_for_terminals_is_taken_out() {
        check("\u{1b}[1;31merror\u{1b}[0m: \u{1b}[38;2;1;2;3mx\u{1b}[K\n", "error: x\n");
        check("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\\n", "alink\n");
        check("\u{1b}(Ba\u{1b}7b\u{1b}=c\u{1b}[?25ld\u{1b}[2Je\u{1b}P1;2qpicture\u{1b}\\f", "abcdef");
        check("a\u{0}b\u{7}c\u{c}d\u{7f}e\u{85}f\u{9b}g", "abcdefg");
        check("a\u{1b}", "a");
        check("a\u{1b}[12", "a");
        check("a\u{1b}[12\nb\u{1b}]0;open\nc\u{1b}\nd", "a\nb\nc\nd");
        check("\u{1b}\u{1b}[31mred", "red");
    }

    #[test]
    fn a_sequence_without_end_does_not_swallow_the_rest() {
        let raw = format!("\u{1b}]{}after", "x".repeat(5000));
        let text = shown(&[raw.as_bytes()], 10_000, 10_000).text;
        assert!(text.ends_with("xafter") && text.len() < 1000, "{}", text.len());
    }

    #[test]
    fn progress_is_reduced_to_its_last_state() {
        check("10%\r20%\r100%\ndone\n", "100%\ndone\n");
        check("10%\r20%\r", "20%");
        check("\r10%\u{1b}[K\r\u{1b}[K20%\r\n", "20%\n");
        check("a\r\nb\r\n", "a\nb\n");
        check("a\r\r\nb", "a\nb");
        check("keep\n1\r2\r3", "keep\n3");
        check("|\u{8}/\u{8}-\u{8}done", "done");
        check("N\u{8}NA\u{8}A _\u{8}x\n", "NA x\n");
        check("ü\u{8}u\n\u{8}\u{8}b", "u\nb");
    }

    #[test]
    fn what_is_no_text_is_shown_as_such() {
        assert_eq!(shown(&[b"a\xff\xfeb\xc3"], 100, 100).text, "a\u{fffd}\u{fffd}b\u{fffd}");
        assert_eq!(shown(&[b"a\xf0\x9f", b"\xa6\x80b"], 100, 100).text, "a🦀b");
        assert_eq!(shown(&[b"a\xf0\x9f", b"\xa6b"], 100, 100).text, "a\u{fffd}b");
    }

    #[test]
    fn the_middle_is_left_out_and_the_cut_said() {
        check_cut("one\ntwo\nthree\nfour\nfive\n", 8, 10, "one\ntwo\n[… 6 bytes (1 line) left out …]\nfour\nfive\n");
        check_cut("one\ntwo\nthree\nfour\nfive\n", 10, 7, "one\ntwo\n[… 11 bytes (2 lines) left out …]\nfive\n");
        check_cut("one\ntwo\nthree\n", 8, 6, "one\ntwo\nthree\n");
        check_cut("one\ntwo\nthree\n", 4, 10, "one\ntwo\nthree\n");
        // No line ends near the cut.
        check_cut("abcdefghij", 3, 3, "abc\n[… 4 bytes left out …]\nhij");
        check_cut("äöüäöü", 3, 3, "ä\n[… 8 bytes left out …]\nü");
        check_cut("abcdefghij", 0, 3, "[… 7 bytes left out …]\nhij");
        check_cut("abcdefghij", 3, 0, "abc\n[… 7 bytes left out …]\n");
        check_cut("abcdefghij", 0, 0, "[… 10 bytes left out …]\n");
    }

    #[test]
    fn a_secret_is_redacted_however_it_comes() {
        let mut secrets = Secrets::default();
        secrets.add("sk-12345");
        let redacted = |raw: &[u8], size: usize, head: usize, tail: usize| {
            shown_without(&secrets, &raw.chunks(size).collect::<Vec<_>>(), head, tail).text
        };
        for size in [1, 3, 100] {
            assert_eq!(redacted(b"a sk-12345\nsk-12345 b sk-1234", size, 100, 100), "a …\n… b sk-1234");
            // Only text that a terminal would show counts.
            assert_eq!(redacted(b"sk-\x1b[31m12\x00345\n1%\rsk-12x\x08345", size, 100, 100), "…\n…");
            // Cutting the output leaves no part of it.
            assert_eq!(redacted(b"sk-12345abcdefghijsk-12345", size, 4, 4), "…a\n[… 8 bytes left out …]\nj…");
        }
        // A line that is too long to buffer is shown in pieces.
        let long = format!("{}sk-12345", "x".repeat(LONGEST_LINE - 3));
        for size in [LONGEST_LINE + 1, LONGEST_LINE - 1, 1000] {
            assert!(redacted(long.as_bytes(), size, 100_000, 100_000).ends_with("xx…"));
        }
    }

    #[test]
    fn large_numbers_can_be_read() {
        assert_eq!([1, 999, 1000, 123_456, 1_234_567].map(with_commas), ["1", "999", "1,000", "123,456", "1,234,567"]);
        let text = shown(&["x\n".repeat(1_000_000).as_bytes()], 4, 4).text;
        assert_eq!(text, "x\nx\n[… 1,999,992 bytes (999,996 lines) left out …]\nx\nx\n");
    }

    #[test]
    fn memory_is_bounded() {
        let mut output = CommandOutput::new(
            &CommandLimits { head_bytes: 100, tail_bytes: 100, ..CommandLimits::from(&CommandConfig::default()) },
            &Secrets::default(),
        );
        for piece in ["x".repeat(60_000), "y\n".repeat(30_000), "\u{1b}]".repeat(30_000), "a\rb\u{8}".repeat(20_000)] {
            for _ in 0..20 {
                output.push(piece.as_bytes());
            }
        }
        assert!(output.terminal.line.capacity() < 300_000 && output.kept.tail.capacity() < 300_000);
        assert!(output.kept.head.len() <= 100 && output.undecoded.len() < 4);
    }

    proptest! {
        #[test]
        fn how_it_comes_in_pieces_makes_no_difference(
            raw in proptest::collection::vec(prop_oneof![
                any::<u8>(), Just(b'\n'), Just(b'\r'), Just(0x1b), Just(b'['), Just(b'm'), Just(8), Just(0xc2), Just(0x9f), Just(b'a')
            ], 0..200),
            size in 1usize..9,
            head in 0usize..40,
            tail in 0usize..40,
        ) {
            let whole = shown(&[&raw], head, tail);
            let pieces: Vec<&[u8]> = raw.chunks(size).collect();
            prop_assert_eq!(&shown(&pieces, head, tail), &whole);
            let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
            prop_assert!(whole.text.chars().all(is_plain), "{:?}", whole.text);
        }

        #[test]
        fn all_is_shown_or_counted(text in "[a-zü\n]{0,120}", head in 0usize..40, tail in 0usize..40) {
            let shown = shown(&[text.as_bytes()], head, tail);
            let Some(cut) = shown.cut else {
                prop_assert!(text.len() <= head + tail);
                prop_assert_eq!(shown.text, text);
                return Ok(());
            };
            let note = cut.note();
            let (before, after) = shown.text.split_once(&note).unwrap();
            prop_assert!(before.len() <= head + 1 && after.len() <= tail);
            prop_assert!(text.ends_with(after));
            // A broken line ends before the note.
            let begins = text.starts_with(before);
            let before = if begins && before.len() + after.len() + cut.bytes == text.len() { before } else { &before[..before.len() - 1] };
            prop_assert!(text.starts_with(before));
            prop_assert_eq!(before.len() + after.len() + cut.bytes, text.len());
            let lines = |text: &str| text.matches('\n').count();
            prop_assert_eq!(lines(before) + lines(after) + cut.lines, lines(&text));
        }
    }
}
