//! What is known about the tokenizer: the cost of common pieces, and the fragments of two to four characters that are
//! tokens. The data is in three text files. Tests check every line against the real tokenizer, so lines may be added or
//! removed freely: a missing line makes an estimate higher, never wrong.
//!
//! - `words.txt`: words, grouped below their costs: alone, after a blank, and after any other character. The marks at
//!   the end of a word are other characters after which it is still one token. The list has the words that are
//!   overcounted most without a table, in source code of several languages, documentation and lists of files.
//! - `signs.txt`: pieces of punctuation and white space, grouped below their cost.
//! - `fragments.txt`: up to three characters, and each character that forms a token with them.

use std::{collections::HashMap, sync::LazyLock};

use foldhash::fast::FixedState;

pub(super) struct TokenTable {
    words: Map<WordCosts>,
    signs: Map<usize>,
    /// By the first character, a bit for each second one.
    pairs: [u128; 128],
    /// By the codes of the first and the second, a bit for each third one.
    triples: Vec<u64>,
    /// By the codes of the first three, a bit for each fourth one.
    quads: Vec<u32>,
    /// By the character, the longest run that is a token.
    runs: [usize; 128],
}

/// Whether the last two, three or four characters of a text are known to be a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownFragments {
    pub(super) pair: bool,
    pub(super) triple: bool,
    pub(super) quad: bool,
}

/// A fixed hash is enough, because the keys are our own, so they cannot be chosen to collide.
type Map<V> = HashMap<&'static [u8], V, FixedState>;

/// Small, because the table should fit into the processor's cache.
#[derive(Debug, Clone, Copy)]
struct WordCosts {
    alone: u8,
    behind_blank: u8,
    behind_other: u8,
    /// A bit for each of [`MARKS`] after which the word is one token.
    marks: u8,
}

const MARKS: &[u8] = b"_.-/(";

/// The bit of a character among the marks; 0 for other characters.
fn mark(byte: u8) -> u8 {
    MARKS.iter().position(|mark| *mark == byte).map_or(0, |at| 1 << at)
}

/// Characters for which every run up to this length is a token.
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

impl TokenTable {
    pub(super) fn get() -> &'static Self {
        static TABLE: LazyLock<TokenTable> = LazyLock::new(TokenTable::read);
        &TABLE
    }

    fn read() -> Self {
        let mut table = Self {
            words: Map::with_capacity_and_hasher(7000, FixedState::default()),
            signs: Map::default(),
            pairs: [0; 128],
            triples: vec![0; 64 * 64],
            quads: vec![0; 32 * 32 * 32],
            runs: [1; 128],
        };
        words(include_str!("words.txt"), |word, costs| {
            table.words.insert(word, costs);
        });
        signs(include_str!("signs.txt"), |sign, cost| {
            // Leaked once for each process; the unescaped text has a few thousand bytes.
            table.signs.insert(sign.leak(), cost);
        });
        fragments(include_str!("fragments.txt"), |fragment| table.add(fragment));
        RUNS.iter().for_each(|(byte, length)| table.runs[usize::from(*byte)] = *length);
        table
    }

    fn add(&mut self, fragment: &[u8]) {
        match *fragment {
            [first, second] => self.pairs[usize::from(first)] |= 1 << second,
            [first, second, third] => self.triples[triple([first, second])] |= 1 << code(third),
            [first, second, third, fourth] => self.quads[quad([first, second, third])] |= 1 << code(fourth),
            _ => unreachable!("fragments have two to four characters"),
        }
    }

    /// The cost of a word after this character, if it is known.
    pub(super) fn word(&self, lead: Option<u8>, word: &[u8]) -> Option<usize> {
        if word.len() < 3 {
            return None;
        }
        let costs = self.words.get(word)?;
        Some(usize::from(match lead {
            None => costs.alone,
            Some(b' ') => costs.behind_blank,
            Some(other) if costs.marks & mark(other) != 0 => 1,
            Some(_) => costs.behind_other,
        }))
    }

    /// The cost of a piece of punctuation or white space, if it is known.
    pub(super) fn signs(&self, signs: &[u8]) -> Option<usize> {
        match *signs {
            [_] => Some(1),
            [first, second] => Some(2 - usize::from(self.pair(first, second))),
            _ => self.signs.get(signs).copied(),
        }
    }

    /// The fragments that the last characters of an ASCII text are known to form. A text with fewer than four is padded
    /// with zeros in front.
    pub(super) fn known(&self, last: [u8; 4]) -> KnownFragments {
        let [first, second, third, fourth] = last;
        KnownFragments {
            pair: self.pair(third, fourth),
            triple: self.triples[triple([second, third])] >> code(fourth) & 1 == 1,
            quad: last.iter().all(|byte| code(*byte) < 32) && self.quads[quad([first, second, third])] >> code(fourth) & 1 == 1,
        }
    }

    fn pair(&self, first: u8, second: u8) -> bool {
        self.pairs[usize::from(first)] >> second & 1 == 1
    }

    /// The length up to which runs of this ASCII character are tokens.
    pub(super) fn longest_run(&self, character: u8) -> usize {
        self.runs[usize::from(character)]
    }
}

