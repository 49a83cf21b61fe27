//! Finds the lines of a file that are most similar to a text of several lines. The search aligns the text with a few
//! places that have some of its lines, exactly or nearly, and picks the most similar one. It allows for lines that were
//! left out or added.
//!
//! imara-diff aligns the lines. We search for the place ourselves, because a diff against the whole file would scatter
//! the wanted lines over all of it.

use std::{collections::HashMap, ops::Range};

use crate::{line_map::LineMap, lines::LineNo, text::Text};

/// One step of an alignment, from top to bottom. The indexes count the wanted lines and the lines of the file, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineStep {
    /// These two lines are at the same place, alike or not.
    Pair { wanted: usize, line: usize },
    /// The wanted line is not in the file.
    Extra { wanted: usize },
    /// The line of the file is not among the wanted lines.
    LeftOut { line: usize },
}

/// The part of the file that is most similar to the wanted lines, step by step; `None` if nothing is similar.
pub(super) fn find(text: &Text, wanted: &[&str]) -> Option<Vec<LineStep>> {
    const LIKE_ENOUGH: f64 = 0.32;
    const LINES_AROUND: usize = 2;
    let mut search = SimilarSearch::new(text, wanted);
    let mut best: Option<Alignment> = None;
    for offset in search.likely_offsets() {
        let start = offset.saturating_sub_unsigned(LINES_AROUND).max(0) as usize;
        let end = offset.saturating_add_unsigned(search.wanted.len() + LINES_AROUND).max(0) as usize;
        let aligned = search.align(start..end.min(text.line_count()));
        if best.as_ref().is_none_or(|best| best.likeness < aligned.likeness) {
            best = Some(aligned);
        }
    }
    best.filter(|best| best.likeness >= LIKE_ENOUGH).map(|best| best.steps)
}

/// Aligns the wanted lines with lines of the file that are known to be the place.
pub(super) fn steps_within(text: &Text, wanted: &[&str], lines: Range<usize>) -> Vec<LineStep> {
    SimilarSearch::new(text, wanted).align(lines).steps
}

/// The wanted lines, aligned with some lines of the file.
struct Alignment {
    /// From 0 (nothing in common) to 1 (equal).
    likeness: f64,
    steps: Vec<LineStep>,
}

struct SimilarSearch<'a> {
    text: &'a Text,
    wanted: &'a [&'a str],
    /// How strongly each wanted line identifies the place: long lines have more weight.
    weights: Vec<f64>,
    bigrams: Bigrams,
}

impl<'a> SimilarSearch<'a> {
    fn new(text: &'a Text, wanted: &'a [&'a str]) -> Self {
        // The first lines of a long text suffice to find its place.
        const MOST_LINES: usize = 1000;
        let wanted = &wanted[..wanted.len().min(MOST_LINES)];
        let weight = |line: &&str| (1 + line.trim().len().min(100)) as f64;
        Self { text, wanted, weights: wanted.iter().map(weight).collect(), bigrams: Bigrams::new() }
    }

    /// The likely positions of the first wanted line, the most likely first. Every wanted line votes for the places
    /// where the file has it; the rarer it is there, the more its vote counts. The longest lines that the file does not
    /// have vote for the lines that are most similar to them.
    fn likely_offsets(&mut self) -> Vec<isize> {
        const MANY: usize = 2000;
        const LINES_COMPARED: usize = 3;
        let exact = self.exact_places();
        let mut votes: HashMap<isize, f64> = HashMap::new();
        let mut missing = Vec::new();
        for (index, wanted) in self.wanted.iter().enumerate() {
            let places = exact.get(wanted.trim()).map_or(&[][..], Vec::as_slice);
            if places.is_empty() {
                missing.push(index);
            }
            // A line that occurs everywhere identifies no place, and counting its votes takes time.
            for line in places.iter().take(MANY) {
                *votes.entry(*line as isize - index as isize).or_default() += self.weights[index] / places.len() as f64;
            }
        }
        missing.sort_by(|a, b| self.weights[*b].total_cmp(&self.weights[*a]));
        for index in missing.into_iter().take(LINES_COMPARED) {
            for (line, likeness) in self.most_alike(index) {
                *votes.entry(line as isize - index as isize).or_default() += self.weights[index] * likeness;
            }
        }
        let mut votes: Vec<(isize, f64)> = votes.into_iter().collect();
        votes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        // Aligning takes time, so fewer places are tried for a long text.
        let most_places = (4000 / self.wanted.len()).clamp(4, 16);
        apart(votes.into_iter().map(|(offset, _)| offset), most_places)
    }

    /// The lines of the file that equal a wanted line, apart from the white space around them.
    fn exact_places(&self) -> HashMap<&'a str, Vec<usize>> {
        // A brace identifies no place, unless the text has no longer lines.
        let is_distinctive = |line: &&str| line.len() > 3;
        let trimmed = || self.wanted.iter().map(|line| line.trim());
        let least = if trimmed().any(|line| is_distinctive(&line)) { 4 } else { 1 };
        let mut places: HashMap<&str, Vec<usize>> =
            trimmed().filter(|line| line.len() >= least).map(|line| (line, Vec::new())).collect();
        for (number, line) in self.text.lines() {
            if let Some(lines) = places.get_mut(line.trim()) {
                lines.push(number.index());
            }
        }
        places
    }

