//! Numbers the lines of two texts, with the same number for equal lines, as input for a comparison.

use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher},
};

use foldhash::fast::RandomState;
use imara_diff::{IndentLevel, Token};

/// The lines of two texts as tokens.
pub(super) struct LineTokens<'a> {
    pub old: Vec<Token>,
    pub new: Vec<Token>,
    /// The lines of the first tokens: those that may be in both texts. The tokens after them belong to the lines of
    /// each text, in order.
    shared: Vec<&'a str>,
    lines: [&'a [&'a str]; 2],
}

impl<'a> LineTokens<'a> {
    /// Gives equal lines the same token.
    ///
    /// If a text was rewritten, most of its lines have no equal in the other text. A Bloom filter of hashes finds them, and
    /// they get a token without a lookup: a table of all lines would exceed the cache of a processor, and each lookup
    /// would wait for memory.
    pub(super) fn of(old: &'a [&'a str], new: &'a [&'a str]) -> Self {
        let hasher = RandomState::default();
        let hashes = |lines: &[&str]| lines.iter().map(|line| hasher.hash_one(line)).collect::<Vec<u64>>();
        let (old_hashes, new_hashes) = (hashes(old), hashes(new));
        let mut table = LineTable::default();
        let mut tokens = Self {
            old: table.tokens_of(old, &old_hashes, &BloomFilter::of(&new_hashes)),
            new: table.tokens_of(new, &new_hashes, &BloomFilter::of(&old_hashes)),
            shared: table.shared,
            lines: [old, new],
        };
        number_lone_lines(&mut tokens.old, tokens.shared.len());
        number_lone_lines(&mut tokens.new, tokens.shared.len() + old.len());
        tokens
    }

    /// An upper bound of all tokens, exclusive.
    pub(super) fn end(&self) -> u32 {
        (self.shared.len() + self.lines[0].len() + self.lines[1].len()) as u32
    }

    /// The indentation of the line of a token.
    pub(super) fn indent(&self, token: Token) -> IndentLevel {
        const TAB_WIDTH: u8 = 8;
        IndentLevel::for_ascii_line(self.line(token).bytes(), TAB_WIDTH)
    }

    fn line(&self, token: Token) -> &'a str {
        let index = token.0 as usize;
        let [old, new] = self.lines;
        let lone = |index: usize| old.get(index).or_else(|| new.get(index - old.len())).expect("a token has a line");
        self.shared.get(index).unwrap_or_else(|| lone(index - self.shared.len()))
    }
}

/// Placeholder for a line that only one of the texts has, until its token is known.
const LONE: Token = Token(u32::MAX);

fn number_lone_lines(tokens: &mut [Token], first: usize) {
    for (index, token) in tokens.iter_mut().enumerate().filter(|(_, token)| **token == LONE) {
        *token = Token((first + index) as u32);
    }
}

/// The lines that may be in both texts, with their tokens.
#[derive(Default)]
struct LineTable<'a> {
    shared: Vec<&'a str>,
    tokens: HashMap<HashedLine<'a>, Token, BuildHasherDefault<AsItIs>>,
}

impl<'a> LineTable<'a> {
    /// The tokens of the lines of one text; `other` is the filter of the other text's lines.
    fn tokens_of(&mut self, lines: &[&'a str], hashes: &[u64], other: &BloomFilter) -> Vec<Token> {
        let token = |(&line, &hash): (&&'a str, &u64)| {
            if !other.may_hold(hash) {
                return LONE;
            }
            *self.tokens.entry(HashedLine { hash, line }).or_insert_with(|| {
                self.shared.push(line);
                Token(self.shared.len() as u32 - 1)
            })
        };
        lines.iter().zip(hashes).map(token).collect()
    }
}

/// A line with its hash.
#[derive(PartialEq, Eq)]
struct HashedLine<'a> {
    hash: u64,
    line: &'a str,
}

impl Hash for HashedLine<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A hasher that returns the given hash unchanged.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are written")
    }
}

/// A Bloom filter: passes every hash of a set, and few others.
struct BloomFilter {
    bits: Vec<u64>,
}

impl BloomFilter {
    fn of(hashes: &[u64]) -> Self {
        // Sixteen bits for each hash, of which two are set: one in seventy of the other hashes passes.
        let words = hashes.len().div_ceil(4).next_power_of_two();
        let mut filter = Self { bits: vec![0; words] };
        for hash in hashes {
            let (word, bits) = filter.place(*hash);
            filter.bits[word] |= bits;
        }
        filter
    }

    fn may_hold(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        self.bits[word] & bits == bits
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        ((hash >> 12) as usize & (self.bits.len() - 1), 1 << (hash & 63) | 1 << (hash >> 6 & 63))
    }
}

#[cfg(test)]
mod tests {
    use imara_diff::{Algorithm, Diff, Hunk, InternedInput};
    use proptest::prelude::*;

    use super::*;
    use crate::line_map::compare;

    fn all(lines: &[String]) -> Vec<&str> {
        lines.iter().map(|line| &**line).collect()
    }

    proptest! {
        /// A table of all lines leads to the same hunks.
        #[test]
        fn sifting_changes_no_comparison(
            old in proptest::collection::vec("[abc]{0,2}|[0-9]", 1..40),
            new in proptest::collection::vec("[abc]{0,2}|[0-9]", 1..40),
        ) {
            let lines = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<Vec<String>>();
            let (old, new) = (lines(&old), lines(&new));
            let mut input = InternedInput::default();
            input.update_before(all(&old).into_iter());
            input.update_after(all(&new).into_iter());
            let mut diff = Diff::compute(Algorithm::Histogram, &input);
            diff.postprocess_lines(&input);
            let sifted: Vec<Hunk> = compare(&all(&old), &all(&new)).hunks().collect();
            prop_assert_eq!(diff.hunks().collect::<Vec<_>>(), sifted);
        }

        #[test]
        fn equal_lines_and_no_others_have_the_same_token(
            old in proptest::collection::vec("[abc]{0,2}|[0-9]{4}", 0..40),
            new in proptest::collection::vec("[abc]{0,2}|[0-9]{4}", 0..40),
        ) {
            let (old_lines, new_lines) = (all(&old), all(&new));
            let tokens = LineTokens::of(&old_lines, &new_lines);
            for (line, token) in old.iter().zip(&tokens.old).chain(new.iter().zip(&tokens.new)) {
                prop_assert_eq!(tokens.line(*token), line);
            }
            for (old, old_token) in old.iter().zip(&tokens.old) {
                for (new, new_token) in new.iter().zip(&tokens.new) {
                    prop_assert_eq!(old == new, old_token == new_token);
                }
            }
        }
    }
}
