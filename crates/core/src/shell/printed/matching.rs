//! Matches files with the remaining rows of an output, and decides which runs count for which file.

use std::{
    collections::{BinaryHeap, HashMap, HashSet},
    ops::Range,
};

use super::{
    Candidate, CandidateRank, CommandHints,
    file_lines::{FileLines, NONE, TextId, TextIds},
    hunks::take_hunks,
    json::take_json,
    names::CandidateNames,
    numbered::{NumberedRow, take_numbered},
    rows::{OutputRows, RowForm, number_in_front},
    runs::{PrintedRun, RunOrder, runs},
    seams::{SeenRun, without_seams},
};
use crate::lines::{LineNo, LineRange, LineSet};

/// A batch of candidates and the rows that are still unexplained.
pub(super) struct OutputMatching<'a> {
    pub(super) rows: &'a OutputRows,
    pub(super) candidates: &'a [Candidate<'a>],
    pub(super) names: CandidateNames<'a>,
    pub(super) used: &'a mut Vec<bool>,
    hints: &'a CommandHints,
    /// For each row, the file named by the nearest heading above it.
    pub(super) headings: Vec<Option<usize>>,
    /// For each row of a hunk, the file named by its header.
    hunk_files: Vec<Option<usize>>,
    pub(super) files: Vec<FileLines>,
    shown: Vec<LineSet>,
    /// Runs found without a number or a path. Their order must be that of the file.
    pieces: Vec<PrintedRun>,
    /// Runs found by their numbers, row by row.
    numbered: Vec<PrintedRun>,
}

/// The rows of the output in one form.
struct RowStream {
    form: StreamForm,
    ids: Vec<TextId>,
}

/// How the rows of a stream were reduced to lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamForm {
    Form(RowForm),
    /// Rows without the path of one candidate.
    PathOf(usize),
}

