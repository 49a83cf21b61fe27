//! Finds places that look like a text: equal except for white space, invisible characters, look-alikes and Unicode
//! normal form. They are never edited, only shown in a refusal.

use memchr::memmem;

use crate::{
    confusables::{Appearance, fold, is_mark, looks},
    edit::find::Match,
    refusal::HiddenDifference,
    text::Text,
};

/// The places in the file that look like `old`, from top to bottom; only the first ones if there are many.
pub(super) fn places(text: &Text, old: &str) -> Vec<Match> {
    const MANY: usize = 100;
    let needle = folded(old);
    if needle.is_empty() {
        return Vec::new();
    }
    let body = &text.as_str()[text.body_start()..];
    let haystack = folded(body);
    let hits: Vec<usize> = memmem::find_iter(haystack.as_bytes(), &needle).take(MANY).collect();
    let place = |place: Match| text.body_start() + place.start..text.body_start() + place.end;
    matches_in_original(body, &hits, needle.len())
        .into_iter()
        .filter_map(|found| with_edges(body, found, old))
        .map(place)
        .collect()
}

fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    text.chars().for_each(|c| fold(c, &mut folded));
    folded
}

/// Maps matches in the folded text back to the original. A match that ends inside a character does not count.
fn matches_in_original(text: &str, starts: &[usize], length: usize) -> Vec<Match> {
    let mut places = Vec::with_capacity(starts.len());
    let mut starts = starts.iter().copied().peekable();
    let (mut from, mut open, mut scratch) = (0, None, String::new());
    for (at, c) in text.char_indices() {
        let Some(&start) = starts.peek() else { break };
        scratch.clear();
        fold(c, &mut scratch);
        if from == start && open.is_none() && !scratch.is_empty() {
            open = Some(at);
        }
        from += scratch.len();
        if from < start + length {
            continue;
        }
        let end = at + c.len_utf8();
        let is_whole = from == start + length && !text[end..].starts_with(is_mark);
        places.extend(open.take().filter(|_| is_whole).map(|open| open..end));
        starts.next();
    }
    places
}

/// Whether a match may end between `edge` (the end of the text) and `beyond` (the next character of the file): white
/// space must be matched by some, and a word must not continue.
fn fits(edge: Option<char>, beyond: Option<char>) -> bool {
    match (edge, beyond) {
        (Some(edge), Some(beyond)) if edge.is_whitespace() => beyond.is_whitespace(),
        (Some(edge), Some(beyond)) => !(edge.is_alphanumeric() && beyond.is_alphanumeric()),
        _ => true,
    }
}

/// The match extended by the white space that the text has at its edges; `None` if that does not fit.
fn with_edges(body: &str, found: Match, old: &str) -> Option<Match> {
    let lead: Vec<char> = old.chars().take_while(|c| c.is_whitespace()).collect();
    let trail: Vec<char> = old.chars().rev().take_while(|c| c.is_whitespace()).collect();
    let (before, after) = (&body[..found.start], &body[found.end..]);
    let back = blanks(before.chars().rev(), lead.into_iter().rev().collect());
    let on = blanks(after.chars(), trail.into_iter().rev().collect());
    let fits = fits(old.chars().next(), before.chars().next_back()) && fits(old.chars().next_back(), after.chars().next());
    let end = found.end + on;
    // Half of a line ending is not white space.
    let half = usize::from(body[..end].ends_with('\r') && body[end..].starts_with('\n'));
    fits.then(|| found.start - back..end - half)
}

/// The number of bytes of white space that belong to a run at an edge. The white space is read away from the match, and
/// includes at most as many line breaks as the run, and blanks after the last one only if the run has some there.
fn blanks(away: impl Iterator<Item = char>, run: Vec<char>) -> usize {
    let mut breaks = run.iter().filter(|c| **c == '\n').count();
    let has_more = run.last().is_some_and(|c| *c != '\n');
    let mut length = 0;
    for c in away.take_while(|c| c.is_whitespace()) {
        match (c, breaks) {
            ('\n', 0) => break,
            ('\n', _) => breaks -= 1,
            (_, 0) if !has_more => break,
            _ => {}
        }
        length += c.len_utf8();
    }
    length
}

