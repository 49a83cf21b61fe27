//! Characters that are easily confused: invisible ones, look-alikes, and letters that Unicode can encode in two ways.
//! They are used to compare texts and to name differences; no text is ever changed.
//!
//! The tables are our own because they are short and have names: Unicode's list of confusables has 6,000 entries and no
//! names, and a model that reads `U+2019 (right single quotation mark)` knows what to type.

use std::borrow::Cow;

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// How a character looks in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appearance {
    Blank,
    Invisible,
    /// Looks like these plain characters.
    Like(&'static str),
    /// Looks like no other character.
    Itself,
}

pub(crate) fn looks(c: char) -> Appearance {
    match c {
        c if c.is_ascii_graphic() => Appearance::Itself,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => Appearance::Invisible,
        '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => Appearance::Invisible,
        c if c.is_whitespace() => Appearance::Blank,
        c if c.is_ascii() => Appearance::Itself,
        c => plain_twin(c).map_or(Appearance::Itself, Appearance::Like),
    }
}

/// The ASCII text that a character looks like.
fn plain_twin(c: char) -> Option<&'static str> {
    if let fullwidth @ '\u{ff01}'..='\u{ff5e}' = c {
        let at = fullwidth as usize - 0xff01;
        return Some(&PLAIN[at..=at]);
    }
    let letter = |(letters, latin): &(&str, &'static str)| {
        letters.chars().zip(0..).find(|(twin, _)| *twin == c).map(|(_, at)| &latin[at..=at])
    };
    LIKE.iter().find(|(twin, ..)| *twin == c).map(|(_, plain, _)| *plain).or_else(|| LETTERS.iter().find_map(letter))
}

/// Appends the look of a character, as a letter and its marks; nothing for an invisible one.
pub(crate) fn fold(c: char, into: &mut String) {
    match looks(c) {
        Appearance::Blank | Appearance::Invisible => {}
        Appearance::Itself => decompose_canonical(c, |part| into.push(part)),
        Appearance::Like(plain) => into.push_str(plain),
    }
}

/// Whether this character is a mark on the letter before it.
pub(crate) fn is_mark(c: char) -> bool {
    is_combining_mark(c) && looks(c) != Appearance::Invisible
}

/// The name of a character, if its look does not identify it.
pub(crate) fn name(c: char) -> Option<Cow<'static, str>> {
    let named = NAMES.iter().find(|(named, _)| *named == c).map(|(_, name)| *name);
    let like = LIKE.iter().find(|(twin, ..)| *twin == c).map(|(_, _, name)| *name);
    if let Some(name) = named.or(like) {
        return Some(Cow::Borrowed(name));
    }
    match (looks(c), c) {
        (Appearance::Like(plain), '\u{370}'..='\u{3ff}') => Some(Cow::Owned(format!("a Greek letter that looks like {plain}"))),
        (Appearance::Like(plain), '\u{400}'..='\u{52f}') => {
            Some(Cow::Owned(format!("a Cyrillic letter that looks like {plain}")))
        }
        (Appearance::Like(plain), _) => Some(Cow::Owned(format!("fullwidth {plain}"))),
        (Appearance::Invisible, _) => Some(Cow::Borrowed("invisible")),
        (Appearance::Blank, _) => Some(Cow::Borrowed("white space")),
        _ if c.is_control() => Some(Cow::Borrowed("a control character")),
        _ if is_mark(c) => Some(Cow::Borrowed("a combining mark")),
        _ => None,
    }
}

const PLAIN: &str = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

const NAMES: &[(char, &str)] = &[
    ('\0', "null"),
    ('\u{8}', "backspace"),
    ('\t', "TAB"),
    ('\u{b}', "vertical tab"),
    ('\u{c}', "form feed"),
    ('\r', "carriage return"),
    ('\u{1b}', "escape"),
    (' ', "space"),
    ('\u{85}', "next line"),
    ('\u{a0}', "no-break space"),
    ('\u{ad}', "soft hyphen"),
    ('\u{300}', "combining grave accent"),
    ('\u{301}', "combining acute accent"),
    ('\u{302}', "combining circumflex accent"),
    ('\u{303}', "combining tilde"),
    ('\u{308}', "combining diaeresis"),
    ('\u{30a}', "combining ring above"),
    ('\u{30c}', "combining caron"),
    ('\u{327}', "combining cedilla"),
    ('\u{2002}', "en space"),
    ('\u{2003}', "em space"),
    ('\u{2007}', "figure space"),
    ('\u{2009}', "thin space"),
    ('\u{200a}', "hair space"),
    ('\u{200b}', "zero width space"),
    ('\u{200c}', "zero width non-joiner"),
    ('\u{200d}', "zero width joiner"),
    ('\u{200e}', "left-to-right mark"),
    ('\u{200f}', "right-to-left mark"),
    ('\u{2028}', "line separator"),
    ('\u{2029}', "paragraph separator"),
    ('\u{202f}', "narrow no-break space"),
    ('\u{2060}', "word joiner"),
    ('\u{3000}', "ideographic space"),
    ('\u{fe0f}', "variation selector-16"),
    ('\u{feff}', "byte order mark"),
];

