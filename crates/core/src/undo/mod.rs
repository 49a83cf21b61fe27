//! Undo by lines: removes changes from a text that others have changed since.
//!
//! [`UndoDraft`] begins with the present text and goes back through the history of the file, one change after the
//! other. It carries a line map along, from the text at the current point of the history to the draft. The map keeps
//! only lines that are proven to be there: by the line maps of the changes themselves and, if a change has none, by
//! `crate::proof`. A change that is taken back is inverted hunk by hunk, and that map places each hunk. A hunk without
//! proof stays in the text, and is reported with the reason.
//!
//! Lines that an undo puts back are the lines that the change removed, not new ones. So the map leads through an undo
//! to the text before the undone change, and a change can be undone and redone any number of times.

mod place;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, ops::Range};

use serde::{Deserialize, Serialize};

use self::place::{HunkPlace, HunkPlacer, bytes};
use crate::{
    hash::ContentHash,
    ids::ChangeId,
    line_map::{Hunk, LineMap, Splice, moved, shift_after, splice},
    lines::LineNo,
    outcome::undo::{LeftHunk, NotUndoneCause},
    proof::Proof,
    text::{LineEnding, Text},
};

/// A change in the history of a text. A file that did not exist is an empty text.
#[derive(Debug, Clone, Copy)]
pub struct TextStep<'a> {
    /// The id of the change.
    pub change: &'a ChangeId,
    /// The text before the change.
    pub before: &'a Text,
    /// The text after the change.
    pub after: &'a Text,
    /// The line map of the change, if it recorded one.
    pub lines: Option<&'a LineMap>,
}

impl TextStep<'_> {
    /// The lines that provably stayed. The recorded map is used if it fits the texts.
    pub fn proven_lines(&self) -> LineMap {
        let lines = self.lines.filter(|lines| lines.fits(self.before, self.after));
        Proof::between(lines, self.before, self.after).proven_map()
    }
}

/// The hunks of one change of a file that an undo took back by lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndonePart {
    /// The change that was undone in part or completely.
    pub change: ChangeId,
    /// The hunks that were taken back, from top to bottom.
    pub hunks: Vec<UndoneHunk>,
    /// The number of hunks that the change has in this file.
    pub of: usize,
}

/// A hunk that an undo took back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredHunk", into = "StoredHunk")]
pub struct UndoneHunk {
    /// The lines of the hunk before and after the change.
    pub hunk: Hunk,
    /// The places where the hunk was taken back, as lines of the text after the undo.
    pub at: Vec<Range<usize>>,
    /// Whether the old lines are present again, in the only place in `at`, so that they are known to be the same lines.
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

/// A text from which changes are taken back, the newest change first.
#[derive(Debug, Clone)]
pub struct UndoDraft {
    text: Text,
    /// The map from the present text to the draft, while that is known exactly.
    made: Option<LineMap>,
    /// The map from the text at the current point of the history to the draft; `None` if nothing is known about it.
    to_draft: Option<LineMap>,
    /// `to_draft` at the versions that were reached since the last change with a line map.
    to_draft_at: HashMap<ContentHash, Option<LineMap>>,
    /// For each change, the lines that it removed and undos have put back.
    put_back: HashMap<ChangeId, Vec<LineRun>>,
    undone: Vec<UndonePart>,
    left: Vec<LeftHunk>,
}

/// Adjacent lines that are also adjacent in another text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineRun {
    lines: Range<usize>,
    /// The place of the first of these lines in the other text.
    to: usize,
}

/// The result of taking changes back.
#[derive(Debug, Clone)]
pub struct UndoneText {
    /// The text after the undo.
    pub text: Text,
    /// The map from the present text to this one, if that is known exactly.
    pub lines: Option<LineMap>,
    /// The hunks that were taken back by lines.
    pub undone: Vec<UndonePart>,
    /// The hunks that stay, with their places in this text.
    pub left: Vec<LeftHunk>,
}

impl UndoDraft {
    /// Starts from the present text.
    pub fn new(present: Text) -> Self {
        let lines = present.line_count();
        let same = Some(LineMap::unchanged(lines));
        Self {
            text: present,
            made: same.clone(),
            to_draft: same,
            to_draft_at: HashMap::new(),
            put_back: HashMap::new(),
            undone: Vec::new(),
            left: Vec::new(),
        }
    }

