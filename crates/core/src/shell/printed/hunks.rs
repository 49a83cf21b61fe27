//! Hunks of unified diffs, whose headers give the place of their lines: `@@ -3,7 +3,7 @@`.

use super::{matching::OutputMatching, rows::leading_number};
use crate::lines::LineNo;

/// The percentage of one side's lines that must match the file for the side to show the current file.
const LEAST_PERCENT: usize = 90;

/// One side of a hunk: each row with its line; 0-based.
type HunkSide = Vec<(usize, usize)>;

/// Counts the lines that hunks show of the files named in their headers.
pub(super) fn take_hunks(matching: &mut OutputMatching<'_>) {
    let (mut old_file, mut new_file) = (Vec::new(), Vec::new());
    let mut row = 0;
    while row < matching.rows.len() {
        let shown = matching.rows.row(row);
        if let Some(path) = shown.strip_prefix("--- ") {
            old_file = meant(matching, path, "a/");
        } else if let Some(path) = shown.strip_prefix("+++ ") {
            new_file = meant(matching, path, "b/");
        }
        let Some((old, new)) = starts(shown) else {
            row += 1;
            continue;
        };
        let hunk = PrintedHunk::read(matching, row + 1, old, new);
        let end = hunk.end;
        hunk.take(matching, &old_file, &new_file);
        row = end;
    }
}

/// The candidates that match a path in a header.
fn meant(matching: &OutputMatching<'_>, header: &str, git_prefix: &str) -> Vec<usize> {
    let path = header.split('\t').next().unwrap_or(header).trim_end().trim_matches('"');
    let as_printed = matching.names.meant_by(path);
    let without = path.strip_prefix(git_prefix).map(|path| matching.names.meant_by(path)).unwrap_or_default();
    if without.is_empty() { as_printed } else { without }
}

/// The start of a hunk in both files, and its number of lines in each.
fn starts(row: &str) -> Option<((u32, u32), (u32, u32))> {
    let rest = row.strip_prefix("@@ -")?;
    let (old, rest) = range(rest)?;
    let (new, rest) = range(rest.strip_prefix(" +")?)?;
    rest.starts_with(" @@").then_some((old, new))
}

fn range(text: &str) -> Option<((u32, u32), &str)> {
    let (start, rest) = leading_number(text)?;
    match rest.strip_prefix(',') {
        Some(rest) => leading_number(rest).map(|(count, rest)| ((start, count), rest)),
        None => Some(((start, 1), rest)),
    }
}

struct PrintedHunk {
    old: HunkSide,
    new: HunkSide,
    /// The first row after the hunk.
    end: usize,
}

impl PrintedHunk {
    fn read(matching: &OutputMatching<'_>, first: usize, old: (u32, u32), new: (u32, u32)) -> Self {
        let mut hunk = Self { old: Vec::new(), new: Vec::new(), end: first };
        let index = |start: u32, rows: usize| (start.max(1) - 1) as usize + rows;
        while hunk.end < matching.rows.len() {
            let is_full = hunk.old.len() >= old.1 as usize && hunk.new.len() >= new.1 as usize;
            let place = (index(old.0, hunk.old.len()), index(new.0, hunk.new.len()));
            match matching.rows.row(hunk.end).bytes().next() {
                Some(b'\\') => {}
                _ if is_full => break,
                Some(b'-') => hunk.old.push((hunk.end, place.0)),
                Some(b'+') => hunk.new.push((hunk.end, place.1)),
                // An empty row is an empty line whose mark was trimmed.
                Some(b' ') | None => {
                    hunk.old.push((hunk.end, place.0));
                    hunk.new.push((hunk.end, place.1));
                }
                Some(_) => break,
            }
            hunk.end += 1;
        }
        hunk
    }

    /// Counts a side that shows the current file. Only one of two versions of a file can be current.
    fn take(&self, matching: &mut OutputMatching<'_>, old_file: &[usize], new_file: &[usize]) {
        let of_new = new_file.iter().copied().find(|file| is_present(matching, *file, &self.new));
        let of_old = old_file.iter().copied().find(|file| Some(*file) != of_new && is_present(matching, *file, &self.old));
        if of_new.is_none() && of_old.is_none() {
            // This is an older version. The lines that still exist count only for this file.
            let Some(file) = new_file.first() else { return };
            self.new.iter().for_each(|(row, _)| matching.belongs_to(*row, *file));
            return;
        }
        for (file, side) in [(of_new, &self.new), (of_old, &self.old)] {
            let Some(file) = file else { continue };
            let equal = side.iter().filter(|(row, line)| is_line(matching, file, *row, *line));
            equal.map(|(_, line)| *line).collect::<Vec<_>>().into_iter().for_each(|line| matching.show(file, line));
        }
        let rows = self.old.iter().chain(&self.new).map(|(row, _)| *row);
        rows.for_each(|row| matching.used[row] = true);
    }
}

fn is_present(matching: &OutputMatching<'_>, file: usize, side: &HunkSide) -> bool {
    let equal = side.iter().filter(|(row, line)| is_line(matching, file, *row, *line)).count();
    equal > 0 && equal * 100 >= side.len() * LEAST_PERCENT
}

fn is_line(matching: &OutputMatching<'_>, file: usize, row: usize, line: usize) -> bool {
    let text = matching.candidates[file].text;
    let shown = matching.rows.row(row);
    line < text.line_count() && shown.get(1..).unwrap_or_default() == text.line(LineNo::at_index(line))
}