/// Small numbers for the characters in longer fragments, below 32 for the most common ones; one number for all other
/// characters.
fn code(byte: u8) -> usize {
    const CODES: [u8; 128] = {
        let mut codes = [63; 128];
        codes[b' ' as usize] = 0;
        let mut letter = 0;
        while letter < 26 {
            codes[(b'a' + letter) as usize] = letter + 1;
            codes[(b'A' + letter) as usize] = letter + 32;
            letter += 1;
        }
        codes
    };
    CODES[usize::from(byte)].into()
}

fn triple([first, second]: [u8; 2]) -> usize {
    code(first) * 64 + code(second)
}

fn quad([first, second, third]: [u8; 3]) -> usize {
    (code(first) * 32 + code(second)) * 32 + code(third)
}

/// Calls `each` with each word of the file and its costs.
fn words(text: &'static str, mut each: impl FnMut(&'static [u8], WordCosts)) {
    let mut costs = WordCosts { alone: 0, behind_blank: 0, behind_other: 0, marks: 0 };
    for line in text.lines() {
        if let [alone @ b'0'..=b'9', b' ', behind_blank, b' ', behind_other] = line.as_bytes() {
            let [alone, behind_blank, behind_other] = [alone, behind_blank, behind_other].map(|digit| digit - b'0');
            costs = WordCosts { alone, behind_blank, behind_other, marks: 0 };
            continue;
        }
        for item in line.split(' ') {
            let end = item.find(|c: char| !c.is_ascii_alphabetic() && c != '\'').unwrap_or(item.len());
            let (word, marks) = item.as_bytes().split_at(end);
            each(word, WordCosts { marks: marks.iter().fold(0, |bits, byte| bits | mark(*byte)), ..costs });
        }
    }
}

/// Calls `each` with each piece of the file and its cost.
fn signs(text: &str, mut each: impl FnMut(Vec<u8>, usize)) {
    let mut cost = 0;
    for line in text.lines() {
        match line.as_bytes() {
            [digit @ b'0'..=b'9'] => cost = usize::from(digit - b'0'),
            _ => line.split(' ').for_each(|item| each(plain(item), cost)),
        }
    }
}

/// Calls `each` with each fragment of the file.
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

/// Undoes the escapes of the file: `\s` is a blank; `\n`, `\r`, `\t` and `\\` have their usual meaning.
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
            check(word, costs.alone.into());
            for lead in &leads {
                let at_most = TokenTable::get().word(Some(*lead), word).expect("the word is in the table");
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
        fragments(include_str!("fragments.txt"), |fragment| {
            check(fragment, 1);
            let highest = fragment.iter().map(|byte| code(*byte)).max().expect("a fragment has characters");
            assert!(highest < [64, 63, 32][fragment.len() - 2], "{fragment:?} has characters without a code");
        });
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
        assert_eq!(count, TokenTable::get().words.len());
        let mut count = 0;
        signs(include_str!("signs.txt"), |_, _| count += 1);
        assert_eq!(count, TokenTable::get().signs.len());
    }
}
