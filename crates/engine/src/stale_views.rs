//! Finds the views of a session that have become stale, and the authors of the changes. Reports each change once. The
//! watcher's hints name the files to check. Without hints, all files are checked, some of them in each call.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Bound::{Excluded, Unbounded},
};

use surehand_core::{ChangeAuthor, ContentHash, OutsideState, RelPath};
use surehand_store::{EventFilter, SessionId};

use crate::{file_cache::FileCache, file_tracker::FileTracker, watch::WatchHints, workspace::Workspace};

/// The maximum number of files checked after one call; the rest follow after the next ones.
const MOST_CHECKS: usize = 500;

/// The maximum number of files checked after one call without hints.
const MOST_CHECKS_WITHOUT_HINTS: usize = 50;

/// The number of latest events that are searched for the author of a change.
const LAST_EVENTS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct StaleViews {
    left: BTreeSet<RelPath>,
    last: Option<RelPath>,
    room: usize,
}

/// The sources for checking the views of a session.
pub(crate) struct ViewSources<'a> {
    pub workspace: &'a Workspace,
    pub tracker: &'a mut FileTracker,
    pub files: &'a mut FileCache,
}

/// A file whose content differs from the session's view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StaleView {
    pub path: RelPath,
    pub was: OutsideState,
    pub now: OutsideState,
}

impl StaleViews {
    /// Notes the files that may have changed. Those in `fresh`, which the reply concerns, need no check.
    pub(crate) fn note_hints(&mut self, sources: &mut ViewSources<'_>, hints: &WatchHints, fresh: &[RelPath]) {
        self.room = match sources.workspace.watch() {
            Some(_) => MOST_CHECKS,
            // The first call of a session may be its last one in this process.
            None if self.last.is_none() => MOST_CHECKS,
            None => MOST_CHECKS_WITHOUT_HINTS,
        };
        match hints {
            WatchHints::Everything => self.left.extend(sources.tracker.viewed(sources.workspace)),
            WatchHints::Paths(paths) => {
                for path in paths.iter().filter(|path| !fresh.contains(path)) {
                    self.left.extend(sources.tracker.viewed_at(sources.workspace, path));
                }
            }
        }
        self.left.retain(|path| !fresh.contains(path));
    }

    /// Checks the next files, and returns those that changed, each change once.
    pub(crate) fn check_next(&mut self, sources: &mut ViewSources<'_>) -> Vec<StaleView> {
        let next = self.take_next();
        self.check(sources, next)
    }

    pub(crate) fn check(&mut self, sources: &mut ViewSources<'_>, mut paths: Vec<RelPath>) -> Vec<StaleView> {
        let mut changed = Vec::new();
        sources.tracker.load_views(sources.workspace, &paths);
        paths.retain(|path| sources.tracker.view(sources.workspace, path).is_some());
        let now = sources.files.check(sources.workspace, &paths);
        for (path, now) in paths.into_iter().zip(now) {
            let Some(mut view) = sources.tracker.view(sources.workspace, &path) else { continue };
            let was = view.last_known();
            let is_news = view.record_told(now);
            sources.tracker.set_view(sources.workspace, &path, view);
            if is_news {
                changed.push(StaleView { path, was, now });
            }
        }
        changed
    }

    /// Like [`Self::check_next`], for all files: changes of a command must be found when it ends, or they could not be
    /// attributed to it.
    pub(crate) fn check_all(&mut self, sources: &mut ViewSources<'_>) -> Vec<StaleView> {
        self.room = usize::MAX;
        self.check_next(sources)
    }

    /// The current versions of files that may have changed, without reporting them.
    pub(crate) fn pending(&self, sources: &mut ViewSources<'_>) -> HashMap<RelPath, OutsideState> {
        let left: Vec<RelPath> = self.left.iter().cloned().collect();
        let now = sources.files.check(sources.workspace, &left);
        left.into_iter().zip(now).collect()
    }

    fn take_next(&mut self) -> Vec<RelPath> {
        let after = self.last.take().map_or(Unbounded, Excluded);
        let mut next: Vec<RelPath> = self.left.range((after, Unbounded)).take(self.room).cloned().collect();
        let missing = self.room.min(self.left.len()) - next.len();
        next.extend(self.left.iter().take(missing).cloned().collect::<Vec<_>>());
        self.last = next.last().cloned();
        next.sort();
        self.left.retain(|path| next.binary_search(path).is_err());
        next
    }
}

/// The author of a change, if recorded events lead from the old version to the new one without a gap. The last event
/// alone proves nothing: another program may have restored an old version.
pub(crate) fn author_of(workspace: &Workspace, session: &SessionId, changed: &StaleView) -> ChangeAuthor {
    author_and_time(workspace, session, changed).map_or(ChangeAuthor::Unknown, |(by, _)| by)
}

/// [`author_of`] with the time of the change, in milliseconds since 1970.
pub(crate) fn author_and_time(workspace: &Workspace, session: &SessionId, changed: &StaleView) -> Option<(ChangeAuthor, i64)> {
    let which = EventFilter { path: Some(changed.path.clone()), ..EventFilter::default() };
    let events = workspace.ask(|store| store.events(&which, LAST_EVENTS)).unwrap_or_default();
    let outside = |version: Option<ContentHash>| version.map_or(OutsideState::Gone, OutsideState::Version);
    let mut last = None;
    let mut now = changed.now;
    for event in &events {
        let (before, after) = match &event.moved_to {
            Some(to) if *to == changed.path => (OutsideState::Gone, outside(event.after)),
            Some(_) => (outside(event.before), OutsideState::Gone),
            None => (outside(event.before), outside(event.after)),
        };
        if after != now {
            continue;
        }
        let by = last.get_or_insert(match (event.session == *session, event.is_command()) {
            (true, true) => (ChangeAuthor::Command, event.at),
            (true, false) => (ChangeAuthor::Unknown, event.at),
            (false, true) => (ChangeAuthor::CommandOfAnotherSession, event.at),
            (false, false) => (ChangeAuthor::AnotherSession, event.at),
        });
        if before == changed.was {
            return Some(*by);
        }
        now = before;
    }
    None
}
