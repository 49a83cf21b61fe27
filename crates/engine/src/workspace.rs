//! A workspace: a directory tree under one root, with its state in `.surehand/`.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Write},
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    fs::{self as sys, Mode, OFlags},
    io::Errno,
};
use surehand_core::{ContentHash, Notice, RelPath};
use surehand_store::{Plan, PlanChange, Record, SessionId, SqliteStore, Store, StoreError};

use crate::{
    config::Config,
    disk::{
        clock::Clock,
        commit::Probe,
        journal::{Entry, Journal},
        lock::LockPool,
        recover,
        rescue::{Displaced, Rescued, SecondLook, Spare},
        root::Root,
    },
    outbox::{self, Outbox},
    recorder::{Hold, Recorder},
    repo::Repo,
    watch::Watch,
};

/// How safe a commit is against a power cut. It is always safe against the crash of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Files, directories and the journal are synced.
    #[default]
    Full,
    /// Nothing is synced: faster, and the last changes may be lost with the power.
    Fast,
}

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
    #[error("{path}: cannot use the state directory: {error}")]
    State {
        /// The directory.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An open workspace. Cheap to share; several may be open on one root, in this process and in others.
pub struct Workspace {
    root: Root,
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
    stage_beside: AtomicBool,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workspace({})", self.root.path().display())
    }
}

/// What a workspace shares with its recorder thread.
#[derive(Debug)]
pub struct State {
    root: Arc<File>,
    handles: Mutex<Handles>,
    /// The device that it is on.
    device: u64,
    rescued: Rescued,
    displaced: Mutex<VecDeque<(Instant, Displaced)>>,
    /// Held while displaced files are looked at: they are in nobody's list then.
    tidying: Mutex<()>,
    notices: Arc<Mutex<Vec<Notice>>>,
    work_dir: String,
    repo: Mutex<Repo>,
}

/// The open directories of the state.
#[derive(Debug, Clone)]
struct Handles {
    dir: Arc<File>,
    staged: Arc<File>,
    locks: Arc<File>,
    journals: Arc<File>,
    outbox: Arc<File>,
}

/// The name of the state directory in the root.
pub const STATE_DIR: &str = ".surehand";

/// Whether a part of a path is somebody's internals: git's or ours.
pub fn is_internal(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case(STATE_DIR)
}

/// How long a displaced file is kept before the second look.
const SECOND_LOOK_AFTER: Duration = Duration::from_millis(250);
/// How long a displaced file is left alone before it is written over.
const SPARE_AFTER: Duration = Duration::from_micros(500);
/// When so many displaced files wait, the next ones are not kept open.
const MAX_HELD: usize = 16;
/// More displaced files than this are looked at earlier.
const MAX_DISPLACED: usize = 256;

impl Workspace {
    /// Opens a workspace: makes its state directory, finishes or undoes what a crash left, opens its memory.
    pub fn open(root: &Path, config: Config) -> Result<Arc<Self>, OpenError> {
        Self::open_with(root, config, None)
    }

    /// The same with a probe that is asked after every step of a commit, for tests.
    pub fn open_with(root: &Path, config: Config, probe: Option<Probe>) -> Result<Arc<Self>, OpenError> {
        let bad_root = |error| OpenError::Root { path: root.display().to_string(), error };
        let root = Root::open(root).map_err(bad_root)?;
        let state_path = root.path().join(STATE_DIR);
        let bad_state = |error| OpenError::State { path: state_path.display().to_string(), error };
        let state = Arc::new(State::open(&root).map_err(bad_state)?);
        let mut opened = SqliteStore::open(&store_path(&root))?;
        if let Some(aside) = opened.set_aside {
            state.notify(Notice::StateSetAside { to: aside.display().to_string() });
        }
        let workspace = Self {
            root,
            config,
            journal: Mutex::new(None),
            lock_pool: LockPool::default(),
            recorder: OnceLock::new(),
            reader: Mutex::new(None),
            watches: AtomicBool::new(false),
            watch: OnceLock::new(),
            owner: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            probe,
            can_exchange: AtomicBool::new(true),
            stage_beside: AtomicBool::new(false),
            state,
        };
        let notices = recover::recover(&workspace).map_err(bad_state)?;
        notices.into_iter().for_each(|notice| workspace.state.notify(notice));
        outbox::bring(&workspace, &mut opened.store);
        let state = workspace.state.clone();
        let outbox = Outbox::new(state.outbox(), process_name().map_err(bad_state)?);
        let keeping = state.clone();
        let (versions, notices) = (workspace.config.versions, state.notices.clone());
        let recorder = Recorder::start(opened.store, outbox, versions, notices, move || keeping.keep_house());
        let recorder = recorder.map_err(bad_state)?;
        drop(workspace.recorder.set(recorder));
        Ok(Arc::new(workspace))
    }

