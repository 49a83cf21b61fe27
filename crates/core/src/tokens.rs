//! An upper bound on the number of tokens in a text, for budgets. A real tokenizer would add 35 MB to the program and
//! 50 ms to its start.
//!
//! The text is split into the same pieces as by a tokenizer of the o200k family (`pieces`); no token crosses a piece. A
//! table (`table`) has the cost of common pieces, and a test compares it with the real tokenizer. For all other pieces
//! this law holds: two neighbours that form a token together are always merged. So among all ways to split a piece in
//! which no two neighbours form a *known* token, the one with the most parts is an upper bound (`most_tokens`). It is
//! about a seventh above the real count for source code, documentation and lists of paths, up to a third for other
//! English prose, and more outside ASCII, where each byte counts as a token.

mod pieces;
mod table;

use pieces::{Pieces, TextPiece};
use table::TokenTable;

/// An upper bound on the number of tokens.
///
/// ```
/// assert_eq!(surehand_core::tokens::estimate("the state of the repository"), 5);
/// ```
pub fn estimate(text: &str) -> usize {
    let table = TokenTable::get();
    Pieces::of(text.as_bytes()).map(|piece| cost(table, piece)).sum()
}

fn cost(table: &TokenTable, piece: TextPiece<'_>) -> usize {
    match piece {
        TextPiece::Word { lead, word, whole } => table.word(lead, word).unwrap_or_else(|| most_by_fragments(table, whole)),
        TextPiece::Signs(signs) => table.signs(signs).unwrap_or_else(|| most_tokens(table, signs)),
        TextPiece::Number => 1,
        TextPiece::Part(part) => most_tokens(table, part),
        TextPiece::Blanks { lines, rest } => {
            most_tokens(table, lines) + most_tokens(table, rest) + usize::from(lines.len() + rest.len() > 1)
        }
        TextPiece::Foreign(bytes) => bytes,
    }
}

fn most_tokens(table: &TokenTable, part: &[u8]) -> usize {
    most_by_fragments(table, part).min(in_runs(table, part))
}

/// The most tokens that a part of a piece can have, according to the known fragments. A token that extends beyond the
/// part is counted at its other end.
fn most_by_fragments(table: &TokenTable, part: &[u8]) -> usize {
    // The best result so far, by the length of the last token: two neighbours that form a known token never both occur.
    // If no such token can end here, the value is zero, which is never better than `more`.
    #[derive(Clone, Copy, Default)]
    struct Ending {
        one: usize,
        two: usize,
        three: usize,
        more: usize,
    }
    let unless = |known: bool, count: usize| if known { 0 } else { count };
    let [mut fourth, mut third, mut second, mut last] = [Ending::default(); 4];
    let mut best = 0;
    let mut window = [0; 4];
    for (end, byte) in (1..).zip(part) {
        window = [window[1], window[2], window[3], *byte];
        let known = table.known(window);
        let one =
            last.more.max(unless(known.pair, last.one)).max(unless(known.triple, last.two)).max(unless(known.quad, last.three));
        let two = second.more.max(second.three).max(unless(known.triple, second.one)).max(unless(known.quad, second.two));
        let three = third.more.max(third.three).max(third.two).max(unless(known.quad, third.one));
        let more = fourth.more.max(fourth.three).max(fourth.two).max(fourth.one);
        let ending = Ending {
            one: 1 + one,
            two: unless(end < 2, 1 + two),
            three: unless(end < 3, 1 + three),
            more: unless(end < 4, 1 + more).max(last.more),
        };
        best = best.max(ending.one).max(ending.two).max(ending.three).max(ending.more);
        (fourth, third, second, last) = (third, second, last, ending);
    }
    best
}

