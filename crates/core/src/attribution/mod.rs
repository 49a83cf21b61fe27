//! Attribution: finds the change that wrote each line of a text.
//!
//! A [`Weave`] holds every line that a text ever had, in one order, each with the change that inserted it and the one
//! that removed it. Line maps extend it change by change, in runs of lines, so its size grows with the number of
//! changes, not of lines. Three queries use it: [`Weave::lines`] gives the change of each present line,
//! [`Weave::place`] finds the lines of another text (a commit) in it, and [`Weave::part`] applies the lines of some
//! changes, and no others, to that text.

mod part;
mod place;
#[cfg(test)]
mod tests;

use std::ops::Range;

use self::place::Segment;
pub use self::{
    part::{LeftCause, LeftLines, PartialText},
    place::LinePlaces,
};
use crate::line_map::LineMap;

/// All lines that a text ever had. Steps are counted from 1; step 0 is the original text.
#[derive(Debug, Clone)]
pub struct Weave {
    runs: Vec<Run>,
    hunks: Vec<HunkOrigin>,
    steps: u32,
    /// The number of lines of the text after the last step.
    alive: usize,
}

/// Adjacent lines that were inserted together and removed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    id: LineId,
    len: u32,
    /// The hunk that removed them; [`ALIVE`] if none did.
    died: u32,
}

/// The identity of a line: the hunk that inserted it, and its index in the text after that hunk's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct LineId {
    born: u32,
    line: u32,
}

/// A place where a step changed the text.
#[derive(Debug, Clone, Copy)]
struct HunkOrigin {
    step: u32,
    /// Whether the hunk inserted lines.
    adds: bool,
}

/// The value of [`Run::died`] for lines that no hunk has removed.
const ALIVE: u32 = u32::MAX;

/// The pseudo-hunk that inserted the original text.
const OLDEST: u32 = 0;

/// The lines that a text had at one point of its history, and for the others the hunk that had removed them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeaveState(Vec<Run>);

impl WeaveState {
    fn alive(&self) -> impl Iterator<Item = &Run> {
        self.0.iter().filter(|run| run.died == ALIVE)
    }
}

/// Adjacent lines of the present text that one step wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedLines {
    /// The lines, as 0-based indexes.
    pub lines: Range<usize>,
    /// The step that wrote them; 0 for lines of the original text.
    pub step: usize,
    /// The index of the first of them in the other text, if that has them.
    pub base: Option<usize>,
}

/// A line map that does not fit the text that a weave has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the line map is about a text of {expected} lines, and there are {found}")]
pub struct OtherText {
    /// The number of lines that the map starts from.
    pub expected: usize,
    /// The number of lines that the text has.
    pub found: usize,
}

impl Weave {
    /// A weave of an original text with this many lines.
    pub fn new(lines: usize) -> Self {
        let id = LineId { born: OLDEST, line: 0 };
        let runs = (lines > 0).then_some(Run { id, len: lines as u32, died: ALIVE }).into_iter().collect();
        Self { runs, hunks: vec![HunkOrigin { step: 0, adds: true }], steps: 0, alive: lines }
    }

    /// The number of lines of the text after the last step.
    pub fn line_count(&self) -> usize {
        self.alive
    }

    /// Adds a step, given by its line map. Lines that the map keeps still belong to the step that wrote them.
    pub fn change(&mut self, lines: &LineMap) -> Result<(), OtherText> {
        if lines.before_lines() != self.alive {
            return Err(OtherText { expected: lines.before_lines(), found: self.alive });
        }
        self.steps += 1;
        let mut copied = RunCopy::of(&self.runs, lines.hunks().len());
        let mut at = 0;
        for hunk in lines.hunks() {
            let born = self.hunks.len() as u32;
            self.hunks.push(HunkOrigin { step: self.steps, adds: !hunk.after.is_empty() });
            copied.lines(hunk.before.start - at, ALIVE);
            copied.lines(hunk.before.len(), born);
            if !hunk.after.is_empty() {
                let id = LineId { born, line: hunk.after.start as u32 };
                copied.runs.push(Run { id, len: hunk.after.len() as u32, died: ALIVE });
            }
            at = hunk.before.end;
        }
        self.runs = copied.finish();
        self.alive = lines.after_lines();
        Ok(())
    }

