//! Turns changes of lines into the calls that a careful model would send: whole lines, and no more of them than it
//! takes to name the place without doubt.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Value, json};
use surehand_core::{Anchor, LineNo, Text};

use super::change::{Change, applied};

/// How a change is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    /// `write_file`: all of it.
    WholeFile,
    /// `edit_file`: a call for each place.
    Replace,
    /// Replacements of text in one `multi_edit`.
    Replacements,
    /// `edit_lines`: the lines by their anchors, in one call.
    Lines,
    /// `apply_patch`: `*** Begin Patch`.
    Patch,
    /// `apply_patch`: a unified diff.
    UnifiedDiff,
}

/// All of them, as they stand in the tables.
pub(super) const DIALECTS: [Dialect; 6] =
    [Dialect::WholeFile, Dialect::Replace, Dialect::Replacements, Dialect::Lines, Dialect::Patch, Dialect::UnifiedDiff];

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The name of the tool.
    pub tool: &'static str,
    pub arguments: Value,
}

/// A file as the model knows it.
pub(crate) struct Picture<'a> {
    /// The path of the file.
    pub path: &'a str,
    /// The content as the model knows it.
    pub text: &'a Text,
    /// The number under which each line was last shown.
    pub numbers: &'a [usize],
}

impl Picture<'_> {
    /// How the model names a line.
    pub(crate) fn anchor(&self, line: usize) -> String {
        let number = LineNo::at_index(self.numbers[line] - 1);
        Anchor::of(number, self.text.line(LineNo::at_index(line))).to_string()
    }
}

/// The lines that a change is named by.
pub(super) fn named(change: &Change) -> Vec<usize> {
    match change.lines {
        Range { start, end } if start < end => vec![start, end - 1],
        Range { start, .. } => vec![start.saturating_sub(1)],
    }
}

impl Dialect {
    /// The name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dialect::WholeFile => "whole file",
            Dialect::Replace => "str_replace, a call each",
            Dialect::Replacements => "str_replace, one call",
            Dialect::Lines => "anchored lines",
            Dialect::Patch => "patch (*** Begin Patch)",
            Dialect::UnifiedDiff => "patch (unified diff)",
        }
    }

    /// Whether it needs reads that show anchors.
    pub(crate) fn needs_anchors(self) -> bool {
        self == Dialect::Lines
    }

    /// The next call for these changes, and how many of them it makes.
    pub(crate) fn call(self, picture: &Picture<'_>, changes: &[Change]) -> (Call, usize) {
        let path = picture.path;
        let all = changes.len();
        match self {
            Dialect::WholeFile => {
                let content = applied(picture.text, changes);
                (Call { tool: "write_file", arguments: json!({ "path": path, "content": content.as_str() }) }, all)
            }
            Dialect::Replace => (Call { tool: "edit_file", arguments: replacement(path, picture.text, &changes[0]) }, 1),
            Dialect::Replacements => (Call { tool: "multi_edit", arguments: replacements(picture, changes) }, all),
            Dialect::Lines => (Call { tool: "edit_lines", arguments: line_edits(picture, changes) }, all),
            Dialect::Patch => (patch_call(envelope(picture, changes)), all),
            Dialect::UnifiedDiff => (patch_call(unified(picture, changes)), all),
        }
    }
}

fn patch_call(patch: String) -> Call {
    Call { tool: "apply_patch", arguments: json!({ "patch": patch }) }
}

/// The replaced lines with as many lines around them as it takes to find them once, and their replacement.
fn replacement(path: &str, text: &Text, change: &Change) -> Value {
    let lines: Vec<&str> = text.full_lines().collect();
    let around = unique_replacement(text.as_str(), &lines, change);
    let old: String = lines[around.clone()].concat();
    let new =
        lines[around.start..change.lines.start].concat() + &change.with.concat() + &lines[change.lines.end..around.end].concat();
    json!({ "path": path, "old_string": without_end(&old), "new_string": without_end(&new) })
}

/// A string of lines is sent without the end of the last one, which stays.
fn without_end(lines: &str) -> &str {
    lines.strip_suffix('\n').unwrap_or(lines)
}

fn unique_replacement(content: &str, lines: &[&str], change: &Change) -> Range<usize> {
    let is_good = |around: &Range<usize>| {
        let old = lines[around.clone()].concat();
        // A pure insertion or removal needs a remaining line that marks the place.
        let has_hold = *around != change.lines || !(change.lines.is_empty() || change.with.is_empty());
        has_hold && !without_end(&old).is_empty() && stands_once(content, without_end(&old))
    };
    grown(change.lines.clone(), lines.len(), is_good)
}

fn stands_once(content: &str, part: &str) -> bool {
    content.contains(part) && content.find(part) == content.rfind(part)
}