    /// The few lines of the file that are most similar to one of the wanted lines, with their similarity.
    fn most_alike(&mut self, index: usize) -> Vec<(usize, f64)> {
        const FEW: usize = 5;
        const BYTES_SEARCHED: usize = 8 << 20;
        let mut left = BYTES_SEARCHED;
        let mut alike = Vec::new();
        for (number, line) in self.text.lines() {
            let Some(rest) = left.checked_sub(line.len()) else { break };
            left = rest;
            let likeness = self.bigrams.similarity(self.wanted[index], line, self.may_be_part(index));
            if likeness > 0.0 {
                alike.push((number.index(), likeness));
            }
        }
        alike.sort_by(|a, b| b.1.total_cmp(&a.1));
        alike.truncate(FEW);
        alike
    }

    /// Aligns the wanted lines with these lines of the file.
    fn align(&mut self, lines: Range<usize>) -> Alignment {
        let trimmed_lines: Vec<&str> = lines.clone().map(|line| self.line(line).trim()).collect();
        let trimmed_wanted: Vec<&str> = self.wanted.iter().map(|line| line.trim()).collect();
        let map = LineMap::of_lines(&trimmed_wanted, &trimmed_lines);
        let mut steps = Vec::with_capacity(lines.len());
        let (mut wanted, mut line) = (0, lines.start);
        let end = (trimmed_wanted.len()..trimmed_wanted.len(), trimmed_lines.len()..trimmed_lines.len());
        let hunks = map.hunks().iter().map(|hunk| (hunk.before.clone(), hunk.after.clone())).chain([end]);
        for (before, after) in hunks {
            steps.extend((wanted..before.start).zip(line..).map(|(wanted, line)| LineStep::Pair { wanted, line }));
            let after = after.start + lines.start..after.end + lines.start;
            (wanted, line) = (before.end, after.end);
            self.pair_up(before, after, &mut steps);
        }
        while let Some(LineStep::LeftOut { .. }) = steps.last() {
            steps.pop();
        }
        let above = steps.iter().take_while(|step| matches!(step, LineStep::LeftOut { .. })).count();
        steps.drain(..above);
        Alignment { likeness: self.likeness_of(&steps), steps }
    }

