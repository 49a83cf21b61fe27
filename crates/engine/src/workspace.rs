//! A workspace: a directory tree under one root, with the state of the work tree that it is in.

use std::{
    borrow::Cow,
    fs::File,
    io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::fs as sys;
use surehand_core::{ContentHash, Notice, RelPath};
use surehand_store::{Plan, PlanChange, Record, Scope, SessionId, SqliteStore, Store, StoreError};

use crate::{
    config::Config,
    disk::{
        clock::Clock,
        commit::{Durability, Probe},
        export::is_internal,
        journal::{Entry, Journal, StagePlace},
        lock::LockPool,
        recover,
        rescue::{Displaced, Rescued, SecondLook, Spare},
        root::Root,
    },
    git::{self, WorkTree},
    outbox::{self, Outbox},
    recorder::{Hold, Recorder},
    repo::Repo,
    state::{State, lock},
    state_dir::{PassedOver, StateDir, StateDirError},
    user::effective_user,
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
    root: Arc<Root>,
    root_dir: Arc<File>,
    /// The work tree that the root is in; mostly the root itself.
    tree: Arc<Root>,
    /// The way from the tree to the root.
    below: Option<RelPath>,
    /// Directories of the tree that hold what git and we believe, under whatever name.
    protected: Vec<RelPath>,
    /// Whether the root itself lies in such a directory.
    is_all_protected: bool,
    config: Config,
    state: Arc<State>,
    journal: Mutex<Option<Journal>>,
    lock_pool: LockPool,
    recorder: OnceLock<Recorder>,
    reader: Mutex<Option<SqliteStore>>,
    watches: AtomicBool,
    watch: OnceLock<Watch>,
    /// As whom we make files.
    owner: (u32, u32),
    probe: Option<Probe>,
    can_exchange: AtomicBool,
    /// Where files are staged at least; see [`Staging`].
    staging: AtomicU8,
    /// The directory for staging in the tree, once it was needed.
    tree_staging: Mutex<Option<(Arc<File>, String)>>,
}

/// Where files are staged, from the best place to the last resort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Staging {
    /// In the state directory.
    InState = 0,
    /// In a directory of the tree, because the state is on another file system.
    InTree = 1,
    /// Beside the target, because that is on yet another one.
    Beside = 2,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workspace({})", self.root.path().display())
    }
}

/// How long a displaced file is left alone before it is written over.
const SPARE_AFTER: Duration = Duration::from_micros(500);
/// When so many displaced files wait, the next ones are not kept open.
const MAX_HELD: usize = 16;
/// More displaced files than this are looked at earlier.
const MAX_DISPLACED: usize = 256;

impl Workspace {
    /// Opens a workspace: makes its state directory, finishes or undoes what a crash left, opens its memory.
    ///
    /// The state is that of the git work tree around `root`, or of `root` itself where there is none.
    pub fn open(root: &Path, config: Config) -> Result<Arc<Self>, OpenError> {
        Self::open_with(root, config, None)
    }

    /// The same with a probe that is asked after every step of a commit, for tests.
    pub fn open_with(root: &Path, config: Config, probe: Option<Probe>) -> Result<Arc<Self>, OpenError> {
        let ground = Ground::find(root, &config)?;
        let dir = StateDir::open(&ground.tree, &config.state)?;
        let path = dir.path().to_owned();
        let bad_state = |error| OpenError::State(StateDirError::Unusable { path: path.clone(), error });
        let database = dir.database().map_err(bad_state)?;
        // Before anything in it is used: a newer Surehand may keep it in another way.
        let mut opened = SqliteStore::open(&database, &ground.scope(&dir))?;
        let state = Arc::new(State::open(&ground, dir, &config).map_err(bad_state)?);
        if let Some(aside) = opened.set_aside {
            state.notify(Notice::StateSetAside { to: aside.display().to_string() });
        }
        let workspace = Self::new(ground, state, config, probe).map_err(bad_state)?;
        let notices = recover::recover(&workspace).map_err(bad_state)?;
        notices.into_iter().for_each(|notice| workspace.state.notify(notice));
        outbox::bring(&workspace, &mut opened.store);
        let state = workspace.state.clone();
        let outbox = Outbox::new(state.outbox(), process_name().map_err(bad_state)?, workspace.below.clone());
        let keeping = state.clone();
        let (versions, notices) = (workspace.config.versions, state.notices.clone());
        let recorder = Recorder::start(opened.store, outbox, versions, notices, move || keeping.keep_house());
        let recorder = recorder.map_err(bad_state)?;
        drop(workspace.recorder.set(recorder));
        Ok(Arc::new(workspace))
    }

