//! A line that the user types while the run goes on. The terminal passes each key on at once without echoing it, so the
//! line is kept and drawn here. It can only be edited at its end.

use super::{
    escape,
    style::{Painter, Style},
    wrap,
};

/// Further input is ignored when a line is this long, in bytes.
const LONGEST: usize = 8_000;

#[derive(Debug, Default)]
pub(super) struct LineEditor {
    text: String,
    /// The first bytes of a character whose other bytes have not arrived.
    rest: Vec<u8>,
}

impl LineEditor {
    /// Takes typed bytes. Returns the lines that are complete, without empty ones.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let typed = take_text(&mut self.rest);
        let mut lines = Vec::new();
        let mut keys = typed.chars();
        while let Some(key) = keys.next() {
            match key {
                '\n' | '\r' => lines.push(std::mem::take(&mut self.text)),
                '\x7f' | '\x08' => drop(self.text.pop()),
                '\x15' => self.text.clear(),
                '\x17' => self.drop_word(),
                '\x1b' => skip_sequence(&mut keys),
                '\t' => self.text.push(' '),
                key if key.is_control() || self.text.len() > LONGEST => {}
                key => self.text.push(key),
            }
        }
        lines.retain(|line| !line.trim().is_empty());
        lines
    }

    fn drop_word(&mut self) {
        let end = self.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
        self.text.truncate(end);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The end of the line, in one row.
    pub(super) fn row(&self, painter: Painter) -> String {
        format!("{} {}", painter.paint(Style::Bold, MARK), wrap::keep_end(&escape::name(&self.text), painter.room(2)))
    }
}

/// The beginning of a line of the user.
pub(super) const MARK: &str = "›";

/// Takes the complete characters. Invalid bytes become U+FFFD.
fn take_text(bytes: &mut Vec<u8>) -> String {
    let complete = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    // An incomplete character after invalid bytes is rare; it is lost.
    let text = String::from_utf8_lossy(&bytes[..complete]).into_owned();
    bytes.drain(..complete);
    text
}

/// Skips the escape sequence of a key such as an arrow. It arrives in one piece.
fn skip_sequence(keys: &mut std::str::Chars<'_>) {
    if !matches!(keys.next(), Some('[' | 'O')) {
        return;
    }
    // The final character is not one of the parameters.
    keys.find(|key| matches!(key, '@'..='~'));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::style::Colours;

    #[track_caller]
    fn check(pieces: &[&[u8]], lines: &[&str], left: &str) {
        let mut editor = LineEditor::default();
        let found: Vec<String> = pieces.iter().flat_map(|piece| editor.feed(piece)).collect();
        assert_eq!((found.iter().map(String::as_str).collect::<Vec<_>>(), editor.text.as_str()), (lines.to_vec(), left));
    }

    #[test]
    fn a_line_ends_with_enter() {
        check(&[b"use ", b"tabs\nand", b"\r"], &["use tabs", "and"], "");
        check(&[b"\n \n"], &[], "");
        check(&[b"one\ntwo\nthree"], &["one", "two"], "three");
    }

    #[test]
    fn it_is_edited_at_its_end() {
        check(&[b"abc\x7f\x08d"], &[], "ad");
        check(&["ä😀\x7f".as_bytes()], &[], "ä");
        check(&[b"\x7fone two  \x17three"], &[], "one three");
        check(&[b"one\x17\x17two\x15x"], &[], "x");
    }

    #[test]
    fn other_keys_do_nothing() {
        check(&[b"a\x1b[Ab\x1bOPc\x1b[1;5Dd\x1bxe\x1b", b"f\x04\x00\tg"], &[], "abcdef g");
    }

    #[test]
    fn characters_may_come_in_pieces() {
        check(&["é".as_bytes().split_at(1).0, "é".as_bytes().split_at(1).1], &[], "é");
        check(&[b"a\xffb\n"], &["a\u{fffd}b"], "");
    }

    #[test]
    fn its_end_is_in_view() {
        let mut editor = LineEditor::default();
        editor.feed("please use 漢字 and tabs".as_bytes());
        let row = |width| editor.row(Painter { width, colours: Colours::Off });
        assert_eq!(row(80), "› please use 漢字 and tabs");
        assert_eq!(row(14), "› … and tabs");
        for width in 4..40 {
            assert!(wrap::width(&row(width)) < width, "{width}: {}", row(width));
        }
    }
}
