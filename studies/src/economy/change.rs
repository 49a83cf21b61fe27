//! The differences between two versions of a file as changes of lines, and the part of them that an author who saw only
//! an earlier version could have meant.

use std::ops::Range;

use surehand_core::{LineMap, LineNo, Text};

/// Lines of a text and their replacement. Indexes are 0-based and half-open; an insertion replaces no lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The lines that go.
    pub lines: Range<usize>,
    /// The new lines, each with its ending.
    pub with: Vec<String>,
}

/// Whether an outside change concerned the lines of the edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contact {
    /// It was about other lines.
    Elsewhere,
    /// Lines that we change had been changed.
    SameLines,
}

/// The changes that make one text of another, from top to bottom.
pub(crate) fn between(from: &Text, to: &Text) -> Vec<Change> {
    let hunks = LineMap::between(from, to);
    hunks.hunks().iter().map(|hunk| Change { lines: hunk.before.clone(), with: lines(to, hunk.after.clone()) }).collect()
}

/// The text with these changes made.
pub(crate) fn applied(text: &Text, changes: &[Change]) -> Text {
    let old: Vec<&str> = text.full_lines().collect();
    let mut new = String::with_capacity(text.as_str().len());
    let mut at = 0;
    for change in changes {
        new.extend(old[at..change.lines.start].iter().copied());
        new.extend(change.with.iter().map(String::as_str));
        at = change.lines.end;
    }
    new.extend(old[at..].iter().copied());
    Text::of(new).expect("lines of texts are text")
}

/// Joins changes with hardly a line between them, as an author would who has to repeat existing text.
pub(super) fn joined(text: &Text, changes: &[Change]) -> Vec<Change> {
    const APART: usize = 2;
    let mut joined: Vec<Change> = Vec::new();
    for change in changes {
        match joined.last_mut() {
            Some(last) if change.lines.start - last.lines.end <= APART => {
                last.with.extend(lines(text, last.lines.end..change.lines.start));
                last.with.extend(change.with.iter().cloned());
                last.lines.end = change.lines.end;
            }
            _ => joined.push(change.clone()),
        }
    }
    joined
}

/// The part of the way from `outside` to `goal` that an author could have meant who saw only `seen`, as changes of
/// `seen`. `None` if nothing of it is left.
pub(super) fn meant(seen: &Text, outside: &Text, goal: &Text) -> Option<(Vec<Change>, Contact)> {
    let (theirs, ours) = (LineMap::between(seen, outside), LineMap::between(outside, goal));
    let origin = origins(&theirs, outside.line_count());
    let mut contact = Contact::Elsewhere;
    let mut changes: Vec<Change> = Vec::new();
    let mut done = 0;
    for hunk in ours.hunks() {
        if hunk.before.start < done {
            // It was joined with the previous one.
            continue;
        }
        let change = match place(&origin, &hunk.before, seen.line_count()) {
            Some(place) => Change { lines: place, with: lines(goal, hunk.after.clone()) },
            None => {
                contact = Contact::SameLines;
                let region = region(&theirs, &ours, hunk.before.clone());
                done = region.end;
                let change = entangled(&theirs, &ours, &region, &origin, seen, goal);
                // It concerns only lines that others have added: an author who has not seen them could not mean it.
                if change.lines.is_empty() && !hunk.before.is_empty() {
                    return None;
                }
                change
            }
        };
        changes.push(change);
    }
    let is_in_order = changes.windows(2).all(|pair| pair[0].lines.end <= pair[1].lines.start);
    let does_something = |change: &Change| lines(seen, change.lines.clone()) != change.with;
    (!changes.is_empty() && is_in_order && changes.iter().all(does_something)).then_some((changes, contact))
}

/// For each line of the new text, which old line it is.
fn origins(map: &LineMap, total: usize) -> Vec<Option<usize>> {
    let mut origins = vec![None; total];
    for (run, shift) in map.kept() {
        for old in run {
            let new = usize::try_from(old as i64 + shift).expect("a kept line has a place");
            origins[new] = Some(old);
        }
    }
    origins
}

/// Where lines of the new text are in the old one, if they are there, one after the other.
fn place(origin: &[Option<usize>], lines: &Range<usize>, old_total: usize) -> Option<Range<usize>> {
    if lines.is_empty() {
        let above = lines.start.checked_sub(1).and_then(|above| origin[above]).map(|above| above + 1);
        let below = origin.get(lines.start).copied().flatten();
        let edge = match (lines.start, origin.len()) {
            (0, _) if below == Some(0) => Some(0),
            (at, total) if at == total && above == Some(old_total) => above,
            _ => None,
        };
        let at = edge.or(above).or(below)?;
        return Some(at..at);
    }
    let first = origin[lines.start]?;
    lines.clone().enumerate().all(|(index, line)| origin[line] == Some(first + index)).then(|| first..first + lines.len())
}

