//! Undo by lines: takes changes back out of a text that others have changed since.
//!
//! [`UndoDraft`] begins with the present text and goes back through the history of the file, one change after the other. On its way it
//! carries a line map along, from the text at the point that it has reached to the draft, and keeps in it only lines that are proven to
//! be there: by the line maps of the changes themselves, and where one has none, by `crate::proof`. A change that is to be taken back is
//! inverted hunk by hunk, and each hunk is placed by that map. A hunk without proof is left as it is, with the reason.
//!
//! Lines that an undo puts back are the lines that the change took away, not new ones. So the map leads through an undo to what was
//! there before the change that it took back, and a change can be undone and redone as often as one likes.

mod place;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, ops::Range};

use serde::{Deserialize, Serialize};

use self::place::{HunkPlace, HunkPlacer, bytes, moved};
use crate::{
    hash::ContentHash,
    ids::ChangeId,
    line_map::{Hunk, LineMap},
    lines::LineNo,
    outcome::undo::{LeftHunk, NotUndoneCause},
    proof::Proof,
    text::{LineEnding, Text},
};

/// A change in the history of a text. A file that did not exist is an empty text.
#[derive(Debug, Clone, Copy)]
pub struct TextStep<'a> {
    /// Its name.
    pub change: &'a ChangeId,
    /// The text before it.
    pub before: &'a Text,
    /// The text after it.
    pub after: &'a Text,
    /// Which lines became which, if the change itself says so.
    pub lines: Option<&'a LineMap>,
}

impl TextStep<'_> {
    /// Which lines certainly became which. What the change itself says is believed if it can be true.
    pub fn proven_lines(&self) -> LineMap {
        let lines = self.lines.filter(|lines| lines.fits(self.before, self.after));
        Proof::between(lines, self.before, self.after).proven_map()
    }
}

/// How much of a change of a file an undo took back by lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndonePart {
    /// The change.
    pub change: ChangeId,
    /// The hunks that were taken back, from top to bottom.
    pub hunks: Vec<UndoneHunk>,
    /// How many hunks the change has in this file.
    pub of: usize,
}

/// A hunk that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredHunk", into = "StoredHunk")]
pub struct UndoneHunk {
    /// Its lines before and after the change.
    pub hunk: Hunk,
    /// Where it was taken back, as lines of the text after the undo.
    pub at: Vec<Range<usize>>,
    /// Whether the old lines are there, in the one place that `at` says, so that they are known to be the same lines.
    pub is_back: bool,
}

/// Start and length of the old and of the new lines, then of each place.
type StoredHunk = (usize, usize, usize, usize, Vec<(usize, usize)>, bool);

impl From<StoredHunk> for UndoneHunk {
    fn from((before, removed, after, added, at, is_back): StoredHunk) -> Self {
        let range = |start: usize, length: usize| start..start.saturating_add(length);
        let hunk = Hunk { before: range(before, removed), after: range(after, added) };
        Self { hunk, at: at.into_iter().map(|(start, length)| range(start, length)).collect(), is_back }
    }
}

impl From<UndoneHunk> for StoredHunk {
    fn from(UndoneHunk { hunk: Hunk { before, after }, at, is_back }: UndoneHunk) -> Self {
        let at = at.into_iter().map(|at| (at.start, at.len())).collect();
        (before.start, before.len(), after.start, after.len(), at, is_back)
    }
}

/// A text from which changes are taken back, the newest first.
#[derive(Debug, Clone)]
pub struct UndoDraft {
    text: Text,
    /// From the present text to the draft, as long as that is known exactly.
    made: Option<LineMap>,
    /// From the text at the point of the history to the draft; `None` if nothing is known of it.
    way: Option<LineMap>,
    /// The same for the versions that were reached, since the last change of which it is known who wrote which line.
    ways: HashMap<ContentHash, Option<LineMap>>,
    /// The lines of older changes that undos have put back, for each change.
    put_back: HashMap<ChangeId, Vec<LineRun>>,
    undone: Vec<UndonePart>,
    left: Vec<LeftHunk>,
}

