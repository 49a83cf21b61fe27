//! Every word that a model reads, made from values. Bounded: what does not fit is named, never dropped in silence. What is
//! shown is also reported as a set of lines, because what is shown is what counts as seen.

pub mod change;
pub mod cut;
mod difference;
pub mod instructions;
pub mod list;
pub mod notice;
pub mod read;
pub mod refusal;
pub mod rules;
pub mod scope;
pub mod search;
pub mod snapshot;
pub mod tasks;
pub mod unified;

use crate::{
    hash::LineHash,
    lines::{LineNo, LineSet},
    refusal::clip,
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

    pub(crate) fn write(self, out: &mut String, line: LineNo, text: &str) {
        push_number(out, line.get());
        if self == Numbers::Anchors {
            out.push_str(&format!("#{}", LineHash::of(text)));
        }
        out.push('|');
    }
}

/// What a line of a reply shows of a line of a file, after its number and perhaps a sign; nothing if it shows none. The other way
/// round of how [`Numbers`] are written.
pub fn row(line: &str) -> Option<&str> {
    let line = line.strip_prefix(['+', '-', ' ']).unwrap_or(line);
    let end = line.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
    let rest = &line[end..];
    let rest = rest.strip_prefix('#').map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()));
    rest.strip_prefix('|')
}

/// The decimal digits of a number. The general way of formatting takes half the time of a large read.
fn push_number(out: &mut String, number: u32) {
    let mut digits = [0; 10];
    let mut rest = number;
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).expect("decimal digits are ASCII"));
}

/// `line 3`, `lines 3-4, 9`; of many ranges the first ones.
pub fn which(lines: &LineSet) -> String {
    const MAX: usize = 20;
    let ranges = lines.ranges();
    if ranges.len() > MAX {
        let first: LineSet = ranges[..MAX].iter().copied().collect();
        let more = ranges.len() - MAX;
        return format!("lines {first} and {more} more ranges up to {}", ranges[ranges.len() - 1].end);
    }
    if lines.count() == 1 { format!("line {lines}") } else { format!("lines {lines}") }
}

/// `1 line`, `2 lines`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// What somebody typed, in quotes and not too much of it.
struct Quote<'a>(&'a str);

impl std::fmt::Display for Quote<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", clip(self.0, 100).replace('\n', "\\n"))
    }
}
