//! The views of one session. A tracker is an ordinary value that is passed to the code that needs it. Without one,
//! nothing is tracked, and nothing is refused as unread or stale.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
};

use surehand_core::{Cause, ContentHash, LineSet, Present, Refusal, RelPath, Text, View, instructions::InstructionRecord};
use surehand_store::{RefusedCall, SessionId, Store, StoreError, StoreRecord};

use crate::{file_cache::FileCache, workspace::Workspace};

/// The views of one session, in memory and in the workspace's store.
#[derive(Debug)]
pub struct FileTracker {
    session: SessionId,
    /// Whether the store may have records of this session from before this tracker.
    continued: bool,
    /// Whether other processes may add records for this session.
    shared: bool,
    /// Whether all views have been loaded.
    listed: bool,
    /// `None` for a path without a view in the store.
    views: HashMap<RelPath, Option<PackedView>>,
    /// The paths with a view, in order.
    paths: BTreeSet<RelPath>,
    /// Refused calls by their fingerprint; `None` until they were loaded.
    refused: Option<HashMap<ContentHash, RefusedCall>>,
    given: Option<InstructionRecord>,
    rewrites: HashMap<RelPath, u32>,
    /// Only for programs that use a tracker without a session. A session has a cache of its own.
    files: Option<FileCache>,
}

/// The compact form of a view. Most files of a long session were shown once as a whole, which takes a third of the
/// memory of a view.
#[derive(Debug)]
enum PackedView {
    /// Shown once as a whole.
    Whole {
        version: ContentHash,
        lines: u32,
    },
    Other(Box<View>),
}

impl PackedView {
    fn of(view: View) -> Self {
        let (version, lines) = (view.version(), view.total_lines());
        match u32::try_from(lines) {
            Ok(few) if view == View::whole_of(version, lines) => Self::Whole { version, lines: few },
            _ => Self::Other(Box::new(view)),
        }
    }

    fn view(&self) -> View {
        match self {
            Self::Whole { version, lines } => View::whole_of(*version, *lines as usize),
            Self::Other(view) => (**view).clone(),
        }
    }
}

/// The views of a session in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionViews {
    /// The id of the session.
    pub session: SessionId,
    /// The number of files that it has a view of.
    pub files: usize,
    /// The viewed files that have changed since. If there are many, only those seen last are checked.
    pub stale: Vec<RelPath>,
}

/// All sessions of a workspace, with their stale views.
pub fn views_by_session(workspace: &Arc<Workspace>) -> Result<Vec<SessionViews>, StoreError> {
    workspace.flush();
    let holder = |(session, files): (SessionId, usize)| {
        let stale = stale_files(workspace, &session);
        SessionViews { session, files, stale }
    };
    Ok(workspace.ask(|store| store.sessions())?.into_iter().map(holder).collect())
}

/// The files that a session has seen and that have changed since. If there are many, only those seen last are checked.
pub fn stale_files(workspace: &Arc<Workspace>, session: &SessionId) -> Vec<RelPath> {
    const LATELY: usize = 200;
    let mut tracker = FileTracker::continued(session.clone());
    let mut stale = tracker.lately_viewed(workspace, LATELY);
    stale.retain(|path| tracker.has_been_modified_since_read(workspace, path.as_str()).unwrap_or(true));
    stale.sort();
    stale
}

