//! A workspace: a directory tree under one root, with the state of its work tree.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs as sys;
use surehand_core::{Notice, OutsideState, Refusal, RelPath, RepoState, Stamp, outcome::TouchedFile};
use surehand_store::{OpenedStore, Store, StoreError, StoreRecord, StoryTasks, TaskUpdate};

use crate::{
    config::Config,
    disk::{
        checkout_state::{CheckoutState, SECOND_LOOK_AFTER, lock},
        commit::CommitProbe,
        recovery::recover,
        root_dir::{RootDir, RootStatus},
        working_copy::{RootInTree, WorkingCopy},
    },
    fleet_link::FleetLink,
    recorder::IdleMoment,
    repo_state::{ExportError, ExportPace, RepoSources, RepoStateCache, TaskScope, TouchSource, WritersStore},
    state_dir::{PassedOver, StateDir, StateDirError},
    store_handle::{OpenStore, OpenStoreError, StoreChoice, StoreHandle, open_store},
    watch::FileWatcher,
};

/// The state of a workspace, for `status` and `doctor`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StateReport {
    /// Its paths, if there is a state directory.
    pub paths: Option<StatePaths>,
    /// Whether it is read-only: there is none, or it cannot be written.
    pub is_read_only: bool,
    /// A state directory in the git directory that is not used, with the reason.
    pub passed_over: Option<PassedOver>,
    /// Why no state directory could be created, if there is none.
    pub why_not_made: Option<String>,
    /// Why nothing is exported for other programs, if so.
    pub export_trouble: Option<String>,
}

/// The directories of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatePaths {
    /// The part that all checkouts of a repository share.
    pub repository: PathBuf,
    /// The part of this checkout.
    pub checkout: PathBuf,
}

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The root is not a directory that can be opened.
    #[error("{path}: cannot open the workspace: {error}")]
    Root {
        /// Path of the root as given.
        path: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The state directory cannot be created or used.
    #[error(transparent)]
    State(#[from] StateDirError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OpenError {
    fn is_full_disk(&self) -> bool {
        match self {
            Self::State(StateDirError::Unusable { error, .. }) => {
                matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::Store(error) => matches!(error, StoreError::DiskFull { .. }),
            Self::Root { .. } | Self::State(_) => false,
        }
    }
}

/// Options for opening a workspace.
#[derive(Default)]
pub struct WorkspaceOptions {
    /// The settings, usually from [`Config::load`].
    pub config: Config,
    /// Where views, versions, events and tasks are kept.
    pub store: StoreChoice,
    /// Whether the process answers one call and exits, as a hook does. It then uses one connection to the store, does
    /// nothing in the background, and leaves long work to other processes. [`Workspace::close_quickly`] ends it.
    pub is_for_one_call: bool,
    /// The connection to the other checkouts of the repository, if this one takes part.
    pub fleet: Option<Arc<FleetLink>>,
    /// Called after every step of a commit, for tests of this project.
    #[doc(hidden)]
    pub probe: Option<CommitProbe>,
}

impl std::fmt::Debug for WorkspaceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceOptions").field("config", &self.config).field("store", &self.store).finish_non_exhaustive()
    }
}

/// An open workspace. It is cheap to share, and one root may be open several times, in this process and in others.
pub struct Workspace {
    pub(crate) copy: Arc<WorkingCopy>,
    config: Config,
    pub(crate) store: StoreHandle,
    repo: Arc<Mutex<RepoStateCache>>,
    fleet: Option<Arc<FleetLink>>,
    watches: AtomicBool,
    watch: OnceLock<FileWatcher>,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workspace({})", self.root().path().display())
    }
}

impl Workspace {
    /// Opens a workspace: creates its state directory, completes or rolls back crashed commits, and opens its store.
    ///
    /// The state belongs to the git work tree around `root`, or to `root` itself without one.
    pub fn open(root: &Path, config: Config) -> Result<Arc<Self>, OpenError> {
        Self::open_with(root, WorkspaceOptions { config, ..WorkspaceOptions::default() })
    }

