//! Undo of changes to paths apart from file contents: links, directories, permissions. A path that was not a regular
//! file, before or after the change, is restored as a whole, and only if it is still as the change left it.

use std::{collections::HashSet, os::unix::fs::PermissionsExt};

use surehand_core::{
    ContentHash, RelPath,
    outcome::undo::{EntryOutcome, EntryState},
};
use surehand_store::{ChangeId, EntryChange, FileEvent, PathEntry};

use super::{
    RestoreAct, RestoreFile, RestorePlan, Restored,
    checkpoint_tree::{ContentSource, PathState, is_same_content},
};
use crate::{change_log::ChangeOrigin, checkpoint::read_file, session::Session, workspace::Workspace};

/// A path to restore to its state before some changes.
#[derive(Debug, Clone)]
pub(crate) struct EntryUndo {
    pub path: RelPath,
    /// Newest first.
    pub changes: Vec<ChangeId>,
    have: PathState,
    want: PathState,
}

impl EntryUndo {
    /// The changes of these events apart from contents. Events are newest first.
    pub(crate) fn of_events(events: &[FileEvent]) -> Vec<Self> {
        let is_of_mode = |event: &FileEvent| event.entry.as_ref().is_some_and(|entry| entry.modes().is_some());
        let other_kinds = events.iter().filter(|event| event.entry.is_some() && !is_of_mode(event));
        let other_kinds: HashSet<&RelPath> = other_kinds.map(|event| &event.path).collect();
        // The permissions of a file that was created, deleted or moved are restored together with the file.
        let whole = events.iter().filter(|event| event.before.is_none() || event.after.is_none() || event.moved_to.is_some());
        let whole: HashSet<&RelPath> = whole.flat_map(|event| [&event.path, event.name_after()]).collect();
        let mut undos: Vec<Self> = Vec::new();
        for event in events {
            let known = undos.iter_mut().find(|undo| undo.path == event.path);
            let is_other_kind = other_kinds.contains(&event.path);
            let (before, after) = match &event.entry {
                Some(EntryChange { before, after }) if is_other_kind || !whole.contains(&event.path) => {
                    (state_of(before, event.before), state_of(after, event.after))
                }
                None if is_other_kind && known.is_some() => {
                    (state_of(&PathEntry::File(event.mode), event.before), PathState::Nothing)
                }
                Some(_) | None => continue,
            };
            match known {
                Some(undo) => {
                    undo.changes.push(event.change.clone());
                    undo.want = before;
                }
                None => {
                    let (path, changes) = (event.path.clone(), vec![event.change.clone()]);
                    undos.push(Self { path, changes, have: after, want: before });
                }
            }
        }
        undos
    }

    /// Whether the path was not a regular file before or after. Otherwise only its permissions are restored.
    pub(crate) fn is_other_kind(&self) -> bool {
        !matches!((&self.have, &self.want), (PathState::File { .. }, PathState::File { .. }))
    }

    /// Whether the path is still as the changes left it. If only permissions are restored, the content does not matter.
    pub(crate) fn is_as_left(&self, workspace: &Workspace) -> bool {
        let place = workspace.path().join(self.path.as_str());
        let meta = place.symlink_metadata().ok();
        let has_mode = |mode: Option<u32>| {
            meta.as_ref().is_some_and(|meta| mode.is_none_or(|mode| meta.permissions().mode() & 0o7777 == mode))
        };
        match &self.have {
            PathState::Nothing => meta.is_none() || meta.as_ref().is_some_and(std::fs::Metadata::is_dir) && is_empty(&place),
            PathState::Link { target } => std::fs::read_link(&place).is_ok_and(|actual| actual.as_os_str() == target.as_str()),
            PathState::Directory { .. } => meta.as_ref().is_some_and(std::fs::Metadata::is_dir),
            PathState::File { mode, .. } if !self.is_other_kind() => {
                meta.as_ref().is_some_and(|meta| meta.is_file()) && has_mode(*mode)
            }
            PathState::File { content, mode } => {
                let actual = read_file(workspace, &self.path, u64::MAX).ok().flatten();
                let actual = actual.map(|bytes| ContentSource::Version(ContentHash::of(&bytes)));
                has_mode(*mode) && actual.is_some_and(|actual| is_same_content(workspace, &self.path, &actual, content))
            }
            PathState::NotKept => false,
        }
    }