    /// Opens a workspace to look at it. Makes nothing: where there is no state yet it is empty, and where the state cannot be
    /// written it is read as it is.
    pub fn look(root: &Path, config: Config) -> Result<Arc<Self>, OpenError> {
        let ground = Ground::find(root, &config)?;
        let dir = StateDir::find(&ground.tree, &config.state)?;
        if dir.as_ref().is_some_and(StateDir::is_writable) {
            return Self::open(root, config);
        }
        let bad_root = |error| OpenError::Root { path: root.display().to_string(), error };
        let state = Arc::new(State::look(&ground, dir, &config).map_err(bad_root)?);
        Ok(Arc::new(Self::new(ground, state, config, None).map_err(bad_root)?))
    }

    fn new(ground: Ground, state: Arc<State>, config: Config, probe: Option<Probe>) -> io::Result<Self> {
        let (protected, is_all_protected) = ground.protected(&config, state.path().as_deref());
        let root_dir = ground.root.dir().try_clone_to_owned()?;
        Ok(Self {
            root_dir: Arc::new(File::from(root_dir)),
            root: ground.root,
            tree: ground.tree_root,
            below: ground.below,
            protected,
            is_all_protected,
            config,
            journal: Mutex::new(None),
            lock_pool: LockPool::default(),
            recorder: OnceLock::new(),
            reader: Mutex::new(None),
            watches: AtomicBool::new(false),
            watch: OnceLock::new(),
            owner: (effective_user(), rustix::process::getegid().as_raw()),
            probe,
            can_exchange: AtomicBool::new(true),
            staging: AtomicU8::new(Staging::InState as u8),
            tree_staging: Mutex::new(None),
            state,
        })
    }

    /// The tree.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The root, open; always the same handle.
    pub(crate) fn root_dir(&self) -> Arc<File> {
        self.root_dir.clone()
    }

    /// The work tree that the root is in.
    pub(crate) fn tree(&self) -> &Root {
        &self.tree
    }

    /// The way from the work tree to the root.
    pub(crate) fn below(&self) -> Option<&RelPath> {
        self.below.as_ref()
    }

    /// A path of the root, as a path of the work tree.
    pub(crate) fn in_tree(&self, path: &RelPath) -> RelPath {
        path.in_directory(self.below.as_ref())
    }

