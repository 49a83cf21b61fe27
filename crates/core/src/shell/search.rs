//! The lines that `grep` and `rg` found, as their output tells. A line with a number must be the line with that number; one
//! without may be any line that reads so, unless lines around a match were asked for: then a group of them must be in one place.

use std::{borrow::Cow, collections::HashMap};

use super::{
    Names, Reading, Search, What,
    seen::{Files, reads_so},
};
use crate::{
    lines::LineNo,
    text::{Ending, Text},
};

/// A line of a file that the output shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Found {
    /// Which of the files.
    pub file: usize,
    pub line: LineNo,
}

/// What the searches among the readings have shown, in the lines of the output that are nothing else (`None` for the others).
pub(super) fn found(readings: &[Reading], files: &Files, shown: &[Option<&str>]) -> Vec<Found> {
    let searches = readings.iter().filter_map(|reading| match &reading.what {
        What::Search(search) => Some((reading, *search)),
        _ => None,
    });
    let mut claims: Vec<Vec<Found>> = vec![Vec::new(); shown.len()];
    for (reading, search) in searches {
        let claimed = claimed(reading, search, files, shown);
        if search.numbers {
            for (all, claims) in claims.iter_mut().zip(&claimed) {
                all.extend(claims.iter().filter_map(|claim| claim.numbered(search)));
            }
        } else if search.names != Names::Hidden || readings.len() == 1 {
            // Without numbers and names any line of any other program could be one of these.
            by_text(&claimed, search, &mut claims);
        }
    }
    // A line that fits two files is a line of one of them, and we do not know of which.
    let of_one_file = |claims: &Vec<Found>| claims.iter().all(|found| found.file == claims[0].file);
    claims.into_iter().filter(of_one_file).flatten().collect()
}

/// A line of the output that may show a line of this file; the path in front is gone.
#[derive(Clone, Copy)]
struct Claim<'a> {
    file: usize,
    text: &'a Text,
    shown: &'a str,
}

impl Claim<'_> {
    /// The line with the number that stands in front, if it reads so.
    fn numbered(&self, search: Search) -> Option<Found> {
        let digits = self.shown.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.shown.split_at(digits);
        let rest = rest.strip_prefix(separators(search))?;
        let line = LineNo::new(number.parse().ok()?).filter(|line| self.text.has_line(*line))?;
        is_line(self.text, line, rest).then_some(Found { file: self.file, line })
    }
}

/// What stands behind a path or a number: `-` for the lines around a match.
fn separators(search: Search) -> &'static [char] {
    if search.context { &[':', '-'] } else { &[':'] }
}

fn is_line(text: &Text, line: LineNo, shown: &str) -> bool {
    reads_so(shown, text.line(line), text.ending(line), line == LineNo::FIRST && text.has_bom())
}

/// For each line of the output, the files it may come from.
fn claimed<'a>(reading: &'a Reading, search: Search, files: &'a Files, shown: &[Option<&'a str>]) -> Vec<Vec<Claim<'a>>> {
    let texts: Vec<(&str, Option<(usize, &Text)>)> = files
        .of(reading)
        .zip(&reading.paths)
        .map(|((file, text), path)| (path.as_str(), text.map(|text| (file, text))))
        .collect();
    let claim = |of: Option<(usize, &'a Text)>, shown| of.map(|(file, text)| Claim { file, text, shown });
    let mut above = None;
    let mut claims_of = |line: &'a str| match search.names {
        _ if line == "--" && search.context => Vec::new(),
        // An empty line may as well be air around a note of the client, and any line one of a file that we do not know.
        Names::Hidden if line.is_empty() && !search.context || texts.iter().any(|(_, of)| of.is_none()) => Vec::new(),
        Names::Hidden => texts.iter().filter_map(|(_, of)| claim(*of, line)).collect(),
        Names::InFront => {
            let rest = |path: &str| line.strip_prefix(path)?.strip_prefix(separators(search));
            let named = texts.iter().filter_map(|(path, of)| Some((path.len(), *of, rest(path)?)));
            // Of `a` and `a-b`, the line `a-b:text` names the longer.
            let longest = named.max_by_key(|(length, ..)| *length);
            longest.and_then(|(_, of, rest)| claim(of, rest)).into_iter().collect()
        }
        Names::Above => {
            let header = texts.iter().find(|(path, _)| *path == line);
            if line.is_empty() || header.is_some() {
                above = header.and_then(|(_, of)| *of);
                return Vec::new();
            }
            claim(above, line).into_iter().collect()
        }
    };
    shown.iter().map(|line| line.map_or_else(Vec::new, &mut claims_of)).collect()
}

