//! A workspace: a directory tree under one root, with the state of the work tree that it is in.

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use surehand_core::{ContentHash, Notice, RelPath};
use surehand_store::{Plan, PlanChange, Record, Scope, SessionId, SqliteStore, Store, StoreError};

use crate::{
    config::Config,
    disk::{
        clock::Clock,
        commit::{Durability, Probe},
        recover::recover,
        rescue::Rescued,
        root::Root,
        state::{SECOND_LOOK_AFTER, State, lock},
        working_copy::{RootInTree, WorkingCopy, process_name},
    },
    outbox::{self, Outbox},
    recorder::{Hold, Recorder},
    repo::Repo,
    state_dir::{PassedOver, StateDir, StateDirError},
    watch::Watch,
};

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The root is not a directory that we can open.
    #[error("{path}: cannot open the workspace: {error}")]
    Root {
        /// The root.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// The state directory cannot be made or used.
    #[error(transparent)]
    State(#[from] StateDirError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An open workspace. Cheap to share; several may be open on one root, in this process and in others.
pub struct Workspace {
    copy: WorkingCopy,
    config: Config,
    recorder: OnceLock<Recorder>,
    reader: Mutex<Option<SqliteStore>>,
    repo: Arc<Mutex<Repo>>,
    watches: AtomicBool,
    watch: OnceLock<Watch>,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workspace({})", self.root().path().display())
    }
}

impl Workspace {
    /// Opens a workspace: makes its state directory, finishes or undoes what a crash left, opens its memory.
    ///
    /// The state is that of the git work tree around `root`, or of `root` itself where there is none.
    pub fn open(root: &Path, config: Config) -> Result<Arc<Self>, OpenError> {
        Self::open_with(root, config, None)
    }

    /// The same with a probe that is asked after every step of a commit, for tests.
    pub fn open_with(root: &Path, config: Config, probe: Option<Probe>) -> Result<Arc<Self>, OpenError> {
        let place = find_root(root, &config)?;
        let dir = StateDir::open(&place.tree, &config.state)?;
        let path = dir.path().to_owned();
        let bad_state = |error| OpenError::State(StateDirError::Unusable { path: path.clone(), error });
        let database = dir.database().map_err(bad_state)?;
        // Before anything in it is used: a newer Surehand may keep it in another way.
        let scope = Scope { checkout: dir.key().as_str().to_owned(), below: place.below.clone() };
        let mut opened = SqliteStore::open(&database, &scope)?;
        let state = Arc::new(State::open(&place, dir, &config.state).map_err(bad_state)?);
        if let Some(aside) = opened.set_aside {
            state.notify(Notice::StateSetAside { to: aside.display().to_string() });
        }
        let workspace = Self::new(place, state.clone(), config, probe).map_err(bad_state)?;
        let notices = recover(&workspace.copy).map_err(bad_state)?;
        notices.into_iter().for_each(|notice| state.notify(notice));
        outbox::bring(&workspace.copy, &mut opened.store);
        let name = process_name().map_err(bad_state)?;
        let outbox = Outbox::new(state.outbox(), name, workspace.copy.below().cloned());
        let (versions, notices) = (workspace.config.versions, state.notices.clone());
        let repo = workspace.repo.clone();
        let recorder = Recorder::start(opened.store, outbox, versions, notices, move || keep_house(&state, &repo));
        let recorder = recorder.map_err(bad_state)?;
        drop(workspace.recorder.set(recorder));
        Ok(Arc::new(workspace))
    }

    /// Opens a workspace to look at it. Makes nothing: where there is no state yet it is empty, and where the state cannot be
    /// written it is read as it is.
    pub fn look(root: &Path, config: Config) -> Result<Arc<Self>, OpenError> {
        let place = find_root(root, &config)?;
        let dir = StateDir::find(&place.tree, &config.state)?;
        if dir.as_ref().is_some_and(StateDir::is_writable) {
            return Self::open(root, config);
        }
        let bad_root = |error| OpenError::Root { path: root.display().to_string(), error };
        let state = Arc::new(State::look(&place, dir, &config.state).map_err(bad_root)?);
        Ok(Arc::new(Self::new(place, state, config, None).map_err(bad_root)?))
    }

    fn new(place: RootInTree, state: Arc<State>, config: Config, probe: Option<Probe>) -> io::Result<Self> {
        let repo = Arc::new(Mutex::new(Repo::new(place.below.clone())));
        Ok(Self {
            copy: WorkingCopy::new(place, state, &config.state, config.durability)?.with_probe(probe),
            config,
            recorder: OnceLock::new(),
            reader: Mutex::new(None),
            repo,
            watches: AtomicBool::new(false),
            watch: OnceLock::new(),
        })
    }

    /// The tree.
    pub fn root(&self) -> &Root {
        self.copy.root()
    }

    /// The files with the state that guards them, for commits.
    pub(crate) fn working_copy(&self) -> &WorkingCopy {
        &self.copy
    }

    /// A path of the root, as a path of the work tree.
    pub(crate) fn in_tree(&self, path: &RelPath) -> RelPath {
        self.copy.in_tree(path)
    }

    /// Whether a path of the work tree leads to what git or we believe: nothing there is written for anybody.
    pub(crate) fn is_protected(&self, path: &RelPath) -> bool {
        self.copy.is_protected(path)
    }

    /// Says that this file system cannot exchange two files, as a test or the user may know.
    pub fn without_exchange(&self) {
        self.copy.without_exchange();
    }

    /// The state that is in the git directory and is not used, with the reason.
    pub fn passed_over_state(&self) -> Option<PassedOver> {
        self.state().passed_over()
    }

    /// Why nothing is exported for other programs to read, if that is so.
    pub fn export_trouble(&self) -> Option<String> {
        self.state().export().trouble(&*self.state().dir().ok()?)
    }

    /// Whether the state can only be looked at: there is none, or it cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.state().is_read_only()
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How safe commits are against a power cut.
    pub fn durability(&self) -> Durability {
        self.config.durability
    }

    /// The state directory.
    pub fn state(&self) -> &State {
        self.copy.state()
    }

    /// Begins to watch the tree as soon as a session has seen a file, for a process that stays. Without it every file that a
    /// session has seen is looked at, call by call.
    pub fn start_watching(&self) {
        self.watches.store(true, Ordering::Relaxed);
    }

    /// A session has seen a file that it had not seen before.
    pub(crate) fn watch_file(&self, path: &RelPath) {
        if self.watches.load(Ordering::Relaxed) {
            self.watch.get_or_init(|| Watch::start(self.root().path())).also(path);
        }
    }

    /// The watcher, if it has begun.
    pub fn watch(&self) -> Option<&Watch> {
        self.watch.get()
    }

    /// Takes stamps of files.
    pub fn clock(&self) -> Clock {
        self.copy.clock()
    }

    /// What is known of the files.
    pub(crate) fn repo(&self) -> MutexGuard<'_, Repo> {
        lock(&self.repo)
    }

    /// Changes what there is to do, all of it or nothing.
    pub fn change_plan(&self, change: &PlanChange) -> Result<Plan, StoreError> {
        let plan = self.with_store(|store| store.change_plan(change))?;
        let mut repo = self.repo();
        repo.load(self);
        repo.set_plan(plan.clone());
        repo.persist(self.state());
        Ok(plan)
    }

    /// The rescued files.
    pub fn rescued(&self) -> &Rescued {
        self.copy.rescued()
    }

    /// What happened without anybody asking, each told once.
    pub fn take_notices(&self) -> Vec<Notice> {
        if let Some(trouble) = self.watch().and_then(Watch::trouble) {
            self.state().notify(Notice::NotWatching { why: trouble.to_string() });
        }
        std::mem::take(&mut *lock(&self.state().notices))
    }

    /// Hands a record to the recorder.
    pub fn record(&self, record: Record) {
        if let Some(recorder) = self.recorder.get() {
            recorder.record(record);
        }
    }

    /// Holds back what is handed to the recorder, until it is dropped: half of a change must not be on record, or it would be
    /// undone by half.
    pub(crate) fn hold_records(&self) -> Option<Hold> {
        self.recorder.get().map(Recorder::hold)
    }

    /// Hands the text of a file to the recorder, to be kept, with the version that it replaced if it was this owner who did.
    pub fn record_text(&self, owner: &SessionId, path: &RelPath, replaced: Option<ContentHash>, record: Record) {
        if let Some(recorder) = self.recorder.get() {
            recorder.record_text(owner, path, replaced, record);
        }
    }

    /// Waits until everything that was handed to the recorder is written.
    pub fn flush(&self) {
        if let Some(recorder) = self.recorder.get() {
            recorder.flush();
        }
    }

    /// Brings to the store what processes did that have died since the start.
    pub(crate) fn bring_what_is_left(&self) {
        if self.is_read_only() {
            return;
        }
        // A store that cannot be opened says so when it is asked.
        drop(self.with_store(|store| {
            outbox::bring(&self.copy, store);
            Ok(())
        }));
    }

    /// The paths of the work tree that events were about, with what was there before the first.
    pub(crate) fn touched_in_tree(&self) -> Vec<(RelPath, Option<ContentHash>)> {
        let touched = self.with_store(|store| {
            store.set_directory(None);
            let touched = store.touched();
            store.set_directory(self.copy.below().cloned());
            touched
        });
        touched.unwrap_or_default()
    }

    /// Asks the store. What the recorder has not written yet is not in it.
    pub fn ask<T>(&self, question: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.with_store(|store| question(store))
    }

    fn with_store<T>(&self, act: impl FnOnce(&mut SqliteStore) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut reader = lock(&self.reader);
        if reader.is_none() {
            *reader = Some(open_store(self.state(), self.copy.below().cloned())?);
        }
        act(reader.as_mut().expect("opened above"))
    }
}

