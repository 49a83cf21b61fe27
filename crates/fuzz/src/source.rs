//! What a target draws from its bytes. Nothing fails: where the bytes end there are zeros, so that every input is a situation and a shorter
//! one is a simpler one.

/// Bytes that are used up from the front.
#[derive(Debug, Clone)]
pub(crate) struct Source<'a> {
    bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// All of these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether all bytes are used up.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number below `end`, which is not 0 and at most 256.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// Whether something is so.
    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// One of several, of which there is at least one.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// At most so many bytes.
    pub(crate) fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(most.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }

    /// Bytes up to a zero byte or the end, at most so many.
    pub(crate) fn until_zero(&mut self, most: usize) -> &'a [u8] {
        let end = self.bytes.iter().take(most).position(|byte| *byte == 0);
        let taken = self.take(end.unwrap_or(most));
        if end.is_some() {
            self.byte();
        }
        taken
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.take(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_the_end_there_are_zeros() {
        let mut source = Source::new(&[7, 1]);
        assert_eq!((source.below(5), source.flag(), source.byte(), source.flag()), (2, true, 0, false));
        assert!(source.is_empty());
    }

    #[test]
    fn a_zero_ends_a_run_of_bytes() {
        let mut source = Source::new(b"ab\0cd");
        assert_eq!((source.until_zero(9), source.until_zero(1), source.rest()), (&b"ab"[..], &b"c"[..], &b"d"[..]));
    }
}