/// The kinds of differences between two texts that look the same: those that remain when all other kinds are folded.
pub(super) fn differs_in(old: &str, found: &str) -> Vec<HiddenDifference> {
    let (old, found) = (old.replace("\r\n", "\n"), found.replace("\r\n", "\n"));
    let ways =
        [HiddenDifference::WhiteSpace, HiddenDifference::Invisible, HiddenDifference::LookAlike, HiddenDifference::NormalForm];
    ways.into_iter().filter(|way| folded_but_for(*way, &old) != folded_but_for(*way, &found)).collect()
}

fn folded_but_for(way: HiddenDifference, text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        let hides = match looks(c) {
            Appearance::Blank => HiddenDifference::WhiteSpace,
            Appearance::Invisible => HiddenDifference::Invisible,
            Appearance::Like(_) => HiddenDifference::LookAlike,
            Appearance::Itself => HiddenDifference::NormalForm,
        };
        if hides == way { folded.push(c) } else { fold(c, &mut folded) }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, old: &str, expected: &[(&str, &[HiddenDifference])]) {
        let text = Text::new(content.as_bytes().to_vec()).unwrap();
        let places = places(&text, old);
        let found: Vec<(&str, Vec<HiddenDifference>)> =
            places.into_iter().map(|place| &text.as_str()[place]).map(|piece| (piece, differs_in(old, piece))).collect();
        assert_eq!(found, expected.iter().map(|(piece, ways)| (*piece, ways.to_vec())).collect::<Vec<_>>());
    }

    #[test]
    fn white_space_does_not_show() {
        check("x\n\tif a {\n", "    if a {", &[("\tif a {", &[HiddenDifference::WhiteSpace])]);
        check("f(a, b)", "f(a,b)", &[("f(a, b)", &[HiddenDifference::WhiteSpace])]);
        check("a\n\nb\n", "a\nb\n", &[("a\n\nb\n", &[HiddenDifference::WhiteSpace])]);
        check("a  \r\nb", "a\nb", &[("a  \r\nb", &[HiddenDifference::WhiteSpace])]);
        check("a b\u{a0}c", "a b c", &[("a b\u{a0}c", &[HiddenDifference::WhiteSpace])]);
        check("x\n  y\n", "\n\ty\n", &[("\n  y\n", &[HiddenDifference::WhiteSpace])]);
        check("b\r\n\r\n", "b\n\t", &[("b\r\n", &[HiddenDifference::WhiteSpace])]);
        check("xfood", " foo", &[]);
        check("max=10", "x = 1", &[]);
        check("max=1", "x = 1", &[]);
        check("a", "\t", &[]);
    }

    #[test]
    fn neither_do_look_alikes() {
        check("it\u{2019}s", "it's", &[("it\u{2019}s", &[HiddenDifference::LookAlike])]);
        check("a - b", "a \u{2014} b", &[("a - b", &[HiddenDifference::LookAlike])]);
        check("a\u{200b}b", "ab", &[("a\u{200b}b", &[HiddenDifference::Invisible])]);
        check("caf\u{e9}!", "cafe\u{301}", &[("caf\u{e9}", &[HiddenDifference::NormalForm])]);
        check(
            "cafe\u{301}  x",
            "caf\u{e9} x",
            &[("cafe\u{301}  x", &[HiddenDifference::WhiteSpace, HiddenDifference::NormalForm])],
        );
        check("caf\u{e9}", "cafe ", &[]);
        check("caf\u{e9}", "caf e", &[]);
    }

    #[test]
    fn all_places_are_found() {
        check("a  b\na   b\n", "a b", &[("a  b", &[HiddenDifference::WhiteSpace]), ("a   b", &[HiddenDifference::WhiteSpace])]);
    }
}