/// Lines that stand together in two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineRun {
    lines: Range<usize>,
    /// Where the first of them is in the other text.
    to: usize,
}

/// What came of taking changes back.
#[derive(Debug, Clone)]
pub struct UndoneText {
    /// The text.
    pub text: Text,
    /// From the present text to this one, if that is known exactly.
    pub lines: Option<LineMap>,
    /// What was taken back by lines.
    pub undone: Vec<UndonePart>,
    /// What was left, in the lines of this text.
    pub left: Vec<LeftHunk>,
}

impl UndoDraft {
    /// Begins with the present text.
    pub fn new(present: Text) -> Self {
        let lines = present.line_count();
        let same = Some(LineMap::unchanged(lines));
        Self {
            text: present,
            made: same.clone(),
            way: same,
            ways: HashMap::new(),
            put_back: HashMap::new(),
            undone: Vec::new(),
            left: Vec::new(),
        }
    }

    /// The text as it is so far.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// The history is at a version that it has at several points. Where only programs that replace whole files came in between, such as
    /// git, equal versions are the same lines.
    pub fn reach(&mut self, version: ContentHash) {
        let way = self.ways.entry(version).or_insert_with(|| self.way.clone());
        self.way.clone_from(way);
    }

    /// Goes back over an undo by lines: what it put back are the lines that the changes had taken away. Call it before the undo itself is
    /// passed or taken back.
    pub fn note_put_back(&mut self, parts: &[UndonePart]) {
        let Some(way) = &self.way else { return };
        for part in parts {
            let back = part.hunks.iter().filter(|undone| undone.is_back);
            let runs =
                back.filter_map(|undone| Some(LineRun { lines: undone.hunk.before.clone(), to: undone.at.first()?.start }));
            let runs: Vec<LineRun> = runs.flat_map(|run| run.through(way)).collect();
            self.put_back.entry(part.change.clone()).or_default().extend(runs);
        }
    }

    /// Goes back over an undo that made the file again what it was before `oldest`.
    pub fn note_all_put_back(&mut self, oldest: &ChangeId) {
        let Some(way) = &self.way else { return };
        let runs = way.kept().map(|(lines, shift)| LineRun { to: moved(lines.start, shift), lines });
        self.put_back.entry(oldest.clone()).or_default().extend(runs);
    }

    /// Goes back over a change that stays, with these lines.
    pub fn pass(&mut self, change: &ChangeId, lines: &LineMap) {
        let way = self.way.take().filter(|way| way.before_lines() == lines.after_lines());
        self.way = way.map(|way| lines.then(&way));
        self.ways.clear();
        self.join_put_back(change);
    }

    /// Goes back over a change that stays, and of which only the texts are known.
    pub fn pass_texts(&mut self, before: &Text, after: &Text) {
        let lines = Proof::between(None, before, after).proven_map();
        self.way = self.way.take().filter(|way| way.before_lines() == lines.after_lines()).map(|way| lines.then(&way));
    }

    /// Goes back over something that nothing is known of.
    pub fn lose_track(&mut self) {
        self.way = None;
    }

    /// Takes a change back, except for the hunks that were taken back before.
    pub fn take_back(&mut self, step: &TextStep<'_>, done: &[Hunk]) {
        let lines = step.proven_lines();
        let way = self.way.take().filter(|way| way.fits(step.after, &self.text));
        let way = way.unwrap_or_else(|| Proof::between(None, step.after, &self.text).proven_map());
        let placer = HunkPlacer { before: step.before, after: step.after, now: &self.text, way: &way };
        let is_open = |hunk: &&Hunk| !done.iter().any(|done| is_about_same_lines(hunk, done));
        let mut hunks: Vec<PlacedHunk> = lines
            .hunks()
            .iter()
            .filter(is_open)
            .map(|hunk| PlacedHunk { hunk: hunk.clone(), place: placer.place(hunk) })
            .collect();
        if changes_encoding(step) {
            hunks.iter_mut().for_each(|hunk| hunk.leave(NotUndoneCause::EncodingChanged));
        }
        let edit = self.edit(step, &mut hunks);
        let back = self.record(step, hunks, &edit, lines.hunks().len());
        self.way = Some(with_runs(&lines.then(&way).then(&edit), back));
        self.ways.clear();
        self.join_put_back(step.change);
    }