    /// The text after the changes that were taken back so far.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// Records that the history is at a version that occurs at several points of it. If only programs that replace
    /// whole files, such as git, wrote in between, equal versions have the same lines.
    pub fn reach(&mut self, version: ContentHash) {
        let to_draft = self.to_draft_at.entry(version).or_insert_with(|| self.to_draft.clone());
        self.to_draft.clone_from(to_draft);
    }

    /// Goes back over an undo by lines: the lines that it put back are the ones that the changes had removed. Call it
    /// before the undo itself is passed or taken back.
    pub fn note_put_back(&mut self, parts: &[UndonePart]) {
        let Some(to_draft) = &self.to_draft else { return };
        for part in parts {
            let back = part.hunks.iter().filter(|undone| undone.is_back);
            let runs =
                back.filter_map(|undone| Some(LineRun { lines: undone.hunk.before.clone(), to: undone.at.first()?.start }));
            let runs: Vec<LineRun> = runs.flat_map(|run| run.through(to_draft)).collect();
            self.put_back.entry(part.change.clone()).or_default().extend(runs);
        }
    }

    /// Goes back over an undo that restored the text before `oldest`.
    pub fn note_all_put_back(&mut self, oldest: &ChangeId) {
        let Some(to_draft) = &self.to_draft else { return };
        let runs = to_draft.kept().map(|(lines, shift)| LineRun { to: moved(lines.start, shift), lines });
        self.put_back.entry(oldest.clone()).or_default().extend(runs);
    }

    /// Goes back over a change that stays. `lines` is its line map.
    pub fn pass(&mut self, change: &ChangeId, lines: &LineMap) {
        let to_draft = self.to_draft.take().filter(|to_draft| to_draft.before_lines() == lines.after_lines());
        self.to_draft = to_draft.map(|to_draft| lines.then(&to_draft));
        self.to_draft_at.clear();
        self.join_put_back(change);
    }

    /// Goes back over a change that stays, and has no line map.
    pub fn pass_texts(&mut self, before: &Text, after: &Text) {
        let lines = Proof::between(None, before, after).proven_map();
        self.to_draft = self
            .to_draft
            .take()
            .filter(|to_draft| to_draft.before_lines() == lines.after_lines())
            .map(|to_draft| lines.then(&to_draft));
    }

    /// Goes back over a gap in the history.
    pub fn lose_track(&mut self) {
        self.to_draft = None;
    }

    /// Takes a change back, except for the hunks in `done`, which were taken back before.
    pub fn take_back(&mut self, step: &TextStep<'_>, done: &[Hunk]) {
        let lines = step.proven_lines();
        let to_draft = self.to_draft.take().filter(|to_draft| to_draft.fits(step.after, &self.text));
        let to_draft = to_draft.unwrap_or_else(|| Proof::between(None, step.after, &self.text).proven_map());
        let placer = HunkPlacer { before: step.before, after: step.after, now: &self.text, to_draft: &to_draft };
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
        self.to_draft = Some(with_runs(&lines.then(&to_draft).then(&edit), back));
        self.to_draft_at.clear();
        self.join_put_back(step.change);
    }

    /// Takes changes back as a whole: `before` is the text before them. `lines` leads from it to the draft, if that is
    /// known.
    pub fn replace(&mut self, before: Text, lines: Option<&LineMap>) {
        let back = lines.filter(|lines| lines.fits(&before, &self.text)).map(LineMap::inverse);
        self.made = self.made.take().zip(back).map(|(made, back)| made.then(&back));
        self.to_draft = Some(LineMap::unchanged(before.line_count()));
        self.text = before;
        self.to_draft_at.clear();
        self.put_back.clear();
    }

    /// The text, and how far the changes were taken back.
    pub fn finish(self) -> UndoneText {
        UndoneText { text: self.text, lines: self.made, undone: self.undone, left: self.left }
    }

    /// Makes the edits of hunks that have a place, and returns the map from the old draft to the new one.
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

    /// Updates everything that refers to lines of the draft after an edit.
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

