//! The lines of a file through its history: a weave that was led through all steps that can be told.
//!
//! Most changes say which line became which, so the texts in between are not needed. They are computed only for changes that do not,
//! and for lines that are gone and might be those of a commit.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
};

use surehand_core::{
    ContentHash, LineMap, LineNo, Text,
    attribution::{Places, Weave, WeaveState},
    timestamp::Millis,
};

use super::steps::{FileStep, StepAuthor};
use crate::workspace::Workspace;

/// The history of a text file.
pub(crate) struct LineHistory<'a> {
    workspace: &'a Workspace,
    pub weave: Weave,
    /// The steps that the weave was led through.
    steps: Vec<FileStep>,
    /// The text that it has come to.
    pub present: Text,
    /// Which lines the file had in some of its versions.
    states: HashMap<ContentHash, WeaveState>,
    /// The lines that steps have put in, by step and index.
    written: OnceCell<HashMap<(usize, usize), String>>,
}

/// What a step did to the lines.
enum StepLines {
    Map(LineMap),
    /// The file was removed.
    Gone,
}

impl<'a> LineHistory<'a> {
    /// Follows the lines of a file to its present text. Which lines it had at the versions `marked` is remembered.
    pub(crate) fn follow(workspace: &'a Workspace, mut steps: Vec<FileStep>, present: Text, marked: &[ContentHash]) -> Self {
        steps.retain(|step| !step.is_rename());
        let maps = TextWalk::new(workspace, &steps, &present).maps();
        let mut first = steps.len() - maps.len();
        let mut led = Led::new(present.line_count());
        while first < steps.len() {
            match Led::through(&steps[first..], &maps[maps.len() + first - steps.len()..], marked) {
                Ok(done) if done.weave.line_count() == present.line_count() => {
                    led = done;
                    break;
                }
                Ok(_) => first = steps.len(),
                // What was before the text that it is about cannot be followed.
                Err(misfit) => first += misfit.max(1),
            }
        }
        let steps = steps.split_off(first);
        let Led { weave, states } = led;
        Self { workspace, weave, steps, present, states, written: OnceCell::new() }
    }

    /// A step; they are counted from 1.
    pub(crate) fn step(&self, step: usize) -> Option<&FileStep> {
        self.steps.get(step.checked_sub(1)?)
    }

    /// How many steps there are.
    pub(crate) fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Who did a step.
    pub(crate) fn author(&self, step: usize) -> Option<&StepAuthor> {
        self.step(step).map(|step| &step.by)
    }

    /// The text of a version that the file had, if it can be had.
    pub(crate) fn text_of(&self, version: ContentHash) -> Option<Text> {
        let mut walk = TextWalk::new(self.workspace, &self.steps, &self.present);
        let step = (0..=self.steps.len()).rev().find(|step| walk.version_after(*step) == Some(version))?;
        walk.text_after(step).cloned()
    }

    /// When the first step was made that is known.
    pub(crate) fn begins_at(&self) -> Option<Millis> {
        self.steps.first().and_then(|step| match step.by {
            StepAuthor::Change { at, .. } => Some(at),
            StepAuthor::Outside { by } => by,
        })
    }

    /// Where the lines of another text are in this history.
    pub(crate) fn place(&self, base: &Text) -> Places {
        match self.states.get(&base.version()) {
            Some(state) => Places::from(state),
            None => self.weave.place(base, &self.present, |step, line| self.written().get(&(step, line)).cloned()),
        }
    }

    /// All lines that were ever put in, as far as there is room.
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

/// Takes lines of the text after a step, as long as there is room. What is not kept any more is passed over.
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

/// So many bytes of lines that are gone are remembered, those of the latest changes first.
const MOST_WRITTEN: usize = 64 << 20;

/// What a line takes besides its text.
const LINE_OVERHEAD: usize = 64;

/// A weave that was led through steps.
struct Led {
    weave: Weave,
    states: HashMap<ContentHash, WeaveState>,
}

impl Led {
    fn new(lines: usize) -> Self {
        Self { weave: Weave::new(lines), states: HashMap::new() }
    }

    /// An error is the index of a step that does not fit what came before it.
    fn through(steps: &[FileStep], lines: &[StepLines], marked: &[ContentHash]) -> Result<Self, usize> {
        // Programs that replace whole files, git above all, bring lines back.
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

/// Goes back through the texts of a file, from the present one.
struct TextWalk<'a> {
    workspace: &'a Workspace,
    steps: &'a [FileStep],
    /// The text after so many steps; `None` if it is no longer kept.
    at: (usize, Option<Text>),
}

impl<'a> TextWalk<'a> {
    fn new(workspace: &'a Workspace, steps: &'a [FileStep], present: &Text) -> Self {
        Self { workspace, steps, at: (steps.len(), Some(present.clone())) }
    }

    /// What each step did to the lines, the oldest first. Begins with the first step from which on that is known.
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

    /// The text after so many steps. What comes after that is not asked for again.
    fn text_after(&mut self, step: usize) -> Option<&Text> {
        if self.at.0 != step {
            let text = self.go_back_to(step).or_else(|| self.kept(step));
            self.at = (step, text);
        }
        self.at.1.as_ref()
    }

    /// Goes back by what the steps say of themselves.
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
