//! Finds the lines of another text, such as a commit, in a weave.
//!
//! If the text is an earlier state of the weave, its lines are known. Otherwise it is compared. Lines that are proven
//! to be lines of the present text come first. The lines between two of them are matched with the lines that the weave
//! has there, including removed ones.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ops::Range,
};

use super::{ALIVE, LineId, OLDEST, Weave, WeaveState};
use crate::{lines::LineNo, proof::Proof, text::Text};

/// The places of the lines of a text in a weave, from top to bottom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinePlaces(Vec<PlacedLines>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlacedLines {
    lines: Range<usize>,
    /// The identity of the first line; `None` if the weave does not have them.
    at: Option<LineId>,
}

/// A run of a weave, or lines of the other text that the weave does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// The index of the first line in the other text, if it has them.
    pub base: Option<usize>,
    /// The index of the first line in the present text, if it has them.
    pub present: Option<usize>,
    pub len: usize,
    /// The hunk that inserted them; [`OLDEST`] also for lines that the weave does not have.
    pub born: u32,
    /// The hunk that removed them; [`ALIVE`] if none did, [`OLDEST`] if it is not known.
    pub died: u32,
}

impl From<&WeaveState> for LinePlaces {
    /// The places of the lines of an earlier state.
    fn from(state: &WeaveState) -> Self {
        let mut at = 0;
        let placed = |span: &super::Run| {
            let lines = at..at + span.len as usize;
            at = lines.end;
            PlacedLines { lines, at: Some(span.id) }
        };
        Self(state.alive().map(placed).collect())
    }
}

impl LinePlaces {
    fn push(&mut self, line: usize, at: Option<LineId>) {
        let continues = |last: &&mut PlacedLines| {
            let next = last.at.map(|id| LineId { line: id.line + last.lines.len() as u32, ..id });
            last.lines.end == line && next == at
        };
        match self.0.last_mut().filter(continues) {
            Some(last) => last.lines.end = line + 1,
            None => self.0.push(PlacedLines { lines: line..line + 1, at }),
        }
    }
}

/// A gap that takes more comparisons is left unmatched.
const MOST_COMPARISONS: usize = 1 << 22;

impl Weave {
    /// Finds the lines of another text. `line_of(step, index)` returns a line of the text after a step with its ending,
    /// if it is known; it is called only for lines that the step inserted and that are not in the present text.
    pub fn place(&self, base: &Text, present: &Text, line_of: impl FnMut(usize, usize) -> Option<String>) -> LinePlaces {
        let map = Proof::between(None, base, present).proven_map();
        let mut finder = Finder { weave: self, base, present, line_of, likely: HashSet::from([OLDEST]) };
        let mut anchors: Vec<(Range<usize>, usize)> =
            map.kept().map(|(run, shift)| ((run.start as i64 + shift) as usize, run)).map(|(to, run)| (run, to)).collect();
        anchors.push((base.line_count()..base.line_count(), present.line_count()));
        let gaps = self.gaps(&anchors);
        finder.likely.extend(gaps.anchored.iter().flatten().map(|(id, _)| id.born));
        let (mut places, mut at) = (LinePlaces::default(), 0);
        for ((anchor, _), (gap, ids)) in anchors.iter().zip(gaps.between.iter().zip(&gaps.anchored)) {
            finder.match_gap(&mut places, at..anchor.start, gap);
            let lines = ids.iter().flat_map(|(id, len)| (0..*len).map(|nth| LineId { line: id.line + nth, ..*id }));
            anchor.clone().zip(lines).for_each(|(line, id)| places.push(line, Some(id)));
            at = anchor.end;
        }
        places
    }

    /// The lines of another text, keyed by the step that inserted them and their index after that step. Lines that the
    /// weave does not have are left out.
    pub fn origins(&self, places: &LinePlaces) -> HashMap<(usize, usize), usize> {
        let placed = places.0.iter().filter_map(|placed| Some((placed.lines.clone(), placed.at?)));
        let origin = |(line, nth, id): (usize, usize, LineId)| ((self.step_of(id.born), id.line as usize + nth), line);
        placed.flat_map(|(lines, id)| lines.enumerate().map(move |(nth, line)| (line, nth, id))).map(origin).collect()
    }

