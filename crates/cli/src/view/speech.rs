//! What a model says, as it comes. Its line breaks at the beginning and the end are left out, whatever the pieces are.

use super::safe;

/// The text of one answer so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Speech {
    state: State,
    /// Line breaks that are written only if something follows.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was said yet.
    #[default]
    Silent,
    /// The last line is not ended.
    MidLine,
    /// The last line is ended.
    LineEnded,
}

impl Speech {
    /// What is written for the next piece.
    pub(super) fn piece(&mut self, text: &str) -> String {
        let mut out = String::new();
        for line in safe::prose(text).split_inclusive('\n') {
            self.line(line, &mut out);
        }
        out
    }

    fn line(&mut self, line: &str, out: &mut String) {
        if line == "\n" {
            match self.state {
                State::Silent => {}
                State::MidLine => {
                    out.push('\n');
                    self.state = State::LineEnded;
                }
                State::LineEnded => self.held.push('\n'),
            }
            return;
        }
        out.push_str(&std::mem::take(&mut self.held));
        out.push_str(line);
        self.state = if line.ends_with('\n') { State::LineEnded } else { State::MidLine };
    }

    /// What is written when something else comes, after which it may go on.
    pub(super) fn pause(&mut self) -> &'static str {
        if !self.is_mid_line() {
            return "";
        }
        self.state = State::LineEnded;
        "\n"
    }

    /// What is written when it is over. The next piece begins another speech.
    pub(super) fn end(&mut self) -> &'static str {
        let last = self.pause();
        *self = Self::default();
        last
    }

    /// Whether something was said.
    pub(super) fn has_begun(&self) -> bool {
        self.state != State::Silent
    }

    /// Whether the cursor is behind what was said, so that nothing else may be written there.
    pub(super) fn is_mid_line(&self) -> bool {
        self.state == State::MidLine
    }
}

/// All of a text at once.
pub(super) fn whole(text: &str) -> String {
    let mut speech = Speech::default();
    let text = speech.piece(text);
    text + speech.end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        let mut speech = Speech::default();
        let mut out: String = pieces.iter().map(|piece| speech.piece(piece)).collect();
        out.push_str(speech.end());
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
        let mut speech = Speech::default();
        assert!(!speech.has_begun());
        speech.piece("Hello");
        assert!(speech.is_mid_line());
        speech.piece("\n\n");
        assert!(speech.has_begun() && !speech.is_mid_line());
        speech.end();
        assert!(!speech.has_begun());
    }

    #[test]
    fn it_may_be_interrupted() {
        let mut speech = Speech::default();
        assert_eq!(speech.pause(), "");
        speech.piece("Hello");
        assert_eq!((speech.pause(), speech.pause(), speech.has_begun()), ("\n", "", true));
        assert_eq!(speech.piece(" again"), " again");
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(pieces in proptest::collection::vec("[ab\n\r]{0,4}", 0..6)) {
            let mut speech = Speech::default();
            let mut out: String = pieces.iter().map(|piece| speech.piece(piece)).collect();
            out.push_str(speech.end());
            prop_assert_eq!(out, whole(&pieces.concat()));
        }
    }
}