    /// The tree.
    pub fn root(&self) -> &Root {
        &self.root
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
        // A store that cannot be opened says so when it is asked.
        drop(self.with_store(|store| {
            outbox::bring(self, store);
            Ok(())
        }));
    }

    /// Asks the store. What the recorder has not written yet is not in it.
    pub fn ask<T>(&self, question: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.with_store(|store| question(store))
    }

    fn with_store<T>(&self, act: impl FnOnce(&mut dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut reader = lock(&self.reader);
        if reader.is_none() {
            *reader = Some(SqliteStore::open(&store_path(&self.root))?.store);
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

    /// Whether files are staged beside their targets, because the state directory turned out to be on another file system.
    pub(crate) fn stage_beside(&self) -> bool {
        self.stage_beside.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stage_beside(&self) {
        self.stage_beside.store(true, Ordering::Relaxed);
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
        if self.state.is_lost() {
            *lock(&self.state.handles) = Handles::open(&self.state.root)?;
            *lock(&self.journal) = None;
            self.lock_pool.clear();
            self.state.notify(Notice::StateLost);
        }
        Ok(())
    }

    fn start_journal(&self) -> io::Result<Journal> {
        Journal::start(self.state.journals(), process_name()?, self.durability() == Durability::Full)
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
            // A journal that could not be emptied is only longer than it need be.
            drop(lock(&self.journal).as_mut().map(Journal::empty));
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
        let reuse = Entry::Reuse { staged: displaced.name.clone() };
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
        }
    }
}

impl State {
    fn open(root: &Root) -> io::Result<Self> {
        let work_dir = root.path().display().to_string();
        let root = Arc::new(File::from(root.dir().try_clone_to_owned()?));
        let handles = Handles::open(&root)?;
        let rescued = Rescued::of(root.clone(), &handles.dir)?;
        let device = rescued.clock().stamp(&sys::fstat(&*handles.dir)?).device;
        Ok(Self {
            root,
            handles: Mutex::new(handles),
            device,
            rescued,
            displaced: Mutex::default(),
            tidying: Mutex::default(),
            notices: Arc::default(),
            work_dir,
            repo: Mutex::default(),
        })
    }

    /// Whether somebody removed the state directory, or a part of it, under our feet.
    fn is_lost(&self) -> bool {
        let handles = lock(&self.handles);
        let parts = [&handles.journals, &handles.staged, &handles.locks];
        parts.iter().any(|part| sys::fstat(part).is_ok_and(|stat| stat.st_nlink == 0))
    }

    /// Whether something is staged under a name that begins with this one. Where nobody can tell, something may be.
    fn has_staged(&self, journal: &str) -> bool {
        let prefix = format!("{journal}-");
        let is_of_it = |entry: rustix::io::Result<sys::DirEntry>| {
            entry.is_ok_and(|entry| entry.file_name().to_bytes().starts_with(prefix.as_bytes()))
        };
        sys::Dir::read_from(&*self.staged()).map_or(true, |mut entries| entries.any(is_of_it))
    }

    /// The device that it is on.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// The workspace, open.
    pub(crate) fn root(&self) -> Arc<File> {
        self.root.clone()
    }

    /// The directory itself.
    pub fn dir(&self) -> Arc<File> {
        lock(&self.handles).dir.clone()
    }

    /// Where files are staged.
    pub fn staged(&self) -> Arc<File> {
        lock(&self.handles).staged.clone()
    }

    /// Where locks are.
    pub fn locks(&self) -> Arc<File> {
        lock(&self.handles).locks.clone()
    }

    /// Where journals are.
    pub fn journals(&self) -> Arc<File> {
        lock(&self.handles).journals.clone()
    }

    /// Where records are that are on their way to the store.
    pub fn outbox(&self) -> Arc<File> {
        lock(&self.handles).outbox.clone()
    }

    /// By what the index of the last scan is told from another: inode and time.
    pub(crate) fn index_stamp(&self) -> Option<(u64, i64)> {
        let stat = sys::statat(&*self.dir(), "index", sys::AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_ino, self.rescued.clock().stamp(&stat).modified))
    }

    /// The workspace that it is the state of.
    pub(crate) fn work_dir(&self) -> &str {
        &self.work_dir
    }

    pub(crate) fn notify(&self, notice: Notice) {
        lock(&self.notices).push(notice);
    }

    /// What is done now and then. Says whether there is more to do soon.
    fn keep_house(&self) -> bool {
        // Whoever has it now may be waiting for the thread that this runs on.
        if let Ok(mut repo) = self.repo.try_lock() {
            repo.persist(self);
        }
        self.tidy(SECOND_LOOK_AFTER)
    }

    /// Takes a second look at the displaced files that are old enough. Says whether some are left.
    fn tidy(&self, age: Duration) -> bool {
        self.tidy_alone(&lock(&self.tidying), age)
    }

    fn tidy_alone(&self, _tidying: &MutexGuard<'_, ()>, age: Duration) -> bool {
        let waiting = std::mem::take(&mut *lock(&self.displaced));
        let mut left = VecDeque::new();
        for (since, mut displaced) in waiting {
            if since.elapsed() < age {
                left.push_back((since, displaced));
                continue;
            }
            match displaced.look(&self.rescued) {
                Ok(SecondLook::Untouched(_)) if displaced.remove() => {}
                Ok(SecondLook::Untouched(_) | SecondLook::InUse) | Err(_) => left.push_back((since, displaced)),
                Ok(SecondLook::Rescued(to)) => self.notify(Notice::Rescued { path: displaced.path, to }),
            }
        }
        let mut displaced = lock(&self.displaced);
        displaced.extend(left);
        !displaced.is_empty()
    }
}

impl Handles {
    fn open(root: &Arc<File>) -> io::Result<Self> {
        let dir = make_state_dir(root)?;
        let handles = Self {
            staged: make_dir(&dir, "staged")?,
            locks: make_dir(&dir, "locks")?,
            journals: make_dir(&dir, "journal")?,
            outbox: make_dir(&dir, "outbox")?,
            dir,
        };
        ignore_itself(&handles.dir)?;
        Ok(handles)
    }
}

/// The state directory. It holds copies of files, some of which are for their owner's eyes only.
pub(crate) fn make_state_dir(root: &File) -> io::Result<Arc<File>> {
    make_dir_with(root, STATE_DIR, 0o700)
}

pub(crate) fn make_dir(parent: &File, name: &str) -> io::Result<Arc<File>> {
    make_dir_with(parent, name, 0o777)
}

fn make_dir_with(parent: &File, name: &str, mode: u32) -> io::Result<Arc<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let open = || sys::openat(parent, name, flags, Mode::empty());
    let fd = match open() {
        Err(Errno::NOENT) => {
            match sys::mkdirat(parent, name, Mode::from_raw_mode(mode)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            open()?
        }
        opened => opened?,
    };
    Ok(Arc::new(File::from(fd)))
}

/// The state directory ignores itself in git.
fn ignore_itself(dir: &File) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    match sys::openat(dir, ".gitignore", flags, Mode::from_raw_mode(0o666)) {
        Ok(fd) => File::from(fd).write_all(b"*\n"),
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// A name for files of this process, which no other has, nor had.
fn process_name() -> io::Result<String> {
    let mut random = [0_u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{}-{:016x}", std::process::id(), u64::from_ne_bytes(random)))
}

/// Where the memory of a workspace is.
fn store_path(root: &Root) -> PathBuf {
    root.path().join(STATE_DIR).join("state.db")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}