    /// A path of the work tree, as a path of the root; `None` where it is not below it.
    pub(crate) fn in_root<'a>(&self, path: &'a RelPath) -> Option<Cow<'a, RelPath>> {
        match &self.below {
            None => Some(Cow::Borrowed(path)),
            Some(below) => path.relative_to(below).map(Cow::Owned),
        }
    }

    /// Whether a path of the work tree leads to what git or we believe: nothing there is written for anybody.
    pub(crate) fn is_protected(&self, path: &RelPath) -> bool {
        let is_below =
            |dir: &RelPath| path == dir || path.as_str().strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'));
        self.is_all_protected || path.as_str().split('/').any(is_internal) || self.protected.iter().any(is_below)
    }

    /// The state that is in the git directory and is not used, with the reason.
    pub fn passed_over_state(&self) -> Option<PassedOver> {
        self.state.passed_over()
    }

    /// Why nothing is exported for other programs to read, if that is so.
    pub fn export_trouble(&self) -> Option<String> {
        self.state.export().trouble(&*self.state.dir().ok()?)
    }

    /// Whether the state can only be looked at: there is none, or it cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.state.is_read_only()
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
        &self.state
    }

    /// Begins to watch the tree as soon as a session has seen a file, for a process that stays. Without it every file that a
    /// session has seen is looked at, call by call.
    pub fn start_watching(&self) {
        self.watches.store(true, Ordering::Relaxed);
    }

    /// A session has seen a file that it had not seen before.
    pub(crate) fn watch_file(&self, path: &RelPath) {
        if self.watches.load(Ordering::Relaxed) {
            self.watch.get_or_init(|| Watch::start(self.root.path())).also(path);
        }
    }

    /// The watcher, if it has begun.
    pub fn watch(&self) -> Option<&Watch> {
        self.watch.get()
    }

    /// Takes stamps of files.
    pub fn clock(&self) -> Clock {
        self.state.rescued.clock()
    }

    /// What is known of the files.
    pub(crate) fn repo(&self) -> MutexGuard<'_, Repo> {
        lock(&self.state.repo)
    }

    /// Changes what there is to do, all of it or nothing.
    pub fn change_plan(&self, change: &PlanChange) -> Result<Plan, StoreError> {
        let plan = self.with_store(|store| store.change_plan(change))?;
        let mut repo = self.repo();
        repo.load(self);
        repo.set_plan(plan.clone());
        repo.persist(&self.state);
        Ok(plan)
    }

    /// The rescued files.
    pub fn rescued(&self) -> &Rescued {
        &self.state.rescued
    }

    /// What happened without anybody asking, each told once.
    pub fn take_notices(&self) -> Vec<Notice> {
        if let Some(trouble) = self.watch().and_then(Watch::trouble) {
            self.state.notify(Notice::NotWatching { why: trouble.to_string() });
        }
        std::mem::take(&mut *lock(&self.state.notices))
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
            outbox::bring(self, store);
            Ok(())
        }));
    }

    /// The paths of the work tree that events were about, with what was there before the first.
    pub(crate) fn touched_in_tree(&self) -> Vec<(RelPath, Option<ContentHash>)> {
        let touched = self.with_store(|store| {
            store.set_directory(None);
            let touched = store.touched();
            store.set_directory(self.below.clone());
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
            *reader = Some(self.state.open_store(self.below.clone())?);
        }
        act(reader.as_mut().expect("opened above"))
    }

    /// Says that this file system cannot exchange two files, as a test or the user may know.
    pub fn without_exchange(&self) {
        self.can_exchange.store(false, Ordering::Relaxed);
    }

    pub(crate) fn can_exchange(&self) -> bool {
        self.can_exchange.load(Ordering::Relaxed)
    }

    /// The best place for staging that may still work.
    pub(crate) fn staging(&self) -> Staging {
        match self.staging.load(Ordering::Relaxed) {
            0 => Staging::InState,
            1 => Staging::InTree,
            _ => Staging::Beside,
        }
    }

    /// A file that was staged in this directory turned out to be on another file system than its target: from now on a worse place
    /// is taken. Only the system's answer tells: a bind mount has the same device number and is another one all the same.
    pub(crate) fn staged_too_far(&self, dir: &Arc<File>) {
        let next = if self.tree_staging_name(dir).is_some() { Staging::Beside } else { Staging::InTree };
        self.staging.fetch_max(next as u8, Ordering::Relaxed);
    }

    /// The directory for staging in the tree, made when it is first needed. The journal names it before it is there.
    pub(crate) fn tree_staging(&self) -> io::Result<(Arc<File>, String)> {
        let mut staging = lock(&self.tree_staging);
        if let Some(staging) = &*staging {
            return Ok(staging.clone());
        }
        let name = format!("{TREE_STAGING}{:016x}", random()?);
        let entry = Entry::StageDir { name: name.clone() };
        self.with_journal(|journal| journal.begin_with(&entry))?;
        let dir = Arc::new(self.state.export().make_private(&*self.state.dir()?, &name)?);
        Ok(staging.insert((dir, name)).clone())
    }

    /// Where a file of this name in this directory is staged.
    pub(crate) fn place_of(&self, dir: &Arc<File>, name: &str) -> StagePlace {
        match self.tree_staging_name(dir) {
            Some(name) => StagePlace::Tree(name),
            None if name.starts_with('.') => StagePlace::Beside,
            None => StagePlace::State,
        }
    }

    /// The name of the directory for staging in the tree, if this is it.
    pub(crate) fn tree_staging_name(&self, dir: &Arc<File>) -> Option<String> {
        lock(&self.tree_staging).as_ref().filter(|(known, _)| Arc::ptr_eq(known, dir)).map(|(_, name)| name.clone())
    }

    pub(crate) fn lock_pool(&self) -> &LockPool {
        &self.lock_pool
    }

    pub(crate) fn probe(&self) -> Option<&Probe> {
        self.probe.as_ref()
    }

    /// Whether a file is as one that we make, as far as its owner goes.
    pub(crate) fn is_owner(&self, stat: &sys::Stat) -> bool {
        (stat.st_uid, stat.st_gid) == self.owner
    }

    /// The bits that new files do not get.
    pub(crate) fn umask(&self) -> u32 {
        // There is no way to ask without setting it, except here.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
    }

    /// Runs something with the journal of this process, which is started when it is first needed.
    pub(crate) fn with_journal<T>(&self, act: impl FnOnce(&mut Journal) -> io::Result<T>) -> io::Result<T> {
        let mut journal = lock(&self.journal);
        if journal.is_none() {
            *journal = Some(self.start_journal()?);
        }
        act(journal.as_mut().expect("started above"))
    }

    /// Makes the state directory anew if somebody has removed it.
    pub(crate) fn revive_state(&self) -> io::Result<()> {
        if self.is_read_only() {
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the state can only be looked at"));
        }
        if self.state.revive()? {
            *lock(&self.journal) = None;
            *lock(&self.tree_staging) = None;
            self.lock_pool.clear();
            self.state.notify(Notice::StateLost);
        }
        Ok(())
    }

    fn start_journal(&self) -> io::Result<Journal> {
        let sync = self.durability() == Durability::Full;
        Journal::start(self.state.journals(), process_name()?, self.state.key().as_str(), sync)
    }

    /// Lets go of everything as a crash would: the journal is unlocked and not removed, and no file is open.
    pub(crate) fn abandon(&self) {
        *lock(&self.journal) = None;
        lock(&self.state.displaced).iter_mut().for_each(|(_, displaced)| displaced.let_go());
    }

    /// Settles what processes left that have died since the start. What cannot be settled is tried again at the next start.
    pub(crate) fn settle_what_is_left(&self) {
        let notices = recover::recover(self).unwrap_or_default();
        notices.into_iter().for_each(|notice| self.state.notify(notice));
    }

    /// Keeps a displaced file for a second look.
    pub(crate) fn displace(&self, mut displaced: Displaced) {
        let mut waiting = lock(&self.state.displaced);
        if waiting.len() >= MAX_HELD {
            displaced.let_go();
        }
        waiting.push_back((Instant::now(), displaced));
    }

    /// A commit is over. Keeps the journal short and the displaced files few.
    pub(crate) fn settle_commit(&self) {
        let is_long = lock(&self.journal).as_mut().is_some_and(|journal| {
            journal.settle_commit();
            journal.is_long()
        });
        if !is_long && lock(&self.state.displaced).len() <= MAX_DISPLACED {
            return;
        }
        let tidying = lock(&self.state.tidying);
        let none_left = !self.state.tidy_alone(&tidying, Duration::ZERO);
        if is_long && none_left {
            let mut journal = lock(&self.journal);
            if journal.as_mut().is_some_and(|journal| journal.empty().is_err()) {
                // Without its first line it would count for nothing: the next commit begins another one.
                *journal = None;
            }
        }
    }

    /// A displaced file that is of no more use, to be written over and swapped in: it saves making a file and removing another.
    /// Gives it with its name; the journal says that it holds nothing of value any more.
    pub(crate) fn take_spare(&self, dir: &Arc<File>) -> Option<(Spare, String)> {
        let (since, mut displaced) = lock(&self.state.displaced).pop_front()?;
        let fits = displaced.reusable && Arc::ptr_eq(&displaced.dir, dir) && since.elapsed() >= SPARE_AFTER;
        let spare = match fits.then(|| displaced.look(&self.state.rescued)) {
            Some(Ok(SecondLook::Untouched(Some(spare)))) => spare,
            Some(Ok(SecondLook::Untouched(None))) => {
                // It may be removed, but not become another file.
                if !displaced.remove() {
                    lock(&self.state.displaced).push_front((since, displaced));
                }
                return None;
            }
            Some(Ok(SecondLook::Rescued(to))) => {
                self.state.notify(Notice::Rescued { path: displaced.path, to });
                return None;
            }
            Some(Ok(SecondLook::InUse) | Err(_)) | None => {
                lock(&self.state.displaced).push_front((since, displaced));
                return None;
            }
        };
        let place = self.place_of(&displaced.dir, &displaced.name);
        let path = self.in_tree(&displaced.path).to_string();
        let reuse = Entry::Reuse { path, place, staged: displaced.name.clone() };
        if self.with_journal(|journal| journal.write(&reuse, false)).is_err() {
            // Not written down, it may not be written over, and still has to be removed some time.
            lock(&self.state.displaced).push_front((since, displaced));
            return None;
        }
        Some((spare, displaced.name))
    }

    /// Moves somebody's bytes to safety and says so with the next reply.
    pub(crate) fn rescue(&self, dir: BorrowedFd<'_>, name: &str, path: &RelPath) {
        match self.state.rescued.take_in(dir, name, path) {
            Ok(to) => self.state.notify(Notice::Rescued { path: path.clone(), to }),
            // Left where it is, it will be found at the next start.
            Err(error) => {
                self.state.notify(Notice::NotRemembered { why: format!("{path}: a displaced version stays in {name}: {error}") })
            }
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(self.recorder.take());
        lock(&self.state.repo).persist_reads(self);
        self.state.tidy(Duration::ZERO);
        // A journal with files that somebody still has open, or that could not be removed, is left for the next start.
        if let (Some(journal), true) = (lock(&self.journal).take(), lock(&self.state.displaced).is_empty())
            && !self.state.has_staged(journal.name())
        {
            journal.remove();
            if let Some((_, name)) = lock(&self.tree_staging).take() {
                self.state.export().remove_made(&name);
            }
        }
    }
}

/// A root, and the work tree that it is in.
pub(crate) struct Ground {
    pub root: Arc<Root>,
    pub tree: WorkTree,
    pub tree_root: Arc<Root>,
    pub below: Option<RelPath>,
}

impl Ground {
    fn find(root: &Path, config: &Config) -> Result<Self, OpenError> {
        let bad_root = |error| OpenError::Root { path: root.display().to_string(), error };
        let root = Arc::new(Root::open(root).map_err(bad_root)?);
        let home = config.state.home.as_deref();
        // Whoever names the home directory means it.
        let home = home.filter(|home| !git::is_same_file(home, root.path()));
        let tree = git::discover(root.path(), home).unwrap_or_else(|| WorkTree::without_git(root.path().to_owned()));
        let below = root.path().strip_prefix(&tree.root).ok().and_then(Path::to_str).and_then(|below| RelPath::new(below).ok());
        let is_named = below.is_some() || tree.root == root.path();
        if !is_named {
            // The way down has a name that is not UTF-8: then it is a tree of its own.
            let tree = WorkTree::without_git(root.path().to_owned());
            return Ok(Self { tree_root: root.clone(), root, tree, below: None });
        }
        let tree_root = if below.is_some() { Arc::new(Root::open(&tree.root).map_err(bad_root)?) } else { root.clone() };
        Ok(Self { root, tree, tree_root, below })
    }

    fn scope(&self, dir: &StateDir) -> Scope {
        Scope { checkout: dir.key().as_str().to_owned(), below: self.below.clone() }
    }

    /// The directories of git, of the state and of the user's settings that lie in the tree, under whatever name; and whether
    /// the root lies in one of them, or in a bare repository.
    fn protected(&self, config: &Config, state: Option<&Path>) -> (Vec<RelPath>, bool) {
        let git = self.tree.git.iter().flat_map(|git| [git.own.as_path(), git.common.as_path()]);
        let users = [&config.state.fixed, &config.state.user, &config.state.settings].into_iter().flatten().map(PathBuf::as_path);
        // Git's and the state's have no links in them.
        let users = users.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let others = git.chain(self.tree.points_to.as_deref()).chain(state).map(Path::to_owned);
        let dirs: Vec<PathBuf> = users.chain(others).collect();
        let is_inside = dirs.iter().any(|dir| self.root.path().starts_with(dir)) || git::is_in_bare_repository(self.root.path());
        let inside = |path: &PathBuf| RelPath::new(path.strip_prefix(self.tree_root.path()).ok()?.to_str()?).ok();
        (dirs.iter().filter_map(inside).collect(), is_inside)
    }
}

/// What the name of a directory for staging in the tree begins with.
pub(crate) const TREE_STAGING: &str = "staged-";

/// A name for files of this process, which no other has, nor had.
fn process_name() -> io::Result<String> {
    Ok(format!("{}-{:016x}", std::process::id(), random()?))
}

fn random() -> io::Result<u64> {
    let mut random = [0_u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(random))
}