/// The range with as few lines more, above and below in turn, as it takes to be good; all lines if none is.
fn grown(mut range: Range<usize>, total: usize, is_good: impl Fn(&Range<usize>) -> bool) -> Range<usize> {
    let mut above = true;
    while !is_good(&range) && range != (0..total) {
        if (above && range.start > 0) || range.end == total {
            range.start -= 1;
        } else {
            range.end += 1;
        }
        above = !above;
    }
    range
}

/// Later replacements see the result of earlier ones.
fn replacements(picture: &Picture<'_>, changes: &[Change]) -> Value {
    let mut text = picture.text.clone();
    let mut moved = 0;
    let edits: Vec<Value> = changes
        .iter()
        .map(|change| {
            let change = shifted(change, moved);
            let edit = replacement(picture.path, &text, &change);
            moved += change.with.len() as i64 - change.lines.len() as i64;
            text = applied(&text, &[change]);
            edit
        })
        .collect();
    json!({ "edits": edits })
}

/// The same change in a text that has more or fewer lines above it.
pub(super) fn shifted(change: &Change, by: i64) -> Change {
    let moved = |line: usize| usize::try_from(line as i64 + by).expect("lines move within the text");
    Change { lines: moved(change.lines.start)..moved(change.lines.end), with: change.with.clone() }
}

fn line_edits(picture: &Picture<'_>, changes: &[Change]) -> Value {
    let anchor = |line: usize| picture.anchor(line);
    let edit = |change: &Change| {
        let Range { start, end } = change.lines;
        let text = new_lines(&change.with);
        match (change.lines.len(), change.with.is_empty()) {
            (0, _) if start == 0 => json!({ "op": "insert_before", "at": anchor(0), "text": text }),
            (0, _) => json!({ "op": "insert_after", "at": anchor(start - 1), "text": text }),
            (1, true) => json!({ "op": "delete", "at": anchor(start) }),
            (_, true) => json!({ "op": "delete", "at": anchor(start), "to": anchor(end - 1) }),
            (1, false) => json!({ "op": "replace", "at": anchor(start), "text": text }),
            (_, false) => json!({ "op": "replace", "at": anchor(start), "to": anchor(end - 1), "text": text }),
        }
    };
    json!({ "path": picture.path, "edits": changes.iter().map(edit).collect::<Vec<_>>() })
}

/// The tool removes one superfluous line ending, so one more is sent if an empty line comes last.
fn new_lines(with: &[String]) -> String {
    let all = with.concat();
    match without_end(&all) {
        bare if bare.ends_with('\n') => all,
        bare => bare.to_owned(),
    }
}

/// Lines of context, as both formats are usually taught.
const CONTEXT: usize = 3;

/// Changes that share context, and all the lines of the chunk.
struct Chunk<'a> {
    changes: &'a [Change],
    lines: Range<usize>,
}

fn chunks<'a>(total: usize, changes: &'a [Change]) -> Vec<Chunk<'a>> {
    let groups = changes.chunk_by(|change, next| next.lines.start - change.lines.end <= 2 * CONTEXT);
    let chunk = |changes: &'a [Change]| {
        let (first, last) = (&changes[0].lines, &changes[changes.len() - 1].lines);
        Chunk { changes, lines: first.start.saturating_sub(CONTEXT)..(last.end + CONTEXT).min(total) }
    };
    groups.map(chunk).collect()
}

impl Chunk<'_> {
    fn rows(&self, lines: &[&str]) -> String {
        let mut rows = String::new();
        let mut add = |sign: char, lines: &[&str]| lines.iter().for_each(|line| rows.extend([sign.to_string().as_str(), line]));
        let mut at = self.lines.start;
        for change in self.changes {
            add(' ', &lines[at..change.lines.start]);
            add('-', &lines[change.lines.clone()]);
            add('+', &change.with.iter().map(String::as_str).collect::<Vec<_>>());
            at = change.lines.end;
        }
        add(' ', &lines[at..self.lines.end]);
        rows
    }
}

fn envelope(picture: &Picture<'_>, changes: &[Change]) -> String {
    let lines: Vec<&str> = picture.text.full_lines().collect();
    let mut patch = format!("*** Begin Patch\n*** Update File: {}\n", picture.path);
    for Chunk { changes, lines: range } in chunks(lines.len(), changes) {
        let is_once =
            |range: &Range<usize>| lines.windows(range.len()).filter(|window| *window == &lines[range.clone()]).count() == 1;
        let chunk = Chunk { changes, lines: grown(range, lines.len(), is_once) };
        let _ = write!(patch, "@@\n{}", chunk.rows(&lines));
    }
    patch + "*** End Patch\n"
}

