//! Inputs made from others: the same ones every time for a seed.

use surehand_testkit::dice::Dice;

/// What dice do to bytes.
#[derive(Debug, Clone)]
pub struct Mutator(Dice);

impl Mutator {
    /// Other seeds give other inputs.
    pub fn new(seed: u64) -> Self {
        Self(Dice::new(seed))
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.within(0..end.max(1))
    }

    /// An input like this one, with something of the other and of the words of its target.
    pub fn mutated(&mut self, input: &[u8], other: &[u8], words: &[&str], most_bytes: usize) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(5) {
            self.change(&mut bytes, other, words);
        }
        bytes.truncate(most_bytes);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8], words: &[&str]) {
        let at = self.below(bytes.len() + 1);
        let end = (at + 1 + self.below(12)).min(bytes.len());
        match self.below(10) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 if at < bytes.len() => bytes[at] = self.below(256) as u8,
            2 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(if self.below(2) == 0 { 1 } else { 255 }),
            3 => drop(bytes.drain(at..end.max(at))),
            4 => {
                let copy = bytes[at..end.max(at)].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            5 if !other.is_empty() => {
                let from = self.below(other.len());
                let until = (from + 1 + self.below(40)).min(other.len());
                bytes.splice(at..end.max(at), other[from..until].iter().copied());
            }
            6 | 7 if !words.is_empty() => {
                let word = words[self.below(words.len())].bytes();
                let until = if self.below(2) == 0 { at } else { end.max(at) };
                bytes.splice(at..until, word);
            }
            8 => {
                let count = 1 + self.below(8);
                let new: Vec<u8> = (0..count).map(|_| self.below(256) as u8).collect();
                bytes.splice(at..at, new);
            }
            _ => bytes.insert(at, self.below(256) as u8),
        }
    }
}

/// The smallest input that `fails` still says yes to, as far as leaving out and zeroing bytes leads.
pub fn smallest(input: &[u8], mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut length = best.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut is_smaller = false;
        while at < best.len() {
            let mut shorter = best.clone();
            shorter.drain(at..(at + length).min(best.len()));
            if fails(&shorter) {
                (best, is_smaller) = (shorter, true);
            } else {
                at += length;
            }
        }
        if length == 1 && !is_smaller {
            break;
        }
        length = if is_smaller { length } else { length.div_ceil(2) };
        length = length.min(best.len().max(1));
    }
    for at in 0..best.len() {
        let mut simpler = best.clone();
        simpler[at] = 0;
        if best[at] != 0 && fails(&simpler) {
            best = simpler;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_inputs_every_time() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed);
            (0..20).map(|_| mutator.mutated(b"abcdef", b"xyz", &["word"], 50)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }

    #[test]
    fn the_smallest_input_has_only_what_it_takes() {
        let fails = |input: &[u8]| input.contains(&b'x') && input.ends_with(b"y");
        assert_eq!(smallest(b"some x and more y", fails), b"xy");
        assert_eq!(smallest(b"abc", |_| true), b"");
    }
}
