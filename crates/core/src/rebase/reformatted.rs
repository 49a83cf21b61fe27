//! Places edits in a file that was only reformatted: a formatter added or removed white space and punctuation. All
//! words and other characters are the same in the same order, so the new position of each is known exactly, without
//! comparing lines.

use std::ops::Range;

use crate::text::Text;

/// Two texts that consist of the same words.
pub(super) struct Reformatted<'a> {
    before: &'a str,
    after: &'a str,
    /// The position of each word in the two texts.
    words_before: Vec<Range<usize>>,
    words_after: Vec<Range<usize>>,
}

impl<'a> Reformatted<'a> {
    /// Returns `None` if more than the format has changed, or if lines were moved. If a `}` moves past an indented one,
    /// the words stay the same, but each is now another word of the file.
    pub(super) fn between(before: &'a Text, after: &'a Text) -> Option<Self> {
        let (before, after) = (before.as_str(), after.as_str());
        let (words_before, words_after) = (words(before), words(after));
        let is_same = |(old, new): (&Range<usize>, &Range<usize>)| is_same_word(&before[old.clone()], &after[new.clone()]);
        let is_all_same = words_before.len() == words_after.len() && words_before.iter().zip(&words_after).all(is_same);
        (is_all_same && !is_reordered(before, after)).then_some(Self { before, after, words_before, words_after })
    }

    /// The new place of a piece of the old text, if its lines are unchanged.
    pub(super) fn place(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let start = self.before[..range.start].rfind('\n').map_or(0, |end| end + 1);
        let is_ended = range.end > range.start && self.before[..range.end].ends_with('\n');
        let rest = if is_ended { Some(0) } else { self.before[range.end..].find('\n').map(|at| at + 1) };
        let end = rest.map_or(self.before.len(), |rest| range.end + rest);
        let moved = self.place_lines(start..end)? + (range.start - start);
        Some(moved..moved + range.len())
    }

    /// The new start of whole lines of the old text.
    fn place_lines(&self, lines: Range<usize>) -> Option<usize> {
        let text = &self.before[lines.clone()];
        // Lines without words have no fixed place.
        let first = self.words_before.partition_point(|word| word.start < lines.start);
        let word = self.words_before.get(first).filter(|word| word.end <= lines.end)?;
        let start = self.words_after[first].start.checked_sub(word.start - lines.start)?;
        let end = start + text.len();
        let is_unchanged = self.after.get(start..end) == Some(text);
        let begins_line = start == 0 || self.after.as_bytes()[start - 1] == b'\n';
        let ends_line = text.ends_with('\n') || end == self.after.len();
        // If there are more copies now, a session that saw both texts would have to say which one it means.
        let times = |whole: &str| whole.matches(text).count();
        (is_unchanged && begins_line && ends_line && times(self.before) == times(self.after)).then_some(start)
    }
}

/// Whether both texts have the same lines in another order. Formatters never do that.
fn is_reordered(before: &str, after: &str) -> bool {
    let sorted = |text| {
        let mut lines: Vec<&str> = str::lines(text).collect();
        lines.sort_unstable();
        lines
    };
    before != after && sorted(before) == sorted(after)
}

/// Formatters may replace one kind of quotes by the other.
fn is_same_word(one: &str, other: &str) -> bool {
    const QUOTES: [&str; 2] = ["\"", "'"];
    one == other || (QUOTES.contains(&one) && QUOTES.contains(&other))
}

/// The parts that formatters keep: names, numbers, all characters except white space and the punctuation that
/// formatters add and remove, and empty lines, because nothing else would fix their place.
fn words(text: &str) -> Vec<Range<usize>> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_loose = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')');
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut is_empty_line = true;
    let mut last = None;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match words.last_mut() {
            Some(word) if is_of_name(c) && last.is_some_and(is_of_name) => word.end = end,
            _ if !is_loose(c) || (c == '\n' && is_empty_line) => words.push(at..end),
            _ => {}
        }
        is_empty_line = c == '\n' || (is_empty_line && c.is_whitespace());
        last = Some(c);
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(content: &str) -> Text {
        Text::of(content.to_owned()).unwrap()
    }

    #[track_caller]
    fn check(before: &str, after: &str, piece: &str, expected: Option<usize>) {
        let (before, after) = (text(before), text(after));
        let start = before.as_str().find(piece).unwrap();
        let placed = Reformatted::between(&before, &after).and_then(|texts| texts.place(&(start..start + piece.len())));
        assert_eq!(placed.map(|range| range.start), expected);
    }

    #[test]
    fn a_piece_is_where_its_characters_are() {
        check("f(a,b)\nx = 1\n", "f(\n  a,\n  b,\n)\nx = 1\n", "x = 1", Some(15));
        check("a='x'\nb = 2\n", "a = \"x\"\nb = 2\n", "b = 2", Some(8));
        // One of several equal lines is identified by the words before it.
        check("{x}\n}\n}\nend\n", "{ x }\n}\n}\nend\n", "}\nend\n", Some(8));
    }

    #[test]
    fn changed_lines_have_no_place() {
        check("x=1\ny\n", "x = 1\ny\n", "x=1", None);
        // More than the format has changed.
        check("x=1\ny\n", "x = 2\ny\n", "y", None);
        check("a b\ny\n", "ab\ny\n", "y", None);
        check("x\n\ny\n", "\nx\ny\n", "x", None);
        check("a\n\nb\n", "a\nb\n", "\nb", None);
        // The computed place lies inside a character.
        check("[\"ä\",\n    \"b\"]\n", "[\"ä\", \"b\"]\n", "\"b\"", None);
        // The first line was moved to the third place.
        check("}\n  }\n}\nend\n", "  }\n}\n}\nend\n", "}\nend\n", None);
        // It occurs twice now.
        check("x = 1\ny\nx=1\n", "x = 1\ny\nx = 1\n", "x = 1", None);
    }

    proptest! {
        /// The lines that are found are equal, and preceded by the same number of words.
        #[test]
        fn a_place_is_never_another(names in prop::collection::vec("[ab}äé]{1,2}", 1..12), gaps in prop::collection::vec(0usize..3, 24), line in 0usize..12) {
            let join = |gaps: &[usize]| {
                let gap = |index: usize| [" ", "\n", ",\n  "][gaps[index]];
                names.iter().enumerate().map(|(index, name)| format!("{name}{}", gap(index))).collect::<String>() + "end\n"
            };
            let (before, after) = (text(&join(&gaps[..12])), text(&join(&gaps[12..])));
            let lines: Vec<&str> = before.as_str().split_inclusive('\n').collect();
            let line = line.min(lines.len() - 1);
            let start: usize = lines[..line].iter().map(|line| line.len()).sum();
            let Some(texts) = Reformatted::between(&before, &after) else {
                // Only the gaps differ; by chance, that makes the same lines in another order.
                prop_assert!(is_reordered(before.as_str(), after.as_str()));
                return Ok(());
            };
            if let Some(place) = texts.place(&(start..start + lines[line].len())) {
                prop_assert_eq!(lines[line], &after.as_str()[place.clone()]);
                prop_assert_eq!(words(&before.as_str()[..start]).len(), words(&after.as_str()[..place.start]).len());
            }
        }
    }
}
