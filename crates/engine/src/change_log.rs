//! The log of changes: selects changes, combines them into a net change per file, and lists them.

use std::{
    collections::HashMap,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use surehand_core::{
    Content, ContentHash, RelPath,
    edit::{UndoRequest, UndoTarget, WhoseChanges},
    file_diff::FileDiff,
    undo::UndonePart,
};
use surehand_store::{ChangeId, EntryChange, EventFilter, FileEvent, Millis, PathEntry, SessionId, StoreError};

use crate::{git::git_mode, random::random, workspace::Workspace};

/// Selects changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeSelection {
    /// The last change of a session or of all sessions.
    Last(Option<SessionId>),
    /// The last change of this file, reduced to this file.
    File(RelPath, Option<SessionId>),
    /// This change, with all its files.
    Change(ChangeId),
    /// All changes of a session.
    Session(SessionId),
    /// The latest undo, of a session or of all sessions, that was not undone itself.
    LastUndo(Option<SessionId>),
}

impl ChangeSelection {
    /// The request that undoes these changes.
    pub fn into_undo(self, force: bool) -> UndoRequest {
        let whose = |session: Option<SessionId>| session.map_or(WhoseChanges::Anyone, WhoseChanges::Session);
        let (which, by) = match self {
            ChangeSelection::Last(session) => (UndoTarget::Last, whose(session)),
            ChangeSelection::LastUndo(session) => (UndoTarget::LastUndo, whose(session)),
            ChangeSelection::File(path, session) => (UndoTarget::File(path.to_string()), whose(session)),
            ChangeSelection::Change(change) => (UndoTarget::Change(change), WhoseChanges::Anyone),
            ChangeSelection::Session(session) => (UndoTarget::All, WhoseChanges::Session(session)),
        };
        UndoRequest { which, by, force }
    }

    pub(crate) fn fits(&self, event: &FileEvent) -> bool {
        let is_by = |session: &SessionId| event.session == *session;
        match self {
            ChangeSelection::Last(session) | ChangeSelection::LastUndo(session) => session.as_ref().is_none_or(is_by),
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
    /// Path before the changes, relative to the workspace root.
    pub path_before: RelPath,
    /// Path after the changes, relative to the workspace root.
    pub path_after: RelPath,
    /// Version before the changes; `None` if the file did not exist.
    pub before: Option<ContentHash>,
    /// Version after the changes; `None` if the file was deleted.
    pub after: Option<ContentHash>,
    /// The permissions before, if the file was deleted.
    pub mode: Option<u32>,
    /// The permissions before and after, if the changes have set them.
    pub modes: Option<(u32, u32)>,
    /// The ids of the changes, newest first.
    pub changes: Vec<ChangeId>,
    /// Whether another session changed the file in between.
    pub is_mixed: bool,
}

impl NetChange {
    /// Whether the file was created and removed again, so that there is nothing to undo or show.
    pub(crate) fn is_nothing(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }
}

/// The tool that makes a change, and the earlier changes that it reverts.
pub(crate) struct ChangeOrigin<'a> {
    pub tool: &'a str,
    /// The part of earlier changes that it undoes, for each file.
    pub undoes: HashMap<RelPath, UndoRecord>,
    /// The changes of paths apart from file contents.
    pub entries: HashMap<RelPath, EntryChange>,
}

impl<'a> ChangeOrigin<'a> {
    pub(crate) fn of(tool: &'a str) -> Self {
        Self { tool, undoes: HashMap::new(), entries: HashMap::new() }
    }
}

/// The part of earlier changes that an undo undid in one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct UndoRecord {
    /// The changes that were undone completely, newest first.
    pub undoes: Vec<ChangeId>,
    /// The hunks that were undone in other changes.
    pub undone: Vec<UndonePart>,
}

impl UndoRecord {
    /// The record of an undo that could undo no part of these changes.
    pub(crate) fn nothing_of(changes: &[ChangeId]) -> Self {
        let mut record = Self::default();
        record.note_tried(changes);
        record
    }