/// The lines of the middle text that a change shares with the outside changes, and everything connected with them.
fn region(theirs: &LineMap, ours: &LineMap, start: Range<usize>) -> Range<usize> {
    let mut region = start;
    loop {
        let before = region.clone();
        let sides = theirs.hunks().iter().map(|hunk| &hunk.after).chain(ours.hunks().iter().map(|hunk| &hunk.before));
        for side in sides {
            if side.start <= region.end && region.start <= side.end {
                region = region.start.min(side.start)..region.end.max(side.end);
            }
        }
        if region == before {
            return region;
        }
    }
}

/// A change of lines that others changed, as it was meant before: with its own new lines, and the original lines
/// without the new lines of others.
fn entangled(
    theirs: &LineMap,
    ours: &LineMap,
    region: &Range<usize>,
    origin: &[Option<usize>],
    seen: &Text,
    goal: &Text,
) -> Change {
    let old = moved_back(theirs, region);
    let new = moved_on(ours, region);
    let from_middle = origins(ours, goal.line_count());
    let is_theirs = |line: &usize| from_middle[*line].is_some_and(|middle| origin[middle].is_none());
    let without: Vec<String> =
        new.clone().filter(|line| !is_theirs(line)).map(|line| goal.full_line(LineNo::at_index(line)).to_owned()).collect();
    let with = if without == lines(seen, old.clone()) { lines(goal, new) } else { without };
    Change { lines: old, with }
}

/// Maps a region whose edges are in no hunk back to the text before.
fn moved_back(map: &LineMap, region: &Range<usize>) -> Range<usize> {
    let shift =
        |edge: usize| -> i64 { map.hunks().iter().filter(|hunk| hunk.after.end < edge).map(surehand_core::Hunk::shift).sum() };
    let end: i64 = map.hunks().iter().filter(|hunk| hunk.after.end <= region.end).map(surehand_core::Hunk::shift).sum();
    back(region.start, shift(region.start))..back(region.end, end)
}

/// Like `moved_back`, but to the text after.
fn moved_on(map: &LineMap, region: &Range<usize>) -> Range<usize> {
    let start: i64 = map.hunks().iter().filter(|hunk| hunk.before.end < region.start).map(surehand_core::Hunk::shift).sum();
    let end: i64 = map.hunks().iter().filter(|hunk| hunk.before.end <= region.end).map(surehand_core::Hunk::shift).sum();
    back(region.start, -start)..back(region.end, -end)
}

fn back(line: usize, shift: i64) -> usize {
    usize::try_from(line as i64 - shift).expect("hunks move lines within the text")
}

fn lines(text: &Text, range: Range<usize>) -> Vec<String> {
    range.map(|line| text.full_line(LineNo::at_index(line)).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text with a line for each letter.
    fn text(letters: &str) -> Text {
        Text::of(letters.chars().map(|letter| format!("{letter}\n")).collect()).unwrap()
    }

    #[track_caller]
    fn check(seen: &str, outside: &str, goal: &str, expected: Option<(&str, Contact)>) {
        let (seen, outside, goal) = (text(seen), text(outside), text(goal));
        let found = meant(&seen, &outside, &goal).map(|(changes, contact)| (applied(&seen, &changes), contact));
        assert_eq!(found, expected.map(|(meant, contact)| (text(meant), contact)));
    }

    #[test]
    fn a_change_of_other_lines_is_meant_as_it_is() {
        check("abcdef", "Xbcdef", "XbcdeY", Some(("abcdeY", Contact::Elsewhere)));
        check("abcdef", "xxabcdef", "xxabcef", Some(("abcef", Contact::Elsewhere)));
        check("abcdef", "bcdef", "bcdQef", Some(("abcdQef", Contact::Elsewhere)));
        check("abcdef", "abcdefX", "YabcdefX", Some(("Yabcdef", Contact::Elsewhere)));
    }

    #[test]
    fn an_insertion_beside_theirs_is_beside_what_was_there() {
        check("abc", "aXbc", "aXYbc", Some(("aYbc", Contact::Elsewhere)));
        check("abc", "abcX", "abcXY", None.or(Some(("abcY", Contact::SameLines))));
    }

    #[test]
    fn a_change_of_the_same_lines_is_meant_without_theirs() {
        check("abcde", "abXde", "abYde", Some(("abYde", Contact::SameLines)));
        check("abcde", "abXcde", "abXYde", Some(("abYde", Contact::Elsewhere)));
        check("abcde", "abXXde", "abXYde", Some(("abYde", Contact::SameLines)));
    }

    #[test]
    fn a_change_of_what_they_added_was_not_meant() {
        check("abc", "aXYbc", "aXZbc", None);
        check("abc", "abcXY", "abcXZ", None);
    }

    #[test]
    fn what_takes_theirs_back_was_not_meant() {
        check("abc", "aXc", "abc", None);
    }

    #[test]
    fn changes_make_the_other_text() {
        let (from, to) = (text("abcdefgh"), text("aXcdfghY"));
        let changes = between(&from, &to);
        assert_eq!(applied(&from, &changes), to);
        assert_eq!(applied(&from, &joined(&from, &changes)), to);
        assert_eq!((changes.len(), joined(&from, &changes).len()), (3, 2));
    }
}
