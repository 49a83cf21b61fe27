//! Seams: two runs that are adjacent in the file but not in the output, with a line between them that the file no
//! longer has, as when `git show` prints an older version. A reader would believe that the file has that line, so the
//! lines beside the seam do not count as seen.

use std::{collections::HashMap, ops::Range};

use super::{
    CommandHints,
    matching::OutputMatching,
    runs::{PrintedRun, RunOrder},
};

/// Runs of this length explain their rows; a shorter one may be a coincidence.
const LEAST_EXPLAINED: usize = 3;

/// A run that counts as seen.
#[derive(Debug, Clone)]
pub(super) struct SeenRun {
    pub(super) run: PrintedRun,
    /// Whether the output numbers these lines, which also shows that no line lies between two of them.
    pub(super) is_numbered: bool,
}

pub(super) fn without_seams(matching: &OutputMatching<'_>, hints: &CommandHints, mut counted: Vec<SeenRun>) -> Vec<PrintedRun> {
    counted.sort_by_key(|counted| (counted.run.file, counted.run.rows.start));
    let gaps = Gaps::between(matching, hints, &counted);
    let mut kept: Vec<Range<usize>> = counted.iter().map(|counted| counted.run.rows.clone()).collect();
    for (above, below) in neighbours(&counted) {
        if gaps.is_seam(&counted[above], &counted[below]) {
            (kept[above].end, kept[below].start) = (kept[above].end - 1, kept[below].start + 1);
        }
    }
    for (SeenRun { run, .. }, kept) in
        counted.iter().zip(&mut kept).filter(|(counted, _)| gaps.is_of_a_revision[counted.run.file])
    {
        let is_last = run.line + run.len() == matching.files[run.file].len();
        if run.line == 0 && run.rows.start > 0 && gaps.is_strange(run.rows.start - 1) {
            kept.start = run.rows.start + 1;
        }
        if is_last && run.rows.end < matching.rows.len() && gaps.is_strange(run.rows.end) {
            kept.end = run.rows.end - 1;
        }
    }
    let kept = counted.into_iter().zip(kept).filter(|(_, kept)| !kept.is_empty());
    kept.map(|(counted, kept)| counted.run.part(kept)).collect()
}

/// Pairs each run with the nearest run below it in the output that starts where it ends in the file, as indexes.
fn neighbours(counted: &[SeenRun]) -> Vec<(usize, usize)> {
    let mut by_start: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    let forward = || counted.iter().enumerate().filter(|(_, counted)| counted.run.order == RunOrder::Forward);
    for (index, SeenRun { run, .. }) in forward() {
        by_start.entry((run.file, run.line)).or_default().push(index);
    }
    let below = |run: &PrintedRun| {
        let after = by_start.get(&(run.file, run.line + run.len()))?;
        after.get(after.partition_point(|index| counted[*index].run.rows.start < run.rows.end)).copied()
    };
    forward().filter_map(|(above, SeenRun { run, .. })| Some((above, below(run)?))).collect()
}

/// The explanations for rows that are not lines of a file.
struct Gaps<'a> {
    matching: &'a OutputMatching<'a>,
    hints: &'a CommandHints,
    /// For each row, whether a long enough run contains it.
    is_in_run: Vec<bool>,
    /// For each file, whether the command names a git revision of it: `HEAD~1:src/a.rs`.
    is_of_a_revision: Vec<bool>,
}

impl<'a> Gaps<'a> {
    fn between(matching: &'a OutputMatching<'a>, hints: &'a CommandHints, counted: &[SeenRun]) -> Self {
        let mut is_in_run = vec![false; matching.rows.len()];
        for SeenRun { run, .. } in counted.iter().filter(|counted| counted.run.len() >= LEAST_EXPLAINED) {
            is_in_run[run.rows.clone()].fill(true);
        }
        let mut is_of_a_revision = vec![false; matching.candidates.len()];
        for (_, path) in hints.line.split_whitespace().filter_map(|word| word.split_once(':')) {
            let path = path.trim_matches(|c: char| "\"';|&)".contains(c));
            matching.names.meant_by(path).into_iter().for_each(|file| is_of_a_revision[file] = true);
        }
        Self { matching, hints, is_in_run, is_of_a_revision }
    }

    fn is_seam(&self, above: &SeenRun, below: &SeenRun) -> bool {
        let are_numbered = above.is_numbered && below.is_numbered;
        !are_numbered && (above.run.rows.end..below.run.rows.start).any(|row| self.is_strange(row))
    }

    /// Whether only another version of the file explains a row.
    fn is_strange(&self, row: usize) -> bool {
        let text = self.matching.rows.row(row);
        let is_echo = || self.hints.echoes && self.hints.line.contains(text.trim());
        !self.is_in_run[row] && text != "--" && !is_echo() && self.matching.names.heading(text).is_none()
    }
}
