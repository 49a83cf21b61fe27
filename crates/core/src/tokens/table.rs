//! What is known of the tokenizer: what common pieces cost, and which fragments of two to four characters are tokens. All of it is in
//! three text files, and tests hold every line against the real tokenizer, so lines may be added or taken away freely: a line that
//! is missing makes an estimate higher, never wrong.
//!
//! - `words.txt`: words below what they cost alone, behind a blank, and behind anything else; the marks at the end of a word are
//!   those with which it is one token all the same. They are the words that are most overcounted without a table, over source
//!   code in several languages, documentation and lists of files.
//! - `signs.txt`: pieces of punctuation and white space, below what they cost.
//! - `fragments.txt`: up to three characters, and each character that makes a token with them.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    sync::LazyLock,
};

pub(super) struct Table {
    words: Map<Costs>,
    signs: Map<usize>,
    /// By the first character, a bit for each second one.
    pairs: [u128; 128],
    /// By the first and the second, a bit for each third one.
    triples: Vec<u32>,
    quads: HashSet<u32, BuildHasherDefault<Mix>>,
}

/// Which of the last characters of a text are known to be a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) pair: bool,
    pub(super) triple: bool,
    pub(super) quad: bool,
}

type Map<V> = HashMap<&'static [u8], V, BuildHasherDefault<Mix>>;

#[derive(Debug, Clone, Copy)]
struct Costs {
    alone: usize,
    behind_blank: usize,
    behind_other: usize,
    marks: &'static [u8],
}

/// Characters of which every run up to this length is a token.
const RUNS: &[(u8, usize)] = &[
    (b'\t', 20),
    (b'\n', 10),
    (b' ', 79),
    (b'#', 6),
    (b'*', 8),
    (b'+', 4),
    (b'-', 16),
    (b'.', 10),
    (b'/', 4),
    (b'=', 16),
    (b'_', 8),
    (b'|', 4),
    (b'~', 4),
];

impl Table {
    pub(super) fn get() -> &'static Self {
        static TABLE: LazyLock<Table> = LazyLock::new(Table::read);
        &TABLE
    }

    fn read() -> Self {
        let mut table = Self {
            words: Map::default(),
            signs: Map::default(),
            pairs: [0; 128],
            triples: vec![0; 64 * 32],
            quads: HashSet::default(),
        };
        words(include_str!("words.txt"), |word, costs| {
            table.words.insert(word, costs);
        });
        signs(include_str!("signs.txt"), |sign, cost| {
            // Once for each process, and the text that is escaped is a few thousand bytes.
            table.signs.insert(sign.leak(), cost);
        });
        fragments(include_str!("fragments.txt"), |fragment| match *fragment {
            [first, second] => table.pairs[usize::from(first)] |= 1 << second,
            [first, second, third] => {
                let (row, bit) = place(first, second, third).expect("triples are two small letters behind a letter or a blank");
                table.triples[row] |= bit;
            }
            [first, second, third, fourth] => {
                table.quads.insert(u32::from_le_bytes([first, second, third, fourth]));
            }
            _ => unreachable!("fragments have two to four characters"),
        });
        table
    }

    /// What a word costs with this character before it, if it is known.
    pub(super) fn word(&self, lead: Option<u8>, word: &[u8]) -> Option<usize> {
        let costs = self.words.get(word)?;
        Some(match lead {
            None => costs.alone,
            Some(b' ') => costs.behind_blank,
            Some(mark) if costs.marks.contains(&mark) => 1,
            Some(_) => costs.behind_other,
        })
    }

    /// What a piece of punctuation or white space costs, if it is known.
    pub(super) fn signs(&self, signs: &[u8]) -> Option<usize> {
        self.signs.get(signs).copied()
    }

    /// Which of the last characters of this ASCII text are known to be a token.
    pub(super) fn known(&self, text: &[u8]) -> Known {
        let pair = matches!(*text, [.., a, b] if self.pairs[usize::from(a)] >> b & 1 == 1);
        let triple = matches!(*text, [.., a, b, c] if place(a, b, c).is_some_and(|(row, bit)| self.triples[row] & bit != 0));
        let quad = matches!(*text, [.., a, b, c, d] if self.quads.contains(&u32::from_le_bytes([a, b, c, d])));
        Known { pair, triple, quad }
    }

    /// The length up to which runs of this character are tokens.
    pub(super) fn longest_run(&self, of: u8) -> usize {
        RUNS.iter().find(|(byte, _)| *byte == of).map_or(1, |(_, length)| *length)
    }
}

