//! All events of a workspace: the file that each is about, the changes that were undone, and the next one to undo or
//! redo.

use std::collections::{BTreeSet, HashMap, HashSet};

use surehand_core::{RelPath, outcome::UndoneEdit, undo::UndoneHunk};
use surehand_store::{ChangeId, EventFilter, FileEvent, SessionId, StoreError};

use crate::{change_log::ChangeSelection, workspace::Workspace};

/// The maximum number of events that are read.
const MAX_EVENTS: usize = 100_000;

/// The events of a workspace, newest first.
#[derive(Debug)]
pub(crate) struct EventLog {
    events: Vec<FileEvent>,
    /// For each event, the number of its file. A file keeps its number when it is moved.
    files: Vec<usize>,
    /// The file that has each name, or was the last to have it.
    names: HashMap<RelPath, usize>,
    by_change: HashMap<ChangeId, Vec<usize>>,
    roles: Vec<EventRole>,
    fates: Vec<EventFate>,
}

/// The effect of an event on other events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventRole {
    /// No effect.
    Change,
    /// It undoes changes.
    Undo,
    /// It undoes an undo.
    Redo,
}

/// The effect of later events on an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventFate {
    Stands,
    /// Some of its lines were undone, or an undo of it left all of them.
    PartlyUndone,
    Undone,
}

impl Workspace {
    /// All events, including those of other processes.
    pub(crate) fn event_log(&self) -> Result<EventLog, StoreError> {
        self.flush();
        self.store.import_outboxes();
        let events = self.ask(|store| store.events(&EventFilter::default(), MAX_EVENTS))?;
        Ok(EventLog::of(events))
    }
}

impl EventLog {
    /// Builds the log from these events, newest first.
    pub(crate) fn of(events: Vec<FileEvent>) -> Self {
        let (files, names) = number_files(&events);
        let mut by_change: HashMap<ChangeId, Vec<usize>> = HashMap::new();
        for (index, event) in events.iter().enumerate() {
            by_change.entry(event.change.clone()).or_default().push(index);
        }
        let mut log = Self { events, files, names, by_change, roles: Vec::new(), fates: Vec::new() };
        log.roles = log.find_roles();
        log.fates = log.find_fates();
        log
    }

    /// The selected events without those of the `passed` changes, newest first. Events that were undone, or that undid
    /// others, are left out unless they are named.
    pub(crate) fn select(&self, selection: &ChangeSelection, passed: &[ChangeId]) -> Vec<FileEvent> {
        let fits = |index: &usize| {
            let event = &self.events[*index];
            selection.fits(event) && !passed.contains(&event.change) && self.is_candidate(selection, *index)
        };
        let mut selected: Vec<usize> = (0..self.events.len()).filter(fits).collect();
        if let ChangeSelection::Last(_) | ChangeSelection::File(..) | ChangeSelection::LastUndo(_) = selection {
            let last = selected.first().map(|first| self.events[*first].change.clone());
            selected.retain(|index| Some(&self.events[*index].change) == last.as_ref());
        }
        selected.into_iter().map(|index| self.events[index].clone()).collect()
    }

    fn is_candidate(&self, selection: &ChangeSelection, index: usize) -> bool {
        let (role, fate) = (self.roles[index], self.fates[index]);
        match selection {
            ChangeSelection::Change(_) => true,
            ChangeSelection::Session(_) => role == EventRole::Change && fate != EventFate::Undone,
            ChangeSelection::Last(_) | ChangeSelection::File(..) => {
                fate == EventFate::Stands && role != EventRole::Undo && self.is_in_effect(index)
            }
            // An undo that had nothing to do is recorded, too, and there is nothing to redo.
            ChangeSelection::LastUndo(_) => {
                fate == EventFate::Stands && role == EventRole::Undo && has_effect(&self.events[index])
            }
        }
    }

