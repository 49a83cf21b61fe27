//! Every word that a model reads, made from values. Bounded: what does not fit is named, never dropped in silence. What is
//! shown is also reported as a set of lines, because what is shown is what counts as seen.

pub mod change;
pub mod notice;
pub mod read;
pub mod refusal;
pub mod rules;

use crate::{
    hash::Anchor,
    lines::{LineNo, LineSet},
};

/// How a line is numbered in front of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// `12|`
    Plain,
    /// `12#ab|`
    Anchors,
}

impl Numbers {
    /// Plain, or anchors when asked for.
    pub fn with_anchors(anchors: bool) -> Self {
        if anchors { Numbers::Anchors } else { Numbers::Plain }
    }

    fn write(self, out: &mut String, line: LineNo, text: &str) {
        use std::fmt::Write;
        let written = match self {
            Numbers::Plain => write!(out, "{line}|"),
            Numbers::Anchors => write!(out, "{}|", Anchor::of(line, text)),
        };
        written.expect("writing to a string cannot fail");
    }
}

/// `line 3`, `lines 3-4, 9`.
pub fn which(lines: &LineSet) -> String {
    if lines.count() == 1 { format!("line {lines}") } else { format!("lines {lines}") }
}

/// `1 line`, `2 lines`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
