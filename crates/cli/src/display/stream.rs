//! Formats the model's text as it streams in. Leading and trailing line breaks are left out, however the text is split.

use super::escape;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TextStream {
    state: StreamState,
    /// Line breaks that are only written if text follows.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    #[default]
    Silent,
    MidLine,
    LineEnded,
}

impl TextStream {
    pub(super) fn piece(&mut self, text: &str) -> String {
        let mut out = String::new();
        for line in escape::prose(text).split_inclusive('\n') {
            self.line(line, &mut out);
        }
        out
    }

    fn line(&mut self, line: &str, out: &mut String) {
        if line == "\n" {
            match self.state {
                StreamState::Silent => {}
                StreamState::MidLine => {
                    out.push('\n');
                    self.state = StreamState::LineEnded;
                }
                StreamState::LineEnded => self.held.push('\n'),
            }
            return;
        }
        out.push_str(&std::mem::take(&mut self.held));
        out.push_str(line);
        self.state = if line.ends_with('\n') { StreamState::LineEnded } else { StreamState::MidLine };
    }

    /// Ends the current line because other output follows. The text may continue.
    pub(super) fn pause(&mut self) -> &'static str {
        if !self.is_mid_line() {
            return "";
        }
        self.state = StreamState::LineEnded;
        "\n"
    }

    /// Ends the text. The next piece starts a new one.
    pub(super) fn end(&mut self) -> &'static str {
        let last = self.pause();
        *self = Self::default();
        last
    }

    pub(super) fn has_begun(&self) -> bool {
        self.state != StreamState::Silent
    }

    /// Whether the cursor is in an unfinished line.
    pub(super) fn is_mid_line(&self) -> bool {
        self.state == StreamState::MidLine
    }
}

pub(super) fn format_text(text: &str) -> String {
    let mut stream = TextStream::default();
    let text = stream.piece(text);
    text + stream.end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        let mut stream = TextStream::default();
        let mut out: String = pieces.iter().map(|piece| stream.piece(piece)).collect();
        out.push_str(stream.end());
        assert_eq!(out, expected);
    }

    #[test]
    fn line_breaks_around_it_are_left_out() {
        check(&[], "");
        check(&["\n\n"], "");
        check(&["\n", "Hello", " there.", "\n\n", "\n"], "Hello there.\n");
        check(&["One.\n", "\n", "Two."], "One.\n\nTwo.\n");
        check(&["One.\r", "\n\r\nTwo."], "One.\n\nTwo.\n");
    }

    #[test]
    fn nothing_in_it_is_obeyed() {
        check(&["\x1b", "[2J"], "<U+001B>[2J\n");
    }

    #[test]
    fn it_knows_where_the_cursor_is() {
        let mut stream = TextStream::default();
        assert!(!stream.has_begun());
        stream.piece("Hello");
        assert!(stream.is_mid_line());
        stream.piece("\n\n");
        assert!(stream.has_begun() && !stream.is_mid_line());
        stream.end();
        assert!(!stream.has_begun());
    }

    #[test]
    fn it_may_be_interrupted() {
        let mut stream = TextStream::default();
        assert_eq!(stream.pause(), "");
        stream.piece("Hello");
        assert_eq!((stream.pause(), stream.pause(), stream.has_begun()), ("\n", "", true));
        assert_eq!(stream.piece(" again"), " again");
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(pieces in proptest::collection::vec("[ab\n\r]{0,4}", 0..6)) {
            let mut stream = TextStream::default();
            let mut out: String = pieces.iter().map(|piece| stream.piece(piece)).collect();
            out.push_str(stream.end());
            prop_assert_eq!(out, format_text(&pieces.concat()));
        }
    }
}
