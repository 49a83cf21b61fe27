//! How a line of a file is numbered where it is shown to a model.

use crate::{hash::LineHash, lines::LineNo};

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

    /// How many bytes stand in front of a line.
    pub(crate) fn width(self, line: LineNo) -> usize {
        let digits = line.get().ilog10() as usize + 1;
        match self {
            Numbers::Plain => digits + 1,
            Numbers::Anchors => digits + "#ab|".len(),
        }
    }
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
