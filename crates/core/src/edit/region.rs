//! The lines of a file that are most like a text of several lines: a few places that have some of its lines, exactly or nearly,
//! are compared line by line, and the best one wins. Lines that were left out or added are allowed for.

use std::collections::HashMap;

use crate::{lines::LineNo, text::Text};

/// What became of a line, from top to bottom. Indexes of the wanted lines and of the lines of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// These two are at the same place, alike or not.
    Pair { wanted: usize, line: usize },
    /// The wanted line is not in the file.
    Extra { wanted: usize },
    /// The line of the file is not among the wanted.
    LeftOut { line: usize },
}

/// The part of the file that is most like the wanted lines, step by step; `None` if nothing is like them.
pub(super) fn find(text: &Text, wanted: &[&str]) -> Option<Vec<Step>> {
    const LIKE_ENOUGH: f64 = 0.32;
    const NO_DOUBT: f64 = 0.7;
    const SHIFT: usize = 2;
    // Comparing is what takes time, so of a long text fewer places are compared.
    let wanted = Wanted::of(&wanted[..wanted.len().min(1000)]);
    let most = (4000 / wanted.lines.len()).clamp(4, 16);
    let best = |offsets: Vec<isize>| {
        let aligned = offsets.into_iter().take(most).map(|offset| align(text, &wanted, offset, SHIFT));
        aligned.fold(None, |best: Option<Aligned>, next| match best {
            Some(best) if best.likeness >= next.likeness => Some(best),
            _ => Some(next),
        })
    };
    let by_exact_lines = Exact::of(text, &wanted);
    let first = best(by_exact_lines.offsets(&wanted));
    if first.as_ref().is_some_and(|aligned| aligned.likeness >= NO_DOUBT) {
        return first.map(|aligned| aligned.steps);
    }
    let second = best(near_offsets(text, &wanted, &by_exact_lines));
    let best = first.into_iter().chain(second).max_by(|a, b| a.likeness.total_cmp(&b.likeness))?;
    (best.likeness >= LIKE_ENOUGH).then_some(best.steps)
}

/// The steps through lines of the file that are known to be the place.
pub(super) fn steps_from(text: &Text, wanted: &[&str], line: LineNo) -> Vec<Step> {
    const SHIFT: usize = 8;
    align(text, &Wanted::of(&wanted[..wanted.len().min(1000)]), line.index() as isize, SHIFT).steps
}

/// The lines that are looked for.
struct Wanted<'a> {
    lines: &'a [&'a str],
    pairs: Vec<Pairs>,
    /// How much each line says about the place: long ones more.
    weights: Vec<f64>,
    total: f64,
}

impl<'a> Wanted<'a> {
    fn of(lines: &'a [&'a str]) -> Self {
        let weight = |line: &&str| (1 + line.trim().len().min(100)) as f64;
        let weights: Vec<f64> = lines.iter().map(weight).collect();
        Self { lines, pairs: lines.iter().map(|line| Pairs::of(line)).collect(), total: weights.iter().sum(), weights }
    }

    /// The first and the last line may be parts of lines.
    fn may_be_part(&self, index: usize) -> bool {
        index == 0 || index + 1 == self.lines.len()
    }

    /// From 0 to 1, how much a line of the file is like a wanted one. What is hardly like it is not at all.
    fn likeness(&self, index: usize, line: &str, pairs: &Pairs) -> f64 {
        let wanted = self.lines[index];
        if wanted == line {
            return 1.0;
        }
        if wanted.trim() == line.trim() {
            return 0.98;
        }
        let part = if self.may_be_part(index) { self.pairs[index].part_in(pairs) } else { 0.0 };
        // The very same line says more about the place than a similar one.
        0.8 * self.pairs[index].likeness(pairs).max(part)
    }
}

/// Lines of the file that are wanted lines but for the white space around them.
struct Exact {
    /// For each wanted line, which different one it is.
    keys: Vec<Option<usize>>,
    /// For each different one, the lines of the file.
    hits: Vec<Vec<usize>>,
}