impl FileTracker {
    /// A tracker for a new session. It reads no records from the store.
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            continued: false,
            shared: false,
            listed: false,
            views: HashMap::new(),
            paths: BTreeSet::new(),
            refused: Some(HashMap::new()),
            given: Some(InstructionRecord::default()),
            rewrites: HashMap::new(),
            files: None,
        }
    }

    /// A tracker for a session that began earlier, perhaps in another process.
    pub fn continued(session: SessionId) -> Self {
        Self { continued: true, refused: None, given: None, ..Self::new(session) }
    }

    /// A tracker for a session that several processes share.
    pub fn shared(session: SessionId) -> Self {
        Self { shared: true, ..Self::continued(session) }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Drops the copies in memory when a call begins, if other processes may have changed the session in the store.
    pub(crate) fn reload_if_shared(&mut self) {
        if self.shared {
            self.views.clear();
            self.paths.clear();
            self.rewrites.clear();
            (self.refused, self.given) = (None, None);
            (self.continued, self.listed) = (true, false);
        }
    }

    /// The id of the tracked session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    fn files(&mut self) -> &mut FileCache {
        self.files.get_or_insert_with(|| FileCache::of(self.session.clone()))
    }

    /// Records that the whole file was shown. A file that cannot be read is refused and not tracked.
    pub fn track_read(&mut self, workspace: &Arc<Workspace>, path: &str) -> Result<(), Refusal> {
        let gathered = self.files().gather(workspace, path)?;
        let text = match gathered.present {
            Present::Text(text) => text,
            Present::Absent => return Err(Refusal::of(&gathered.path, Cause::NoSuchFile)),
            Present::Blob(_, cause) | Present::Unreadable(cause) => return Err(Refusal::of(&gathered.path, cause)),
        };
        self.files().keep(workspace, &gathered.path, &text);
        self.set_view(workspace, &gathered.path, View::whole(&text));
        Ok(())
    }

    /// Whether a file has changed since it was read. Only content counts, never a time. A path that was never read
    /// counts as unmodified; a file that was deleted or invalidated counts as modified.
    pub fn has_been_modified_since_read(&mut self, workspace: &Arc<Workspace>, path: &str) -> Result<bool, Refusal> {
        let gathered = self.files().gather(workspace, path)?;
        let Some(view) = self.view(workspace, &gathered.path) else { return Ok(false) };
        Ok(match gathered.present {
            Present::Text(text) => view.is_unknown() || text.version() != view.version(),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => true,
        })
    }

    /// Marks a file as possibly changed, so that it must be read again before it is edited. An unread file stays
    /// unread.
    pub fn invalidate(&mut self, workspace: &Arc<Workspace>, path: &str) -> Result<(), Refusal> {
        let path = self.files().path_of(workspace, path)?;
        if let Some(mut view) = self.view(workspace, &path) {
            view.invalidate();
            self.set_view(workspace, &path, view);
        }
        Ok(())
    }

    /// Forgets everything that the session has seen, because its context was reset.
    pub fn clear_session(&mut self, workspace: &Workspace) {
        self.views.clear();
        self.paths.clear();
        self.rewrites.clear();
        self.refused = Some(HashMap::new());
        self.given = Some(InstructionRecord::default());
        // From here on, all records of this session in the store are in memory.
        self.continued = false;
        workspace.record(StoreRecord::Cleared { session: self.session.clone() });
        // A process that continues this session immediately must not find the old views.
        workspace.flush();
    }

    /// Forgets the views, instructions and refused calls of these files. Returns the files that had a view or
    /// instructions.
    pub fn forget(&mut self, workspace: &Workspace, paths: &[RelPath]) -> Vec<RelPath> {
        let mut forgotten = Vec::new();
        for path in paths {
            self.clear_refusals(workspace, path);
            let was_given = self.given(workspace).forget(path);
            if self.view(workspace, path).is_some() || was_given {
                self.insert_view(path, None);
                workspace.record(StoreRecord::Forgot { session: self.session.clone(), path: path.clone() });
                forgotten.push(path.clone());
            }
        }
        forgotten
    }

    /// Forgets the view of a file, but not its instructions.
    pub(crate) fn forget_view(&mut self, workspace: &Workspace, path: &RelPath) {
        if self.view(workspace, path).is_some() {
            self.insert_view(path, None);
            workspace.record(StoreRecord::Forgot { session: self.session.clone(), path: path.clone() });
        }
    }

    /// The files that the session received as instructions for their directories.
    pub(crate) fn given(&mut self, workspace: &Workspace) -> &mut InstructionRecord {
        let session = &self.session;
        let ask = || workspace.ask(|store| store.given(session)).unwrap_or_default().into_iter().collect();
        self.given.get_or_insert_with(ask)
    }

    /// Records that the session received this file as instructions.
    pub(crate) fn record_given(&mut self, workspace: &Workspace, path: &RelPath, version: ContentHash) {
        self.given(workspace).give(path.clone(), version);
        workspace.record(StoreRecord::Given { session: self.session.clone(), path: path.clone(), version });
    }

    /// The view of a file; `None` if the session has not seen it.
    pub fn view(&mut self, workspace: &Workspace, path: &RelPath) -> Option<View> {
        if let Some(view) = self.views.get(path) {
            return view.as_ref().map(PackedView::view);
        }
        if !self.continued {
            return None;
        }
        let view = workspace.ask(|store| store.view(&self.session, path)).ok().flatten();
        self.insert_view(path, view.clone());
        view
    }

    /// Loads the views of these files with one query.
    pub(crate) fn load_views(&mut self, workspace: &Workspace, paths: &[RelPath]) {
        let unknown: Vec<RelPath> =
            paths.iter().filter(|path| self.continued && !self.views.contains_key(*path)).cloned().collect();
        if unknown.len() > 1 {
            let views = workspace.ask(|store| store.views(&self.session, &unknown)).unwrap_or_default();
            unknown.iter().zip(views).for_each(|(path, view)| self.insert_view(path, view));
        }
    }

    pub(crate) fn viewed(&mut self, workspace: &Workspace) -> Vec<RelPath> {
        self.load_all(workspace);
        self.paths.iter().cloned().collect()
    }

    /// The files that the session viewed last, at most `limit`, as far as the store knows.
    pub fn lately_viewed(&mut self, workspace: &Workspace, limit: usize) -> Vec<RelPath> {
        workspace.ask(|store| store.lately_viewed(&self.session, limit)).unwrap_or_default()
    }

    /// The viewed files that are this path or below it.
    pub(crate) fn viewed_at(&mut self, workspace: &Workspace, path: &RelPath) -> Vec<RelPath> {
        self.load_all(workspace);
        if let Some(Some(_)) = self.views.get(path) {
            return vec![path.clone()];
        }
        let beneath = format!("{path}/");
        let inside = self.paths.range::<str, _>((Excluded(beneath.as_str()), Unbounded));
        inside.take_while(|file| file.as_str().starts_with(&beneath)).cloned().collect()
    }

    /// At most `limit` viewed files that are one of these paths or below one, as far as the store knows, without
    /// loading each view.
    pub(crate) fn viewed_in(&self, workspace: &Workspace, places: &HashSet<RelPath>, limit: usize) -> Vec<RelPath> {
        let stored = workspace.ask(|store| store.viewed_paths(&self.session)).unwrap_or_default();
        let is_in = |path: &RelPath| {
            let path = path.as_str();
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            ends.into_iter().any(|end| places.contains(&path[..end]))
        };
        stored.into_iter().filter(is_in).take(limit).collect()
    }

    /// Loads everything that this session saw before, once.
    fn load_all(&mut self, workspace: &Workspace) {
        if self.continued && !std::mem::replace(&mut self.listed, true) {
            let stored = workspace.ask(|store| store.viewed_paths(&self.session)).unwrap_or_default();
            self.load_views(workspace, &stored);
            stored.into_iter().for_each(|path| drop(self.view(workspace, &path)));
        }
    }

    /// Replaces the view of a file.
    pub fn set_view(&mut self, workspace: &Workspace, path: &RelPath, view: View) {
        if self.views.get(path).and_then(|last| last.as_ref()).is_some_and(|last| last.view() == view) {
            return;
        }
        self.insert_view(path, Some(view.clone()));
        workspace.record(StoreRecord::Viewed { session: self.session.clone(), path: path.clone(), view });
    }

    fn insert_view(&mut self, path: &RelPath, view: Option<View>) {
        let is_seen = view.is_some();
        let was_seen = self.views.insert(path.clone(), view.map(PackedView::of)).is_some_and(|view| view.is_some());
        if is_seen && !was_seen {
            self.paths.insert(path.clone());
        } else if was_seen && !is_seen {
            self.paths.remove(path);
        }
    }

    /// Records that these lines were shown in full. Unchanged lines that were seen in an older version stay seen.
    pub(crate) fn record_shown(
        &mut self,
        workspace: &Workspace,
        files: &mut FileCache,
        path: &RelPath,
        text: &Text,
        lines: &LineSet,
    ) {
        let mut view = match self.view(workspace, path) {
            Some(view) if view.is_unknown() => View::of(text),
            Some(view) if view.version() == text.version() => view,
            Some(view) => match files.text(workspace, &view.version()) {
                Some(seen) => view.carried_unshown(&seen, &surehand_core::LineMap::between(&seen, text), text),
                None => View::of(text),
            },
            None => View::of(text),
        };
        view.show_set(lines);
        files.keep(workspace, path, text);
        self.set_view(workspace, path, view);
    }

    /// Counts a refused call, and returns how often it was refused since the refusals about its file were last cleared.
    pub fn count_refusal(&mut self, workspace: &Workspace, call: ContentHash, path: Option<RelPath>) -> u32 {
        let refused = self.refused(workspace);
        let entry = refused.entry(call).or_insert(RefusedCall { call, path, count: 0 });
        entry.count += 1;
        let refused = entry.clone();
        let count = refused.count;
        workspace.record(StoreRecord::Refused { session: self.session.clone(), refused });
        count
    }

    /// Whether a call was refused and its cause persists.
    pub(crate) fn was_refused(&mut self, workspace: &Workspace, call: &ContentHash) -> bool {
        self.refused(workspace).contains_key(call)
    }

    /// Forgets the refusals about this file, because their cause is gone.
    pub(crate) fn clear_refusals(&mut self, workspace: &Workspace, path: &RelPath) {
        let refused = self.refused(workspace);
        let before = refused.len();
        refused.retain(|_, call| call.path.as_ref() != Some(path));
        if refused.len() < before {
            workspace.record(StoreRecord::Mended { session: self.session.clone(), path: path.clone() });
        }
    }

    fn refused(&mut self, workspace: &Workspace) -> &mut HashMap<ContentHash, RefusedCall> {
        let session = &self.session;
        self.refused.get_or_insert_with(|| {
            let calls: Result<Vec<RefusedCall>, StoreError> = workspace.ask(|store: &dyn Store| store.refused_calls(session));
            calls.unwrap_or_default().into_iter().map(|call| (call.call, call)).collect()
        })
    }

    /// Counts a rewrite that changed little, and returns the count.
    pub(crate) fn count_rewrite(&mut self, workspace: &Workspace, path: &RelPath, alike: bool) -> u32 {
        let last = match self.rewrites.get(path) {
            Some(count) => *count,
            None if self.continued => workspace.ask(|store| store.rewrite_count(&self.session, path)).unwrap_or_default(),
            None => 0,
        };
        let count = if alike { last + 1 } else { 0 };
        self.rewrites.insert(path.clone(), count);
        if count != last {
            workspace.record(StoreRecord::Rewrote { session: self.session.clone(), path: path.clone(), count });
        }
        count
    }
}