    /// Splits the weave at the lines that another text certainly has.
    fn gaps(&self, anchors: &[(Range<usize>, usize)]) -> Gaps {
        let mut gaps = Gaps { between: vec![Vec::new(); anchors.len()], anchored: vec![Vec::new(); anchors.len()] };
        let (mut present, mut nth) = (0, 0);
        for run in &self.runs {
            let mut at = 0;
            while at < run.len {
                let rest = run.len - at;
                let id = LineId { line: run.id.line + at, ..run.id };
                let (anchor, to) = &anchors[nth];
                let is_alive = run.died == ALIVE;
                let is_anchored = is_alive && present >= *to && !anchor.is_empty();
                let end = if is_anchored { to + anchor.len() } else { *to };
                let taken = if is_alive { rest.min((end - present) as u32) } else { rest };
                if is_anchored {
                    gaps.anchored[nth].push((id, taken));
                } else if present <= *to {
                    let first = is_alive.then_some(present);
                    gaps.between[nth].push(GapRun { id, len: taken, present: first });
                }
                at += taken;
                if is_alive {
                    present += taken as usize;
                    nth += usize::from(is_anchored && present == end);
                }
            }
        }
        gaps
    }

    /// The segments of the weave beside another text, from top to bottom.
    pub(super) fn segments(&self, places: &LinePlaces) -> Vec<Segment> {
        let mut segments = Vec::with_capacity(self.runs.len() + places.0.len());
        let mut base: VecDeque<PlacedLines> = places.0.iter().cloned().collect();
        let mut present = 0;
        for run in &self.runs {
            let (mut at, end) = (run.id.line, run.id.line + run.len);
            while at < end {
                if let Some(lost) = base.pop_front_if(|placed| placed.at.is_none()) {
                    segments.push(Segment::lost(&lost.lines));
                    continue;
                }
                let next = base.front_mut().and_then(|placed| Some((placed.at?, placed)));
                let next = next.filter(|(id, _)| id.born == run.id.born && (at..end).contains(&id.line));
                let (len, in_base) = match next {
                    Some((id, _)) if at < id.line => (id.line - at, None),
                    Some((_, placed)) => (placed.take((end - at) as usize), Some(placed.lines.start)),
                    None => (end - at, None),
                };
                let in_base = in_base.map(|rest| rest - len as usize);
                base.pop_front_if(|placed| placed.lines.is_empty());
                let (is_alive, lines) = (run.died == ALIVE, len as usize);
                let in_present = is_alive.then_some(present);
                segments.push(Segment { base: in_base, present: in_present, len: lines, born: run.id.born, died: run.died });
                present += if is_alive { lines } else { 0 };
                at += len;
            }
        }
        segments.extend(base.iter().map(|lost| Segment::lost(&lost.lines)));
        segments
    }
}

impl PlacedLines {
    /// Removes at most `most` lines from the start of the run, and returns their number.
    fn take(&mut self, most: usize) -> u32 {
        let taken = self.lines.len().min(most);
        self.lines.start += taken;
        self.at = self.at.map(|id| LineId { line: id.line + taken as u32, ..id });
        taken as u32
    }
}

impl Segment {
    fn lost(lines: &Range<usize>) -> Self {
        Self { base: Some(lines.start), present: None, len: lines.len(), born: OLDEST, died: OLDEST }
    }
}

/// The runs between the lines that another text certainly has, and these lines themselves. Entry `n` of `between` lies
/// above entry `n` of `anchored`.
struct Gaps {
    between: Vec<Vec<GapRun>>,
    anchored: Vec<Vec<(LineId, u32)>>,
}

#[derive(Clone, Copy)]
struct GapRun {
    id: LineId,
    len: u32,
    /// The index of the first line in the present text, if it has them.
    present: Option<usize>,
}