impl Exact {
    fn of(text: &Text, wanted: &Wanted<'_>) -> Self {
        // A brace says nothing about the place, unless there is nothing else.
        let says_something = |line: &str| line.trim().len() > 3;
        let least = if wanted.lines.iter().any(|line| says_something(line)) { 4 } else { 1 };
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut key = |line| {
            let next = known.len();
            *known.entry(line).or_insert(next)
        };
        let trimmed = wanted.lines.iter().map(|line| line.trim());
        let keys: Vec<Option<usize>> = trimmed.map(|line| (line.len() >= least).then(|| key(line))).collect();
        let mut hits = vec![Vec::new(); known.len()];
        for (number, line) in text.lines() {
            if let Some(key) = known.get(line.trim()) {
                hits[*key].push(number.index());
            }
        }
        Self { keys, hits }
    }

    fn lines(&self, index: usize) -> &[usize] {
        self.keys[index].map_or(&[], |key| &self.hits[key])
    }

    /// Where the first wanted line would be, by the votes of all lines: the rarer a line, the more its vote counts.
    fn offsets(&self, wanted: &Wanted<'_>) -> Vec<isize> {
        // A line that is everywhere says nothing, and counting its votes takes time.
        const EVERYWHERE: usize = 2000;
        let mut votes: HashMap<isize, f64> = HashMap::new();
        for index in 0..wanted.lines.len() {
            let lines = self.lines(index);
            for line in lines.iter().take(EVERYWHERE) {
                *votes.entry(*line as isize - index as isize).or_default() += wanted.weights[index] / lines.len() as f64;
            }
        }
        let mut votes: Vec<(isize, f64)> = votes.into_iter().collect();
        votes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        apart(votes.into_iter().map(|(offset, _)| offset))
    }
}

/// The offsets without those next to an earlier one, which are compared along with it.
fn apart(offsets: impl Iterator<Item = isize>) -> Vec<isize> {
    const MOST: usize = 16;
    let mut apart: Vec<isize> = Vec::new();
    for offset in offsets {
        if apart.len() == MOST {
            break;
        }
        if !apart.iter().any(|taken| taken.abs_diff(offset) <= 1) {
            apart.push(offset);
        }
    }
    apart
}

/// Where the first wanted line would be, by lines that are nearly the longest of those that are not in the file as they are.
fn near_offsets(text: &Text, wanted: &Wanted<'_>, exact: &Exact) -> Vec<isize> {
    const LINES: usize = 3;
    let mut indexes: Vec<usize> = (0..wanted.lines.len()).filter(|index| exact.lines(*index).is_empty()).collect();
    indexes.sort_by(|a, b| wanted.weights[*b].total_cmp(&wanted.weights[*a]));
    let near = |index: usize| nearest_lines(text, wanted, index).into_iter().map(move |(line, likeness)| (line, likeness, index));
    let mut found: Vec<(usize, f64, usize)> = indexes.into_iter().take(LINES).flat_map(near).collect();
    found.sort_by(|a, b| (b.1 * wanted.weights[b.2]).total_cmp(&(a.1 * wanted.weights[a.2])));
    apart(found.into_iter().map(|(line, _, index)| line as isize - index as isize))
}

/// The few lines of the file that are most like one of the wanted.
fn nearest_lines(text: &Text, wanted: &Wanted<'_>, index: usize) -> Vec<(usize, f64)> {
    const FEW: usize = 5;
    const BYTES_SEARCHED: usize = 8 << 20;
    let mut counter = Counter::of(&wanted.pairs[index]);
    let may_be_part = wanted.may_be_part(index);
    let mut few: Vec<(usize, f64)> = Vec::with_capacity(FEW + 1);
    let mut left = BYTES_SEARCHED;
    for (number, line) in text.lines() {
        let Some(rest) = left.checked_sub(line.len()) else { break };
        left = rest;
        let likeness = counter.likeness(line, may_be_part);
        if likeness > few.get(FEW - 1).map_or(0.0, |least| least.1) {
            few.truncate(FEW - 1);
            few.insert(few.partition_point(|known| known.1 >= likeness), (number.index(), likeness));
        }
    }
    few
}