    /// Takes changes back as a whole: the text is what it was before them. `lines` leads from that to what the draft was, if that is
    /// known.
    pub fn replace(&mut self, before: Text, lines: Option<&LineMap>) {
        let back = lines.filter(|lines| lines.fits(&before, &self.text)).map(LineMap::inverse);
        self.made = self.made.take().zip(back).map(|(made, back)| made.then(&back));
        self.way = Some(LineMap::unchanged(before.line_count()));
        self.text = before;
        self.ways.clear();
        self.put_back.clear();
    }

    /// What came of it.
    pub fn finish(self) -> UndoneText {
        UndoneText { text: self.text, lines: self.made, undone: self.undone, left: self.left }
    }

    /// Makes the edits of hunks that have a place, and gives the map from the draft before to the draft after them.
    fn edit(&mut self, step: &TextStep<'_>, hunks: &mut [PlacedHunk]) -> LineMap {
        let edits: Vec<LineEdit<'_>> = hunks.iter().flat_map(|hunk| hunk.edits(step, &self.text)).collect();
        let unchanged = LineMap::unchanged(self.text.line_count());
        if edits.is_empty() {
            return unchanged;
        }
        let (content, edit) = edited(&self.text, &edits);
        match self.text.with(content) {
            Ok(text) => {
                self.text = text;
                self.follow(&edit);
                edit
            }
            Err(_) => {
                hunks.iter_mut().for_each(|hunk| hunk.leave(NotUndoneCause::Unencodable));
                unchanged
            }
        }
    }

    /// Keeps all that speaks of lines of the draft up to date with an edit.
    fn follow(&mut self, edit: &LineMap) {
        self.made = self.made.take().map(|made| made.then(edit));
        for runs in self.put_back.values_mut() {
            *runs = runs.drain(..).flat_map(|run| run.through(edit)).collect();
        }
        for undone in self.undone.iter_mut().flat_map(|part| &mut part.hunks) {
            undone.is_back = undone.is_back && undone.at.iter().all(|at| is_kept(edit, at));
            undone.at.iter_mut().for_each(|at| *at = region_after(edit, at));
        }
        self.left.iter_mut().for_each(|left| left.now = region_after(edit, &left.now));
    }

    /// Notes what was done with each hunk. Gives where the old lines are now.
    fn record(&mut self, step: &TextStep<'_>, hunks: Vec<PlacedHunk>, edit: &LineMap, of: usize) -> Vec<LineRun> {
        let (mut undone, mut back) = (Vec::new(), Vec::new());
        for PlacedHunk { hunk, place } in hunks {
            let at: Vec<Range<usize>> = match place {
                HunkPlace::Left { why, now } => {
                    let wanted = hunk.before.map(|line| step.before.line(LineNo::at_index(line)).to_owned()).collect();
                    let now = region_after(edit, &now);
                    self.left.push(LeftHunk { change: step.change.clone(), why, now, wanted });
                    continue;
                }
                // It is not recorded as taken back: the lines are another's, who may take them away again.
                HunkPlace::AlreadySo => continue,
                HunkPlace::Runs(runs) => runs.iter().map(|run| region_after(edit, run)).collect(),
            };
            let there = at.first().filter(|_| at.len() == 1 && !hunk.before.is_empty());
            let there = there.filter(|there| bytes(&self.text, there) == bytes(step.before, &hunk.before));
            let is_back = there.is_some();
            back.extend(there.map(|there| LineRun { lines: hunk.before.clone(), to: there.start }));
            undone.push(UndoneHunk { hunk, at, is_back });
        }
        if !undone.is_empty() {
            self.undone.push(UndonePart { change: step.change.clone(), hunks: undone, of });
        }
        back
    }