struct Finder<'a, F> {
    weave: &'a Weave,
    base: &'a Text,
    present: &'a Text,
    line_of: F,
    /// Hunks of which the other text certainly has lines. Among equal lines, theirs are the more likely matches.
    likely: HashSet<u32>,
}

impl<F: FnMut(usize, usize) -> Option<String>> Finder<'_, F> {
    /// Matches lines of the other text with the lines that the weave has in the same place.
    fn match_gap(&mut self, places: &mut LinePlaces, lines: Range<usize>, gap: &[GapRun]) {
        let count: usize = gap.iter().map(|run| run.len as usize).sum();
        if lines.is_empty() || count == 0 || lines.len().saturating_mul(count) > MOST_COMPARISONS {
            return lines.for_each(|line| places.push(line, None));
        }
        let candidates: Vec<(LineId, Option<String>)> = gap.iter().flat_map(|run| self.lines_of(*run)).collect();
        let wanted: Vec<&str> = lines.clone().map(|line| self.base.full_line(LineNo::at_index(line))).collect();
        self.note_unique(&wanted, &candidates);
        let weights: Vec<u64> = candidates.iter().map(|(id, _)| self.weight(*id)).collect();
        for (line, matched) in lines.zip(best_match(&wanted, &candidates, &weights)) {
            places.push(line, matched.map(|nth| candidates[nth].0));
        }
    }

    fn lines_of(&mut self, run: GapRun) -> Vec<(LineId, Option<String>)> {
        let step = self.weave.step_of(run.id.born);
        let mut line = |nth: u32| match run.present {
            Some(first) => Some(self.present.full_line(LineNo::at_index(first + nth as usize)).to_owned()),
            None => (self.line_of)(step, (run.id.line + nth) as usize),
        };
        (0..run.len).map(|nth| (LineId { line: run.id.line + nth, ..run.id }, line(nth))).collect()
    }

    /// A line that occurs once on both sides is a certain match.
    fn note_unique(&mut self, wanted: &[&str], candidates: &[(LineId, Option<String>)]) {
        let mut counts: HashMap<&str, (usize, usize, u32)> = HashMap::new();
        wanted.iter().for_each(|line| counts.entry(line).or_default().0 += 1);
        for (id, line) in candidates.iter().filter_map(|(id, line)| Some((id, line.as_deref()?))) {
            let count = counts.entry(line).or_default();
            (count.1, count.2) = (count.1 + 1, id.born);
        }
        self.likely.extend(counts.values().filter(|(wanted, found, _)| (*wanted, *found) == (1, 1)).map(|count| count.2));
    }

    /// The number of matched lines counts more than their origin.
    fn weight(&self, id: LineId) -> u64 {
        const MATCH: u64 = 1 << 32;
        match id.born {
            OLDEST => MATCH + 2,
            born => MATCH + u64::from(self.likely.contains(&born)),
        }
    }
}

/// The longest common subsequence with the highest weight: for each wanted line its matching candidate.
fn best_match(wanted: &[&str], candidates: &[(LineId, Option<String>)], weights: &[u64]) -> Vec<Option<usize>> {
    let width = candidates.len() + 1;
    let mut best = vec![0_u64; (wanted.len() + 1) * width];
    let is_same = |line: usize, nth: usize| candidates[nth].1.as_deref() == Some(wanted[line]);
    for line in (0..wanted.len()).rev() {
        for nth in (0..candidates.len()).rev() {
            let matched = if is_same(line, nth) { weights[nth] + best[(line + 1) * width + nth + 1] } else { 0 };
            best[line * width + nth] = matched.max(best[(line + 1) * width + nth]).max(best[line * width + nth + 1]);
        }
    }
    let mut found = vec![None; wanted.len()];
    let (mut line, mut nth) = (0, 0);
    while line < wanted.len() && nth < candidates.len() {
        let score = best[line * width + nth];
        if is_same(line, nth) && score == weights[nth] + best[(line + 1) * width + nth + 1] {
            found[line] = Some(nth);
            (line, nth) = (line + 1, nth + 1);
        } else if score == best[line * width + nth + 1] {
            nth += 1;
        } else {
            line += 1;
        }
    }
    found
}