    /// Adds a step of which only the number of lines after it is known. The whole text counts as replaced.
    pub fn replace(&mut self, lines: usize) {
        let all = crate::line_map::Hunk { before: 0..self.alive, after: 0..lines };
        let hunks = if self.alive + lines > 0 { vec![all] } else { Vec::new() };
        self.change(&LineMap::exact(hunks, self.alive, lines)).expect("the map was made for this text");
    }

    /// The present lines, for [`Weave::go_back_to`].
    pub fn state(&self) -> WeaveState {
        WeaveState(self.runs.clone())
    }

    /// Adds a step that restored an earlier text: its lines are the same lines, and belong to the steps that wrote
    /// them. Lines that were removed before count as removed by the same steps again, so that a step that had replaced
    /// a line keeps both halves of the replacement.
    pub fn go_back_to(&mut self, state: &WeaveState) {
        self.steps += 1;
        let died = self.hunks.len() as u32;
        self.hunks.push(HunkOrigin { step: self.steps, adds: false });
        let mut back = state.0.clone();
        back.sort_by_key(|then| then.id);
        let mut runs = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let end = run.id.line + run.len;
            let mut at = run.id.line;
            let from = back.partition_point(|then| (then.id.born, then.id.line + then.len) <= (run.id.born, at));
            let part = |from: u32, to: u32, died: u32| Run { id: LineId { line: from, ..run.id }, len: to - from, died };
            let gone = if run.died == ALIVE { died } else { run.died };
            for then in back[from..].iter().take_while(|then| then.id.born == run.id.born && then.id.line < end) {
                let (start, stop) = (then.id.line.max(at), (then.id.line + then.len).min(end));
                runs.extend((at < start).then(|| part(at, start, gone)));
                runs.push(part(start, stop, then.died));
                at = stop;
            }
            runs.extend((at < end).then(|| part(at, end, gone)));
        }
        self.runs = runs;
        self.alive = state.alive().map(|run| run.len as usize).sum();
    }

    /// The steps that wrote the present lines, from top to bottom, and which lines another text has, too.
    pub fn lines(&self, places: &LinePlaces) -> Vec<OwnedLines> {
        let mut owned: Vec<OwnedLines> = Vec::new();
        for segment in self.segments(places) {
            let Segment { base, present: Some(start), len, born, .. } = segment else { continue };
            let (lines, step) = (start..start + len, self.step_of(born));
            let continues = |last: &&mut OwnedLines| {
                last.step == step && last.base.map(|first| first + last.lines.len()) == base && last.lines.end == start
            };
            match owned.last_mut().filter(continues) {
                Some(last) => last.lines.end = lines.end,
                None => owned.push(OwnedLines { lines, step, base }),
            }
        }
        owned
    }

    fn step_of(&self, hunk: u32) -> usize {
        self.hunks[hunk as usize].step as usize
    }
}

/// Copies the runs of a weave from top to bottom, to extend it.
struct RunCopy<'a> {
    runs: Vec<Run>,
    rest: std::slice::Iter<'a, Run>,
    /// The rest of a run that was copied in part.
    cut: Option<Run>,
}

impl<'a> RunCopy<'a> {
    fn of(runs: &'a [Run], hunks: usize) -> Self {
        Self { runs: Vec::with_capacity(runs.len() + 3 * hunks), rest: runs.iter(), cut: None }
    }

    /// Copies this many lines of the text as removed by `died`, and all removed lines among them.
    fn lines(&mut self, count: usize, died: u32) {
        let mut left = count as u32;
        while left > 0 {
            let run = self.cut.take().or_else(|| self.rest.next().copied()).expect("the text has these lines");
            if run.died != ALIVE {
                self.runs.push(run);
                continue;
            }
            let taken = run.len.min(left);
            self.runs.push(Run { len: taken, died, ..run });
            left -= taken;
            if taken < run.len {
                self.cut = Some(Run { id: LineId { line: run.id.line + taken, ..run.id }, len: run.len - taken, ..run });
            }
        }
    }

    fn finish(mut self) -> Vec<Run> {
        self.runs.extend(self.cut);
        self.runs.extend(self.rest);
        self.runs
    }
}