    /// The lines of a text that were taken away by this change and put back by an undo are the same lines.
    fn join_put_back(&mut self, change: &ChangeId) {
        if let (Some(way), Some(back)) = (&self.way, self.put_back.remove(change)) {
            self.way = Some(with_runs(way, back));
        }
    }
}

/// A hunk of a change that is taken back, and what is to be done about it.
struct PlacedHunk {
    hunk: Hunk,
    place: HunkPlace,
}

impl PlacedHunk {
    /// Leaves it for this reason, if it was to be edited.
    fn leave(&mut self, why: NotUndoneCause) {
        if let HunkPlace::Runs(runs) = &self.place {
            let now = runs.first().map_or(0, |run| run.start)..runs.last().map_or(0, |run| run.end);
            self.place = HunkPlace::Left { why, now };
        }
    }

    fn edits<'a>(&self, step: &TextStep<'a>, draft: &Text) -> Vec<LineEdit<'a>> {
        let HunkPlace::Runs(runs) = &self.place else { return Vec::new() };
        let old = bytes(step.before, &self.hunk.before);
        let edit = |run: &Range<usize>| {
            // The last line of a file may have no ending. Where others have added lines below it, it needs one.
            let is_open = !old.is_empty() && !old.ends_with('\n') && run.end < draft.line_count();
            let ending = if is_open { ending_below(step, &self.hunk, draft) } else { "" };
            LineEdit { at: run.clone(), with: old, ending, lines: self.hunk.before.len() }
        };
        runs.iter().map(edit).collect()
    }
}

/// Lines of the draft, and what comes in their place.
struct LineEdit<'a> {
    at: Range<usize>,
    with: &'a str,
    /// What the last line ends with, if it has no ending of its own.
    ending: &'static str,
    /// How many lines come.
    lines: usize,
}