    /// Like [`Self::open`], with more options than the settings.
    ///
    /// ```
    /// use surehand_engine::{Config, StateHome, StoreChoice, Workspace, WorkspaceOptions};
    ///
    /// # let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let state = StateHome { user: Some(state.path().to_owned()), ..StateHome::default() };
    /// # let config = Config { state, ..Config::default() };
    /// let options = WorkspaceOptions { config, store: StoreChoice::InMemory, ..WorkspaceOptions::default() };
    /// let workspace = Workspace::open_with(dir.path(), options)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_with(root: &Path, options: WorkspaceOptions) -> Result<Arc<Self>, OpenError> {
        let WorkspaceOptions { config, store, is_for_one_call, fleet, probe } = options;
        let place = find_root(root, &config)?;
        let dir = StateDir::open(&place.tree, &config.state)?;
        let path = dir.path.clone();
        let bad_state = |error| OpenError::State(StateDirError::Unusable { path: path.clone(), error });
        let store = open_store(store, &dir, place.below.clone()).map_err(|error| match error {
            OpenStoreError::Directory(error) => bad_state(error),
            OpenStoreError::Store(error) => OpenError::Store(error),
        })?;
        let state = Arc::new(CheckoutState::open(&place, dir, &config.state).map_err(bad_state)?);
        if let OpenStore::StateDirectory(OpenedStore { set_aside: Some(aside), .. }) = &store {
            state.notify(Notice::StateSetAside { to: aside.display().to_string() });
        }
        let repo = Arc::new(Mutex::new(RepoStateCache::new(place.below.clone())));
        let mut copy = WorkingCopy::new(place, state.clone(), &config.state, config.durability).map_err(bad_state)?;
        let is_in_state_directory = matches!(store, OpenStore::StateDirectory(_));
        copy.probe = probe;
        let copy = Arc::new(copy);
        let notices = recover(&copy).map_err(bad_state)?;
        notices.into_iter().for_each(|notice| state.notify(notice));
        let store = if is_for_one_call {
            lock(&repo).is_passing_by = true;
            StoreHandle::start_for_one_call(copy.clone(), store, config.versions)
        } else {
            let (repo, copy) = (repo.clone(), copy.clone());
            StoreHandle::start(copy.clone(), store, config.versions, move |moment| {
                let store = WritersStore { copy: &copy, store: moment.store, is_in_state_directory };
                do_idle_work(&repo, &RepoSources { copy: &copy, store: &store, watch: None }, moment)
            })
        };
        let store = store.map_err(bad_state)?;
        let mut workspace = Self::new(copy, config, store, repo);
        workspace.fleet = fleet;
        Ok(Arc::new(workspace))
    }

    /// Opens a workspace read-only. Creates nothing: without a state directory it is empty, and a state directory that
    /// cannot be written, because of its owner or a full disk, is read as it is.
    pub fn open_read_only(root: &Path, config: Config) -> Result<Arc<Self>, OpenError> {
        let place = find_root(root, &config)?;
        let dir = StateDir::find(&place.tree, &config.state)?;
        if dir.as_ref().is_some_and(|dir| dir.is_writable) {
            match Self::open(root, config.clone()) {
                // The state is then opened read-only below.
                Err(error) if error.is_full_disk() => {}
                opened => return opened,
            }
        }
        let bad_root = |error| OpenError::Root { path: root.display().to_string(), error };
        let state = Arc::new(CheckoutState::open_read_only(&place, dir, &config.state).map_err(bad_root)?);
        let repo = Arc::new(Mutex::new(RepoStateCache::new(place.below.clone())));
        let copy = WorkingCopy::new(place, state, &config.state, config.durability).map_err(bad_root)?;
        let copy = Arc::new(copy);
        let store = StoreHandle::open_read_only(copy.clone());
        Ok(Arc::new(Self::new(copy, config, store, repo)))
    }

    fn new(copy: Arc<WorkingCopy>, config: Config, store: StoreHandle, repo: Arc<Mutex<RepoStateCache>>) -> Self {
        let (watches, watch) = (AtomicBool::new(false), OnceLock::new());
        Self { copy, config, store, repo, fleet: None, watches, watch }
    }

    /// The absolute path of the root, without symlinks.
    pub fn path(&self) -> &Path {
        self.root().path()
    }

    /// The canonical path of a file or directory, which need not exist; `None` for the root.
    pub fn place_of(&self, spelling: &str) -> Result<Option<RelPath>, Refusal> {
        self.root().normalize_place(spelling)
    }

    /// Whether the root is still the directory that was opened. A workspace stays with the tree that it has open; a
    /// long-running server opens another one when this changes.
    pub fn root_now(&self) -> RootStatus {
        self.root().now()
    }

    /// Takes over from a workspace whose root was removed and created again. The next reply says so, and the tree is
    /// watched if it was before.
    pub fn take_over_from(&self, before: &Workspace) {
        self.state().notify(Notice::RootReplaced);
        self.watches.fetch_or(before.watches.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(crate) fn root(&self) -> &RootDir {
        self.copy.root()
    }

    /// The place and the problems of the state.
    pub fn state_report(&self) -> StateReport {
        let state = self.state();
        let paths =
            state.state_dir().map(|state| StatePaths { repository: state.path.clone(), checkout: state.checkout_path.clone() });
        let export_trouble = state.dir().ok().and_then(|dir| state.export.trouble(&dir));
        StateReport {
            paths,
            is_read_only: state.is_read_only(),
            passed_over: state.passed_over(),
            why_not_made: state.why_not_made().map(|error| error.to_string()),
            export_trouble,
        }
    }

    /// The settings that the workspace was opened with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The connection to the other checkouts of the repository, if this one takes part.
    pub fn fleet(&self) -> Option<&Arc<FleetLink>> {
        self.fleet.as_ref()
    }

    /// The open state directory of this checkout, for programs that keep files of their own there; an error of the kind
    /// `NotFound` if there is none.
    pub fn state_folder(&self) -> io::Result<Arc<File>> {
        self.state().dir()
    }

    pub(crate) fn state(&self) -> &CheckoutState {
        &self.copy.state
    }

    /// Starts watching the tree as soon as a session has seen a file, for a long-running process. Without it, every
    /// viewed file is checked, some of them in each call.
    pub fn start_watching(&self) {
        self.watches.store(true, Ordering::Relaxed);
    }

    /// Called when a session sees a file for the first time.
    pub(crate) fn watch_file(&self, path: &RelPath) {
        if self.watches.load(Ordering::Relaxed) {
            self.watch.get_or_init(|| FileWatcher::start(self.root().path())).watch_path(path);
        }
    }

    pub(crate) fn watch(&self) -> Option<&FileWatcher> {
        self.watch.get()
    }

    pub(crate) fn repo(&self) -> MutexGuard<'_, RepoStateCache> {
        lock(&self.repo)
    }

    pub(crate) fn repo_sources(&self) -> RepoSources<'_> {
        RepoSources { copy: &self.copy, store: &self.store, watch: self.watch() }
    }

    /// Updates the tasks, completely or not at all.
    pub fn update_tasks(&self, change: &TaskUpdate) -> Result<StoryTasks, StoreError> {
        let plan = self.store.update_tasks(&change.clone().checked()?)?;
        let mut repo = self.repo();
        repo.mark_stale();
        self.notify_failure(repo.announce(&self.repo_sources(), ExportPace::Now));
        Ok(plan)
    }

    /// The state of the repository, as a person sees it.
    pub fn snapshot(&self) -> RepoState {
        self.snapshot_for(&TaskScope::default())
    }

    /// The state of the repository with the tasks of this scope.
    pub fn snapshot_for(&self, scope: &TaskScope) -> RepoState {
        self.repo().snapshot(&self.repo_sources(), scope)
    }

    /// Counts the files of the tree, so that the state also covers files that no session has touched. This takes a
    /// walk. [`scan`](crate::scan::scan) does more and reads every file.
    pub fn count_files(&self) -> io::Result<()> {
        self.repo().count_files(&self.copy)
    }

    /// Updates the repository state after files were read or changed.
    pub(crate) fn track_touched(
        &self,
        touched: Vec<TouchedFile>,
        source: TouchSource,
        pace: ExportPace,
        stamp_of: impl Fn(&RelPath) -> Option<Stamp>,
    ) {
        if touched.is_empty() {
            return;
        }
        let mut repo = self.repo();
        if repo.take_touched(&self.store, touched, source, stamp_of) {
            self.notify_failure(repo.announce(&self.repo_sources(), pace));
        }
    }

    /// Completes the work that calls have left to be done before their replies go out together: see
    /// [`ReplyGroup::WithOthers`]. If it fails, these changes are made, but a power cut may undo them.
    ///
    /// [`ReplyGroup::WithOthers`]: crate::ReplyGroup::WithOthers
    pub fn complete_replies(&self) -> io::Result<()> {
        let mut repo = self.repo();
        self.notify_failure(repo.export_for_replies(&self.repo_sources()));
        drop(repo);
        self.state().unsynced.sync()
    }

    /// Exports the state after events, which the store tracks itself.
    pub(crate) fn track_events(&self) {
        let mut repo = self.repo();
        repo.mark_stale();
        self.notify_failure(repo.announce(&self.repo_sources(), ExportPace::InTime));
    }

    /// Records in the repository state that a file differs from the version that a session saw.
    pub(crate) fn changed_outside(&self, path: &RelPath, now_is: OutsideState, stamp: Option<Stamp>) {
        self.repo().changed_outside(&self.store, path, now_is, stamp);
    }

    /// A failed export becomes a notice; it never fails the call.
    fn notify_failure(&self, exported: Result<(), ExportError>) {
        if let Err(error) = exported {
            self.state().notify(Notice::NotRemembered { why: error.to_string() });
        }
    }

    /// The notices for the next reply, each returned once.
    pub fn take_notices(&self) -> Vec<Notice> {
        if let Some(trouble) = self.watch().and_then(FileWatcher::trouble) {
            self.state().notify(Notice::NotWatching { why: trouble.to_string() });
        }
        std::mem::take(&mut *lock(&self.state().notices))
    }

    pub(crate) fn record(&self, record: StoreRecord) {
        self.store.record(record);
    }

    /// Waits until everything recorded so far is written.
    pub fn flush(&self) {
        self.store.flush();
    }

    /// Queries the store. Records that are still on their way are missing.
    pub fn ask<T>(&self, question: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.store.ask(question)
    }

    /// Ends a process that has answered its one call: writes its records and leaves the rest to the system. Closing the
    /// store properly would merge its log and wait for the disk, so a process does that only if the log is long.
    pub fn close_quickly(self: Arc<Self>) {
        const LONG: i64 = 1 << 19;
        self.flush();
        drop(self.state().sync_new_key());
        let Some(state) = self.state().state_dir().filter(|_| self.store.is_in_state_directory()) else { return };
        let log = sys::statat(&*state.dir, "state.db-wal", sys::AtFlags::SYMLINK_NOFOLLOW);
        // Without a log, there is nothing to merge.
        if !log.is_ok_and(|log| log.st_size >= LONG) {
            self.notify_failure(self.repo().persist(&self.repo_sources()));
            std::mem::forget(self);
        }
    }
}

