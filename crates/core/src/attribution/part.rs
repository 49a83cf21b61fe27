//! Computes a text with the lines of some steps and no others.
//!
//! The steps changed the text in hunks. Hunks that replaced one another's lines cannot be separated any more, so they
//! are decided together: they are taken if all of them are chosen, and left out if only some are. A hunk that was
//! inserted between the lines of another hunk has no place without it.

use std::{collections::HashMap, ops::Range};

use super::{
    ALIVE, OLDEST, Weave,
    place::{LinePlaces, Segment},
};
use crate::{lines::LineNo, text::Text};

/// A text with the lines of the chosen steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialText {
    /// The content of the text, including a byte order mark.
    pub content: String,
    /// The changes of chosen steps that could not be applied.
    pub left: Vec<LeftLines>,
}

/// A change of a chosen step that has no place without other steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftLines {
    /// Its lines in the present text, as 0-based indexes; empty if it only removed lines.
    pub lines: Range<usize>,
    /// The lines of the other text that it removed, as 0-based indexes.
    pub removed: Range<usize>,
    /// Why the lines have no place.
    pub why: LeftCause,
    /// The other steps that it depends on; 0 for the original text.
    pub others: Vec<usize>,
}

/// The reason why lines have no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftCause {
    /// They replaced lines of other steps that the other text does not have.
    ReplacesOthers,
    /// Other steps have replaced some of them since.
    ReplacedByOthers,
    /// They are among lines of other steps that the other text does not have.
    AmongOthers,
}

impl Weave {
    /// Applies the changes of the chosen steps to the text `base`, whose lines are at these places. `present` is the
    /// text after the last step.
    pub fn part(&self, base: (&Text, &LinePlaces), present: &Text, is_chosen: impl Fn(usize) -> bool) -> PartialText {
        let segments = without_restored(self.segments(base.1), base.0, present);
        let mut plan = PartPlan { weave: self, groups: Groups::of(self, &segments), segments: &segments, is_chosen };
        let mut verdicts = plan.verdicts();
        let around = plan.leave_without_place(&mut verdicts);
        let mut writer = PartWriter { base: base.0, present, lines: Vec::new() };
        for segment in &segments {
            let is_taken = segment.hunk().map(|hunk| verdicts[plan.groups.find(hunk)] == Verdict::Take);
            if is_taken.map_or(segment.base.is_some(), |is_taken| segment.base.is_some() != is_taken) {
                writer.push(segment);
            }
        }
        PartialText { content: writer.finish(), left: plan.left(&verdicts, &around) }
    }
}

impl Segment {
    /// Whether both texts have these lines.
    fn is_kept(&self) -> bool {
        self.base.is_some() && self.died == ALIVE
    }

    /// The hunk that makes the difference between the other text and the present one.
    fn hunk(&self) -> Option<u32> {
        match (self.base, self.present) {
            (Some(_), None) => Some(self.died).filter(|died| *died != ALIVE),
            (None, Some(_)) => Some(self.born),
            _ => None,
        }
    }
}

/// Drops apparent differences: regions between two common lines where the removed lines were inserted again unchanged.
fn without_restored(segments: Vec<Segment>, base: &Text, present: &Text) -> Vec<Segment> {
    fn lines(text: &Text, runs: impl Iterator<Item = (usize, usize)>) -> impl Iterator<Item = &str> {
        runs.flat_map(|(start, len)| start..start + len).map(LineNo::at_index).map(|line| text.full_line(line))
    }
    let is_restored = |region: &[Segment]| {
        let gone = region.iter().filter_map(|segment| segment.base.map(|start| (start, segment.len)));
        let came = region.iter().filter_map(|segment| segment.present.map(|start| (start, segment.len)));
        region.iter().any(|segment| segment.base.is_some()) && lines(base, gone).eq(lines(present, came))
    };
    let mut kept = Vec::with_capacity(segments.len());
    for region in segments.chunk_by(|above, below| !above.is_kept() && !below.is_kept()) {
        match region {
            [one] if one.is_kept() => kept.push(*one),
            _ if is_restored(region) => {
                let back = region.iter().filter(|segment| segment.base.is_some());
                kept.extend(back.map(|segment| Segment { died: ALIVE, ..*segment }));
            }
            _ => kept.extend(region),
        }
    }
    kept
}