    /// Pairs lines that a diff would replace by each other, in order. The longer side keeps lines without a partner,
    /// above and below the run that is most similar to the shorter side.
    fn pair_up(&mut self, wanted: Range<usize>, lines: Range<usize>, steps: &mut Vec<LineStep>) {
        const PLACES_TRIED: usize = 32;
        let pairs = wanted.len().min(lines.len());
        let (more_wanted, more_lines) = (wanted.len() - pairs, lines.len() - pairs);
        let mut skip = 0;
        let mut best = f64::NEG_INFINITY;
        for start in (0..=more_wanted.max(more_lines)).take(PLACES_TRIED) {
            let (first, line) = (wanted.start + start.min(more_wanted), lines.start + start.min(more_lines));
            let likeness = (0..pairs).map(|at| self.weighted_likeness(first + at, line + at)).sum();
            // Above the first known line, the lines next to it are meant.
            let is_above_all = wanted.start == 0 && wanted.end < self.wanted.len();
            if likeness > best || likeness == best && is_above_all {
                (skip, best) = (start, likeness);
            }
        }
        let (first, line) = (wanted.start + skip.min(more_wanted), lines.start + skip.min(more_lines));
        steps.extend((wanted.start..first).map(|wanted| LineStep::Extra { wanted }));
        steps.extend((lines.start..line).map(|line| LineStep::LeftOut { line }));
        steps.extend((0..pairs).map(|at| LineStep::Pair { wanted: first + at, line: line + at }));
        steps.extend((first + pairs..wanted.end).map(|wanted| LineStep::Extra { wanted }));
        steps.extend((line + pairs..lines.end).map(|line| LineStep::LeftOut { line }));
    }

    fn likeness_of(&mut self, steps: &[LineStep]) -> f64 {
        let total: f64 = self.weights.iter().sum();
        let gap = 0.1 * total / self.wanted.len() as f64;
        let value = |step: &LineStep| match *step {
            LineStep::Pair { wanted, line } => self.weighted_likeness(wanted, line),
            LineStep::Extra { .. } | LineStep::LeftOut { .. } => -gap,
        };
        steps.iter().map(value).sum::<f64>().max(0.0) / total
    }

    fn weighted_likeness(&mut self, index: usize, line: usize) -> f64 {
        let (wanted, line) = (self.wanted[index], self.line(line));
        let likeness = if wanted == line {
            1.0
        } else if wanted.trim() == line.trim() {
            0.98
        } else {
            // An identical line identifies the place better than a similar one.
            0.8 * self.bigrams.similarity(wanted, line, self.may_be_part(index))
        };
        likeness * self.weights[index]
    }

    /// The first and the last wanted line may be parts of lines.
    fn may_be_part(&self, index: usize) -> bool {
        index == 0 || index + 1 == self.wanted.len()
    }

    fn line(&self, index: usize) -> &'a str {
        self.text.line(LineNo::at_index(index))
    }
}

/// The first offsets, without those next to an earlier one, because an alignment covers its neighbours.
fn apart(offsets: impl Iterator<Item = isize>, most: usize) -> Vec<isize> {
    let mut apart: Vec<isize> = Vec::new();
    for offset in offsets {
        if apart.len() == most {
            break;
        }
        if !apart.iter().any(|taken| taken.abs_diff(offset) <= 1) {
            apart.push(offset);
        }
    }
    apart
}

/// Compares lines by the pairs of neighbouring bytes that they share, without white space. This is cheap enough for
/// every line of a large file.
struct Bigrams {
    /// For each pair of bytes, how many more the wanted line has than the other line. All zero between comparisons.
    counts: Vec<u16>,
}

impl Bigrams {
    fn new() -> Self {
        Self { counts: vec![0; 1 << 16] }
    }

    /// How similar a line is to the wanted one, or how much of the wanted one it contains, from 0 to 1. Lines with
    /// little in common get 0.
    fn similarity(&mut self, wanted: &str, line: &str, may_be_part: bool) -> f64 {
        const HARDLY_ALIKE: f64 = 0.4;
        const MOST_OF_A_PART: f64 = 0.75;
        if line.len() * 4 < wanted.trim().len() {
            return 0.0;
        }
        let (mut wanted_pairs, mut line_pairs, mut common) = (0, 0, 0);
        for pair in pairs_of(wanted) {
            wanted_pairs += 1;
            self.counts[pair] += 1;
        }
        for pair in pairs_of(line) {
            line_pairs += 1;
            if self.counts[pair] > 0 {
                self.counts[pair] -= 1;
                common += 1;
            }
        }
        pairs_of(wanted).for_each(|pair| self.counts[pair] = 0);
        let alike = 2.0 * f64::from(common) / f64::from(wanted_pairs + line_pairs).max(1.0);
        let contained = f64::from(common) / f64::from(wanted_pairs).max(1.0);
        let as_whole = if alike >= HARDLY_ALIKE { alike } else { 0.0 };
        let as_part = if may_be_part && contained >= MOST_OF_A_PART { 0.9 * contained } else { 0.0 };
        f64::max(as_whole, as_part)
    }
}