impl<'a> OutputMatching<'a> {
    pub(super) fn new(
        rows: &'a OutputRows,
        used: &'a mut Vec<bool>,
        hints: &'a CommandHints,
        candidates: &'a [Candidate<'a>],
    ) -> Self {
        let names = CandidateNames::of(candidates);
        let headings = names.headings(rows);
        let (hunk_files, shown) = (vec![None; rows.len()], vec![LineSet::new(); candidates.len()]);
        Self {
            rows,
            candidates,
            names,
            used,
            hints,
            headings,
            hunk_files,
            files: Vec::new(),
            shown,
            pieces: Vec::new(),
            numbered: Vec::new(),
        }
    }

    pub(super) fn lines(mut self) -> Vec<LineSet> {
        if self.candidates.is_empty() || self.used.iter().all(|used| *used) {
            return self.shown;
        }
        let rows = self.rows;
        let mut ids = TextIds::default();
        let in_front: Vec<Option<(Vec<usize>, &str)>> =
            (0..rows.len()).map(|row| self.names.in_front(rows.row(row)).filter(|_| !self.used[row])).collect();
        let numbered: Vec<NumberedRow<'_>> =
            (0..rows.len()).filter_map(|row| NumberedRow::of(row, rows.row(row), in_front[row].as_ref())).collect();
        for text in numbered.iter().flat_map(NumberedRow::texts) {
            ids.add(text.into());
        }
        let mut stream = |form: RowForm| {
            let id = |row: &'a str| form.line_of(row).map_or(NONE, |line| ids.add(line));
            RowStream { form: StreamForm::Form(form), ids: rows.iter().map(id).collect() }
        };
        let plain = stream(RowForm::Plain);
        let mut decorated: Vec<RowStream> = RowForm::DECORATED.into_iter().map(&mut stream).collect();
        decorated.extend(pathless(&in_front, &mut ids));
        self.files = self.candidates.iter().map(|candidate| FileLines::of(candidate.text, &ids)).collect();

        take_json(&mut self);
        take_hunks(&mut self);
        self.take_runs(&plain);
        take_numbered(&mut self, &numbered);
        decorated.iter().for_each(|stream| self.take_runs(stream));
        self.take_repeated(&plain);
        self.take_placed(&plain);
        self.count();
        self.shown
    }

    /// Takes a row whose number and text match a line; 0-based.
    pub(super) fn take_numbered_row(&mut self, row: usize, file: usize, line: usize) {
        self.used[row] = true;
        self.numbered.push(PrintedRun { file, rows: row..row + 1, line, order: RunOrder::Forward });
    }

    /// Assigns a row of a hunk to this file only.
    pub(super) fn belongs_to(&mut self, row: usize, file: usize) {
        self.hunk_files[row] = Some(file);
    }

    /// Counts a line as shown; 0-based.
    pub(super) fn show(&mut self, file: usize, line: usize) {
        self.shown[file].insert(LineRange::line(LineNo::at_index(line)));
    }

    /// Takes the runs of a stream that count, the longest first.
    fn take_runs(&mut self, stream: &RowStream) {
        let mut runs = self.trimmed(self.runs_of(stream), stream);
        self.part_at_edges(&mut runs, stream.form);
        let mut queue: BinaryHeap<QueuedRun> = runs.into_iter().map(QueuedRun).collect();
        while let Some(QueuedRun(run)) = queue.pop() {
            let mut group = vec![run];
            while queue.peek().is_some_and(|QueuedRun(next)| next.rows == group[0].rows) {
                group.extend(queue.pop().map(|QueuedRun(run)| run));
            }
            group.retain(|run| self.is_proof(run, stream.form));
            let Some(first) = group.first() else { continue };
            let free = self.free_parts(&first.rows);
            if free.len() != 1 || free[0] != first.rows {
                let parts = free.iter().flat_map(|rows| group.iter().map(|run| run.part(rows.clone())));
                queue.extend(parts.map(QueuedRun));
                continue;
            }
            for run in self.meant(group) {
                self.take(&run, stream.form);
            }
        }
    }

    fn runs_of(&self, stream: &RowStream) -> Vec<PrintedRun> {
        let files: Vec<usize> = match stream.form {
            StreamForm::PathOf(file) => vec![file],
            StreamForm::Form(_) => (0..self.files.len()).collect(),
        };
        let mut found = Vec::new();
        for file in files {
            let is_free = |row: usize| !self.used[row] && self.hunk_files[row].is_none_or(|owner| owner == file);
            let ids: Vec<TextId> = stream.ids.iter().enumerate().map(|(row, id)| if is_free(row) { *id } else { NONE }).collect();
            found.extend(runs(&ids, file, &self.files[file], RunOrder::Forward));
            if stream.form == StreamForm::Form(RowForm::Plain) {
                found.extend(runs(&ids, file, &self.files[file], RunOrder::Backward).into_iter().filter(|run| run.len() >= 3));
            }
        }
        if stream.form == StreamForm::Form(RowForm::Renumbered) {
            found = found.into_iter().flat_map(|run| self.numbered_in_a_row(&run)).collect();
        }
        found.retain(|run| self.is_proof(run, stream.form));
        found
    }

    /// The parts of a run whose numbers increase by one from row to row. Rows without a number may lie between them.
    fn numbered_in_a_row(&self, run: &PrintedRun) -> Vec<PrintedRun> {
        let mut parts: Vec<(Range<usize>, usize)> = Vec::new();
        let mut last = None;
        for row in run.rows.clone() {
            let number = number_in_front(self.rows.row(row)).map(|(number, _)| number);
            let continues = number.is_none() || last.is_none_or(|last: u32| Some(last + 1) == number);
            match parts.last_mut().filter(|_| continues) {
                Some((rows, numbers)) => (rows.end, *numbers) = (row + 1, *numbers + usize::from(number.is_some())),
                None => parts.push((row..row + 1, usize::from(number.is_some()))),
            }
            last = number.or(last);
        }
        parts.into_iter().filter(|(_, numbers)| *numbers >= 2).map(|(rows, _)| run.part(rows)).collect()
    }

    /// Whether a run can only be these lines of its file.
    fn is_proof(&self, run: &PrintedRun, form: StreamForm) -> bool {
        let lines = &self.files[run.file];
        let least = match (run.len(), form) {
            (_, StreamForm::PathOf(_)) => 1,
            (1, _) => 4,
            _ => 2,
        };
        let unique = || run.lines().filter(|line| lines.is_unique(*line, least)).count();
        let worded = || run.lines().filter(|line| lines.has_words(*line, 2)).count();
        if run.order == RunOrder::Backward {
            return run.len() >= 3 && unique() >= 2;
        }
        if self.candidates[run.file].rank == CandidateRank::Recent {
            return worded() >= 3 && unique() >= 1;
        }
        // A text in the command itself proves nothing about a file.
        let is_echo = || self.hints.echoes && run.len() == 1 && self.hints.line.contains(self.rows.row(run.rows.start));
        let is_whole = run.len() == lines.len() && worded() > 0;
        let has_some = || worded() > 0 || run.len() > 2 && run.lines().any(|line| lines.has_words(line, 1));
        is_whole || unique() > 0 && !is_echo() || run.len() > 1 && has_some() && self.occurs_once(run)
    }

    /// Whether the file contains the lines of a run in no other place.
    fn occurs_once(&self, run: &PrintedRun) -> bool {
        let lines = &self.files[run.file];
        let Some(row) = run.rows.clone().min_by_key(|row| lines.places(lines.ids[run.line_at(*row)]).len()) else { return false };
        let (seed, before) = (run.line_at(row), row - run.rows.start);
        let block = &lines.ids[run.line..run.line + run.len()];
        let is_same = |place: &&usize| place.checked_sub(before).is_some_and(|start| lines.ids[start..].starts_with(block));
        let places = lines.places(lines.ids[seed]);
        places.len() <= 4 && places.iter().filter(is_same).count() == 1
    }

    /// Trims rows at the edges of runs that another program may have printed: separators, and the empty lines of
    /// `echo`.
    fn trimmed(&self, runs: Vec<PrintedRun>, stream: &RowStream) -> Vec<PrintedRun> {
        let is_foreign = |row: usize| match self.rows.row(row) {
            "--" => true,
            "" | "---" => self.hints.echoes,
            _ => false,
        };
        let trim = |run: PrintedRun| {
            let mut rows = self.rows_by_number(&run);
            while rows.start < rows.end && rows.start > 0 && is_foreign(rows.start) && !self.is_start(run.line_at(rows.start)) {
                rows.start += 1;
            }
            let is_end = |row: usize| row + 1 == self.rows.len() || self.is_end(run.file, run.line_at(row));
            while rows.start < rows.end && is_foreign(rows.end - 1) && !is_end(rows.end - 1) {
                rows.end -= 1;
            }
            (!rows.is_empty()).then(|| run.part(rows))
        };
        match stream.form {
            StreamForm::Form(RowForm::Plain) => runs.into_iter().filter_map(trim).collect(),
            StreamForm::Form(_) | StreamForm::PathOf(_) => runs,
        }
    }

    /// The rows of a run without those at its ends that lie beyond a line number in the command. Such rows may belong
    /// to another part, unless the file has them once.
    fn rows_by_number(&self, run: &PrintedRun) -> Range<usize> {
        const MOST: usize = 3;
        let is_unique = |row: usize| self.files[run.file].is_unique(run.line_at(row), 2);
        let mut rows = run.rows.clone();
        if run.order == RunOrder::Backward {
            return rows;
        }
        let shift = (0..=MOST.min(run.len() - 1)).find(|by| self.is_start(run.line_at(rows.start + by)));
        if let Some(by) = shift.filter(|by| !(rows.start..rows.start + by).any(is_unique)) {
            rows.start += by;
        }
        let shift = (0..=MOST.min(rows.len() - 1)).find(|by| self.is_end(run.file, run.line_at(rows.end - 1 - by)));
        if let Some(by) = shift.filter(|by| !(rows.end - by..rows.end).any(is_unique)) {
            rows.end -= by;
        }
        rows
    }

    /// Whether a part of a file may start at this line, which is 0-based.
    fn is_start(&self, line: usize) -> bool {
        line == 0 || self.hints.has(line + 1)
    }

    /// Whether a part of a file may end before this line, which is 0-based.
    fn is_end(&self, file: usize, line: usize) -> bool {
        line + 1 == self.files[file].len() || self.hints.has(line + 1)
    }

    /// Separates two runs that overlap because the end of one equals the text before the other (`}`, say). If the
    /// command does not show where a part ends, neither run gets these rows.
    fn part_at_edges(&self, runs: &mut [PrintedRun], form: StreamForm) {
        runs.sort_by_key(|run| (run.rows.start, std::cmp::Reverse(run.rows.end), self.candidates[run.file].rank));
        // The first run represents all runs with the same rows. A run inside another one is not at an edge.
        let mut edges: Vec<usize> = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            if edges.last().is_none_or(|last| run.rows.end > runs[*last].rows.end) && self.is_proof(run, form) {
                edges.push(index);
            }
        }
        let mut cuts: Vec<Range<usize>> = edges.iter().map(|index| runs[*index].rows.clone()).collect();
        for at in 1..edges.len() {
            let (above, below) = (&runs[edges[at - 1]], &runs[edges[at]]);
            if above.rows.end > below.rows.start {
                (cuts[at - 1].end, cuts[at].start) = self.edge(above, below);
            }
        }
        let of_edges = edges.iter().map(|index| runs[*index].rows.clone()).zip(cuts);
        let cuts: HashMap<Range<usize>, Range<usize>> = of_edges.filter(|(_, cut)| !cut.is_empty()).collect();
        for run in runs {
            if let Some(cut) = cuts.get(&run.rows) {
                *run = run.part(cut.clone());
            }
        }
    }

    /// The end of the upper of two overlapping runs, and the start of the lower one.
    fn edge(&self, above: &PrintedRun, below: &PrintedRun) -> (usize, usize) {
        let overlap = below.rows.start..above.rows.end;
        let mut best = (0, overlap.start, overlap.end);
        for row in overlap.start..=overlap.end {
            let ends = row > above.rows.start && self.is_end(above.file, above.line_at(row - 1));
            let begins = row < below.rows.end && self.is_start(below.line_at(row));
            let score = usize::from(ends) + usize::from(begins);
            if score > best.0 {
                best = (score, row, row);
            }
        }
        (best.1, best.2)
    }

    fn free_parts(&self, rows: &Range<usize>) -> Vec<Range<usize>> {
        contiguous(rows.clone().filter(|row| !self.used[*row]))
    }

    /// The runs whose files were printed, of several runs with the same rows.
    fn meant(&self, mut group: Vec<PrintedRun>) -> Vec<PrintedRun> {
        if let Some(named) = self.headings[group[0].rows.start].filter(|named| group.iter().any(|run| run.file == *named)) {
            group.retain(|run| run.file == named);
            return group;
        }
        let best = group.iter().map(|run| self.candidates[run.file].rank).min();
        group.retain(|run| Some(self.candidates[run.file].rank) == best);
        if best != Some(CandidateRank::Named) && group.iter().any(|run| run.file != group[0].file) {
            group.clear();
        }
        group
    }

    fn take(&mut self, run: &PrintedRun, form: StreamForm) {
        run.rows.clone().for_each(|row| self.used[row] = true);
        // The pieces of a diff follow the history, and a path proves that a search printed the row.
        let is_in_order = matches!(form, StreamForm::Form(RowForm::Marked) | StreamForm::PathOf(_));
        if is_in_order || run.order == RunOrder::Backward {
            run.lines().for_each(|line| self.show(run.file, line));
        } else {
            self.pieces.push(run.clone());
        }
    }

    /// Takes lines that occur several times in their files and were printed as often.
    fn take_repeated(&mut self, plain: &RowStream) {
        let mut printed: HashMap<TextId, Vec<usize>> = HashMap::new();
        for (row, id) in plain.ids.iter().enumerate().filter(|(row, _)| !self.used[*row]) {
            printed.entry(*id).or_default().push(row);
        }
        let taken: Vec<LineSet> = self.shown_so_far();
        let mut places: HashMap<TextId, Vec<(usize, usize)>> = HashMap::new();
        for (file, lines) in self.files.iter().enumerate().filter(|(file, _)| self.candidates[*file].rank == CandidateRank::Named)
        {
            for (id, all) in lines.shared().filter(|(id, _)| printed.contains_key(id)) {
                let open =
                    all.iter().filter(|line| !taken[file].contains(LineNo::at_index(**line)) && lines.has_words(**line, 2));
                places.entry(id).or_default().extend(open.map(|line| (file, *line)));
            }
        }
        for (id, places) in places {
            let rows = &printed[&id];
            if rows.len() != places.len() || rows.len() < 2 {
                continue;
            }
            for (row, (file, line)) in rows.iter().zip(places) {
                self.used[*row] = true;
                self.pieces.push(PrintedRun { file, rows: *row..row + 1, line, order: RunOrder::Forward });
            }
        }
    }

    /// The lines that count so far, including pieces that are not settled yet.
    fn shown_so_far(&self) -> Vec<LineSet> {
        let mut shown = self.shown.clone();
        for piece in self.pieces.iter().chain(&self.numbered) {
            shown[piece.file].extend_with(piece);
        }
        shown
    }

    /// Takes blocks that fit in several places, if a number in the command selects one.
    fn take_placed(&mut self, plain: &RowStream) {
        let taken = self.shown_so_far();
        for file in (0..self.files.len()).filter(|file| self.candidates[*file].rank == CandidateRank::Named) {
            for rows in self.segments(plain, file) {
                let lines = &self.files[file];
                let block = &plain.ids[rows.clone()];
                let mut starts: Vec<usize> = self.likely_starts(file, block.len());
                starts.retain(|start| lines.ids[*start..].starts_with(block));
                starts.retain(|start| !taken[file].contains(LineNo::at_index(*start)));
                let is_blank = rows.clone().all(|row| self.rows.row(row).trim().is_empty());
                let is_anothers = self.headings[rows.start].is_some_and(|named| named != file);
                if let ([start], false) = (starts.as_slice(), is_blank || is_anothers) {
                    self.take(&PrintedRun { file, rows, line: *start, order: RunOrder::Forward }, plain.form);
                }
            }
        }
    }

    /// The lines where a block of this length may start, because it starts or ends at a number in the command.
    fn likely_starts(&self, file: usize, length: usize) -> Vec<usize> {
        let total = self.files[file].len();
        let mut starts = vec![0];
        starts.extend(self.hints.numbers.iter().filter_map(|number| number.checked_sub(1)));
        starts.extend(self.hints.numbers.iter().filter_map(|number| number.checked_sub(length)));
        starts.extend(total.checked_sub(length).filter(|_| self.hints.reaches_end));
        starts.retain(|start| start + length <= total);
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Contiguous free rows that are lines of a file.
    fn segments(&self, plain: &RowStream, file: usize) -> Vec<Range<usize>> {
        let is_line = |row: &usize| !self.used[*row] && !self.files[file].places(plain.ids[*row]).is_empty();
        contiguous((0..plain.ids.len()).filter(is_line))
    }

    /// Whether the rows of these pieces are sorted, up or down, by bytes or alphabetically.
    fn is_sorted(&self, pieces: &[&PrintedRun]) -> bool {
        let rows: Vec<String> = pieces.iter().map(|piece| self.rows.row(piece.rows.start).to_owned()).collect();
        let keys: Vec<String> = rows.iter().map(|row| sort_key(row)).collect();
        [rows, keys].iter().any(|texts| {
            let pairs = || texts.windows(2).filter(|pair| pair[0] != pair[1]);
            let (all, up) = (pairs().count(), pairs().filter(|pair| pair[0] < pair[1]).count());
            all > 1 && (up * 10 >= all * 9 || up * 10 <= all)
        })
    }

    /// Counts the runs that were found, without the lines beside a seam.
    fn count(&mut self) {
        let numbered = std::mem::take(&mut self.numbered).into_iter().map(|run| SeenRun { run, is_numbered: true });
        let pieces = self.ordered_pieces().into_iter().map(|run| SeenRun { run, is_numbered: false });
        for run in without_seams(self, self.hints, pieces.chain(numbered).collect()) {
            self.shown[run.file].extend_with(&run);
        }
    }

    /// The pieces, without short pieces of a file that were printed out of order.
    fn ordered_pieces(&mut self) -> Vec<PrintedRun> {
        const SHORT: usize = 4;
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.sort_by_key(|piece| (piece.file, piece.rows.start));
        let mut ordered = Vec::new();
        for of_file in pieces.chunk_by(|a, b| a.file == b.file) {
            // Repeated rows give no further information about the order.
            let mut known = HashSet::new();
            let short: Vec<&PrintedRun> =
                of_file.iter().filter(|piece| piece.len() < SHORT && known.insert(piece.line)).collect();
            let ascending = short.windows(2).filter(|pair| pair[0].line < pair[1].line).count();
            let is_ordered = match short.len() {
                0..3 => true,
                count if ascending + 1 == count => true,
                count => ascending * 4 >= (count - 1) * 3 && !self.is_sorted(&short),
            };
            ordered.extend(of_file.iter().filter(|piece| is_ordered || piece.len() >= SHORT).cloned());
        }
        ordered
    }
}