/// Groups of hunks that replaced one another's lines. The number of a group is that of its first hunk.
struct Groups {
    parents: Vec<u32>,
    /// Whether the group replaced lines of the original text that the other text does not have.
    is_about_oldest: Vec<bool>,
    /// Whether the hunk makes a difference between the texts, or is related to hunks that do.
    takes_part: Vec<bool>,
}

impl Groups {
    fn of(weave: &Weave, segments: &[Segment]) -> Self {
        let count = weave.hunks.len();
        let mut groups =
            Self { parents: (0..count as u32).collect(), is_about_oldest: vec![false; count], takes_part: vec![false; count] };
        let was_transient = |segment: &&Segment| segment.base.is_none() && segment.present.is_none();
        for segment in segments.iter().filter(was_transient) {
            // If nothing replaced them, nothing depends on them.
            if weave.hunks[segment.died as usize].adds {
                groups.join(segment.born, segment.died);
            }
        }
        segments.iter().filter_map(Segment::hunk).for_each(|hunk| groups.takes_part[hunk as usize] = true);
        groups
    }

    fn join(&mut self, replaced: u32, by: u32) {
        self.takes_part[replaced as usize] = true;
        self.takes_part[by as usize] = true;
        let (one, other) = (self.find(replaced), self.find(by));
        let (first, last) = (one.min(other), one.max(other));
        match first == OLDEST as usize {
            true => self.is_about_oldest[last] = true,
            false => {
                self.parents[last] = first as u32;
                self.is_about_oldest[first] |= self.is_about_oldest[last];
            }
        }
    }

    fn find(&mut self, hunk: u32) -> usize {
        let mut at = hunk as usize;
        while self.parents[at] as usize != at {
            self.parents[at] = self.parents[self.parents[at] as usize];
            at = self.parents[at] as usize;
        }
        at
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Take,
    Pass,
    Leave(LeftCause),
}

struct PartPlan<'a, F> {
    weave: &'a Weave,
    segments: &'a [Segment],
    groups: Groups,
    is_chosen: F,
}