    /// The recorded form of this undo.
    pub(crate) fn record(&self) -> EntryChange {
        EntryChange { before: entry(&self.have), after: entry(&self.want) }
    }

    fn file(&self) -> RestoreFile {
        let act = match (&self.have, &self.want) {
            _ if !self.is_other_kind() => RestoreAct::SetMode,
            (PathState::Nothing, _) => RestoreAct::Create,
            (_, PathState::Nothing) => RestoreAct::Delete,
            _ => RestoreAct::Overwrite,
        };
        RestoreFile { path: self.path.clone(), act, have: self.have.clone(), want: self.want.clone() }
    }
}

impl Session {
    /// Restores paths as a part of this change. The paths in `recorded` already have their events. Returns the outcomes
    /// and the failures.
    pub(crate) fn undo_entries(
        &mut self,
        entries: &[EntryUndo],
        change: &ChangeId,
        origin: &ChangeOrigin<'_>,
        recorded: &HashSet<RelPath>,
    ) -> (Vec<EntryOutcome>, Restored) {
        let files = entries.iter().map(EntryUndo::file).collect();
        let plan = RestorePlan::of(files);
        let restored = self.restore_as(&plan, change, origin, recorded.clone());
        let is_done = |entry: &&EntryUndo| restored.files.iter().any(|(path, _)| *path == entry.path);
        (entries.iter().filter(is_done).map(|entry| outcome(&entry.path, &entry.have, &entry.want)).collect(), restored)
    }
}

/// The effect of a restore on a path apart from file content; `None` if there is none.
pub(super) fn entry_change(file: &RestoreFile) -> Option<EntryChange> {
    let is_more = match (&file.have, &file.want) {
        (PathState::File { mode: Some(have), .. }, PathState::File { mode: Some(want), .. }) => have != want,
        (PathState::File { .. } | PathState::Nothing, PathState::File { .. } | PathState::Nothing) => false,
        (PathState::NotKept, _) | (_, PathState::NotKept) => false,
        _ => true,
    };
    is_more.then(|| EntryChange { before: entry(&file.have), after: entry(&file.want) })
}

/// The outcome of a restore for a path.
pub(super) fn outcome(path: &RelPath, have: &PathState, want: &PathState) -> EntryOutcome {
    let is = match (have, want) {
        (_, PathState::Link { target }) => EntryState::Link(target.clone()),
        (_, PathState::Directory { .. }) => EntryState::Directory,
        (PathState::File { .. }, PathState::File { mode: Some(mode), .. }) => EntryState::Permissions(*mode),
        (_, PathState::File { .. }) => EntryState::File,
        (_, PathState::Nothing | PathState::NotKept) => EntryState::Nothing,
    };
    EntryOutcome { path: path.clone(), is }
}

/// The state of a path that an event describes.
pub(super) fn state_of(entry: &PathEntry, version: Option<ContentHash>) -> PathState {
    match (entry, version) {
        (PathEntry::Link(target), _) => PathState::Link { target: target.clone() },
        (PathEntry::Directory(mode), _) => PathState::Directory { mode: *mode },
        (PathEntry::File(mode), Some(version)) => PathState::File { content: ContentSource::Version(version), mode: *mode },
        (PathEntry::File(_), None) | (PathEntry::Nothing, _) => PathState::Nothing,
    }
}

fn entry(state: &PathState) -> PathEntry {
    match state {
        PathState::Link { target } => PathEntry::Link(target.clone()),
        PathState::Directory { mode } => PathEntry::Directory(*mode),
        PathState::File { mode, .. } => PathEntry::File(*mode),
        PathState::Nothing | PathState::NotKept => PathEntry::Nothing,
    }
}

fn is_empty(place: &std::path::Path) -> bool {
    std::fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none())
}