    /// Notes that an undo of these changes was attempted, so that the next undo of the last change selects an older
    /// one.
    pub(crate) fn note_tried(&mut self, changes: &[ChangeId]) {
        for change in changes {
            let is_noted = self.undoes.contains(change) || self.undone.iter().any(|part| part.change == *change);
            if !is_noted {
                self.undone.push(UndonePart { change: change.clone(), hunks: Vec::new(), of: 0 });
            }
        }
    }
}

impl Workspace {
    /// The selected events, newest first. Events that were undone, or that undid others, are left out unless they are
    /// named.
    pub(crate) fn select_events(&self, selection: &ChangeSelection) -> Result<Vec<FileEvent>, StoreError> {
        // Reads the events of all sessions and files: another session may have undone the selected events, and under
        // another name.
        let selected = self.event_log()?.select(selection, &[]);
        match selection {
            // The change may be older than the events that are searched.
            ChangeSelection::Change(change) if selected.is_empty() => {
                self.ask(|store| store.events(&EventFilter { change: Some(change.clone()), ..EventFilter::default() }, MAX_FILES))
            }
            _ => Ok(selected),
        }
    }
}

/// The maximum number of files of one change.
const MAX_FILES: usize = 100_000;

/// A change in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedChange {
    /// The id of the change.
    pub change: ChangeId,
    /// The time of its last event, in milliseconds since the Unix epoch.
    pub at: Millis,
    /// The session that made it.
    pub session: SessionId,
    /// The name of the tool; for a command, [`FileEvent::COMMAND`] and its first line.
    pub tool: String,
    /// The events of the change, one for each file, in the order in which they were recorded.
    pub files: Vec<FileEvent>,
    /// Whether it has been undone completely.
    pub is_undone: bool,
}

