//! The token estimate is never below a tokenizer's count, and texts that are cut to fit do fit.

use surehand_core::{
    render::cut::{cut, ends, on_one_line, shorten},
    tokens::estimate,
};

use crate::source::Source;

pub(super) const WORDS: &[&str] = &[
    "the ",
    " function",
    "\n\n",
    "    ",
    "\t",
    "=====",
    "-----",
    "'s",
    "'LL",
    "123456",
    "é",
    "日本語",
    "\u{1f600}",
    "\u{301}",
    "\r\n",
    "://",
    "ﬁ",
    "İ",
    "ſ",
    "\u{2028}",
    "\u{a0}",
    "\u{200d}",
    "ก็",
    "()",
    "});",
];

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let most = 1 + source.below(80);
    let text = String::from_utf8_lossy(source.rest());
    let counted = bpe_openai::o200k_base().count(&*text);
    assert!(estimate(&text) >= counted, "{} tokens, and not {}: {text:?}", counted, estimate(&text));
    // A few characters and the note on what was left out are always shown.
    let least = 40;
    for made in [cut(&text, most), shorten(&text, most)] {
        assert!(estimate(&made) <= most.max(least), "{} of {most}: {made:?}", estimate(&made));
    }
    let made = ends(&text, most);
    // White space after the note is counted byte by byte, because the note ends with a non-ASCII character.
    let blanks = made.lines().map(|line| line.len() - line.trim_start().len()).max().unwrap_or_default();
    assert!(estimate(&made) <= 2 * most.max(least) + blanks, "{} of {most}: {made:?}", estimate(&made));
    assert!(!on_one_line(&text).contains('\n'));
}