    /// Records the result for each hunk. Returns the new places of the old lines.
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
                // This is not recorded as taken back: the lines belong to another change, which may be undone, too.
                HunkPlace::AlreadySo => continue,
                HunkPlace::Runs(runs) => runs.iter().map(|run| region_after(edit, run)).collect(),
            };
            let restored = at.first().filter(|_| at.len() == 1 && !hunk.before.is_empty());
            let restored = restored.filter(|restored| bytes(&self.text, restored) == bytes(step.before, &hunk.before));
            let is_back = restored.is_some();
            back.extend(restored.map(|restored| LineRun { lines: hunk.before.clone(), to: restored.start }));
            undone.push(UndoneHunk { hunk, at, is_back });
        }
        if !undone.is_empty() {
            self.undone.push(UndonePart { change: step.change.clone(), hunks: undone, of });
        }
        back
    }

    /// If this change removed lines, and an undo put them back, maps the old lines to the restored ones.
    fn join_put_back(&mut self, change: &ChangeId) {
        if let (Some(to_draft), Some(back)) = (&self.to_draft, self.put_back.remove(change)) {
            self.to_draft = Some(with_runs(to_draft, back));
        }
    }
}

/// A hunk of a change that is taken back, and its place.
struct PlacedHunk {
    hunk: Hunk,
    place: HunkPlace,
}

impl PlacedHunk {
    /// Leaves the hunk in the text for this reason, if it was to be edited.
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
            // The last line of a file may have no ending. If others have added lines below it, it needs one.
            let is_open = !old.is_empty() && !old.ends_with('\n') && run.end < draft.line_count();
            let ending = if is_open { ending_below(step, &self.hunk, draft) } else { "" };
            LineEdit { at: run.clone(), with: old, ending, lines: self.hunk.before.len() }
        };
        runs.iter().map(edit).collect()
    }
}

/// Lines of the draft, and their replacement.
struct LineEdit<'a> {
    at: Range<usize>,
    with: &'a str,
    /// The ending of the last line, if `with` lacks it.
    ending: &'static str,
    /// The number of new lines.
    lines: usize,
}

/// Makes these edits, which are in order.
fn edited(text: &Text, edits: &[LineEdit<'_>]) -> (String, LineMap) {
    let replacement = |edit: &LineEdit<'_>| Splice {
        range: text.start_of(edit.at.start)..text.start_of(edit.at.end),
        with: [edit.with, edit.ending].concat().into(),
    };
    let (content, _) = splice(text, &edits.iter().map(replacement).collect::<Vec<_>>());
    let (mut runs, mut from, mut shift) = (Vec::new(), 0, 0);
    for edit in edits {
        runs.push((from..edit.at.start, shift));
        shift += edit.lines as i64 - edit.at.len() as i64;
        from = edit.at.end;
    }
    let lines = text.line_count();
    runs.push((from..lines, shift));
    let after = moved(lines, shift);
    (content, LineMap::keeping(runs.into_iter().filter(|(run, _)| !run.is_empty()), lines, after))
}

/// The ending of the last line of a change, to which others have appended lines.
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

/// Whether a hunk was taken back before. An earlier version of Surehand may have split the change into other hunks.
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

/// The place of lines after an edit, or of the lines that replaced them. A place between two lines moves to the lines
/// of the edit that touches it.
fn region_after(edit: &LineMap, lines: &Range<usize>) -> Range<usize> {
    let hunks = edit.hunks();
    let shift = |above: usize| shift_after(&hunks[..above]);
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
    /// The end of the run in the other text, exclusive.
    fn end(&self) -> usize {
        self.to + self.lines.len()
    }

    /// The lines that the map keeps, with the places that it leads to.
    fn through(&self, map: &LineMap) -> Vec<LineRun> {
        let place = |(line, to)| Some((line, map.new_place(LineNo::at_index(to))?.index()));
        Self::joined(self.lines.clone().zip(self.to..).filter_map(place))
    }

    /// The lines that the map does not keep.
    fn outside(&self, map: &LineMap) -> Vec<LineRun> {
        let is_new = |(line, _): &(usize, usize)| map.new_place(LineNo::at_index(*line)).is_none();
        Self::joined(self.lines.clone().zip(self.to..).filter(is_new))
    }

    /// Joins adjacent lines, each given with its place in the other text, into runs.
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

/// The map, extended to keep these lines as well. Lines that would cross kept lines are left out.
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
