//! Lists the sessions of a workspace, the files that each has seen, and which of those have changed since. For programs
//! that poll while agents work.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use surehand_core::{LineMap, LineSet, OutsideState, RelPath, Text, View};
use surehand_store::{KnownSession, SessionId, StoreError};

use crate::{file_cache::FileCache, workspace::Workspace};

/// A session with the files that it has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedSession {
    /// The session as the store knows it, with the time of its last activity.
    pub session: KnownSession,
    /// The short name that people see, such as `claude 3f2a`.
    pub name: String,
    /// The files that it has seen, sorted by path. If there are many, only those seen last.
    pub files: Vec<SeenFile>,
}

/// A file that a session has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenFile {
    /// Path relative to the workspace root.
    pub path: RelPath,
    /// Whether the file has changed since the session saw it.
    pub is_stale: bool,
    /// The number of lines that the session has seen.
    pub seen_lines: usize,
    /// The number of lines in the version that it saw.
    pub total_lines: usize,
}

/// The lines of a file that a session has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenLines {
    /// The id of the session.
    pub session: SessionId,
    /// The short name that people see, such as `claude 3f2a`.
    pub name: String,
    /// Whether the file has changed since the session saw it.
    pub is_stale: bool,
    /// The lines of the present text that the session has seen; `None` if the version that it saw is no longer kept.
    pub lines: Option<LineSet>,
}

/// Lists sessions. Views are read again only for sessions that were active since the last time, and each file is
/// checked once, however many sessions have seen it.
#[derive(Debug)]
pub struct SessionLister {
    workspace: Arc<Workspace>,
    files: FileCache,
    known: HashMap<SessionId, KnownViews>,
}

/// The views of a session when they were last read.
#[derive(Debug)]
struct KnownViews {
    session: KnownSession,
    views: Vec<(RelPath, View)>,
}

/// The maximum number of files listed for a session.
const MOST_FILES: usize = 1000;

impl SessionLister {
    /// A lister for the sessions of this workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, files: FileCache::of(SessionId("list".to_owned())), known: HashMap::new() }
    }

    /// All sessions, the most recently active first.
    pub fn list(&mut self) -> Result<Vec<ListedSession>, StoreError> {
        let names = self.workspace.session_names()?;
        let mut sessions = self.workspace.ask(|store| store.known_sessions())?;
        sessions.sort_by(|a, b| b.last_active.cmp(&a.last_active).then_with(|| a.id.cmp(&b.id)));
        self.read_views(&sessions)?;
        let now = self.current_versions();
        let listed = |session: KnownSession| {
            let views = self.known.get(&session.id).map(|known| &known.views[..]).unwrap_or_default();
            let files = views.iter().map(|(path, view)| seen_file(path, view, now.get(path).copied())).collect();
            ListedSession { name: names.name(&session.id), session, files }
        };
        Ok(sessions.into_iter().map(listed).collect())
    }

    /// The lines of a file that each session has seen, by their numbers in the present text.
    pub fn seen_lines(&mut self, path: &RelPath, now: &Text) -> Result<Vec<SeenLines>, StoreError> {
        let names = self.workspace.session_names()?;
        let sessions = self.workspace.ask(|store| store.sessions())?;
        let mut seen = Vec::new();
        for (session, _) in sessions {
            let Some(view) = self.workspace.ask(|store| store.view(&session, path))? else { continue };
            let is_stale = view.is_unknown() || view.version() != now.version();
            let lines = if is_stale { self.still_seen(path, &view, now) } else { Some(view.seen_lines()) };
            seen.push(SeenLines { name: names.name(&session), session, is_stale, lines });
        }
        Ok(seen)
    }

    /// The lines of a view that the present text still contains.
    fn still_seen(&self, path: &RelPath, view: &View, now: &Text) -> Option<LineSet> {
        let then = self.workspace.content_at(path, &view.version())?.text()?.clone();
        Some(view.carried_unshown(&then, &LineMap::between(&then, now), now).seen_lines())
    }

    fn read_views(&mut self, sessions: &[KnownSession]) -> Result<(), StoreError> {
        let mut before = std::mem::take(&mut self.known);
        for session in sessions {
            let known = match before.remove(&session.id) {
                Some(known) if known.session == *session => known,
                _ => KnownViews { session: session.clone(), views: self.views_of(&session.id)? },
            };
            self.known.insert(session.id.clone(), known);
        }
        Ok(())
    }

    fn views_of(&self, session: &SessionId) -> Result<Vec<(RelPath, View)>, StoreError> {
        self.workspace.ask(|store| {
            let mut paths = store.lately_viewed(session, MOST_FILES)?;
            paths.sort();
            let views = store.views(session, &paths)?;
            Ok(paths.into_iter().zip(views).filter_map(|(path, view)| Some((path, view?))).collect())
        })
    }

    /// The present version of each file that a listed session has seen.
    fn current_versions(&mut self) -> HashMap<RelPath, OutsideState> {
        let paths: BTreeSet<&RelPath> = self.known.values().flat_map(|known| &known.views).map(|(path, _)| path).collect();
        let paths: Vec<RelPath> = paths.into_iter().cloned().collect();
        let now = self.files.check(&self.workspace, &paths);
        paths.into_iter().zip(now).collect()
    }
}

fn seen_file(path: &RelPath, view: &View, now: Option<OutsideState>) -> SeenFile {
    let is_stale = view.is_unknown() || now != Some(OutsideState::Version(view.version()));
    SeenFile { path: path.clone(), is_stale, seen_lines: view.seen_lines().count() as usize, total_lines: view.total_lines() }
}