/// Finds lines by what they say, and adds them to what each line of the output may be.
fn by_text(claimed: &[Vec<Claim<'_>>], search: Search, found: &mut [Vec<Found>]) {
    let mut files: Vec<(usize, &Text)> = claimed.iter().flatten().map(|claim| (claim.file, claim.text)).collect();
    files.sort_unstable_by_key(|(file, _)| *file);
    files.dedup_by_key(|(file, _)| *file);
    for (file, text) in files {
        let index = Index::of(text);
        let of_file = |claims: &Vec<Claim<'_>>| match claims.iter().find(|claim| claim.file == file) {
            Some(claim) => index.lines_of(claim.shown),
            None => &[],
        };
        let shown: Vec<&[LineNo]> = claimed.iter().map(of_file).collect();
        for Group { at, lines, times } in groups(&shown, search.context) {
            let starts: Vec<LineNo> = lines[0].iter().copied().filter(|start| is_at(lines, *start)).collect();
            // A group that is in more places than it was printed could be any of them.
            if search.context && starts.len() > times {
                continue;
            }
            for (found, by) in found[at..at + lines.len()].iter_mut().zip(0..) {
                found.extend(starts.iter().filter_map(|start| start.moved(by)).map(|line| Found { file, line }));
            }
        }
    }
}

/// The lines of a file by what a program prints for them.
struct Index<'a>(HashMap<Cow<'a, str>, Vec<LineNo>>);

impl<'a> Index<'a> {
    fn of(text: &'a Text) -> Self {
        let mut lines: HashMap<Cow<'a, str>, Vec<LineNo>> = HashMap::new();
        for (number, line) in text.lines() {
            let mark = if number == LineNo::FIRST && text.has_bom() { &["", "\u{feff}"][..] } else { &[""] };
            let ending = if text.ending(number) == Ending::CrLf { &["", "\r"][..] } else { &[""] };
            lines.entry(Cow::Borrowed(line)).or_default().push(number);
            let others = mark.iter().flat_map(|mark| ending.iter().map(move |ending| format!("{mark}{line}{ending}")));
            for other in others.skip(1) {
                lines.entry(Cow::Owned(other)).or_default().push(number);
            }
        }
        Self(lines)
    }

    fn lines_of(&self, shown: &str) -> &[LineNo] {
        self.0.get(shown).map_or(&[], Vec::as_slice)
    }
}

/// Neighbouring lines of the output that were printed together, each with the lines of the file that read so.
struct Group<'a> {
    /// Where they were printed first.
    at: usize,
    lines: &'a [&'a [LineNo]],
    /// How often they were printed.
    times: usize,
}

/// With lines around matches, those that follow each other are a group; without, each is one.
fn groups<'a>(shown: &'a [&'a [LineNo]], context: bool) -> Vec<Group<'a>> {
    let chunks: Vec<&[&[LineNo]]> = match context {
        true => shown.chunk_by(|a, b| a.is_empty() == b.is_empty()).collect(),
        false => shown.chunks(1).collect(),
    };
    // Two lists share a line only if one of them is the other without the lines that end otherwise, so these two stand for it.
    let key = |lines: &[&[LineNo]]| lines.iter().map(|line| (line[0], line.len())).collect::<Vec<_>>();
    let mut groups: HashMap<Vec<(LineNo, usize)>, Group<'_>> = HashMap::new();
    let mut at = 0;
    for lines in chunks {
        if !lines[0].is_empty() {
            groups.entry(key(lines)).or_insert(Group { at, lines, times: 0 }).times += 1;
        }
        at += lines.len();
    }
    groups.into_values().collect()
}

fn is_at(lines: &[&[LineNo]], start: LineNo) -> bool {
    lines.iter().zip(0..).all(|(lines, by)| start.moved(by).is_some_and(|line| lines.binary_search(&line).is_ok()))
}