/// The pairs of neighbouring bytes of a line; of a very long line, those at its start. A single character is paired
/// with a zero byte.
fn pairs_of(line: &str) -> impl Iterator<Item = usize> {
    const LONGEST: usize = 1000;
    let bytes = || line.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let is_single = line.trim().len() == 1;
    let after_first = bytes().skip(1).chain(is_single.then_some(0));
    bytes().zip(after_first).take(LONGEST).map(|(first, second)| usize::from(u16::from_be_bytes([first, second])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps in short: `=2` for lines that are alike, `~2` for different lines at the same place, `+` for a wanted
    /// line that the file does not have, `-2` for a line of the file that was left out.
    #[track_caller]
    fn check(content: &str, wanted: &str, expected: &str) {
        let text = Text::new(content.as_bytes().to_vec()).unwrap();
        let wanted: Vec<&str> = wanted.lines().collect();
        let step = |step: &LineStep| match *step {
            LineStep::Pair { wanted: index, line } => {
                let is_same = wanted[index] == text.line(LineNo::at_index(line));
                format!("{}{}", if is_same { '=' } else { '~' }, line + 1)
            }
            LineStep::Extra { .. } => "+".to_owned(),
            LineStep::LeftOut { line } => format!("-{}", line + 1),
        };
        let found = find(&text, &wanted).map(|steps| steps.iter().map(step).collect::<Vec<_>>().join(" "));
        assert_eq!(found.as_deref().unwrap_or("nothing"), expected);
    }

    const FILE: &str = "fn first() {\n    open_the_door(1);\n    log();\n    close_the_door(1);\n}\n\
                        fn second() {\n    open_the_door(2);\n    log();\n    close_the_window(2);\n}\n";

    #[test]
    fn the_region_is_chosen_by_all_lines_not_by_the_longest() {
        check(FILE, "    open_the_door(2);\n    log();\n    close_the_door(2);\n}", "=7 =8 ~9 =10");
        check(FILE, "fn second() {\n    open_the_door(9);\n    log();\n", "=6 ~7 =8");
        check(FILE, "fn secnd() {\n    open_the_door(2);\n", "~6 =7");
    }

    #[test]
    fn a_line_left_out_or_added_does_not_hide_the_region() {
        check(FILE, "fn second() {\n    log();\n    close_the_window(2);\n}", "=6 -7 =8 =9 =10");
        check(
            FILE,
            "fn second() {\n    open_the_door(2);\n    wait_for_it();\n    log();\n    close_the_window(2);",
            "=6 =7 + =8 =9",
        );
    }

    #[test]
    fn a_part_of_a_line_is_like_the_line() {
        check(FILE, "close_the_windwo(2)", "~9");
        check(
            "let value = compute_total(items, rates) + another_very_long_call(with, many, arguments, of, which, nobody, knows);\nx\n",
            "compute_totl(items",
            "~1",
        );
    }

    #[test]
    fn a_text_unlike_all_lines_has_no_place() {
        check(FILE, "import numpy as np", "nothing");
        check("", "x", "nothing");
        check("\n\n\n", "something\nelse", "nothing");
        check("a\n", "zwei", "nothing");
    }

    #[test]
    fn short_lines_are_compared_when_there_are_no_others() {
        check("a\nb\nc\nd\n", "b\nx\nd", "=2 ~3 =4");
    }
}
