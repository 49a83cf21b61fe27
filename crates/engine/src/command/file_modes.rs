//! The permissions of the files that a command names. A change of permissions is recorded like a change of content, so
//! that it can be shown, undone, and separated from the work of others.

use rustix::fs::FileType;
use surehand_core::{OutsideState, RelPath};
use surehand_store::{EntryChange, EventFilter, PathEntry, StoreRecord};

use super::CommandChange;
use crate::{checkpoint::lstat, session::Session, stale_views::StaleView, workspace::Workspace};

/// The number of recent events of a file that are searched for a session that set its permissions.
const MOST_EVENTS: usize = 64;

impl Session {
    /// Records the named files of which a command changed only the permissions. Returns whether there are any.
    pub(super) fn take_modes(&mut self, own: &CommandChange<'_>, named: &[RelPath], recorded: &[&RelPath]) -> bool {
        let mut has_changed = false;
        for path in named.iter().filter(|path| !recorded.contains(path)) {
            if self.mode_change(own, path).is_none() {
                continue;
            }
            let content = self.gather(path.as_str()).ok().and_then(|gathered| gathered.present.content());
            let Some(content) = content else { continue };
            let same = OutsideState::Version(content.version());
            let event = self.command_event(&StaleView { path: path.clone(), was: same, now: same }, own);
            self.workspace().record(StoreRecord::Happened(event));
            has_changed = true;
        }
        has_changed
    }

    /// The change of a file's permissions by a command; `None` if it did not change them, or the file did not exist
    /// before and after.
    pub(super) fn mode_change(&self, own: &CommandChange<'_>, path: &RelPath) -> Option<EntryChange> {
        let noted = own.before?;
        let (before, after) = (*noted.modes.get(path)?, file_mode(self.workspace(), path)?);
        if before == after || self.has_set_mode_otherwise(path, after, noted.at) {
            return None;
        }
        Some(EntryChange { before: PathEntry::File(Some(before)), after: PathEntry::File(Some(after)) })
    }

    /// Whether another session has given a file these permissions since then.
    fn has_set_mode_otherwise(&self, path: &RelPath, mode: u32, since: i64) -> bool {
        let which = EventFilter { path: Some(path.clone()), ..EventFilter::default() };
        let events = self.workspace().ask(|store| store.events(&which, MOST_EVENTS)).unwrap_or_default();
        let has_set = |entry: &EntryChange| entry.after == PathEntry::File(Some(mode));
        let recent = events.iter().take_while(|event| event.at >= since);
        recent.filter(|event| event.session != self.id()).any(|event| event.entry.as_ref().is_some_and(has_set))
    }
}

/// The permissions of a regular file. Links are not followed.
pub(super) fn file_mode(workspace: &Workspace, path: &RelPath) -> Option<u32> {
    let stat = lstat(workspace, path).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(stat.st_mode & 0o7777)
}
