//! Rows with a line number: `cat -n`, `grep -n`, `git blame`, code frames of compilers, with a path before the number
//! or a heading above it. The number gives the line, so only its text has to be compared.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use super::{CandidateRank, matching::OutputMatching, rows::leading_number};
use crate::lines::LineNo;

/// Characters that may separate a number from the line.
const GAP: &str = " \t:-=|│┃)>.";
const LONGEST_GAP: usize = 6;
/// More blanks than this at the end of a gap are the indentation of another version of the line.
const MOST_BLANKS: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberedRow<'r> {
    pub(super) row: usize,
    pub(super) line: usize,
    /// The text after the number: the gap and the line.
    pub(super) rest: &'r str,
    /// The candidates that match the path before the number; `None` without a path.
    pub(super) meant: Option<Vec<usize>>,
}

impl<'r> NumberedRow<'r> {
    /// The number of a row, alone or after a path that matches the candidates `meant`.
    pub(super) fn of(row: usize, shown: &'r str, in_front: Option<&(Vec<usize>, &'r str)>) -> Option<Self> {
        let by_path = in_front.and_then(|(meant, rest)| {
            let (number, rest) = leading_number(&rest[1..])?;
            Some((number, rest, Some(meant.clone())))
        });
        let (number, rest, meant) = by_path
            .or_else(|| blame_row(shown).map(|(number, rest)| (number, rest, None)))
            .or_else(|| leading_number(without_marker(shown)).map(|(number, rest)| (number, rest, None)))?;
        Some(Self { row, line: LineNo::new(number)?.index(), rest, meant })
    }

    /// The possible texts of the line, one for each width of the gap.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'r str> {
        let rest = self.rest;
        let gap = rest.char_indices().take(LONGEST_GAP).take_while(|(_, c)| GAP.contains(*c));
        gap.map(move |(at, c)| &rest[at + c.len_utf8()..])
    }
}

/// Removes the mark of the line that a code frame is about: `> 12 | text`.
fn without_marker(row: &str) -> &str {
    let row = row.trim_start_matches([' ', '\t']);
    row.strip_prefix(['>', '→', '*', '❱']).unwrap_or(row).trim_start_matches(' ')
}

/// `git blame`: `3f2a1b9c (Some Body 2026-01-01 12:00:00 +0000 12) text`, or with `-s` `3f2a1b9c 12) text`.
fn blame_row(row: &str) -> Option<(u32, &str)> {
    let (commit, rest) = row.split_once(' ')?;
    let is_commit = commit.len() >= 7 && commit.trim_start_matches('^').bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some((number, rest)) =
        leading_number(rest.trim_start_matches(' ')).filter(|(_, rest)| is_commit && rest.starts_with(')'))
    {
        return Some((number, rest));
    }
    let (_, rest) = rest.split_once('(').filter(|_| is_commit)?;
    let (about, _) = rest.split_once(')')?;
    let number = about.rsplit_once(' ').map_or(about, |(_, number)| number);
    Some((number.parse().ok()?, &rest[about.len()..]))
}

/// A row whose number and text match a line.
#[derive(Debug, Clone, Copy)]
struct NumberedMatch<'r> {
    row: usize,
    file: usize,
    line: usize,
    gap: &'r str,
    /// Whether a path before the number or a heading names the file.
    is_named: bool,
    is_blank: bool,
}

/// Rows that one program printed with the same separator: one family per file and kind of row.
type Family = (usize, bool, Option<char>);

impl NumberedMatch<'_> {
    fn family(&self) -> Family {
        (self.file, self.is_named, self.gap.chars().next())
    }
}

/// Counts numbered rows, in blocks that are contiguous in the output and in the file.
pub(super) fn take_numbered(matching: &mut OutputMatching<'_>, rows: &[NumberedRow<'_>]) {
    let rows: Vec<&NumberedRow<'_>> = rows.iter().filter(|row| !matching.used[row.row]).collect();
    let fits = with_one_gap(rows.iter().flat_map(|row| fits_of(matching, row)).collect());
    let unnamed = rows.iter().filter(|row| row.meant.is_none()).count();
    let explained: HashSet<usize> = fits.iter().map(|fit| fit.row).collect();
    let strange = rows.iter().filter(|row| row.meant.is_none() && !explained.contains(&row.row)).count();
    let trust = MatchShare { most: strange * 2 <= unnamed, nearly_all: strange * 10 <= unnamed };
    let mut blocks: Vec<Vec<NumberedMatch<'_>>> = blocks(fits);
    blocks.retain(|block| counts(matching, block, trust));
    // The longest block claims its rows, so that a file that shares some of its lines does not get them too.
    blocks.sort_by_key(|block| Reverse(block.len()));
    let mut taken_by: HashMap<usize, usize> = HashMap::new();
    for block in blocks {
        for fit in &block {
            if *taken_by.entry(fit.row).or_insert(block.len()) == block.len() {
                matching.take_numbered_row(fit.row, fit.file, fit.line);
            }
        }
    }
}