/// The row and the bit of a triple in its table.
fn place(first: u8, second: u8, third: u8) -> Option<(usize, u32)> {
    let first = match first {
        b' ' => 0,
        b'a'..=b'z' => first - b'a' + 1,
        b'A'..=b'Z' => first - b'A' + 27,
        _ => return None,
    };
    let small = second.is_ascii_lowercase() && third.is_ascii_lowercase();
    small.then(|| (usize::from(first) * 32 + usize::from(second - b'a'), 1 << (third - b'a')))
}

/// Each word of the file with its costs.
fn words(text: &'static str, mut each: impl FnMut(&'static [u8], Costs)) {
    let mut costs = Costs { alone: 0, behind_blank: 0, behind_other: 0, marks: &[] };
    for line in text.lines() {
        if let [alone @ b'0'..=b'9', b' ', behind_blank, b' ', behind_other] = line.as_bytes() {
            let [alone, behind_blank, behind_other] = [alone, behind_blank, behind_other].map(|digit| usize::from(digit - b'0'));
            costs = Costs { alone, behind_blank, behind_other, marks: &[] };
            continue;
        }
        for item in line.split(' ') {
            let end = item.find(|c: char| !c.is_ascii_alphabetic() && c != '\'').unwrap_or(item.len());
            let (word, marks) = item.as_bytes().split_at(end);
            each(word, Costs { marks, ..costs });
        }
    }
}

/// Each piece of the file with its cost.
fn signs(text: &str, mut each: impl FnMut(Vec<u8>, usize)) {
    let mut cost = 0;
    for line in text.lines() {
        match line.as_bytes() {
            [digit @ b'0'..=b'9'] => cost = usize::from(digit - b'0'),
            _ => line.split(' ').for_each(|item| each(plain(item), cost)),
        }
    }
}

/// Each fragment of the file.
fn fragments(text: &str, mut each: impl FnMut(&[u8])) {
    for line in text.lines() {
        let (before, last) = line.split_once(' ').expect("every line has two columns");
        let mut fragment = plain(before);
        for byte in plain(last) {
            fragment.push(byte);
            each(&fragment);
            fragment.pop();
        }
    }
}

/// The bytes that are meant: `\s` is a blank, `\n`, `\r`, `\t` and `\\` are as usual.
fn plain(escaped: &str) -> Vec<u8> {
    let mut bytes = escaped.bytes();
    let mut plain = Vec::with_capacity(escaped.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b's') => b' ',
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                _ => b'\\',
            },
            byte => byte,
        });
    }
    plain
}

/// A hash that takes a nanosecond for a word. The keys are ours, so nobody can choose them to collide.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, length: usize) {
        self.write_u64(length as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes the low bits for the place and the high ones for a tag; multiplication leaves the low ones weak.
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(piece: &[u8], at_most: usize) {
        let cost = bpe_openai::o200k_base().bpe.count(piece);
        assert!(cost <= at_most, "{:?} costs {cost}, not {at_most}", piece.escape_ascii().to_string());
    }

    #[test]
    fn words_cost_no_more_than_the_table_says_whatever_is_before_them() {
        let leads: Vec<u8> =
            (0..128).filter(|byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'\r' | b'\n')).collect();
        words(include_str!("words.txt"), |word, costs| {
            assert!(word.is_ascii() && !word.is_empty());
            check(word, costs.alone);
            for lead in &leads {
                let at_most = Table::get().word(Some(*lead), word).expect("it is in the table");
                check(&[&[*lead], word].concat(), at_most);
            }
        });
    }

    #[test]
    fn signs_cost_no_more_than_the_table_says() {
        signs(include_str!("signs.txt"), |sign, cost| check(&sign, cost));
    }

    #[test]
    fn fragments_are_tokens() {
        fragments(include_str!("fragments.txt"), |fragment| check(fragment, 1));
    }

    #[test]
    fn runs_are_tokens_up_to_their_length() {
        for (byte, longest) in RUNS {
            (1..=*longest).for_each(|length| check(&vec![*byte; length], 1));
        }
    }

    #[test]
    fn nothing_is_in_the_table_twice() {
        let mut count = 0;
        words(include_str!("words.txt"), |_, _| count += 1);
        assert_eq!(count, Table::get().words.len());
        let mut count = 0;
        signs(include_str!("signs.txt"), |_, _| count += 1);
        assert_eq!(count, Table::get().signs.len());
    }
}
