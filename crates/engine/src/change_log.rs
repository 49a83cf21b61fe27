//! The log of changes: selects changes, merges them to a net change for each file, and lists them.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use surehand_core::{Content, ContentHash, RelPath, file_diff::FileDiff};
use surehand_store::{ChangeId, EventFilter, FileEvent, Millis, SessionId, StoreError};

use crate::{random::random, workspace::Workspace};

/// Selects changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeSelection {
    /// The last one, of a session or of all.
    Last(Option<SessionId>),
    /// The last one of this file, and of that change only this file.
    File(RelPath, Option<SessionId>),
    /// This one, with all its files.
    Change(ChangeId),
    /// All of a session.
    Session(SessionId),
}

impl ChangeSelection {
    fn fits(&self, event: &FileEvent) -> bool {
        let is_by = |session: &SessionId| event.session == *session;
        match self {
            ChangeSelection::Last(session) => session.as_ref().is_none_or(is_by),
            ChangeSelection::File(path, session) => event.is_about(path) && session.as_ref().is_none_or(is_by),
            ChangeSelection::Change(change) => event.change == *change,
            ChangeSelection::Session(session) => is_by(session),
        }
    }
}

/// The net effect of the selected changes on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetChange {
    /// The name it had.
    pub path_before: RelPath,
    /// The name it has.
    pub path_after: RelPath,
    /// Its version before; `None` if it did not exist.
    pub before: Option<ContentHash>,
    /// Its version after.
    pub after: Option<ContentHash>,
    /// Its mode before, if it was deleted.
    pub mode: Option<u32>,
    /// The changes, newest first.
    pub changes: Vec<ChangeId>,
    /// Whether another session changed the file in between.
    pub is_mixed: bool,
}

impl NetChange {
    /// Whether it was made and taken away again: then there is nothing to take back, or to show.
    pub(crate) fn is_nothing(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }
}

/// The most events that are searched.
const MAX_EVENTS: usize = 100_000;

impl Workspace {
    /// The selected events without those of the `passed` changes, newest first. Events that were undone, or that undid
    /// others, are left out unless they are named.
    pub(crate) fn select(&self, selection: &ChangeSelection, passed: &[ChangeId]) -> Result<Vec<FileEvent>, StoreError> {
        self.flush();
        self.store.import_outboxes();
        let ask = |which: EventFilter| self.ask(|store| store.events(&which, MAX_EVENTS));
        if let ChangeSelection::Change(change) = selection {
            return ask(EventFilter { change: Some(change.clone()), ..EventFilter::default() });
        }
        // Of all sessions and files: another one may have taken back what is asked for, and under another name.
        let mut events = not_undone(ask(EventFilter::default())?);
        events.retain(|event| selection.fits(event) && !passed.contains(&event.change));
        if !matches!(selection, ChangeSelection::Session(_)) {
            let last = events.first().map(|event| event.change.clone());
            events.retain(|event| Some(&event.change) == last.as_ref());
        }
        Ok(events)
    }
}

/// A change in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedChange {
    /// Its name.
    pub change: ChangeId,
    /// The time.
    pub at: Millis,
    /// The session that made it.
    pub session: SessionId,
    /// With which tool.
    pub tool: String,
    /// Its effect on each file.
    pub files: Vec<FileEvent>,
    /// Whether it has been taken back, all of it.
    pub is_undone: bool,
}

impl Workspace {
    /// The latest changes that fit, newest first.
    pub fn log(&self, which: &EventFilter, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        self.flush();
        self.store.import_outboxes();
        let events = self.ask(|store| store.events(&EventFilter::default(), MAX_EVENTS))?;
        let undone = undone_changes(&events);
        let is_undone = |event: &FileEvent| undone.contains(&(event.change.clone(), event.path.clone()));
        let fits = |event: &FileEvent| {
            which.session.as_ref().is_none_or(|session| *session == event.session)
                && which.path.as_ref().is_none_or(|path| event.is_about(path))
                && which.change.as_ref().is_none_or(|change| *change == event.change)
        };
        let mut log: Vec<LoggedChange> = Vec::new();
        for event in events.into_iter().filter(fits) {
            let event_is_undone = is_undone(&event);
            let (is_full, last) = (log.len() == limit, log.last_mut());
            match last.filter(|last| last.change == event.change) {
                Some(last) => {
                    last.is_undone &= event_is_undone;
                    last.files.push(event);
                }
                None if is_full => break,
                None => log.push(LoggedChange {
                    change: event.change.clone(),
                    at: event.at,
                    session: event.session.clone(),
                    tool: event.tool.clone(),
                    is_undone: event_is_undone,
                    files: vec![event],
                }),
            }
        }
        // Events come newest first; within a change people read in the order in which it was done.
        log.iter_mut().for_each(|change| change.files.reverse());
        Ok(log)
    }

