//! Decides which lines a search shows, and which it only counts.

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

/// A line that matches the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The number of the line.
    pub line: LineNo,
    /// The byte range of the first match in the line.
    pub at: Range<usize>,
}

/// The form in which matches are shown.
#[derive(Debug, Clone, Copy)]
pub struct SearchDisplay<'a> {
    /// Whether the lines are shown with anchors.
    pub numbers: LineNumbers,
    /// The number of lines before and after each match.
    pub context: usize,
    /// The maximum number of matches that are shown.
    pub limit: usize,
    /// The limits on rows, bytes and the length of a line.
    pub limits: &'a Limits,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The pattern that was searched for.
    pub pattern: String,
    /// The files that were searched.
    pub scope: SearchScope,
    /// The files with matches that are shown.
    pub files: Vec<FileMatches>,
    /// The files with matches that are not shown, each with the number of matches.
    pub left: Vec<(RelPath, usize)>,
    /// The number of matching lines, shown or not.
    pub hits: usize,
    /// The number of files with a match.
    pub files_with_hits: usize,
    /// The number of files that were searched.
    pub searched: usize,
    /// The number of binary files that were skipped.
    pub binary: usize,
    /// Files that could not be searched or shown.
    pub left_out: SkippedFiles,
    /// Whether the lines are shown with anchors.
    pub numbers: LineNumbers,
    /// Whether lines around the matches are shown, too.
    pub has_context: bool,
    /// A line with more characters is truncated.
    pub line_chars: usize,
}

/// The matches in one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileMatches {
    /// The name under which the file was found.
    pub found_at: RelPath,
    /// The canonical path of the file.
    pub path: RelPath,
    /// The content of the file.
    pub text: Text,
    /// The number of matching lines, shown or not.
    pub matches: usize,
    /// The matching lines that are shown.
    pub shown_matches: LineSet,
    /// The lines that are shown, in order.
    pub rows: Vec<MatchRow>,
    /// All lines that are shown, including truncated ones.
    pub lines: LineSet,
    /// The lines that are shown in full. Only these count as seen.
    pub full: LineSet,
}

/// A line in the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchRow {
    /// The number of the line.
    pub line: LineNo,
    /// The excerpt that is shown, if the line is too long.
    pub cut: Option<CutLine>,
}

/// An excerpt of a line that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutLine {
    /// The excerpt, with a note of how much is omitted.
    pub text: String,
    /// Whether it starts after the start of the line, because the match is further on.
    pub is_inside: bool,
    /// Whether it ends before the end of the line.
    pub goes_on: bool,
}

/// Collects files in order until the limits are reached. Matches in later files are only counted.
#[derive(Debug)]
pub struct MatchCollector<'a> {
    show: SearchDisplay<'a>,
    rows: usize,
    bytes: usize,
    is_full: bool,
    shown: usize,
    found: SearchResult,
}

impl<'a> MatchCollector<'a> {
    /// A collector for a search of this pattern in this scope.
    pub fn new(show: SearchDisplay<'a>, pattern: String, scope: SearchScope) -> Self {
        let found = SearchResult {
            pattern,
            scope,
            files: Vec::new(),
            left: Vec::new(),
            hits: 0,
            files_with_hits: 0,
            searched: 0,
            binary: 0,
            left_out: SkippedFiles::default(),
            numbers: show.numbers,
            has_context: show.context > 0,
            line_chars: show.limits.line_chars,
        };
        Self { show, rows: 0, bytes: 0, is_full: false, shown: 0, found }
    }

    /// Whether no further match will be shown.
    pub fn is_full(&self) -> bool {
        self.is_full || self.shown >= self.show.limit
    }

    /// Adds the matches of a file, which are sorted, as far as there is room. Does nothing without matches. Returns the
    /// part that is shown of the file, if any.
    pub fn add(&mut self, found_at: &RelPath, path: &RelPath, text: &Text, hits: &[SearchHit]) -> Option<&FileMatches> {
        let rows = self.rows_of(text, hits);
        let lines: LineSet = rows.iter().map(|row| LineRange::line(row.line)).collect();
        let is_shown = |hit: &&SearchHit| lines.contains(hit.line);
        let shown_matches: LineSet = hits.iter().filter(is_shown).map(|hit| LineRange::line(hit.line)).collect();
        let shown = shown_matches.count() as usize;
        if shown < hits.len() {
            self.found.left.push((found_at.clone(), hits.len() - shown));
        }
        self.found.hits += hits.len();
        self.found.files_with_hits += usize::from(!hits.is_empty());
        if shown == 0 {
            return None;
        }
        self.shown += shown;
        // An estimate of the rows above and below the lines of a file.
        self.bytes += found_at.as_str().len() + 40;
        let full = rows.iter().filter(|row| row.cut.is_none()).map(|row| LineRange::line(row.line)).collect();
        let (found_at, path, text, matches) = (found_at.clone(), path.clone(), text.clone(), hits.len());
        self.found.files.push(FileMatches { found_at, path, text, matches, shown_matches, rows, lines, full });
        self.found.files.last()
    }

    /// Counts the matches of a file that is not shown.
    pub fn leave(&mut self, path: &RelPath, hits: usize) {
        self.found.hits += hits;
        self.found.files_with_hits += 1;
        self.found.left.push((path.clone(), hits));
    }

    /// The result so far. The caller adds the numbers of files that were searched and skipped.
    pub fn finish(self) -> SearchResult {
        self.found
    }

    /// The rows of a file that fit.
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

    /// The lines of these matches with their context.
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
    /// The number of matching lines that are shown.
    pub fn shown(&self) -> usize {
        self.files.iter().map(|file| file.shown_matches.count() as usize).sum()
    }
}

/// An excerpt around the match if the line is too long; `None` if it is not.
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