/// The root, and the work tree around it.
fn find_root(root: &Path, config: &Config) -> Result<RootInTree, OpenError> {
    let bad_root = |error| OpenError::Root { path: root.display().to_string(), error };
    RootInTree::find(root, config.state.home.as_deref()).map_err(bad_root)
}

/// Opens the store, in the way in which the state is used.
fn open_store(state: &State, below: Option<RelPath>) -> Result<SqliteStore, StoreError> {
    let Some(dir) = state.state_dir() else { return SqliteStore::in_memory() };
    let path = dir.path().join("state.db");
    let failed = |error: io::Error| StoreError::Backend { path: path.display().to_string(), error: error.into() };
    let (path, scope) = (dir.database().map_err(failed)?, Scope { checkout: dir.key().as_str().to_owned(), below });
    match state.is_read_only() {
        false => Ok(SqliteStore::open(&path, &scope)?.store),
        true if path.exists() => SqliteStore::open_read_only(&path, &scope),
        true => SqliteStore::in_memory(),
    }
}

/// What is done now and then. Says whether there is more to do soon.
fn keep_house(state: &State, repo: &Mutex<Repo>) -> bool {
    // Whoever has it now may be waiting for the thread that this runs on.
    if let Ok(mut repo) = repo.try_lock() {
        repo.persist(state);
    }
    state.tidy(SECOND_LOOK_AFTER)
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(self.recorder.take());
        lock(&self.repo).persist_reads(self);
        self.copy.close();
    }
}
