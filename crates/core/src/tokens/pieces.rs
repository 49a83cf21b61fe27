//! Splits a text in the same places as the tokenizer, before it looks for tokens:
//!
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! \p{N}{1,3} |  ?[^\s\p{L}\p{N}]+[\r\n/]* | \s*[\r\n]+ | \s+(?!\S) | \s+
//! ```
//!
//! This is exact for ASCII. The effect of a character outside ASCII on its neighbours depends on the Unicode tables, so
//! a piece next to one is returned as a part of a piece. After one, every byte counts until a piece certainly begins.

/// A piece of the tokenizer, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPiece<'a> {
    /// Letters, perhaps with a contraction (`don't`), and the one character that may precede them.
    Word { lead: Option<u8>, word: &'a [u8], whole: &'a [u8] },
    /// Up to three digits.
    Number,
    /// Punctuation or white space.
    Signs(&'a [u8]),
    /// Bytes that are, or may be, continued by a character outside ASCII.
    Part(&'a [u8]),
    /// White space before a character outside ASCII: up to the last line break, and the rest.
    Blanks { lines: &'a [u8], rest: &'a [u8] },
    /// The number of bytes that are not ASCII, or whose pieces begin at unknown places.
    Foreign(usize),
}

/// The pieces of a text.
pub(super) struct Pieces<'a> {
    bytes: &'a [u8],
    at: usize,
    start: PieceStart,
}

/// Whether a piece begins at the current position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceStart {
    Sure,
    Unsure,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, start: PieceStart::Sure }
    }

    /// The number of bytes that have been split.
    #[cfg(test)]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn peek(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn is(&self, at: usize, class: impl Fn(u8) -> bool) -> bool {
        self.peek(at).is_some_and(class)
    }

    fn end_of_class(&self, from: usize, class: impl Fn(u8) -> bool) -> usize {
        self.bytes[from..].iter().position(|byte| !class(*byte)).map_or(self.bytes.len(), |more| from + more)
    }

    fn cut(&mut self, end: usize) -> &'a [u8] {
        let piece = &self.bytes[self.at..end];
        self.at = end;
        piece
    }

    /// The end of letters and their contraction: capitals, then small letters, as in `HTTPServer`.
    fn word_end(&self, from: usize) -> usize {
        let end = self.end_of_class(self.end_of_class(from, |byte| byte.is_ascii_uppercase()), |byte| byte.is_ascii_lowercase());
        let letter = |at: usize| self.peek(at).map(|byte| byte.to_ascii_lowercase());
        match (self.peek(end), letter(end + 1), letter(end + 2)) {
            (Some(b'\''), Some(b's' | b't' | b'm' | b'd'), _) => end + 2,
            (Some(b'\''), Some(b'r' | b'v'), Some(b'e')) | (Some(b'\''), Some(b'l'), Some(b'l')) => end + 3,
            _ => end,
        }
    }

    /// Whether a character outside ASCII may belong to the word that ends here. One letter outside ASCII (`ſ`) counts as
    /// an `s` after an apostrophe.
    fn is_continued(&self, end: usize) -> bool {
        self.is(end, is_foreign) || (self.peek(end) == Some(b'\'') && self.is(end + 1, is_foreign))
    }

    fn word(&mut self, letters: usize) -> TextPiece<'a> {
        let (start, end) = (self.at, self.word_end(letters));
        let whole = self.cut(end);
        if self.start == PieceStart::Unsure || self.is_continued(end) {
            self.start = PieceStart::Sure;
            return TextPiece::Part(whole);
        }
        TextPiece::Word { lead: (letters > start).then(|| whole[0]), word: &whole[letters - start..], whole }
    }

    fn number(&mut self) -> TextPiece<'a> {
        let digits = self.bytes[self.at..].iter().take(3).take_while(|byte| byte.is_ascii_digit());
        self.at += digits.count();
        TextPiece::Number
    }

    fn signs(&mut self, from: usize) -> TextPiece<'a> {
        let end = self.end_of_class(self.end_of_class(from, is_sign), |byte| matches!(byte, b'\r' | b'\n' | b'/'));
        let signs = self.cut(end);
        let is_open = self.is(end, is_foreign) && !signs.last().is_some_and(|last| is_line_break(*last));
        if is_open { TextPiece::Part(signs) } else { TextPiece::Signs(signs) }
    }

    fn blanks(&mut self) -> TextPiece<'a> {
        let end = self.end_of_class(self.at, is_blank);
        let lines =
            self.bytes[self.at..end].iter().rposition(|byte| is_line_break(*byte)).map_or(self.at, |last| self.at + last + 1);
        if self.is(end, is_foreign) {
            let blanks = self.cut(end);
            let (lines, rest) = blanks.split_at(lines + blanks.len() - end);
            return TextPiece::Blanks { lines, rest };
        }
        if lines > self.at {
            return TextPiece::Signs(self.cut(lines));
        }
        // The last blank belongs to the next word, if any.
        let alone = end == self.bytes.len() || end == self.at + 1;
        TextPiece::Signs(self.cut(if alone { end } else { end - 1 }))
    }

    /// Whether a piece begins here regardless of the preceding text: at a blank before a letter, and after a line break
    /// unless white space or a slash follows.
    fn is_sure(&self) -> bool {
        match self.bytes[self.at] {
            b' ' => self.is(self.at + 1, |next| next.is_ascii_alphabetic()),
            b'/' => false,
            byte => !is_blank(byte) && is_line_break(self.bytes[self.at - 1]),
        }
    }

    /// After a character outside ASCII: the bytes up to the place where a piece certainly begins, or where a word does.
    fn unsure_piece(&mut self) -> Option<TextPiece<'a>> {
        let start = self.at;
        loop {
            let byte = self.peek(self.at).filter(u8::is_ascii);
            let Some(byte) = byte else { break };
            if self.is_sure() {
                self.start = PieceStart::Sure;
                break;
            }
            if byte.is_ascii_alphabetic() {
                // After an apostrophe, this may be a contraction.
                if self.at == start || self.bytes[self.at - 1] != b'\'' {
                    break;
                }
                self.at = self.end_of_class(self.at, |byte| byte.is_ascii_alphabetic());
            } else {
                self.at += 1;
            }
        }
        (self.at > start).then(|| TextPiece::Foreign(self.at - start))
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = TextPiece<'a>;

    fn next(&mut self) -> Option<TextPiece<'a>> {
        let first = self.peek(self.at)?;
        if is_foreign(first) {
            self.start = PieceStart::Unsure;
            let end = self.end_of_class(self.at, is_foreign);
            return Some(TextPiece::Foreign(self.cut(end).len()));
        }
        if self.start == PieceStart::Unsure
            && let Some(piece) = self.unsure_piece()
        {
            return Some(piece);
        }
        let is_letter = |byte: u8| byte.is_ascii_alphabetic();
        let piece = match first {
            letter if is_letter(letter) => self.word(self.at),
            digit if digit.is_ascii_digit() => self.number(),
            lead if !is_line_break(lead) && self.is(self.at + 1, is_letter) => self.word(self.at + 1),
            b' ' if self.is(self.at + 1, is_sign) => self.signs(self.at + 1),
            blank if is_blank(blank) => self.blanks(),
            _ => self.signs(self.at),
        };
        Some(piece)
    }
}

fn is_foreign(byte: u8) -> bool {
    !byte.is_ascii()
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn is_sign(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric() && !is_blank(byte)
}