/// Joins ascending rows into ranges of adjacent rows.
fn contiguous(rows: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for row in rows {
        match ranges.last_mut().filter(|range| range.end == row) {
            Some(range) => range.end = row + 1,
            None => ranges.push(row..row + 1),
        }
    }
    ranges
}

/// The key by which most languages sort a row.
fn sort_key(row: &str) -> String {
    row.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The rows that start with a path, for each candidate that matches it, without the path and its separator.
fn pathless<'r>(in_front: &[Option<(Vec<usize>, &'r str)>], ids: &mut TextIds<'r>) -> Vec<RowStream> {
    let mut streams: HashMap<usize, Vec<TextId>> = HashMap::new();
    for (row, (meant, rest)) in in_front.iter().enumerate().filter_map(|(row, found)| Some((row, found.as_ref()?))) {
        let id = ids.add(rest[1..].into());
        for file in meant {
            streams.entry(*file).or_insert_with(|| vec![NONE; in_front.len()])[row] = id;
        }
    }
    let mut streams: Vec<(usize, Vec<TextId>)> = streams.into_iter().collect();
    streams.sort_by_key(|(file, _)| *file);
    streams.into_iter().map(|(file, ids)| RowStream { form: StreamForm::PathOf(file), ids }).collect()
}

/// Orders runs: the longest first, then the upper one.
#[derive(PartialEq, Eq)]
struct QueuedRun(PrintedRun);

impl Ord for QueuedRun {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |queued: &Self| (queued.0.len(), std::cmp::Reverse((queued.0.rows.start, queued.0.file, queued.0.line)));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for QueuedRun {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl LineSet {
    fn extend_with(&mut self, piece: &PrintedRun) {
        let first = piece.lines().min().unwrap_or_default();
        LineRange::from_indexes(first..first + piece.len()).into_iter().for_each(|range| self.insert(range));
    }
}
