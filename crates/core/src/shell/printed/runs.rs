//! Runs: consecutive rows of an output that are consecutive lines of a file.

use std::{collections::HashMap, ops::Range};

use super::file_lines::{FileLines, NONE, TextId};

/// A run may start at a line that occurs at most this often in the file. Every useful run contains such a line, and
/// because each row has few places, the search is linear: a row can only be in runs with the nearest such row above or
/// below it.
const MOST_PLACES: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PrintedRun {
    /// The index of the candidate.
    pub(super) file: usize,
    pub(super) rows: Range<usize>,
    /// The line of the first row; 0-based.
    pub(super) line: usize,
    pub(super) order: RunOrder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunOrder {
    /// From the first line to the last.
    Forward,
    /// From the last line to the first (`tac`).
    Backward,
}

impl PrintedRun {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The line of a row of the run; 0-based.
    pub(super) fn line_at(&self, row: usize) -> usize {
        match self.order {
            RunOrder::Forward => self.line + (row - self.rows.start),
            RunOrder::Backward => self.line - (row - self.rows.start),
        }
    }

    /// The lines of the run, in the order in which they were printed.
    pub(super) fn lines(&self) -> impl Iterator<Item = usize> {
        self.rows.clone().map(|row| self.line_at(row))
    }

    /// The part of the run in these rows, which must be rows of the run.
    pub(super) fn part(&self, rows: Range<usize>) -> PrintedRun {
        PrintedRun { line: self.line_at(rows.start), rows, ..self.clone() }
    }
}

/// The longest runs of a stream of rows in a file. [`NONE`] marks rows that are not part of the stream.
pub(super) fn runs(stream: &[TextId], file: usize, lines: &FileLines, order: RunOrder) -> Vec<PrintedRun> {
    let total = lines.len();
    // A backward run is a forward run in the reversed file.
    let turned = |line: usize| if order == RunOrder::Forward { line } else { total - 1 - line };
    let id_at = |index: usize| lines.ids[turned(index)];
    let mut runs = Vec::new();
    // The row up to which each diagonal has been searched.
    let mut searched: HashMap<isize, usize> = HashMap::new();
    for (row, id) in stream.iter().enumerate().filter(|(_, id)| **id != NONE) {
        let places = lines.places(*id);
        if places.len() > MOST_PLACES {
            continue;
        }
        for line in places.iter().map(|line| turned(*line)) {
            let until = searched.entry(row as isize - line as isize).or_default();
            if *until > row {
                continue;
            }
            let back = (1..=row.min(line))
                .take_while(|by| row - by >= *until && stream[row - by] != NONE && stream[row - by] == id_at(line - by));
            let back = back.count();
            let further = (1..(stream.len() - row).min(total - line))
                .take_while(|by| stream[row + by] != NONE && stream[row + by] == id_at(line + by));
            let end = row + further.count() + 1;
            *until = end;
            runs.push(PrintedRun { file, rows: row - back..end, line: turned(line - back), order });
        }
    }
    runs
}
