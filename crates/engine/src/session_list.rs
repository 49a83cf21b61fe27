//! Who works here, with what each session has seen of each file, and what of that is no longer so. For programs that ask
//! again and again while agents work.

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
    /// The session.
    pub session: KnownSession,
    /// Its name, as people know it.
    pub name: String,
    /// The files that it has seen, by path. If there are many, those seen last.
    pub files: Vec<SeenFile>,
}

/// A file that a session has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenFile {
    /// The file.
    pub path: RelPath,
    /// Whether it has changed since.
    pub is_stale: bool,
    /// How many of its lines were seen.
    pub seen_lines: usize,
    /// How many lines it had then.
    pub total_lines: usize,
}

/// The lines of a file that a session has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenLines {
    /// The session.
    pub session: SessionId,
    /// Its name, as people know it.
    pub name: String,
    /// Whether the file has changed since.
    pub is_stale: bool,
    /// Its lines that were seen and are still so; `None` if the version that was seen is no longer kept.
    pub lines: Option<LineSet>,
}

/// Lists sessions. What it has read it reads again only for sessions that were active since, and it looks at a file once,
/// however many sessions have seen it.
pub struct SessionLister {
    workspace: Arc<Workspace>,
    files: FileCache,
    known: HashMap<SessionId, KnownViews>,
}

impl std::fmt::Debug for SessionLister {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionLister").field("sessions", &self.known.len()).finish_non_exhaustive()
    }
}

/// The views of a session when they were read last.
struct KnownViews {
    session: KnownSession,
    views: Vec<(RelPath, View)>,
}

/// The most files of a session that are listed.
const MOST_FILES: usize = 1000;

impl SessionLister {
    /// Lists the sessions of this workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, files: FileCache::of(SessionId("list".to_owned())), known: HashMap::new() }
    }

    /// The sessions, the one that was active last first.
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

    /// Which lines of a file each session has seen, as the lines are numbered now.
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

    /// The lines of a view that are in the present text as well.
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

    /// The present version of each file that a session has seen.
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