/// The wanted lines beside the lines of the file, from a place on.
struct Aligned {
    /// From 0 to 1.
    likeness: f64,
    steps: Vec<Step>,
}

/// Lays the wanted lines where the first of them is at `offset`, or up to `shift` lines before or after it, with as few lines left
/// out or added as make them most alike: the usual table of an alignment, of which only a band along the diagonal is filled.
fn align(text: &Text, wanted: &Wanted<'_>, offset: isize, shift: usize) -> Aligned {
    const WORST: f64 = f64::NEG_INFINITY;
    let (count, width) = (wanted.lines.len(), 2 * shift + 1);
    let line_at = |index: usize, across: usize| {
        usize::try_from(offset + (index + across) as isize - shift as isize).ok().filter(|line| *line < text.line_count())
    };
    let first = offset - shift as isize;
    let pairs: Vec<Pairs> = (0..count + width)
        .map(|at| usize::try_from(first + at as isize).map_or("", |line| text.line(LineNo::at_index(line))))
        .map(Pairs::of)
        .collect();
    let gap = 0.1 * wanted.total / count as f64;
    // In row `index` so many wanted lines are done; `across` tells how far the file is ahead of them.
    let mut best = vec![WORST; (count + 1) * width];
    let mut moves = vec![Move::Start; (count + 1) * width];
    best[..width].fill(0.0);
    for index in 0..=count {
        for across in 0..width {
            let at = index * width + across;
            if index > 0 {
                let likeness = line_at(index - 1, across)
                    .map(|line| wanted.likeness(index - 1, text.line(LineNo::at_index(line)), &pairs[index - 1 + across]));
                let pair = likeness.map_or(WORST, |likeness| best[at - width] + likeness * wanted.weights[index - 1]);
                let extra = if across + 1 < width { best[at - width + 1] - gap } else { WORST };
                (best[at], moves[at]) = if pair >= extra { (pair, Move::Pair) } else { (extra, Move::Extra) };
            }
            if index > 0 && across > 0 && line_at(index, across - 1).is_some() && best[at - 1] - gap > best[at] {
                (best[at], moves[at]) = (best[at - 1] - gap, Move::LeftOut);
            }
        }
    }
    let last = &best[count * width..];
    let across = (0..width).rev().max_by(|a, b| last[*a].total_cmp(&last[*b])).expect("a band has a width");
    let steps = trace(&moves, width, count, across, |index, across| line_at(index, across).unwrap_or_default());
    Aligned { likeness: last[across].max(0.0) / wanted.total, steps }
}

/// How a cell of the table was reached.
#[derive(Clone, Copy, PartialEq)]
enum Move {
    Start,
    Pair,
    Extra,
    LeftOut,
}

fn trace(moves: &[Move], width: usize, count: usize, across: usize, line_at: impl Fn(usize, usize) -> usize) -> Vec<Step> {
    let (mut index, mut across) = (count, across);
    let mut steps = Vec::with_capacity(count);
    loop {
        match moves[index * width + across] {
            Move::Start => break,
            Move::Pair => {
                index -= 1;
                steps.push(Step::Pair { wanted: index, line: line_at(index, across) });
            }
            Move::Extra => {
                index -= 1;
                across += 1;
                steps.push(Step::Extra { wanted: index });
            }
            Move::LeftOut => {
                across -= 1;
                steps.push(Step::LeftOut { line: line_at(index, across) });
            }
        }
    }
    steps.reverse();
    steps
}

/// Lines below this have hardly anything in common.
const HARDLY: f64 = 0.4;
/// How much of a part must be in a line to be taken for a part of it.
const MOST_OF_A_PART: f64 = 0.75;

/// How alike two lines are that have so many pairs of characters, and so many in common.
fn likeness(common: usize, a: usize, b: usize) -> f64 {
    let likeness = 2.0 * common as f64 / (a + b).max(1) as f64;
    if likeness >= HARDLY { likeness } else { 0.0 }
}

