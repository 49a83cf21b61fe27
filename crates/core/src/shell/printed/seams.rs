//! Seams: two runs that follow each other in the file, but not in the output. Between them stands a line that the file no longer has:
//! `git show` prints another version. Whoever read it takes that line to be there, so that the lines beside the seam do not count.

use std::{collections::HashMap, ops::Range};

use super::{
    CommandHints,
    matching::OutputMatching,
    runs::{Order, PrintedRun},
};

/// A run explains its rows from this length on; a shorter one may be there by accident.
const LEAST_EXPLAINED: usize = 3;

/// A run that counts.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    pub(super) run: PrintedRun,
    /// Whether the output says which lines these are: then it also says that nothing lies between two of them.
    pub(super) is_numbered: bool,
}

/// The runs without their lines beside a seam.
pub(super) fn without_seams(matching: &OutputMatching<'_>, hints: &CommandHints, mut counted: Vec<Counted>) -> Vec<PrintedRun> {
    counted.sort_by_key(|counted| (counted.run.file, counted.run.rows.start));
    let gaps = Gaps::between(matching, hints, &counted);
    let mut kept: Vec<Range<usize>> = counted.iter().map(|counted| counted.run.rows.clone()).collect();
    for (above, below) in neighbours(&counted) {
        if gaps.is_seam(&counted[above], &counted[below]) {
            (kept[above].end, kept[below].start) = (kept[above].end - 1, kept[below].start + 1);
        }
    }
    for (Counted { run, .. }, kept) in
        counted.iter().zip(&mut kept).filter(|(counted, _)| gaps.is_of_a_revision[counted.run.file])
    {
        let is_last = run.line + run.len() == matching.file(run.file).len();
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

/// Each run with the nearest one below it in the output that begins where it ends in the file, as indexes.
fn neighbours(counted: &[Counted]) -> Vec<(usize, usize)> {
    let mut by_start: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    let forward = || counted.iter().enumerate().filter(|(_, counted)| counted.run.order == Order::Forward);
    for (index, Counted { run, .. }) in forward() {
        by_start.entry((run.file, run.line)).or_default().push(index);
    }
    let below = |run: &PrintedRun| {
        let after = by_start.get(&(run.file, run.line + run.len()))?;
        after.get(after.partition_point(|index| counted[*index].run.rows.start < run.rows.end)).copied()
    };
    forward().filter_map(|(above, Counted { run, .. })| Some((above, below(run)?))).collect()
}

/// What explains the rows that are no lines of a file.
struct Gaps<'a> {
    matching: &'a OutputMatching<'a>,
    hints: &'a CommandHints,
    /// For each row, whether a run of some length has it.
    is_in_run: Vec<bool>,
    /// For each file, whether the command speaks of a version of it that git keeps: `HEAD~1:src/a.rs`.
    is_of_a_revision: Vec<bool>,
}

impl<'a> Gaps<'a> {
    fn between(matching: &'a OutputMatching<'a>, hints: &'a CommandHints, counted: &[Counted]) -> Self {
        let mut is_in_run = vec![false; matching.rows.len()];
        for Counted { run, .. } in counted.iter().filter(|counted| counted.run.len() >= LEAST_EXPLAINED) {
            is_in_run[run.rows.clone()].fill(true);
        }
        let mut is_of_a_revision = vec![false; matching.candidates.len()];
        for (_, path) in hints.line.split_whitespace().filter_map(|word| word.split_once(':')) {
            let path = path.trim_matches(|c: char| "\"';|&)".contains(c));
            matching.names.meant_by(path).into_iter().for_each(|file| is_of_a_revision[file] = true);
        }
        Self { matching, hints, is_in_run, is_of_a_revision }
    }

    fn is_seam(&self, above: &Counted, below: &Counted) -> bool {
        let is_told = above.is_numbered && below.is_numbered;
        !is_told && (above.run.rows.end..below.run.rows.start).any(|row| self.is_strange(row))
    }

    /// Whether nothing but another version of the file explains a row.
    fn is_strange(&self, row: usize) -> bool {
        let text = self.matching.rows.row(row);
        let is_echo = || self.hints.echoes && self.hints.line.contains(text.trim());
        !self.is_in_run[row] && text != "--" && !is_echo() && !self.matching.names.is_heading(text)
    }
}