/// Makes edits, which are in order.
fn edited(text: &Text, edits: &[LineEdit<'_>]) -> (String, LineMap) {
    let grown: usize = edits.iter().map(|edit| edit.with.len() + edit.ending.len()).sum();
    let mut content = String::with_capacity(text.as_str().len() + grown);
    let (mut runs, mut from, mut shift, mut copied) = (Vec::new(), 0, 0, 0);
    for edit in edits {
        runs.push((from..edit.at.start, shift));
        content.push_str(&text.as_str()[copied..text.start_of(edit.at.start)]);
        content.push_str(edit.with);
        content.push_str(edit.ending);
        copied = text.start_of(edit.at.end);
        shift += edit.lines as i64 - edit.at.len() as i64;
        from = edit.at.end;
    }
    content.push_str(&text.as_str()[copied..]);
    let lines = text.line_count();
    runs.push((from..lines, shift));
    let after = moved(lines, shift);
    (content, LineMap::keeping(runs.into_iter().filter(|(run, _)| !run.is_empty()), lines, after))
}

/// How the last line of a change ended that others have added lines to.
fn ending_below(step: &TextStep<'_>, hunk: &Hunk, draft: &Text) -> &'static str {
    let last = hunk.after.clone().next_back().map(|last| step.after.ending(LineNo::at_index(last)));
    match last {
        Some(ending) if ending != LineEnding::None => ending.as_str(),
        _ => draft.usual_ending().as_str(),
    }
}

/// Whether a change gave the file another encoding or byte order mark, which no line shows.
fn changes_encoding(step: &TextStep<'_>) -> bool {
    let TextStep { before, after, .. } = step;
    !before.bytes().is_empty() && (before.encoding(), before.has_bom()) != (after.encoding(), after.has_bom())
}

/// Whether a hunk was taken back before. An earlier Surehand may have divided the change in another way.
fn is_about_same_lines(hunk: &Hunk, done: &Hunk) -> bool {
    let meets = |one: &Range<usize>, other: &Range<usize>| one.start < other.end && other.start < one.end;
    hunk == done || meets(&hunk.before, &done.before) || meets(&hunk.after, &done.after)
}

fn is_kept(edit: &LineMap, lines: &Range<usize>) -> bool {
    let touches = |hunk: &Hunk| match hunk.before.is_empty() {
        true => lines.start < hunk.before.start && hunk.before.start < lines.end,
        false => hunk.before.start < lines.end && lines.start < hunk.before.end,
    };
    !edit.hunks().iter().any(touches)
}

/// Where lines are after an edit, or what came in their place. A place between two lines is where the edit that touches it is.
fn region_after(edit: &LineMap, lines: &Range<usize>) -> Range<usize> {
    let hunks = edit.hunks();
    let shift =
        |above: usize| above.checked_sub(1).map_or(0, |last| hunks[last].after.end as i64 - hunks[last].before.end as i64);
    if lines.is_empty() {
        let above = hunks.partition_point(|hunk| hunk.before.end < lines.start);
        let touching = hunks.get(above).filter(|hunk| hunk.before.start <= lines.start);
        let place = || moved(lines.start, shift(above));
        return touching.map_or_else(|| place()..place(), |hunk| hunk.after.clone());
    }
    let region = |line: usize| {
        let above = hunks.partition_point(|hunk| hunk.before.end <= line);
        let holding = hunks.get(above).filter(|hunk| hunk.before.start <= line);
        let place = || moved(line, shift(above));
        holding.map_or_else(|| place()..place() + 1, |hunk| hunk.after.clone())
    };
    region(lines.start).start..region(lines.end - 1).end
}

impl LineRun {
    /// Where it ends in the other text.
    fn end(&self) -> usize {
        self.to + self.lines.len()
    }

    /// Those of its lines that a map keeps, by where it leads.
    fn through(&self, map: &LineMap) -> Vec<LineRun> {
        let place = |(line, to)| Some((line, map.new_place(LineNo::at_index(to))?.index()));
        Self::joined(self.lines.clone().zip(self.to..).filter_map(place))
    }

    /// Those of its lines that a map does not keep.
    fn outside(&self, map: &LineMap) -> Vec<LineRun> {
        let is_new = |(line, _): &(usize, usize)| map.new_place(LineNo::at_index(*line)).is_none();
        Self::joined(self.lines.clone().zip(self.to..).filter(is_new))
    }

    /// Lines with where they are in the other text, as runs.
    fn joined(lines: impl Iterator<Item = (usize, usize)>) -> Vec<LineRun> {
        let mut runs: Vec<LineRun> = Vec::new();
        for (line, to) in lines {
            match runs.last_mut().filter(|last| last.lines.end == line && last.end() == to) {
                Some(last) => last.lines.end = line + 1,
                None => runs.push(LineRun { lines: line..line + 1, to }),
            }
        }
        runs
    }
}

/// A map that keeps these lines as well. Lines that would cross what is kept are left out.
fn with_runs(map: &LineMap, runs: Vec<LineRun>) -> LineMap {
    let mut kept: Vec<LineRun> = map.kept().map(|(run, shift)| LineRun { to: moved(run.start, shift), lines: run }).collect();
    let is_apart = |above: &LineRun, below: &LineRun| above.lines.end <= below.lines.start && above.end() <= below.to;
    for run in runs.iter().flat_map(|run| run.outside(map)) {
        let place = kept.partition_point(|above| above.lines.start < run.lines.start);
        let is_below = place == 0 || is_apart(&kept[place - 1], &run);
        if is_below && kept.get(place).is_none_or(|below| is_apart(&run, below)) {
            kept.insert(place, run);
        }
    }
    let runs = kept.into_iter().map(|run| (run.lines.clone(), run.to as i64 - run.lines.start as i64));
    LineMap::keeping(runs, map.before_lines(), map.after_lines())
}