fn part(common: usize, part: usize) -> f64 {
    let contained = common as f64 / part.max(1) as f64;
    if contained >= MOST_OF_A_PART { 0.9 * contained } else { 0.0 }
}

/// The pairs of neighbouring bytes of a line, blanks left out, in order: a cheap measure of likeness.
struct Pairs(Vec<u16>);

/// The pairs of a line as they come; of a very long line those at its start.
fn pairs_of(line: &str) -> impl Iterator<Item = u16> {
    const LONGEST: usize = 1000;
    let mut bytes = line.bytes().take(LONGEST).filter(|byte| !byte.is_ascii_whitespace());
    let mut last = bytes.next();
    // A line of one character is a pair with nothing.
    let mut single = last.filter(|_| line.trim().len() == 1).map(|byte| u16::from_be_bytes([byte, 0]));
    std::iter::from_fn(move || {
        let Some(next) = bytes.next() else { return single.take() };
        let pair = u16::from_be_bytes([last?, next]);
        last = Some(next);
        Some(pair)
    })
}

impl Pairs {
    fn of(line: &str) -> Self {
        let mut pairs: Vec<u16> = pairs_of(line).collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    fn common(&self, other: &Pairs) -> usize {
        let (mut a, mut b, mut common) = (0, 0, 0);
        while a < self.0.len() && b < other.0.len() {
            match self.0[a].cmp(&other.0[b]) {
                std::cmp::Ordering::Less => a += 1,
                std::cmp::Ordering::Greater => b += 1,
                std::cmp::Ordering::Equal => {
                    common += 1;
                    a += 1;
                    b += 1;
                }
            }
        }
        common
    }

    fn likeness(&self, other: &Pairs) -> f64 {
        // So many in common at most.
        if likeness(self.0.len().min(other.0.len()), self.0.len(), other.0.len()) == 0.0 {
            return 0.0;
        }
        likeness(self.common(other), self.0.len(), other.0.len())
    }

    fn part_in(&self, other: &Pairs) -> f64 {
        if self.0.len() > other.0.len() * 4 / 3 { 0.0 } else { part(self.common(other), self.0.len()) }
    }
}

/// One line to be compared with many: how often each pair is in it.
struct Counter {
    length: usize,
    left: Vec<u16>,
    taken: Vec<u16>,
}

impl Counter {
    fn of(pairs: &Pairs) -> Self {
        let mut left = vec![0; 1 << 16];
        pairs.0.iter().for_each(|pair| left[usize::from(*pair)] += 1);
        Self { length: pairs.0.len(), left, taken: Vec::new() }
    }

    fn likeness(&mut self, line: &str, may_be_part: bool) -> f64 {
        if line.len() * 4 < self.length {
            return 0.0;
        }
        let mut length = 0;
        for pair in pairs_of(line) {
            length += 1;
            let left = &mut self.left[usize::from(pair)];
            if *left > 0 {
                *left -= 1;
                self.taken.push(pair);
            }
        }
        let common = self.taken.len();
        self.taken.drain(..).for_each(|pair| self.left[usize::from(pair)] += 1);
        let part = if may_be_part { part(common, self.length) } else { 0.0 };
        likeness(common, length, self.length).max(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps in short: `=2` for lines that are alike, `~2` for others at the same place, `+` for a line that the file does
    /// not have, `-2` for one that was left out.
    #[track_caller]
    fn check(content: &str, wanted: &str, expected: &str) {
        let text = Text::new(content.as_bytes().to_vec()).unwrap();
        let wanted: Vec<&str> = wanted.lines().collect();
        let step = |step: &Step| match *step {
            Step::Pair { wanted: index, line } => {
                let is_same = wanted[index] == text.line(LineNo::at_index(line));
                format!("{}{}", if is_same { '=' } else { '~' }, line + 1)
            }
            Step::Extra { .. } => "+".to_owned(),
            Step::LeftOut { line } => format!("-{}", line + 1),
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
    fn what_is_like_nothing_is_nowhere() {
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