fn unified(picture: &Picture<'_>, changes: &[Change]) -> String {
    let lines: Vec<&str> = picture.text.full_lines().collect();
    let mut patch = format!("--- a/{0}\n+++ b/{0}\n", picture.path);
    let mut moved = 0;
    for chunk in chunks(lines.len(), changes) {
        let more: i64 = chunk.changes.iter().map(|change| change.with.len() as i64 - change.lines.len() as i64).sum();
        let (start, old) = (chunk.lines.start as i64, chunk.lines.len() as i64);
        // A side without lines is named by the line above it.
        let side = |start: i64, count: i64| format!("{},{count}", if count > 0 { start + 1 } else { start });
        let _ = writeln!(patch, "@@ -{} +{} @@", side(start, old), side(start + moved, old + more));
        patch.push_str(&chunk.rows(&lines));
        moved += more;
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::economy::change::between;

    fn text(content: &str) -> Text {
        Text::of(content.to_owned()).unwrap()
    }

    /// The arguments of the first call that makes one text of the other.
    #[track_caller]
    fn check(dialect: Dialect, from: &str, to: &str, expected: Value) {
        let (from, to) = (text(from), text(to));
        let numbers: Vec<usize> = (1..=from.line_count()).collect();
        let picture = Picture { path: "f", text: &from, numbers: &numbers };
        let (call, _) = dialect.call(&picture, &between(&from, &to));
        assert_eq!(call.arguments, expected);
    }

    fn replaced(old: &str, new: &str) -> Value {
        json!({ "path": "f", "old_string": old, "new_string": new })
    }

    #[test]
    fn a_line_that_stands_once_is_replaced_alone() {
        check(Dialect::Replace, "a\nb\nc\n", "a\nB\nc\n", replaced("b", "B"));
    }

    #[test]
    fn a_line_that_stands_twice_takes_its_neighbours_along() {
        check(Dialect::Replace, "a\nx\nb\nx\n", "a\nx\nb\ny\n", replaced("b\nx", "b\ny"));
        check(Dialect::Replace, "x\na\nx\nb\n", "y\na\nx\nb\n", replaced("x\na", "y\na"));
    }

    #[test]
    fn a_line_that_is_part_of_another_does_not_stand_once() {
        check(Dialect::Replace, "one\nb\nsomeone\n", "two\nb\nsomeone\n", replaced("one\nb", "two\nb"));
    }

    #[test]
    fn what_only_comes_or_goes_has_a_hold() {
        check(Dialect::Replace, "a\nb\n", "a\nx\nb\n", replaced("a", "a\nx"));
        check(Dialect::Replace, "a\nb\n", "x\na\nb\n", replaced("a", "x\na"));
        check(Dialect::Replace, "a\nb\nc\n", "a\nc\n", replaced("a\nb", "a"));
    }

    #[test]
    fn later_replacements_see_earlier_ones() {
        let edits = json!({ "edits": [replaced("b", "x\nx"), replaced("f", "F")] });
        check(Dialect::Replacements, "a\nb\nc\nd\ne\nf\n", "a\nx\nx\nc\nd\ne\nF\n", edits);
    }

    #[test]
    fn lines_are_named_by_their_anchors() {
        let of = |line: usize, text: &str| Anchor::of(LineNo::at_index(line), text).to_string();
        let edits = json!([
            { "op": "replace", "at": of(0, "a"), "text": "A" },
            { "op": "delete", "at": of(2, "c"), "to": of(3, "d") },
            { "op": "insert_after", "at": of(4, "e"), "text": "" },
        ]);
        check(Dialect::Lines, "a\nb\nc\nd\ne\nf\n", "A\nb\ne\n\nf\n", json!({ "path": "f", "edits": edits }));
    }

    #[test]
    fn an_empty_last_line_is_not_lost() {
        assert_eq!(new_lines(&["a\n".to_owned(), "\n".to_owned()]), "a\n\n");
        assert_eq!(new_lines(&["\n".to_owned()]), "");
        assert_eq!(new_lines(&["a\n".to_owned()]), "a");
    }

    #[test]
    fn patches_have_three_lines_of_context() {
        let (from, to) = ("a\nb\nc\nd\ne\nf\ng\nh\ni\n", "a\nb\nc\nd\nE\nf\ng\nh\ni\n");
        let rows = " b\n c\n d\n-e\n+E\n f\n g\n h\n";
        let begin = "*** Begin Patch\n*** Update File: f\n@@\n";
        check(Dialect::Patch, from, to, json!({ "patch": format!("{begin}{rows}*** End Patch\n") }));
        check(Dialect::UnifiedDiff, from, to, json!({ "patch": format!("--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n{rows}") }));
    }
}