fn find_root(root: &Path, config: &Config) -> Result<RootInTree, OpenError> {
    let bad_root = |error| OpenError::Root { path: root.display().to_string(), error };
    RootInTree::find(root, config.state.home.as_deref()).map_err(bad_root)
}

/// Exports the state and checks displaced files. Returns whether there is more to do soon.
fn do_idle_work(repo: &Mutex<RepoStateCache>, sources: &RepoSources<'_>, moment: &IdleMoment<'_>) -> bool {
    let state = &sources.copy.state;
    // The thread that holds the lock may be waiting for this one.
    let is_exported = repo.try_lock().is_ok_and(|mut repo| {
        // Changes of other processes are not read while our own are still to be written, or they would get the wrong
        // order.
        if repo.is_stale(sources.copy) && !moment.is_all_written() {
            return false;
        }
        if let Err(error) = repo.persist(sources) {
            state.notify(Notice::NotRemembered { why: error.to_string() });
        }
        true
    });
    // An earlier change waits for it and reports the error.
    drop(state.sync_new_key());
    let are_displaced_left = state.check_displaced(SECOND_LOOK_AFTER);
    sources.copy.shorten_journal();
    are_displaced_left || !is_exported
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.store.close();
        // There is no reply left that could report an error.
        let _ = lock(&self.repo).persist(&self.repo_sources());
        drop(self.state().sync_new_key());
        self.copy.close();
    }
}