    /// Whether a part of the event is still in effect. The lines that a redo restored may have been undone in another
    /// way.
    fn is_in_effect(&self, index: usize) -> bool {
        if self.roles[index] == EventRole::Change {
            return self.fates[index] != EventFate::Undone;
        }
        let undone = self.undone_by(index);
        let brought_back = || undone.iter().flat_map(|undo| self.undone_by(*undo)).collect::<Vec<_>>();
        self.roles[index] != EventRole::Redo || undone.is_empty() || brought_back().iter().any(|index| self.is_in_effect(*index))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &FileEvent> {
        self.events.iter()
    }

    /// Whether an event has been undone completely.
    pub(crate) fn is_undone(&self, event: &FileEvent) -> bool {
        self.place_of(event).is_some_and(|index| self.fates[index] == EventFate::Undone)
    }

    /// The effect of an event on other events.
    pub(crate) fn role(&self, event: &FileEvent) -> EventRole {
        self.place_of(event).map_or(EventRole::Change, |index| self.roles[index])
    }

    /// The edits that a change finally concerns, newest first: the change itself, or the edits that it undid or redid.
    pub(crate) fn edits_of(&self, event: &FileEvent) -> Vec<UndoneEdit> {
        let mut visited: BTreeSet<usize> = self.by_change.get(&event.change).into_iter().flatten().copied().collect();
        let mut open: Vec<usize> = visited.iter().copied().collect();
        let mut edits = BTreeSet::new();
        while let Some(index) = open.pop() {
            let undone = if self.roles[index] == EventRole::Change { Vec::new() } else { self.undone_by(index) };
            // The record of the undone change may have been deleted. In that case, the undo is listed itself.
            if undone.is_empty() {
                edits.insert(index);
            }
            open.extend(undone.into_iter().filter(|undone| visited.insert(*undone)));
        }
        let mut named: Vec<UndoneEdit> = Vec::new();
        for event in edits.into_iter().map(|index| &self.events[index]) {
            if !named.iter().any(|edit| edit.change == event.change) {
                let FileEvent { change, tool, session, .. } = event.clone();
                named.push(UndoneEdit { change, tool, session });
            }
        }
        named
    }

    /// The number of the file that an event is about.
    pub(crate) fn file_of(&self, event: &FileEvent) -> Option<usize> {
        self.place_of(event).map(|index| self.files[index])
    }

    /// The events of a file, newest first.
    pub(crate) fn events_of(&self, file: usize) -> Vec<FileEvent> {
        self.files.iter().zip(&self.events).filter(|(of, _)| **of == file).map(|(_, event)| event.clone()).collect()
    }

    /// The changes that make up the work of a session: its own, and undos that concern only its own.
    pub(crate) fn work_of(&self, session: &SessionId) -> HashSet<ChangeId> {
        let mut is_own = vec![false; self.events.len()];
        for (index, event) in self.events.iter().enumerate().rev() {
            let undone = if is_undo(event) { self.undone_by(index) } else { Vec::new() };
            let undoes_own = !undone.is_empty() && undone.iter().all(|undone| is_own[*undone]);
            is_own[index] = event.session == *session || undoes_own;
        }
        let of_others = self.events.iter().zip(&is_own).filter(|(_, is_own)| !**is_own).map(|(event, _)| &event.change);
        let of_others: HashSet<&ChangeId> = of_others.collect();
        let own = self.events.iter().zip(is_own).filter(|(event, is_own)| *is_own && !of_others.contains(&event.change));
        own.map(|(event, _)| event.change.clone()).collect()
    }

    /// The names that files had before and after the changes of a session, and their present names. Changes that were
    /// undone are left out.
    pub(crate) fn names_changed_by(&self, session: &SessionId) -> BTreeSet<RelPath> {
        let present: HashMap<usize, &RelPath> = self.names.iter().map(|(name, file)| (*file, name)).collect();
        let mut names = BTreeSet::new();
        for (index, event) in self.events.iter().enumerate() {
            if event.session == *session && self.fates[index] != EventFate::Undone {
                names.extend([event.path.clone(), event.name_after().clone()]);
                names.extend(present.get(&self.files[index]).map(|name| (*name).clone()));
            }
        }
        names
    }

    /// Whether another file got this name later.
    pub(crate) fn has_lost_name(&self, file: usize, name: &RelPath) -> bool {
        self.names.get(name).is_some_and(|holder| *holder != file)
    }

    /// The hunks of a change to a file that were undone and not redone since.
    pub(crate) fn undone_hunks(&self, file: usize, change: &ChangeId) -> Vec<UndoneHunk> {
        let mut undone = Vec::new();
        for (index, event) in self.events.iter().enumerate() {
            if self.files[index] != file || self.fates[index] == EventFate::Undone {
                continue;
            }
            let Some(part) = event.undone.iter().find(|part| part.change == *change) else { continue };
            let redone = self.undone_hunks(file, &event.change);
            let is_redone =
                |hunk: &UndoneHunk| redone.iter().any(|redone| hunk.at.iter().any(|at| touches(at, &redone.hunk.after)));
            undone.extend(part.hunks.iter().filter(|hunk| !is_redone(hunk)).cloned());
        }
        undone
    }

    fn place_of(&self, event: &FileEvent) -> Option<usize> {
        let of_change = self.by_change.get(&event.change)?;
        of_change.iter().copied().find(|index| self.events[*index] == *event)
    }

    /// The events that an undo has undone, completely or in part.
    fn undone_by(&self, index: usize) -> Vec<usize> {
        let event = &self.events[index];
        let mut undone = Vec::new();
        // From the newest change to the oldest, by the names that the file had.
        let mut name = &event.path;
        for change in &event.undoes {
            if let Some(place) = self.find_undone(index, change, name) {
                name = &self.events[place].path;
                undone.push(place);
            }
        }
        let parts = event.undone.iter().filter_map(|part| self.find_undone(index, &part.change, &event.path));
        for place in parts {
            if !undone.contains(&place) {
                undone.push(place);
            }
        }
        undone
    }

    /// The event of a change that an undo refers to: by the name that the file had or, if others moved it, by the file.
    fn find_undone(&self, undo: usize, change: &ChangeId, name: &RelPath) -> Option<usize> {
        let of_change = self.by_change.get(change)?;
        let named = of_change.iter().find(|index| self.events[**index].name_after() == name);
        let of_file = || of_change.iter().find(|index| self.files[**index] == self.files[undo]);
        named.or_else(of_file).copied().filter(|place| *place > undo)
    }

    fn find_roles(&self) -> Vec<EventRole> {
        let mut roles = vec![EventRole::Change; self.events.len()];
        for index in (0..self.events.len()).rev().filter(|index| is_undo(&self.events[*index])) {
            let is_redo = self.undone_by(index).first().is_some_and(|undone| roles[*undone] == EventRole::Undo);
            roles[index] = if is_redo { EventRole::Redo } else { EventRole::Undo };
        }
        roles
    }

    /// An undo that was itself undone does not count.
    fn find_fates(&self) -> Vec<EventFate> {
        let mut fates = vec![EventFate::Stands; self.events.len()];
        for index in 0..self.events.len() {
            if fates[index] == EventFate::Undone || !is_undo(&self.events[index]) {
                continue;
            }
            for undone in self.undone_by(index) {
                // If a part of an undo was undone, the lines of the original change may be present again.
                let is_whole =
                    fates[index] == EventFate::Stands && self.events[index].undoes.contains(&self.events[undone].change);
                let fate = if is_whole { EventFate::Undone } else { EventFate::PartlyUndone };
                if fates[undone] != EventFate::Undone {
                    fates[undone] = fate;
                }
            }
        }
        fates
    }
}

/// Whether an event undid others, completely or in part.
fn is_undo(event: &FileEvent) -> bool {
    !event.undoes.is_empty() || !event.undone.is_empty()
}

/// Whether an event changed anything. An undo that had nothing to do is recorded, too.
pub(crate) fn has_effect(event: &FileEvent) -> bool {
    event.before != event.after || event.moved_to.is_some() || event.entry.is_some()
}

/// Numbers the files from the oldest event to the newest. A file keeps its number under a new name.
fn number_files(events: &[FileEvent]) -> (Vec<usize>, HashMap<RelPath, usize>) {
    let mut names: HashMap<RelPath, usize> = HashMap::new();
    let mut files = vec![0; events.len()];
    let mut next = 0;
    for (file, event) in files.iter_mut().zip(events).rev() {
        *file = *names.entry(event.path.clone()).or_insert_with(|| {
            next += 1;
            next
        });
        if let Some(to) = &event.moved_to {
            names.remove(&event.path);
            names.insert(to.clone(), *file);
        }
    }
    (files, names)
}

/// Whether two ranges of lines overlap, or are the same position between two lines.
fn touches(one: &std::ops::Range<usize>, other: &std::ops::Range<usize>) -> bool {
    one == other || (one.start < other.end && other.start < one.end)
}