/// How many of the numbered rows without a path match a file. The counts of `uniq -c` match some lines by coincidence.
#[derive(Clone, Copy)]
struct MatchShare {
    most: bool,
    nearly_all: bool,
}

fn fits_of<'r>(matching: &OutputMatching<'_>, numbered: &NumberedRow<'r>) -> Vec<NumberedMatch<'r>> {
    let fit = |file: usize, is_named: bool| {
        let line = matching.candidates[file].text.line(LineNo::at_index(numbered.line));
        let exists = numbered.line < matching.candidates[file].text.line_count();
        let gap = numbered.rest.strip_suffix(line).filter(|gap| exists && is_gap(gap))?;
        Some(NumberedMatch { row: numbered.row, file, line: numbered.line, gap, is_named, is_blank: line.is_empty() })
    };
    if let Some(meant) = &numbered.meant {
        return meant.iter().find_map(|file| fit(*file, true)).into_iter().collect();
    }
    let headed = matching.headings[numbered.row].and_then(|file| fit(file, true));
    match headed {
        Some(fit) => vec![fit],
        None => (0..matching.candidates.len()).filter_map(|file| fit(file, false)).collect(),
    }
}

fn is_gap(gap: &str) -> bool {
    let column = gap.strip_prefix(':').and_then(|rest| leading_number(rest)).is_some_and(|(_, rest)| rest == ":");
    let blanks = gap.bytes().rev().take_while(|byte| *byte == b' ').count();
    let is_plain = gap.chars().count() <= LONGEST_GAP && blanks <= MOST_BLANKS && gap.chars().all(|c| GAP.contains(c));
    !gap.is_empty() && (is_plain || column)
}

/// Keeps the matches with the most common gap of their family. A different gap includes indentation that the line does
/// not have.
fn with_one_gap(mut fits: Vec<NumberedMatch<'_>>) -> Vec<NumberedMatch<'_>> {
    let mut gaps: HashMap<Family, HashMap<&str, usize>> = HashMap::new();
    for fit in fits.iter().filter(|fit| !fit.is_blank) {
        *gaps.entry(fit.family()).or_default().entry(gap_kind(fit.gap)).or_default() += 1;
    }
    let usual: HashMap<Family, &str> = gaps
        .into_iter()
        .filter_map(|(family, gaps)| {
            let most = gaps.into_iter().max_by_key(|(gap, count)| (*count, Reverse(gap.len())));
            most.map(|(gap, _)| (family, gap))
        })
        .collect();
    fits.retain(|fit| match usual.get(&fit.family()) {
        // Programs and clients trim the separator after the number of an empty line.
        Some(usual) => gap_kind(fit.gap) == *usual || fit.is_blank && fit.gap == usual.trim_end(),
        // `grep` prints `-` after the number of a context line, and all of these may be empty.
        None => fit.is_blank && (fit.is_named || fit.gap == "-"),
    });
    fits
}

/// A column number differs from row to row.
fn gap_kind(gap: &str) -> &str {
    if gap.bytes().any(|byte| byte.is_ascii_digit()) { ":column:" } else { gap }
}

/// Groups matches that are contiguous in the output and in the file.
fn blocks(mut fits: Vec<NumberedMatch<'_>>) -> Vec<Vec<NumberedMatch<'_>>> {
    fits.sort_by_key(|fit| (fit.file, fit.row));
    let follows = |a: &NumberedMatch<'_>, b: &NumberedMatch<'_>| a.file == b.file && a.row + 1 == b.row && a.line + 1 == b.line;
    fits.chunk_by(follows).map(<[NumberedMatch<'_>]>::to_vec).collect()
}

/// Whether a block is certain: its file is named, its lines identify their place, or all numbered rows match this file.
fn counts(matching: &OutputMatching<'_>, block: &[NumberedMatch<'_>], trust: MatchShare) -> bool {
    let (file, lines) = (block[0].file, &matching.files[block[0].file]);
    let worded = block.iter().filter(|fit| lines.has_words(fit.line, 2)).count();
    if block.iter().any(|fit| fit.is_named) {
        return true;
    }
    match matching.candidates[file].rank {
        CandidateRank::Recent => worded >= 3,
        CandidateRank::Named | CandidateRank::Possible => {
            let is_unique = || block.iter().any(|fit| lines.is_unique(fit.line, 2));
            trust.nearly_all || (worded >= 2 || trust.most) && is_unique()
        }
    }
}