    /// The net effect of the selected changes on each file; `None` if there is no such change. A file that was created and
    /// deleted again is left out.
    pub fn net_changes(&self, selection: &ChangeSelection) -> Result<Option<Vec<NetChange>>, StoreError> {
        let events = self.select(selection, &[])?;
        let nets = || net(&events).into_iter().filter(|file| !file.is_nothing()).collect();
        Ok((!events.is_empty()).then(nets))
    }

    /// The difference of a file; `None` if one of its versions is no longer kept.
    pub fn diff(&self, file: &NetChange) -> Option<FileDiff> {
        let content = |path: &RelPath, version: Option<ContentHash>| match version {
            None => Some(None),
            Some(version) => self.content_at(path, &version).map(Some),
        };
        let before = content(&file.path_before, file.before)?;
        let after = content(&file.path_after, file.after)?;
        Some(FileDiff::between((&file.path_before, before.as_ref()), (&file.path_after, after.as_ref())))
    }

    /// The content of a version of this file, if it is still kept.
    pub(crate) fn content_at(&self, path: &RelPath, version: &ContentHash) -> Option<Content> {
        self.ask(|store| store.replaced_content(path, version)).ok().flatten().map(Content::new)
    }
}

/// The events that still stand: neither taken back nor taking back.
fn not_undone(mut events: Vec<FileEvent>) -> Vec<FileEvent> {
    let undone = undone_changes(&events);
    events.retain(|event| event.undoes.is_empty() && !undone.contains(&(event.change.clone(), event.path.clone())));
    events
}

/// The changes that were undone, by file. An undo that was itself undone does not count.
fn undone_changes(events: &[FileEvent]) -> HashSet<(ChangeId, RelPath)> {
    let mut by_change: HashMap<&ChangeId, Vec<&FileEvent>> = HashMap::new();
    events.iter().for_each(|event| by_change.entry(&event.change).or_default().push(event));
    let mut undone = HashSet::new();
    for event in events {
        if undone.contains(&(event.change.clone(), event.path.clone())) {
            continue;
        }
        // From the last change to the first, by the names that the file had.
        let mut name = &event.path;
        for change in &event.undoes {
            if let Some(taken_back) = by_change.get(change).into_iter().flatten().find(|event| event.name_after() == name) {
                undone.insert((change.clone(), taken_back.path.clone()));
                name = &taken_back.path;
            }
        }
    }
    undone
}

/// Describes an event in words.
pub fn what_happened(file: &FileEvent) -> String {
    let path = &file.path;
    match (&file.moved_to, file.before, file.after) {
        (Some(to), ..) => format!("{path} moved to {to}"),
        (None, before, after) if before == after => format!("{path} was as before"),
        (None, None, _) => format!("{path} created"),
        (None, _, None) => format!("{path} deleted"),
        (None, Some(_), Some(_)) => format!("{path} edited"),
    }
}

/// Merges events, newest first, into the net change of each file.
pub(crate) fn net(events: &[FileEvent]) -> Vec<NetChange> {
    let mut files: Vec<NetChange> = Vec::new();
    for event in events {
        let name_after = event.name_after();
        match files.iter_mut().find(|net| net.path_before == *name_after) {
            Some(net) => {
                net.is_mixed |= net.before != event.after;
                net.path_before = event.path.clone();
                net.before = event.before;
                net.mode = event.mode.or(net.mode);
                net.changes.push(event.change.clone());
            }
            None => files.push(NetChange {
                path_before: event.path.clone(),
                path_after: name_after.clone(),
                before: event.before,
                after: event.after,
                mode: event.mode,
                changes: vec![event.change.clone()],
                is_mixed: false,
            }),
        }
    }
    files
}

/// A name for a change: short, because people type it.
pub(crate) fn fresh_change() -> ChangeId {
    // An odd step leads through all numbers before one comes again; another process begins somewhere else.
    static NEXT: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(random() as u32));
    ChangeId(format!("{:08x}", NEXT.fetch_add(0x9e37_79b1, Ordering::Relaxed)))
}
