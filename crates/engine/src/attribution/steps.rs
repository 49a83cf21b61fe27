//! The steps of a file's history: the recorded changes, oldest first, under all names that the file has had. If a
//! change did not start from the version that the previous one left, another program changed the file in between, which
//! is a step as well.

use surehand_core::{ContentHash, LineMap, RelPath};
use surehand_store::{ChangeId, ContentDelta, EventFilter, FileEvent, IncidentKind, Millis, SessionId, StoreError};

use crate::{git::git_mode, restore::TOOL as RESTORE, workspace::Workspace};

/// The author of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepAuthor {
    /// A recorded change.
    Change { change: ChangeId, session: SessionId, tool: String, at: Millis },
    /// A program that Surehand does not track, no later than this time.
    Outside { by: Option<Millis> },
}

/// A step of a file's history.
#[derive(Debug, Clone)]
pub(crate) struct FileStep {
    pub by: StepAuthor,
    /// `None` if there was no file.
    pub before: Option<ContentHash>,
    /// `None` if the file was deleted.
    pub after: Option<ContentHash>,
    pub name_before: RelPath,
    pub name_after: RelPath,
    /// The line map, if the change recorded one.
    pub lines: Option<LineMap>,
    /// From the content after the step back to the content before it.
    pub delta: Option<ContentDelta>,
}

/// A change of the executable bit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModeStep {
    pub change: ChangeId,
    /// File modes as git records them.
    pub before: u32,
    pub after: u32,
}

/// The recorded history of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileSteps {
    /// Oldest first.
    pub steps: Vec<FileStep>,
    /// Oldest first.
    pub modes: Vec<ModeStep>,
    /// The names that the file has had, newest first.
    pub names: Vec<RelPath>,
}

/// The maximum number of events of a file that are read.
const MAX_EVENTS: usize = 100_000;

impl FileSteps {
    /// Reads the history of the file at this path. `present` is its version now; `None` if there is no file.
    pub(crate) fn read(workspace: &Workspace, path: &RelPath, present: Option<ContentHash>) -> Result<Self, StoreError> {
        workspace.flush();
        workspace.store.import_outboxes();
        let (events, names) = events_of(workspace, path)?;
        let modes = events.iter().filter_map(ModeStep::of).collect();
        let mut steps: Vec<FileStep> = Vec::with_capacity(events.len());
        for event in events {
            let step = FileStep::of(event);
            if let Some(last) = steps.last()
                && last.after != step.before
            {
                let (name, mut left) = (last.name_after.clone(), last.after);
                if step.brings_back_unrecorded(&steps) {
                    steps.push(FileStep::outside(&name, left, step.after));
                    left = step.after;
                }
                steps.push(FileStep::outside(&name, left, step.before));
            }
            // A file that was only renamed has the same lines.
            if step.before != step.after || step.name_before != step.name_after {
                steps.push(step);
            }
        }
        if let Some(last) = steps.last()
            && last.after != present
        {
            let gap = FileStep::outside(path, last.after, present);
            steps.push(gap);
        }
        if steps.iter().any(|step| matches!(step.by, StepAuthor::Outside { .. })) {
            note_when_noticed(workspace, &mut steps)?;
        }
        Ok(Self { steps, modes, names })
    }
}

impl ModeStep {
    fn of(event: &FileEvent) -> Option<Self> {
        let (before, after) = event.entry.as_ref()?.modes()?;
        let (before, after) = (git_mode(before), git_mode(after));
        (before != after).then(|| Self { change: event.change.clone(), before, after })
    }
}

impl FileStep {
    fn of(event: FileEvent) -> Self {
        let name_after = event.name_after().clone();
        Self {
            by: StepAuthor::Change { change: event.change, session: event.session, tool: event.tool, at: event.at },
            before: event.before,
            after: event.after,
            name_before: event.path,
            name_after,
            lines: event.lines,
            delta: event.delta,
        }
    }

    fn outside(path: &RelPath, before: Option<ContentHash>, after: Option<ContentHash>) -> Self {
        Self {
            by: StepAuthor::Outside { by: None },
            before,
            after,
            name_before: path.clone(),
            name_after: path.clone(),
            lines: None,
            delta: None,
        }
    }

