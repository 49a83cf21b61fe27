//! Follows the lines of a file through its history, as a weave that was built from the known steps.
//!
//! Most changes record a line map, so the texts in between are not needed. They are computed only for changes without
//! one, and to compare deleted lines with those of a commit.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
};

use surehand_core::{
    ContentHash, LineMap, LineNo, Text,
    attribution::{LinePlaces, Weave, WeaveState},
    timestamp::Millis,
};

use super::steps::{FileStep, StepAuthor};
use crate::workspace::Workspace;

/// The history of a text file.
pub(crate) struct LineHistory<'a> {
    workspace: &'a Workspace,
    pub weave: Weave,
    /// The steps that the weave was built from.
    pub steps: Vec<FileStep>,
    /// The text after the last step.
    pub present: Text,
    /// The lines that the file had in some of its versions.
    states: HashMap<ContentHash, WeaveState>,
    /// The lines that steps inserted, by step and index.
    written: OnceCell<HashMap<(usize, usize), String>>,
}

/// The effect of a step on the lines.
enum StepLines {
    Map(LineMap),
    /// The file was deleted.
    Gone,
}

impl<'a> LineHistory<'a> {
    /// Follows the lines of a file to its present text, and remembers the lines of the versions in `marked`.
    pub(crate) fn follow(workspace: &'a Workspace, mut steps: Vec<FileStep>, present: Text, marked: &[ContentHash]) -> Self {
        steps.retain(|step| !step.is_rename());
        let maps = TextWalk::new(workspace, &steps, &present).maps();
        let mut first = steps.len() - maps.len();
        let mut led = ExtendedWeave::new(present.line_count());
        while first < steps.len() {
            match ExtendedWeave::through(&steps[first..], &maps[maps.len() + first - steps.len()..], marked) {
                Ok(done) if done.weave.line_count() == present.line_count() => {
                    led = done;
                    break;
                }
                Ok(_) => first = steps.len(),
                // The history before the step that does not fit cannot be followed.
                Err(misfit) => first += misfit.max(1),
            }
        }
        let steps = steps.split_off(first);
        let ExtendedWeave { weave, states } = led;
        Self { workspace, weave, steps, present, states, written: OnceCell::new() }
    }

    /// A step, counted from 1.
    pub(crate) fn step(&self, step: usize) -> Option<&FileStep> {
        self.steps.get(step.checked_sub(1)?)
    }

    /// The author of a step.
    pub(crate) fn author(&self, step: usize) -> Option<&StepAuthor> {
        self.step(step).map(|step| &step.by)
    }

    /// The text of a version that the file had, if it is available.
    pub(crate) fn text_of(&self, version: ContentHash) -> Option<Text> {
        let mut walk = TextWalk::new(self.workspace, &self.steps, &self.present);
        let step = (0..=self.steps.len()).rev().find(|step| walk.version_after(*step) == Some(version))?;
        walk.text_after(step).cloned()
    }

    /// The time of the first known step.
    pub(crate) fn begins_at(&self) -> Option<Millis> {
        self.steps.first().and_then(|step| match step.by {
            StepAuthor::Change { at, .. } => Some(at),
            StepAuthor::Outside { by } => by,
        })
    }

    /// Finds the lines of another text in this history.
    pub(crate) fn place(&self, base: &Text) -> LinePlaces {
        match self.states.get(&base.version()) {
            Some(state) => LinePlaces::from(state),
            None => self.weave.place(base, &self.present, |step, line| self.written().get(&(step, line)).cloned()),
        }
    }

    /// All lines that were ever inserted, up to the limit.
    fn written(&self) -> &HashMap<(usize, usize), String> {
        self.written.get_or_init(|| {
            let maps = TextWalk::new(self.workspace, &self.steps, &self.present).maps();
            let mut walk = TextWalk::new(self.workspace, &self.steps, &self.present);
            let (mut written, mut room) = (HashMap::new(), MOST_WRITTEN);
            for (step, lines) in (1..=self.steps.len()).rev().zip(maps.iter().rev()) {
                let StepLines::Map(map) = lines else { continue };
                let added = map.hunks().iter().flat_map(|hunk| hunk.after.clone());
                if !take_lines(&mut walk, step, added, &mut written, &mut room) {
                    return written;
                }
            }
            if let Some(count) = walk.text_after(0).map(Text::line_count) {
                take_lines(&mut walk, 0, 0..count, &mut written, &mut room);
            }
            written
        })
    }
}

/// Takes lines of the text after a step; `false` if there is no more room. Texts that are no longer kept are skipped.
fn take_lines(
    walk: &mut TextWalk<'_>,
    step: usize,
    lines: impl Iterator<Item = usize>,
    taken: &mut HashMap<(usize, usize), String>,
    room: &mut usize,
) -> bool {
    let Some(text) = walk.text_after(step) else { return true };
    for line in lines {
        let full = text.full_line(LineNo::at_index(line));
        let Some(left) = room.checked_sub(full.len() + LINE_OVERHEAD) else { return false };
        *room = left;
        taken.insert((step, line), full.to_owned());
    }
    true
}

