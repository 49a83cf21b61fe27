//! A file that was only formatted: white space and punctuation that formatters put in or take out have changed, and nothing else. All other
//! characters are the same in the same order, so where each of them is now is known exactly, without any comparison of lines.

use std::ops::Range;

use crate::text::Text;

/// Where the characters that no formatter touches stand in two texts that have the same ones.
pub(super) struct Reformatted<'a> {
    before: &'a str,
    after: &'a str,
    /// The end of each of these characters.
    ends_before: Vec<usize>,
    ends_after: Vec<usize>,
}

impl<'a> Reformatted<'a> {
    /// `None` if something else than the format has changed.
    pub(super) fn between(before: &'a Text, after: &'a Text) -> Option<Self> {
        let (before, after) = (before.as_str(), after.as_str());
        let same = firm(before).map(|(_, c)| c).eq(firm(after).map(|(_, c)| c));
        let ends = |text: &str| firm(text).map(|(at, c)| at + c.len_utf8()).collect();
        same.then(|| Self { before, after, ends_before: ends(before), ends_after: ends(after) })
    }

    /// Where a piece of the old text is now, if it is there as it was.
    pub(super) fn place(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let piece = &self.before[range.clone()];
        // How many of the characters stand above it; it must have some of its own, or nothing holds it.
        let above = self.ends_before.partition_point(|end| *end <= range.start);
        firm(piece).next()?;
        let lowest = above.checked_sub(1).map_or(0, |last| self.ends_after[last]);
        let highest = *self.ends_after.get(above)?;
        let mut places = (lowest..highest).filter(|at| self.after.is_char_boundary(*at) && self.after[*at..].starts_with(piece));
        let place = places.next()?;
        places.next().is_none().then(|| place..place + piece.len())
    }
}

/// The characters of a text that no formatter touches. Formatters choose between quotes, so that both are the same here.
fn firm(text: &str) -> impl Iterator<Item = (usize, char)> {
    let is_loose = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')');
    text.char_indices().filter(move |(_, c)| !is_loose(*c)).map(|(at, c)| (at, if c == '\'' { '"' } else { c }))
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
        // One of several equal lines is told from the others.
        check("{x}\n}\n}\nend\n", "{ x }\n}\n}\nend\n", "}\n}\n", Some(4));
    }

    #[test]
    fn what_is_not_as_it_was_has_no_place() {
        check("x=1\ny\n", "x = 1\ny\n", "x=1", None);
        // Something else has changed.
        check("x=1\ny\n", "x = 2\ny\n", "y", None);
        // Nothing holds white space.
        check("x\n\ny\n", "x\n\n\ny\n", "\n\n", None);
    }

    proptest! {
        /// A piece that is found is the same characters, at the same place among all characters.
        #[test]
        fn a_place_is_never_another(words in prop::collection::vec("[ab}]{1,2}", 1..12), gaps in prop::collection::vec(0usize..4, 24), at in 0usize..12, count in 1usize..4) {
            let join = |gaps: &[usize]| {
                let gap = |index: usize| [" ", "\n", ",\n  ", "\n\n"][gaps[index % gaps.len()]];
                words.iter().enumerate().map(|(index, word)| format!("{word}{}", gap(index))).collect::<String>()
            };
            let (before, after) = (text(&join(&gaps[..12])), text(&join(&gaps[12..])));
            let at = at.min(words.len() - 1);
            let offset: usize = words[..at].iter().enumerate().map(|(index, word)| word.len() + [" ", "\n", ",\n  ", "\n\n"][gaps[index % 12]].len()).sum();
            let piece: usize = words[at..(at + count).min(words.len())].iter().enumerate().map(|(index, word)| word.len() + [" ", "\n", ",\n  ", "\n\n"][gaps[(at + index) % 12]].len()).sum();
            let range = offset..offset + piece;
            let texts = Reformatted::between(&before, &after).expect("only the gaps differ");
            if let Some(place) = texts.place(&range) {
                prop_assert_eq!(&before.as_str()[range.clone()], &after.as_str()[place.clone()]);
                prop_assert_eq!(firm(&before.as_str()[..range.start]).count(), firm(&after.as_str()[..place.start]).count());
            }
        }
    }
}