impl<F: Fn(usize) -> bool> PartPlan<'_, F> {
    fn is_chosen(&self, hunk: u32) -> bool {
        hunk != OLDEST && (self.is_chosen)(self.weave.step_of(hunk))
    }

    /// Decides what is done with each group.
    fn verdicts(&mut self) -> Vec<Verdict> {
        let count = self.weave.hunks.len();
        let (mut has_chosen, mut has_others) = (vec![false; count], self.groups.is_about_oldest.clone());
        for hunk in (0..count as u32).filter(|hunk| self.groups.takes_part[*hunk as usize]).collect::<Vec<_>>() {
            let group = self.groups.find(hunk);
            match self.is_chosen(hunk) {
                true => has_chosen[group] = true,
                false => has_others[group] = true,
            }
        }
        let verdict = |group: usize| match (has_chosen[group], has_others[group]) {
            (true, false) => Verdict::Take,
            (false, _) => Verdict::Pass,
            (true, true) if self.groups.is_about_oldest[group] || !self.is_chosen(group as u32) => {
                Verdict::Leave(LeftCause::ReplacesOthers)
            }
            (true, true) => Verdict::Leave(LeftCause::ReplacedByOthers),
        };
        (0..count).map(verdict).collect()
    }

    /// Leaves out the groups that only insert lines between those of one other group, which is not taken. Returns the
    /// surrounding group of each. A group that has a place also gives a place to others.
    fn leave_without_place(&mut self, verdicts: &mut [Verdict]) -> HashMap<usize, usize> {
        let mut has_place = vec![false; verdicts.len()];
        loop {
            let around = self.surroundings(verdicts, &has_place);
            let placed: Vec<usize> = around.iter().filter(|(_, outer)| outer.is_none()).map(|(inner, _)| *inner).collect();
            if placed.is_empty() {
                around.keys().for_each(|inner| verdicts[*inner] = Verdict::Leave(LeftCause::AmongOthers));
                return around.into_iter().filter_map(|(inner, outer)| Some((inner, outer?))).collect();
            }
            placed.into_iter().for_each(|group| has_place[group] = true);
        }
    }

    /// The groups that are to be taken and have no place yet, each with the single group whose lines surround all of
    /// its lines.
    fn surroundings(&mut self, verdicts: &[Verdict], has_place: &[bool]) -> HashMap<usize, Option<usize>> {
        let mut around: HashMap<usize, Option<usize>> = HashMap::new();
        let mut add = |inner: usize, outer: Option<usize>| {
            let known = around.entry(inner).or_insert(outer);
            *known = known.filter(|known| Some(*known) == outer);
        };
        let (mut above, mut open): (Option<usize>, Vec<usize>) = (None, Vec::new());
        for segment in self.segments {
            let group = segment.hunk().map(|hunk| self.groups.find(hunk));
            let current = match group {
                Some(group) if verdicts[group] == Verdict::Take && !has_place[group] => {
                    match segment.base {
                        // It replaces these lines.
                        Some(_) => add(group, None),
                        None => open.push(group),
                    }
                    continue;
                }
                None if !segment.is_kept() => continue,
                Some(group) if segment.base.is_none() && !has_place[group] => Some(group),
                _ => None,
            };
            let outer = above.filter(|above| Some(*above) == current);
            open.drain(..).for_each(|inner| add(inner, outer));
            above = current;
        }
        open.drain(..).for_each(|inner| add(inner, None));
        around
    }

    /// The changes of chosen steps that are left out, from top to bottom.
    fn left(&mut self, verdicts: &[Verdict], around: &HashMap<usize, usize>) -> Vec<LeftLines> {
        let mut left: Vec<(usize, LeftLines)> = Vec::new();
        for segment in self.segments {
            let Some(hunk) = segment.hunk().filter(|hunk| self.is_chosen(*hunk)) else { continue };
            let group = self.groups.find(hunk);
            let Verdict::Leave(why) = verdicts[group] else { continue };
            let run = |start: Option<usize>| start.map_or(0..0, |start| start..start + segment.len);
            let (lines, removed) = (run(segment.present), run(segment.base));
            match left.last_mut().filter(|(last, _)| *last == group).map(|(_, last)| last) {
                Some(last) if last.lines.is_empty() && last.removed.end == removed.start => last.removed.end = removed.end,
                Some(last) if last.lines.is_empty() && removed.is_empty() => last.lines = lines,
                Some(last) if removed.is_empty() && last.lines.end == lines.start => last.lines.end = lines.end,
                _ => {
                    let about = if why == LeftCause::AmongOthers { around.get(&group).copied() } else { Some(group) };
                    left.push((group, LeftLines { lines, removed, why, others: self.others(about) }));
                }
            }
        }
        left.into_iter().map(|(_, left)| left).collect()
    }

    /// The steps in a group that are not chosen.
    fn others(&mut self, group: Option<usize>) -> Vec<usize> {
        let Some(group) = group else { return Vec::new() };
        let mut steps: Vec<usize> = self.groups.is_about_oldest[group].then_some(0).into_iter().collect();
        for hunk in 1..self.weave.hunks.len() as u32 {
            if self.groups.takes_part[hunk as usize] && self.groups.find(hunk) == group && !self.is_chosen(hunk) {
                steps.push(self.weave.step_of(hunk));
            }
        }
        steps.dedup();
        steps
    }
}

/// Writes a text that consists of lines of two texts.
struct PartWriter<'a> {
    base: &'a Text,
    present: &'a Text,
    lines: Vec<&'a str>,
}

impl PartWriter<'_> {
    /// Appends the lines of a segment.
    fn push(&mut self, segment: &Segment) {
        let (text, start) = match (segment.base, segment.present) {
            (Some(start), _) => (self.base, start),
            (None, Some(start)) => (self.present, start),
            (None, None) => return,
        };
        self.lines.extend((start..start + segment.len).map(|line| text.full_line(LineNo::at_index(line))));
    }

    fn finish(self) -> String {
        let model = if self.base.line_count() > 0 { self.base } else { self.present };
        let mut content = model.as_str()[..model.body_start()].to_owned();
        for (nth, line) in self.lines.iter().enumerate() {
            content.push_str(line);
            // The last line of a file may have no ending. If other lines follow it here, it needs one.
            if nth + 1 < self.lines.len() && !line.ends_with('\n') {
                content.push_str(model.usual_ending().as_str());
            }
        }
        content
    }
}
