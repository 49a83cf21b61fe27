//! How lines are numbered where a model sees them.

use crate::{hash::LineHash, lines::LineNo, text_sink::TextSink};

/// How a line is numbered: with or without a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineNumbers {
    /// `12|`
    Plain,
    /// `12#ab|`
    Anchors,
}

impl LineNumbers {
    /// Plain, or anchors if `anchors` is set.
    pub fn with_anchors(anchors: bool) -> Self {
        if anchors { LineNumbers::Anchors } else { LineNumbers::Plain }
    }

    pub(crate) fn write(self, out: &mut impl TextSink, line: LineNo, text: &str) {
        match self {
            LineNumbers::Plain => put_number(out, line.get(), b'|'),
            LineNumbers::Anchors => {
                put_number(out, line.get(), b'#');
                out.put_plain(format!("{}|", LineHash::of(text)).as_bytes());
            }
        }
    }

    /// The number of bytes in front of a line.
    pub(crate) fn width(self, line: LineNo) -> usize {
        let digits = line.get().ilog10() as usize + 1;
        match self {
            LineNumbers::Plain => digits + 1,
            LineNumbers::Anchors => digits + "#ab|".len(),
        }
    }
}

/// Appends a decimal number and the byte behind it. The standard formatting would take half the time of a large read.
fn put_number(out: &mut impl TextSink, number: u32, behind: u8) {
    let mut digits = [0; 11];
    let mut rest = number;
    let mut at = digits.len() - 1;
    digits[at] = behind;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.put_plain(&digits[at..]);
}
