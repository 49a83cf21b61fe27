//! The random choices that a target draws from its bytes. Nothing fails: after the last byte the source returns zeros,
//! so every input is a situation, and a shorter input is a simpler one.

/// Bytes that are consumed from the front.
#[derive(Debug, Clone)]
pub(crate) struct Source<'a> {
    bytes: &'a [u8],
}

impl<'a> Source<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number below `end`, which is not 0 and at most 256.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// One of several values; there must be at least one.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// At most this many bytes.
    pub(crate) fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(most.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }

    /// At most this many bytes, up to a zero byte or the end.
    pub(crate) fn until_zero(&mut self, most: usize) -> &'a [u8] {
        let end = self.bytes.iter().take(most).position(|byte| *byte == 0);
        let taken = self.take(end.unwrap_or(most));
        if end.is_some() {
            self.byte();
        }
        taken
    }

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
