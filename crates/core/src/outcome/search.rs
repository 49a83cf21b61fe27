//! Which lines a search shows, and how many it only counts.

use std::ops::Range;

use super::{
    read::is_long,
    scope::{SearchScope, SkippedFiles},
};
use crate::{
    excerpt::clip,
    line_numbers::LineNumbers,
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    policy::Limits,
    text::Text,
};

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The line.
    pub line: LineNo,
    /// The bytes of the line that match first.
    pub at: Range<usize>,
}

/// How hits are shown.
#[derive(Debug, Clone, Copy)]
pub struct SearchDisplay<'a> {
    /// How lines are numbered.
    pub numbers: LineNumbers,
    /// How many lines before and after each hit.
    pub context: usize,
    /// How many hits.
    pub limit: usize,
    /// How many rows and bytes, and how much of one line.
    pub limits: &'a Limits,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// What was searched for.
    pub pattern: String,
    /// Where.
    pub scope: SearchScope,
    /// The files of which something is shown.
    pub files: Vec<FileMatches>,
    /// The files of which matches are not shown, with how many.
    pub left: Vec<(RelPath, usize)>,
    /// How many lines match, shown or not.
    pub hits: usize,
    /// In how many files.
    pub files_with_hits: usize,
    /// How many files were searched.
    pub searched: usize,
    /// How many were passed over because they are not text.
    pub binary: usize,
    /// What could not be searched or shown.
    pub left_out: SkippedFiles,
    /// How lines are numbered.
    pub numbers: LineNumbers,
    /// Whether lines around the hits are shown as well.
    pub has_context: bool,
    /// A line with more characters is cut.
    pub line_chars: usize,
}

/// The matches in one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileMatches {
    /// The file, by the name under which it was found.
    pub found_at: RelPath,
    /// The file, by the one spelling that it has.
    pub path: RelPath,
    /// What it holds.
    pub text: Text,
    /// How many lines match, shown or not.
    pub matches: usize,
    /// The lines that match and are shown.
    pub shown_matches: LineSet,
    /// The lines that are shown, in order.
    pub rows: Vec<MatchRow>,
    /// All of them, also those that are cut.
    pub lines: LineSet,
    /// Those that are there in full: these were seen.
    pub full: LineSet,
}

/// A line as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchRow {
    /// The line.
    pub line: LineNo,
    /// What is shown of it, if it is too long.
    pub cut: Option<CutLine>,
}

/// A piece of a line that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutLine {
    /// The piece, with how much is left out.
    pub text: String,
    /// Whether it does not begin where the line does, because what matches is further on.
    pub is_inside: bool,
    /// Whether it does not end where the line does.
    pub goes_on: bool,
}

/// Takes in files, in order, until there is no room for more; the others are counted.
#[derive(Debug)]
pub struct MatchCollector<'a> {
    show: SearchDisplay<'a>,
    rows: usize,
    bytes: usize,
    is_full: bool,
    shown: usize,
    hits: usize,
    files_with_hits: usize,
    files: Vec<FileMatches>,
    left: Vec<(RelPath, usize)>,
}

impl<'a> MatchCollector<'a> {
    /// One without any file.
    pub fn new(show: SearchDisplay<'a>) -> Self {
        let (files, left) = (Vec::new(), Vec::new());
        Self { show, rows: 0, bytes: 0, is_full: false, shown: 0, hits: 0, files_with_hits: 0, files, left }
    }

    /// Whether nothing more will be shown.
    pub fn is_full(&self) -> bool {
        self.is_full || self.shown >= self.show.limit
    }

