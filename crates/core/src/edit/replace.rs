//! `edit_file`: replaces an exact text in its only place, or everywhere.

use std::borrow::Cow;

use crate::{
    edit::find::{Match, Overlaps, find, nearest},
    line_map::Splice,
    refusal::Cause,
    text::{LineEnding, Text},
};

/// Replaces `old` by `new`, in its only place or everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replace<'a> {
    /// The text to replace. Empty to create a file.
    pub old: &'a str,
    /// The text to put in its place.
    pub new: &'a str,
    /// Whether to replace every occurrence. If `false`, `old` must occur once.
    pub all: bool,
}

/// The splices for a replacement in this text.
pub(crate) fn replace_splices<'a>(text: &Text, edit: &Replace<'a>) -> Result<Vec<Splice<'a>>, Cause> {
    if edit.old == edit.new {
        return Err(Cause::NoChange);
    }
    let found = find(text, edit.old, if edit.all { Overlaps::Skip } else { Overlaps::Count });
    if found.is_empty() {
        return Err(nearest(text, edit.old, edit.new));
    }
    if found.len() > 1 && !edit.all {
        return Err(Cause::Ambiguous { lines: found.iter().map(|place| text.line_at(place.start)).collect() });
    }
    let endings = Endings::of(text, edit, &found[0]);
    Ok(apart(found).into_iter().map(|range| Splice { with: endings.fit(text, &range, edit.new), range }).collect())
}

/// The places that do not overlap an earlier one.
fn apart(places: Vec<Match>) -> Vec<Match> {
    let mut apart: Vec<Match> = Vec::with_capacity(places.len());
    for place in places {
        if apart.last().is_none_or(|last| last.end <= place.start) {
            apart.push(place);
        }
    }
    apart
}

/// How the line breaks of new text are written.
enum Endings {
    AsGiven,
    /// As `\n`, because the old text was given with other endings than the file has.
    Lf,
    /// As at the place of the edit; this ending is the usual one of the file.
    OfThePlace(LineEnding),
}

impl Endings {
    fn of(text: &Text, edit: &Replace<'_>, place: &Match) -> Self {
        let is_verbatim = edit.old.contains('\r') && text.as_str()[place.clone()] == *edit.old;
        if is_verbatim || !edit.new.contains('\n') {
            Endings::AsGiven
        } else if text.has_crlf() {
            Endings::OfThePlace(text.usual_ending())
        } else if edit.old.contains("\r\n") {
            Endings::Lf
        } else {
            Endings::AsGiven
        }
    }

    /// The first line break gets the ending of the first one that it replaces, and so on. Further ones get the ending
    /// of the line where the replacement ends.
    fn fit<'a>(&self, text: &Text, range: &Match, new: &'a str) -> Cow<'a, str> {
        let usual = match self {
            Endings::AsGiven => return Cow::Borrowed(new),
            Endings::Lf => return Cow::Owned(new.replace("\r\n", "\n")),
            Endings::OfThePlace(usual) => *usual,
        };
        let replaced = &text.as_str()[range.clone()];
        let mut replaced = replaced.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(ending_of);
        let last_line = text.line_at(range.end.saturating_sub(1).max(range.start));
        let local = match text.ending(last_line) {
            LineEnding::None => usual,
            ending => ending,
        };
        let mut fitted = String::with_capacity(new.len() + 16);
        for line in new.split_inclusive('\n') {
            match line.strip_suffix('\n') {
                Some(body) => {
                    fitted.push_str(body.strip_suffix('\r').unwrap_or(body));
                    fitted.push_str(replaced.next().unwrap_or(local).as_str());
                }
                None => fitted.push_str(line),
            }
        }
        Cow::Owned(fitted)
    }
}

fn ending_of(line: &str) -> LineEnding {
    if line.ends_with("\r\n") { LineEnding::CrLf } else { LineEnding::Lf }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{line_map::splice, lines::LineNo};

    fn apply(content: &str, old: &str, new: &str, all: bool) -> Result<String, Cause> {
        let text = Text::new(content.as_bytes().to_vec()).unwrap();
        let splices = replace_splices(&text, &Replace { old, new, all })?;
        Ok(splice(&text, &splices).0)
    }

    #[track_caller]
    fn check(content: &str, old: &str, new: &str, result: &str) {
        assert_eq!(apply(content, old, new, false).as_deref(), Ok(result));
    }

    #[test]
    fn one_exact_place_is_replaced() {
        check("a b c", "b", "X", "a X c");
        check("a\nb\nc\n", "a\nb", "b\na", "b\na\nc\n");
        check("a", "a", "", "");
    }

    #[test]
    fn line_endings_of_the_place_are_kept() {
        check("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n");
        check("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n");
        // In a file with mixed endings, each line break keeps its own kind.
        check("a\r\nb\nc\r\n", "a\nb\nc", "x\ny\nz", "x\r\ny\nz\r\n");
        check("a\nb\r\n", "a", "a\nA", "a\nA\nb\r\n");
        check("a\r\nb", "b", "b\nc", "a\r\nb\r\nc");
        check("a\nb\nc\n", "a\r\nb", "x\r\ny", "x\ny\nc\n");
        // Carriage returns that the caller gives are intended.
        check("a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n");
    }

    #[test]
    fn places_that_overlap_are_two_places() {
        assert!(matches!(apply("aaa", "aa", "b", false), Err(Cause::Ambiguous { lines }) if lines.len() == 2));
        assert_eq!(apply("aaa", "aa", "b", true).as_deref(), Ok("ba"));
    }

    #[test]
    fn all_places_are_replaced_when_asked() {
        assert_eq!(apply("x=1\ny=1\n", "1", "2", true).as_deref(), Ok("x=2\ny=2\n"));
        assert!(matches!(apply("x\nx\n", "x", "y", false), Err(Cause::Ambiguous { .. })));
    }

    #[test]
    fn equal_old_and_new_is_no_change() {
        assert_eq!(apply("a", "a", "a", false), Err(Cause::NoChange));
    }

    proptest! {
        /// Bytes outside the quoted text never change, whatever the endings, and however they were hidden from the
        /// caller.
        #[test]
        fn bytes_outside_an_edit_stay_the_same_bytes(
            lines in prop::collection::vec(("[a-c]{0,3}", prop::bool::ANY), 1..8), from in 0usize..8, count in 1usize..4, new in "[x-z\n]{0,6}",
        ) {
            let content: String = lines.iter().map(|(line, crlf)| format!("{line}{}", if *crlf { "\r\n" } else { "\n" })).collect();
            let text = Text::new(content.clone().into_bytes()).unwrap();
            let from = from.min(text.line_count() - 1);
            let to = (from + count).min(text.line_count());
            // The text as a reader sees it: lines joined by plain newlines.
            let old: String = (from..to).map(LineNo::at_index).map(|line| format!("{}\n", text.line(line))).collect();
            let Ok(splices) = replace_splices(&text, &Replace { old: &old, new: &new, all: false }) else { return Ok(()) };
            let edited = splice(&text, &splices).0;
            prop_assert!(edited.starts_with(&content[..text.start_of(from)]));
            prop_assert!(edited.ends_with(&content[text.start_of(to)..]));
            prop_assert_eq!(edited.matches('\n').count(), content.matches('\n').count() - (to - from) + new.matches('\n').count());
        }
    }
}
