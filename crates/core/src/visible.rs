//! Escapes untrusted text for a terminal or a page: control and invisible characters become `<U+001B>`, so that a model
//! cannot repaint the text that its user reads. Each character is judged alone, so text may come in pieces.

/// Prose as a model writes it: keeps line breaks, tabs and emoji.
pub fn prose(text: &str) -> String {
    spelled(text, |c| match c {
        // Before a line feed it has no effect; alone it would overwrite the line.
        '\r' => CharDisplay::Nothing,
        '\n' | '\t' => CharDisplay::Itself,
        c if joins_emoji(c) => CharDisplay::Itself,
        c if is_hidden(c) => CharDisplay::Spelled,
        _ => CharDisplay::Itself,
    })
}

/// Text in one line: line breaks and tabs become blanks.
pub fn one_line(text: &str) -> String {
    prose(text.trim()).replace(['\n', '\t'], " ")
}

/// Escapes a name, so that no two names look alike because of invisible characters.
pub fn name(text: &str) -> String {
    spelled(text, |c| match c {
        '\t' => CharDisplay::Tab,
        c if joins_emoji(c) => CharDisplay::Itself,
        c if is_hidden(c) => CharDisplay::Spelled,
        _ => CharDisplay::Itself,
    })
}

/// Escapes a line of code that a person must judge: no character in it hides or reorders others.
pub fn code(text: &str) -> String {
    spelled(text, |c| match c {
        '\t' => CharDisplay::Tab,
        c if is_hidden(c) || is_right_to_left(c) || is_mark(c) => CharDisplay::Spelled,
        _ => CharDisplay::Itself,
    })
}

enum CharDisplay {
    Itself,
    Spelled,
    Tab,
    Nothing,
}

fn spelled(text: &str, shown: impl Fn(char) -> CharDisplay) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match shown(c) {
            CharDisplay::Itself => out.push(c),
            CharDisplay::Spelled => out.push_str(&spell(c)),
            CharDisplay::Tab => out.push_str("⇥   "),
            CharDisplay::Nothing => {}
        }
    }
    out
}

/// The code point in the form `<U+001B>`.
pub fn spell(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

/// Whether the character is invisible or a control character.
fn is_hidden(c: char) -> bool {
    let blank = c.is_whitespace() && c != ' ';
    let empty = matches!(c, '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}');
    let formats = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    c.is_control() || blank || empty || formats
}

/// Joins the parts of an emoji, or selects its style. Harmless in prose.
fn joins_emoji(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// Letters that reorder the text around them.
fn is_right_to_left(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(shown: fn(&str) -> String, text: &str, expected: &str) {
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn escape_sequences_are_text() {
        for shown in [prose, one_line, name, code] {
            check(shown, "a\x1b[2J\x1b]0;title\x07b", "a<U+001B>[2J<U+001B>]0;title<U+0007>b");
            // Some terminals obey this single character like ESC [.
            check(shown, "\u{9b}2J", "<U+009B>2J");
            check(shown, "\u{8}\u{7f}\0", "<U+0008><U+007F><U+0000>");
        }
    }

    #[test]
    fn the_order_of_text_is_not_turned() {
        for shown in [prose, one_line, name, code] {
            check(shown, "a\u{202e}b\u{2066}c", "a<U+202E>b<U+2066>c");
        }
        check(code, "echo \u{5d0}", "echo <U+05D0>");
        check(name, "\u{5d0}.txt", "\u{5d0}.txt");
    }

    #[test]
    fn invisible_characters_are_named() {
        check(name, "a\u{200b}b\u{a0}c\u{e0041}", "a<U+200B>b<U+00A0>c<U+E0041>");
        check(code, "ls\u{3164}", "ls<U+3164>");
        check(code, "e\u{301}", "e<U+0301>");
        check(name, "e\u{301}", "e\u{301}");
    }

    #[test]
    fn line_breaks_are_kept_joined_or_named() {
        check(prose, "a\r\nb\tc", "a\nb\tc");
        check(prose, "safe\rfake", "safefake");
        check(one_line, " a\nb\tc\n", "a b c");
        check(name, "a\nb\tc\r", "a<U+000A>b⇥   c<U+000D>");
        check(code, "a\rb", "a<U+000D>b");
    }

    #[test]
    fn other_scripts_and_emoji_are_left_alone() {
        for shown in [prose, one_line, name] {
            check(shown, "grün 漢字 👩\u{200d}💻 ❤\u{fe0f}", "grün 漢字 👩\u{200d}💻 ❤\u{fe0f}");
        }
        check(code, "grün 漢字", "grün 漢字");
        check(code, "a\u{200d}", "a<U+200D>");
    }

    proptest! {
        #[test]
        fn nothing_a_terminal_obeys_gets_through(text in "\\PC{0,8}|(?s:.{0,20})") {
            prop_assert!(prose(&text).chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
            for shown in [one_line, name, code] {
                prop_assert!(!shown(&text).chars().any(char::is_control));
            }
        }

        #[test]
        fn text_may_come_in_pieces(first in "(?s:.{0,8})", second in "(?s:.{0,8})") {
            prop_assert_eq!(prose(&format!("{first}{second}")), prose(&first) + &prose(&second));
        }
    }
}