impl Workspace {
    /// The latest changes that match, newest first.
    pub fn log(&self, which: &EventFilter, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        let events = self.event_log()?;
        let fits = |event: &FileEvent| {
            which.session.as_ref().is_none_or(|session| *session == event.session)
                && which.path.as_ref().is_none_or(|path| event.is_about(path))
                && which.change.as_ref().is_none_or(|change| *change == event.change)
        };
        let mut log: Vec<LoggedChange> = Vec::new();
        for event in events.iter().filter(|event| fits(event)).cloned() {
            let event_is_undone = events.is_undone(&event);
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
        // Events come newest first, but within a change people read from first to last.
        log.iter_mut().for_each(|change| change.files.reverse());
        Ok(log)
    }

    /// The net effect of the selected changes on each file; `None` if there is no such change. A file that was created
    /// and deleted again is left out.
    pub fn net_changes(&self, selection: &ChangeSelection) -> Result<Option<Vec<NetChange>>, StoreError> {
        let events = self.select_events(selection)?;
        let nets = || merge_events(&events).into_iter().filter(|file| !file.is_nothing()).collect();
        Ok((!events.is_empty()).then(nets))
    }

    /// The diff of a file; `None` if one of its versions is no longer stored.
    pub fn diff(&self, file: &NetChange) -> Option<FileDiff> {
        let modes = file.modes.map(|(before, after)| (git_mode(before), git_mode(after))).unzip();
        if file.before == file.after && file.path_before == file.path_after {
            let same = FileDiff::between((&file.path_before, None), (&file.path_after, None));
            return Some(same.with_modes(modes.0, modes.1));
        }
        let before = self.content_of_version(&file.path_before, file.before)?;
        let after = self.content_of_version(&file.path_after, file.after)?;
        let diff = FileDiff::between((&file.path_before, before.as_ref()), (&file.path_after, after.as_ref()));
        Some(diff.with_modes(modes.0, modes.1))
    }

    /// The diff between two versions of a file; `None` if one of them is no longer stored.
    pub fn diff_of_versions(&self, path: &RelPath, before: Option<ContentHash>, after: Option<ContentHash>) -> Option<FileDiff> {
        let (before, after) = (self.content_of_version(path, before)?, self.content_of_version(path, after)?);
        Some(FileDiff::between((path, before.as_ref()), (path, after.as_ref())))
    }

    /// The content of a version, which is `None` if there was no file. The outer `None` means that it is no longer
    /// stored.
    #[expect(clippy::option_option, reason = "no file, or no longer stored")]
    pub(crate) fn content_of_version(&self, path: &RelPath, version: Option<ContentHash>) -> Option<Option<Content>> {
        version.map_or(Some(None), |version| self.content_at(path, &version).map(Some))
    }

    /// The content of a version of this file, if it is still stored.
    pub(crate) fn content_at(&self, path: &RelPath, version: &ContentHash) -> Option<Content> {
        self.ask(|store| store.replaced_content(path, version)).ok().flatten().map(Content::new)
    }
}

/// Describes an event in a few words, with its path.
pub fn what_happened(file: &FileEvent) -> String {
    what_happened_to(file, ToString::to_string)
}

/// Like [`what_happened`], with paths as `name` formats them.
pub fn what_happened_to(file: &FileEvent, name: impl Fn(&RelPath) -> String) -> String {
    let path = name(&file.path);
    match &file.entry {
        Some(entry)
            if file.before != file.after
                && let Some((_, mode)) = entry.modes() =>
        {
            return format!("{path} edited, and got permissions {mode:o}");
        }
        Some(entry) => return what_it_became(&path, entry),
        None => {}
    }
    match (&file.moved_to, file.before, file.after) {
        (Some(to), ..) => format!("{path} moved to {}", name(to)),
        (None, before, after) if before == after => format!("{path} was as before"),
        (None, None, _) => format!("{path} created"),
        (None, _, None) => format!("{path} deleted"),
        (None, Some(_), Some(_)) => format!("{path} edited"),
    }
}

fn what_it_became(path: &str, EntryChange { before, after }: &EntryChange) -> String {
    match (before, after) {
        (PathEntry::File(_), PathEntry::File(Some(mode))) => format!("{path} got permissions {mode:o}"),
        (_, PathEntry::Link(target)) => format!("{path} became a link to {target}"),
        (_, PathEntry::Directory(_)) => format!("{path} became a directory"),
        (_, PathEntry::File(_)) => format!("{path} became a file"),
        (PathEntry::Link(_), PathEntry::Nothing) => format!("{path} deleted (a link)"),
        (PathEntry::Directory(_), PathEntry::Nothing) => format!("{path} deleted (an empty directory)"),
        (_, PathEntry::Nothing) => format!("{path} deleted"),
    }
}

/// Merges events, newest first, into the net change of each file.
pub(crate) fn merge_events(events: &[FileEvent]) -> Vec<NetChange> {
    let mut files: Vec<NetChange> = Vec::new();
    for event in events {
        let name_after = event.name_after();
        match files.iter_mut().find(|net| net.path_before == *name_after) {
            Some(net) => {
                net.is_mixed |= net.before != event.after;
                net.path_before = event.path.clone();
                net.before = event.before;
                let modes = event.entry.as_ref().and_then(EntryChange::modes);
                // Permissions that were set before a deletion are not the original ones.
                let mode_then = modes.map(|(before, _)| before).filter(|_| net.mode.is_some());
                net.mode = mode_then.or(event.mode).or(net.mode);
                net.modes = modes.map(|(before, after)| (before, net.modes.map_or(after, |(_, after)| after))).or(net.modes);
                net.changes.push(event.change.clone());
            }
            None => files.push(NetChange {
                path_before: event.path.clone(),
                path_after: name_after.clone(),
                before: event.before,
                after: event.after,
                mode: event.mode,
                modes: event.entry.as_ref().and_then(EntryChange::modes),
                changes: vec![event.change.clone()],
                is_mixed: false,
            }),
        }
    }
    files
}

/// A new change id, short because people type it.
pub(crate) fn fresh_change() -> ChangeId {
    // An odd step visits all numbers before one repeats, and each process starts at another number.
    static NEXT: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(random() as u32));
    ChangeId(format!("{:08x}", NEXT.fetch_add(0x9e37_79b1, Ordering::Relaxed)))
}