    /// Whether a restore brought back a version that no recorded step had left. In that case, another program had made
    /// it from the version of the last step, and a checkpoint kept it before it was lost. Otherwise every line would
    /// count as the restore's.
    fn brings_back_unrecorded(&self, steps: &[Self]) -> bool {
        let is_restore = matches!(&self.by, StepAuthor::Change { tool, .. } if tool == RESTORE);
        is_restore && self.after.is_some() && !steps.iter().any(|step| step.before == self.after || step.after == self.after)
    }

    /// Whether only the name changed.
    pub(crate) fn is_rename(&self) -> bool {
        self.before == self.after && self.name_before != self.name_after
    }
}

/// The events of a file, oldest first, and its names. Follows renames back.
fn events_of(workspace: &Workspace, path: &RelPath) -> Result<(Vec<FileEvent>, Vec<RelPath>), StoreError> {
    let (mut names, mut newest_first) = (vec![path.clone()], Vec::<FileEvent>::new());
    let mut renamed_in: Option<ChangeId> = None;
    loop {
        let name = names.last().expect("it has a name").clone();
        let which = EventFilter { path: Some(name.clone()), with_deltas: true, ..EventFilter::default() };
        let events = workspace.ask(|store| store.events(&which, MAX_EVENTS))?;
        let from = renamed_in
            .as_ref()
            .map_or(0, |change| events.iter().rposition(|event| event.change == *change).map_or(events.len(), |at| at + 1));
        let mut came_from = None;
        for event in events.into_iter().skip(from) {
            let change = event.change.clone();
            if let Some(old_name) = name_before(workspace, &event, &name)? {
                let event = FileEvent {
                    path: old_name.clone(),
                    moved_to: Some(name.clone()),
                    before: event.before.or(event.after),
                    ..event
                };
                newest_first.push(event);
                came_from = Some((old_name, change));
                break;
            }
            newest_first.push(without_move_away(event, &name));
        }
        let Some((old_name, change)) = came_from else { break };
        names.push(old_name);
        renamed_in = Some(change);
    }
    newest_first.reverse();
    Ok((newest_first, names))
}

/// The name of a file before an event that gave it this name. If a command moves a file, the record has a deletion and
/// a creation with the same content.
fn name_before(workspace: &Workspace, event: &FileEvent, name: &RelPath) -> Result<Option<RelPath>, StoreError> {
    if event.moved_to.as_ref() == Some(name) {
        return Ok(Some(event.path.clone()));
    }
    let is_creation = event.before.is_none() && event.after.is_some() && event.is_command();
    if !is_creation {
        return Ok(None);
    }
    let of_change = EventFilter { change: Some(event.change.clone()), ..EventFilter::default() };
    let events = workspace.ask(|store| store.events(&of_change, MAX_EVENTS))?;
    let is_source = |other: &&FileEvent| other.after.is_none() && other.before == event.after && other.path != *name;
    Ok(events.iter().find(is_source).map(|source| source.path.clone()))
}

/// For the old name, a move is a deletion.
fn without_move_away(event: FileEvent, name: &RelPath) -> FileEvent {
    match &event.moved_to {
        Some(to) if to != name => FileEvent { moved_to: None, after: None, lines: None, delta: None, ..event },
        _ => event,
    }
}

/// Sets the times of steps of other programs: when they were noticed, or else when the next change was made.
fn note_when_noticed(workspace: &Workspace, steps: &mut [FileStep]) -> Result<(), StoreError> {
    let incidents = workspace.ask(|store| store.incidents(usize::MAX))?;
    let mut next = None;
    for step in steps.iter_mut().rev() {
        let noticed = |path: Option<&RelPath>, kind: &IncidentKind| match kind {
            IncidentKind::Outside { after, .. } => path == Some(&step.name_after) && *after == step.after,
            IncidentKind::Refused { .. } | IncidentKind::RescueDropped { .. } => false,
        };
        match &mut step.by {
            StepAuthor::Change { at, .. } => next = Some(*at),
            StepAuthor::Outside { by } => {
                let found = incidents.iter().find(|incident| noticed(incident.path.as_ref(), &incident.kind));
                *by = found.map(|incident| incident.at).or(next);
            }
        }
    }
    Ok(())
}