/// The maximum number of bytes of deleted lines that are remembered. The latest changes come first.
const MOST_WRITTEN: usize = 64 << 20;

/// The memory that a line takes apart from its text.
const LINE_OVERHEAD: usize = 64;

/// A weave that was built from steps.
struct ExtendedWeave {
    weave: Weave,
    states: HashMap<ContentHash, WeaveState>,
}

impl ExtendedWeave {
    fn new(lines: usize) -> Self {
        Self { weave: Weave::new(lines), states: HashMap::new() }
    }

    /// The error is the index of a step that does not fit the one before it.
    fn through(steps: &[FileStep], lines: &[StepLines], marked: &[ContentHash]) -> Result<Self, usize> {
        // Programs that replace whole files, such as git, bring lines back.
        let returns = steps.iter().filter(|step| step.lines.is_none()).filter_map(|step| step.after);
        let wanted: HashSet<ContentHash> = returns.chain(marked.iter().copied()).collect();
        let lines_before = match lines.first() {
            Some(StepLines::Map(map)) => map.before_lines(),
            Some(StepLines::Gone) | None => 0,
        };
        let mut led = Self::new(lines_before);
        led.note(steps.first().and_then(|step| step.before), &wanted);
        for (nth, (step, lines)) in steps.iter().zip(lines).enumerate() {
            let returned_to = step.after.filter(|_| step.lines.is_none()).and_then(|version| led.states.get(&version));
            match (returned_to, lines) {
                (Some(state), _) => led.weave.go_back_to(state),
                (None, StepLines::Map(map)) => led.weave.change(map).map_err(|_| nth)?,
                (None, StepLines::Gone) => led.weave.replace(0),
            }
            led.note(step.after, &wanted);
        }
        Ok(led)
    }

    fn note(&mut self, version: Option<ContentHash>, wanted: &HashSet<ContentHash>) {
        if let Some(version) = version.filter(|version| wanted.contains(version)) {
            self.states.insert(version, self.weave.state());
        }
    }
}

/// A walk back through the texts of a file, from the present one.
struct TextWalk<'a> {
    workspace: &'a Workspace,
    steps: &'a [FileStep],
    /// The text after this number of steps; `None` if it is no longer kept.
    at: (usize, Option<Text>),
}

impl<'a> TextWalk<'a> {
    fn new(workspace: &'a Workspace, steps: &'a [FileStep], present: &Text) -> Self {
        Self { workspace, steps, at: (steps.len(), Some(present.clone())) }
    }

    /// The effect of each step on the lines, oldest first. Starts with the first step from which all effects are known.
    fn maps(mut self) -> Vec<StepLines> {
        let mut maps = Vec::with_capacity(self.steps.len());
        for step in (1..=self.steps.len()).rev() {
            let FileStep { after, lines, .. } = &self.steps[step - 1];
            let found = match (after, lines) {
                (None, _) => Some(StepLines::Gone),
                (Some(_), Some(map)) => Some(StepLines::Map(map.clone())),
                (Some(_), None) => self.compare(step).map(StepLines::Map),
            };
            let Some(found) = found else { break };
            maps.push(found);
        }
        maps.reverse();
        maps
    }

    /// Compares the texts before and after a step.
    fn compare(&mut self, step: usize) -> Option<LineMap> {
        let after = self.text_after(step)?.clone();
        Some(LineMap::between(self.text_after(step - 1)?, &after))
    }

    /// The text after this number of steps. Callers go back only, so later texts are dropped.
    fn text_after(&mut self, step: usize) -> Option<&Text> {
        if self.at.0 != step {
            let text = self.go_back_to(step).or_else(|| self.kept(step));
            self.at = (step, text);
        }
        self.at.1.as_ref()
    }

    /// Goes back by the deltas that the steps recorded.
    fn go_back_to(&self, step: usize) -> Option<Text> {
        let passed = self.steps.get(step..self.at.0)?;
        let mut content = self.at.1.as_ref()?.bytes().to_vec();
        for step in passed.iter().rev() {
            content = step.delta.as_ref()?.apply(&content)?;
        }
        Text::new(content).ok().filter(|text| Some(text.version()) == self.version_after(step))
    }

    fn kept(&self, step: usize) -> Option<Text> {
        let Some(version) = self.version_after(step) else { return Text::of(String::new()).ok() };
        let name = match step.checked_sub(1) {
            Some(last) => &self.steps[last].name_after,
            None => &self.steps.first()?.name_before,
        };
        self.workspace.content_at(name, &version)?.text().cloned()
    }

    fn version_after(&self, step: usize) -> Option<ContentHash> {
        match step.checked_sub(1) {
            Some(last) => self.steps[last].after,
            None => self.steps.first()?.before,
        }
    }
}