    /// Adds the hits of a file, which are in order, as far as there is room for them. Without hits nothing happens. Gives what is
    /// shown of it, if anything is.
    pub fn add(&mut self, found_at: &RelPath, path: &RelPath, text: &Text, hits: &[SearchHit]) -> Option<&FileMatches> {
        let rows = self.rows_of(text, hits);
        let lines: LineSet = rows.iter().map(|row| LineRange::line(row.line)).collect();
        let is_shown = |hit: &&SearchHit| lines.contains(hit.line);
        let shown_matches: LineSet = hits.iter().filter(is_shown).map(|hit| LineRange::line(hit.line)).collect();
        let shown = shown_matches.count() as usize;
        if shown < hits.len() {
            self.left.push((found_at.clone(), hits.len() - shown));
        }
        self.hits += hits.len();
        self.files_with_hits += usize::from(!hits.is_empty());
        if shown == 0 {
            return None;
        }
        self.shown += shown;
        // About as much as stands above and below the lines of a file.
        self.bytes += found_at.as_str().len() + 40;
        let full = rows.iter().filter(|row| row.cut.is_none()).map(|row| LineRange::line(row.line)).collect();
        let (found_at, path, text, matches) = (found_at.clone(), path.clone(), text.clone(), hits.len());
        self.files.push(FileMatches { found_at, path, text, matches, shown_matches, rows, lines, full });
        self.files.last()
    }

    /// Counts the hits of a file that is not shown.
    pub fn leave(&mut self, path: &RelPath, hits: usize) {
        self.hits += hits;
        self.files_with_hits += 1;
        self.left.push((path.clone(), hits));
    }

    /// All of it.
    pub fn finish(
        self,
        pattern: String,
        scope: SearchScope,
        searched: usize,
        binary: usize,
        left_out: SkippedFiles,
    ) -> SearchResult {
        SearchResult {
            pattern,
            scope,
            files: self.files,
            left: self.left,
            hits: self.hits,
            files_with_hits: self.files_with_hits,
            searched,
            binary,
            left_out,
            numbers: self.show.numbers,
            has_context: self.show.context > 0,
            line_chars: self.show.limits.line_chars,
        }
    }

    /// The rows of a file, as far as there is room.
    fn rows_of(&mut self, text: &Text, hits: &[SearchHit]) -> Vec<MatchRow> {
        let limits = self.show.limits;
        let room = self.show.limit.saturating_sub(self.shown);
        let mut rows = Vec::new();
        for line in self.around(&hits[..hits.len().min(room)], text).iter() {
            let content = text.line(line);
            let hit = hits.binary_search_by_key(&line, |hit| hit.line).ok().map_or(0..0, |index| hits[index].at.clone());
            let cut = cut_around(content, hit, limits.line_chars);
            let length = cut.as_ref().map_or(content.len(), |cut| cut.text.len());
            if self.rows == limits.read_lines || (self.rows > 0 && self.bytes + length > limits.read_bytes) {
                self.is_full = true;
                break;
            }
            self.bytes += self.show.numbers.width(line) + length + 1;
            self.rows += 1;
            rows.push(MatchRow { line, cut });
        }
        rows
    }

    /// The lines of these hits with those around them.
    fn around(&self, hits: &[SearchHit], text: &Text) -> LineSet {
        let context = self.show.context;
        let around = |hit: &SearchHit| {
            let index = hit.line.index();
            LineRange::from_indexes(index.saturating_sub(context)..index.saturating_add(context).saturating_add(1))
        };
        hits.iter().filter_map(around).collect::<LineSet>().clipped(text.line_count())
    }
}

impl SearchResult {
    /// How many of the lines that match are shown.
    pub fn shown(&self) -> usize {
        self.files.iter().map(|file| file.shown_matches.count() as usize).sum()
    }
}

/// A line that is too long, cut so that what matches can be seen; `None` for one that is not.
fn cut_around(line: &str, hit: Range<usize>, chars: usize) -> Option<CutLine> {
    if !is_long(line, chars) {
        return None;
    }
    let (from, to) = (line.floor_char_boundary(hit.start), line.floor_char_boundary(hit.end));
    let before = line[..from].chars().count();
    if before + line[from..to.max(from)].chars().count() <= chars {
        return Some(CutLine { text: clip(line, chars), is_inside: false, goes_on: true });
    }
    let skipped = before.saturating_sub(chars / 4).min(line.chars().count() - chars);
    let start = line.char_indices().nth(skipped).map_or(0, |(at, _)| at);
    let goes_on = is_long(&line[start..], chars);
    Some(CutLine { text: format!("[+{skipped} chars]…{}", clip(&line[start..], chars)), is_inside: true, goes_on })
}