/// Like [`most_by_fragments`], for rulers and indentation: a run of one character merges into tokens of a length that
/// is known for each character. A token that crosses from one run into another is covered by a character that counts
/// alone, or by the place where the runs meet.
fn in_runs(table: &TokenTable, part: &[u8]) -> usize {
    let mut tokens = 0;
    let mut is_behind_joined = false;
    for run in part.chunk_by(|a, b| a == b) {
        let apart = table.longest_run(run[0]) + 1;
        let is_joined = run.len() > 1 && apart > 2;
        tokens += 2 * (run.len() / apart) + usize::from(!run.len().is_multiple_of(apart));
        tokens += usize::from(is_joined && is_behind_joined);
        is_behind_joined = is_joined;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    fn real(text: &str) -> usize {
        bpe_openai::o200k_base().count(text)
    }

    #[track_caller]
    fn check(text: &str, expected: usize) {
        assert_eq!((real(text), estimate(text)), (expected, expected), "{text:?}");
    }

    #[test]
    fn common_pieces_are_counted_exactly() {
        check("", 0);
        check("the state of the repository", 5);
        check("fn main() {\n    let path = root.join(name);\n}\n", 13);
        check("1234567", 3);
        check("don't", 1);
        check(&" ".repeat(79), 1);
        check("a\n\n\n\tb", 3);
    }

    /// Typical texts of prompts. The bound must not be safe only because it is far too high.
    #[track_caller]
    fn is_close(name: &str, text: &str) {
        let (real, estimate) = (real(text), estimate(text));
        assert!(real <= estimate && estimate * 100 <= real * 135, "{name}: {estimate} for {real}");
    }

    #[test]
    fn prose_source_and_paths_are_estimated_closely() {
        is_close("CONTRIBUTING.md", include_str!("../../../CONTRIBUTING.md"));
        is_close("ARCHITECTURE.md", include_str!("../../../ARCHITECTURE.md"));
        is_close("plan.rs", include_str!("plan.rs"));
        is_close("pieces.rs", include_str!("tokens/pieces.rs"));
        is_close("path.rs", include_str!("path.rs"));
        is_close("Cargo.lock", include_str!("../../../Cargo.lock"));
        is_close("Cargo.toml", include_str!("../../../Cargo.toml"));
        is_close("prose", PROSE);
        is_close("listing", &listing());
    }

    const PROSE: &str = "It was already dark when the last of the children came down from the hill, carrying between them a \
        basket of apples and an old lantern that nobody had been able to light. Their mother had waited at the gate for an hour. \
        \"You are late,\" she said, but she did not sound angry; she took the basket, counted the apples, and laughed. In the \
        kitchen there was soup, bread, and a letter from their uncle, who wrote that the harvest had been poor, that the river had \
        risen twice since March, and that he hoped to visit before the winter made the roads impossible.";

    /// As the state of a repository lists files.
    fn listing() -> String {
        let areas = ["src", "crates/engine/src/tools", "docs/reference", "tests/fixtures", "internal/server", "web/components"];
        let names = [
            "main.rs",
            "user_service.go",
            "settings.md",
            "OrderTable.tsx",
            "test_parser.py",
            "package-lock.json",
            "build.gradle",
        ];
        let line = |at: usize, area: &str, name: &str| {
            format!("{area}/{name} {:06x} {} bytes modified\n", at * 7_654_321 % 0xff_ffff, at * 379)
        };
        let all = areas.iter().flat_map(|area| names.iter().map(move |name| (area, name)));
        all.enumerate().map(|(at, (area, name))| line(at, area, name)).collect()
    }

    /// Fragments that meet in all combinations: words, parts of words, all classes of characters, boundaries of
    /// classes.
    fn bits() -> impl Strategy<Value = String> {
        prop_oneof![
            6 => select(include_str!("tokens/words.txt").split_ascii_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned),
            2 => select(include_str!("tokens/signs.txt").split_ascii_whitespace().collect::<Vec<_>>()).prop_map(|signs| {
                signs.replace("\\s", " ").replace("\\n", "\n").replace("\\t", "\t")
            }),
            4 => select(vec![" ", "  ", "\n", "\r\n", "\t", "'", "'s", "'ll", "/", "//", "_", "-", ".", "é", "—", "\u{301}", "\u{a0}", "\u{17f}", "中", "٣", "½", "😀", "\u{200d}", "\u{2028}", "ǅ", "ª", "\u{0}"]).prop_map(str::to_owned),
            2 => "[a-z]{1,12}",
            1 => "[A-Z]{1,4}[a-z]{0,6}",
            1 => "[0-9]{1,7}",
            1 => "[!-/:-@]{1,6}",
            1 => "[ \t\n]{1,12}",
            1 => vec((select(b"-=*#/._~+| \n\t".to_vec()), 1_usize..20), 1..5).prop_map(|runs| {
                runs.into_iter().flat_map(|(byte, times)| std::iter::repeat_n(char::from(byte), times)).collect()
            }),
            1 => ("[ -~\n\té…中]", 1_usize..200).prop_map(|(character, times)| character.repeat(times)),
        ]
    }

    proptest! {
        #[test]
        fn mixed_text_is_never_underestimated(bits in vec(bits(), 0..30)) {
            let text = bits.concat();
            prop_assert!(real(&text) <= estimate(&text), "{text:?}");
        }

        #[test]
        fn random_text_is_never_underestimated(
            text in prop_oneof![
                "[a-z]{0,200}", "[A-Za-z]{0,200}", "[0-9a-f]{0,200}", "[A-Za-z0-9+/=]{0,200}", "[qxzjkvw]{0,80}", "[ -~]{0,200}", "[!-/:-@\\[-`{-~]{0,100}",
                "[ \t\r\n/]{0,60}", "[\u{4e00}-\u{9fff}]{0,60}", "[\u{1f300}-\u{1faff}\u{200d}\u{fe0f}]{0,40}", "[a-z\u{300}-\u{36f}]{0,80}",
                "[a-zA-ZäöüßéèñçÄÖÜ' ]{0,120}", "[а-яА-Я ]{0,80}", "[\u{e00}-\u{e7f}\u{600}-\u{6ff}0-9 ]{0,80}", "\\PC{0,80}", "(?s).{0,80}",
            ],
        ) {
            prop_assert!(real(&text) <= estimate(&text), "{text:?}");
        }

        #[test]
        fn ascii_is_cut_as_the_tokenizer_cuts_it(bits in vec(bits(), 0..20)) {
            let text: String = bits.concat().chars().filter(char::is_ascii).collect();
            let pieces = bpe_openai::o200k_base().split(&text).map(str::len);
            let mut cut = Pieces::of(text.as_bytes());
            let mut ends = Vec::new();
            while cut.next().is_some() {
                ends.push(cut.at());
            }
            let expected: Vec<usize> = pieces.scan(0, |end, length| { *end += length; Some(*end) }).collect();
            prop_assert_eq!(ends, expected, "{:?}", text);
        }
    }
}
