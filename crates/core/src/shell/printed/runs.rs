//! Runs: rows of an output that stand in the same order, one after the other, in a file.

use std::{collections::HashMap, ops::Range};

use super::file_lines::{FileLines, NONE, TextId};

/// Where a run may begin: at a line that the file has this often at most. Every run worth having holds one, and with few places for
/// each row the search is linear: a row lies only in runs that hold the nearest such row above or below it.
const MOST_PLACES: usize = 4;

/// Rows that are lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PrintedRun {
    /// Which of the candidates.
    pub(super) file: usize,
    pub(super) rows: Range<usize>,
    /// The line that the first row shows; 0-based.
    pub(super) line: usize,
    pub(super) order: Order,
}

/// In which order the lines were printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// As the file has them.
    Forward,
    /// From the last to the first (`tac`).
    Backward,
}

impl PrintedRun {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The line that a row of the run shows; 0-based.
    pub(super) fn line_at(&self, row: usize) -> usize {
        match self.order {
            Order::Forward => self.line + (row - self.rows.start),
            Order::Backward => self.line - (row - self.rows.start),
        }
    }

    /// Its lines, in the order in which they were printed.
    pub(super) fn lines(&self) -> impl Iterator<Item = usize> {
        self.rows.clone().map(|row| self.line_at(row))
    }

    /// The part of the run that lies in these rows, which are some of its rows.
    pub(super) fn part(&self, rows: Range<usize>) -> PrintedRun {
        PrintedRun { line: self.line_at(rows.start), rows, ..self.clone() }
    }
}

/// All runs of a stream of rows in a file, as long as they can be; [`NONE`] stands for rows that are no part of the stream.
pub(super) fn runs(stream: &[TextId], file: usize, lines: &FileLines, order: Order) -> Vec<PrintedRun> {
    let total = lines.len();
    // Backward is forward in the file turned around.
    let turned = |line: usize| if order == Order::Forward { line } else { total - 1 - line };
    let id_at = |index: usize| lines.ids[turned(index)];
    let mut runs = Vec::new();
    // Up to which row each diagonal has been looked at.
    let mut looked: HashMap<isize, usize> = HashMap::new();
    for (row, id) in stream.iter().enumerate().filter(|(_, id)| **id != NONE) {
        let places = lines.places(*id);
        if places.len() > MOST_PLACES {
            continue;
        }
        for line in places.iter().map(|line| turned(*line)) {
            let until = looked.entry(row as isize - line as isize).or_default();
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