const LIKE: &[(char, &str, &str)] = &[
    ('\u{b4}', "'", "acute accent"),
    ('\u{2bc}', "'", "modifier letter apostrophe"),
    ('\u{2018}', "'", "left single quotation mark"),
    ('\u{2019}', "'", "right single quotation mark"),
    ('\u{201b}', "'", "single high-reversed-9 quotation mark"),
    ('\u{2032}', "'", "prime"),
    ('\u{201c}', "\"", "left double quotation mark"),
    ('\u{201d}', "\"", "right double quotation mark"),
    ('\u{201e}', "\"", "double low-9 quotation mark"),
    ('\u{2033}', "\"", "double prime"),
    ('\u{2010}', "-", "hyphen"),
    ('\u{2011}', "-", "non-breaking hyphen"),
    ('\u{2012}', "-", "figure dash"),
    ('\u{2013}', "-", "en dash"),
    ('\u{2014}', "-", "em dash"),
    ('\u{2015}', "-", "horizontal bar"),
    ('\u{2212}', "-", "minus sign"),
    ('\u{2026}', "...", "horizontal ellipsis"),
    ('\u{37e}', ";", "Greek question mark"),
    ('\u{2044}', "/", "fraction slash"),
    ('\u{2215}', "/", "division slash"),
    ('\u{2236}', ":", "ratio"),
    ('\u{d7}', "x", "multiplication sign"),
    ('\u{2217}', "*", "asterisk operator"),
    ('\u{2223}', "|", "divides"),
    ('\u{2039}', "<", "single left-pointing angle quotation mark"),
    ('\u{203a}', ">", "single right-pointing angle quotation mark"),
];

/// Cyrillic and Greek letters, and the Latin ones that they look like.
const LETTERS: &[(&str, &str)] =
    &[("аеорсхуіјѕһԁԛԝАВЕКМНОРСТХУІЈЅ", "aeopcxyijshdqwABEKMHOPCTXYIJS"), ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονικ", "ABEZHIKMNOPTYXovik")];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, folded: &str) {
        let mut found = String::new();
        text.chars().for_each(|c| fold(c, &mut found));
        assert_eq!(found, folded);
    }

    #[test]
    fn characters_that_look_alike_fold_alike() {
        check("a\tb\u{a0}c\u{200b}\r\n", "abc");
        check("\u{2018}it\u{2019}s\u{2026}\u{201d} \u{2014} \u{37e}", "'it's...\"-;");
        check("\u{441}\u{430}t \u{39f}\u{ff08}\u{ff5e}", "catO(~");
        check("caf\u{e9} caf\u{65}\u{301}", "cafe\u{301}cafe\u{301}");
        check("\u{1ea5}", "a\u{302}\u{301}");
        check("\u{304c}", "\u{304b}\u{3099}");
        check("\u{4e2d}\u{1f600}\u{df}", "\u{4e2d}\u{1f600}\u{df}");
    }

    #[test]
    fn a_character_whose_look_is_ambiguous_has_a_name() {
        let check = |c: char, expected: &str| assert_eq!(name(c).as_deref().unwrap_or("none"), expected);
        check('\u{2019}', "right single quotation mark");
        check('\u{a0}', "no-break space");
        check('\u{301}', "combining acute accent");
        check('\u{430}', "a Cyrillic letter that looks like a");
        check('\u{391}', "a Greek letter that looks like A");
        check('\u{ff1b}', "fullwidth ;");
        check('\u{1}', "a control character");
        check('\u{2066}', "invisible");
        check('a', "none");
        check('\u{e9}', "none");
    }
}
