//! Watches a workspace for a long-running door and gives hints: the paths that may have changed since the caller last asked.
//! A hint decides nothing; the caller compares content.
//!
//! Everything that happened before a call of [`FileWatcher::hints`] is in its answer, because events are read on the caller's
//! thread. A background thread only adds the watches of a large tree; until it is done, the answer is
//! [`WatchHints::Everything`], as it is whenever hints are not available or not reliable. Three kinds of change are never
//! reported: writes through a memory map that is still open, writes through another name of the file (see
//! [`FileWatcher::watch_path`]), and mounts in the tree.

#[cfg(target_os = "linux")]
mod ignored_dirs;
#[cfg(target_os = "linux")]
mod inotify;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod inotify;
#[cfg(target_os = "linux")]
mod recent_paths;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use surehand_core::RelPath;

use inotify::WatchedTree;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WatchHints {
    /// Nothing but these: written, created, removed, renamed or touched, or perhaps not even that. In order, each once. A
    /// directory stands for all that is in it.
    Paths(Vec<RelPath>),
    Everything,
}

impl WatchHints {
    pub(crate) fn covers(&self, path: &RelPath) -> bool {
        let Self::Paths(paths) = self else { return true };
        std::iter::successors(Some(path.clone()), RelPath::parent).any(|path| paths.binary_search(&path).is_ok())
    }
}

/// How far a reader has come. Everyone who asks has their own.
#[derive(Debug, Default)]
pub(crate) struct HintCursor {
    next: u64,
}

/// Why there are no hints.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchTrouble {
    /// The system gives out no more watchers, or the process may open no more files.
    #[error("no file watcher is left (fs.inotify.max_user_instances, or the limit of open files)")]
    NoWatcherLeft,
    /// The system gives out no more watches.
    #[error("no watch on a directory is left (fs.inotify.max_user_watches)")]
    NoWatchLeft,
    /// We would take too large a part of what the system has.
    #[error("there are more than {limit} directories to watch")]
    TooManyDirectories {
        /// How many are watched at most.
        limit: usize,
    },
    /// A network file system, or one that we do not know.
    #[error("the file system may not tell of changes made elsewhere")]
    NotLocal,
    /// Whatever happens at its old place now, we do not hear of it.
    #[error("the workspace directory was moved or removed")]
    RootGone,
    /// The system says no for another reason.
    #[error("cannot {act}: {error}")]
    System {
        /// What was tried.
        act: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// There is no watcher for this system.
    #[error("files are watched on Linux only")]
    NotHere,
}

/// Tries to watch a tree, and gives why that cannot be done, if it cannot.
pub fn try_watching(root: &Path) -> Option<WatchTrouble> {
    let watch = FileWatcher::start(root);
    watch.wait();
    watch.trouble()
}

#[derive(Debug)]
pub(crate) struct FileWatcher {
    shared: Arc<SharedTree>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread that lays watches and those who ask have in common.
#[derive(Debug)]
struct SharedTree {
    inner: Mutex<WatcherState>,
    closed: AtomicBool,
}

#[derive(Debug)]
struct WatcherState {
    phase: WatcherPhase,
    /// What to watch besides, while the thread has the tree.
    asked: Vec<RelPath>,
    trouble: Option<WatchTrouble>,
}

#[derive(Debug)]
enum WatcherPhase {
    Placing,
    Watching(Box<WatchedTree>),
    Lost,
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no tree"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlacingProgress {
    Done,
    /// [`WatchedTree::place_all`] has to be called.
    MoreToDo,
}

/// More directories than this are not watched: each costs the kernel about a kilobyte.
const MOST_DIRECTORIES: usize = 50_000;

impl FileWatcher {
    /// Starts to watch. This costs a thread and never fails: if nothing can be watched, every answer is
    /// [`WatchHints::Everything`], and [`FileWatcher::trouble`] has the reason.
    pub(crate) fn start(root: &Path) -> Self {
        Self::start_with(root, MOST_DIRECTORIES)
    }

    fn start_with(root: &Path, most_directories: usize) -> Self {
        let inner = Mutex::new(WatcherState { phase: WatcherPhase::Placing, asked: Vec::new(), trouble: None });
        let shared = Arc::new(SharedTree { inner, closed: AtomicBool::new(false) });
        let watch = Self { shared, thread: Mutex::new(None) };
        let root: PathBuf = root.to_owned();
        watch.place_in_background(&mut watch.shared.lock(), move || WatchedTree::open(&root, most_directories).map(Box::new));
        watch
    }

    /// A reader who has looked at nothing yet: the first answer is [`WatchHints::Everything`].
    pub(crate) fn cursor(&self) -> HintCursor {
        HintCursor::default()
    }

    /// What may have changed since this reader asked last. What was done before the call is in the answer, also what we did
    /// ourselves.
    pub(crate) fn hints(&self, cursor: &mut HintCursor) -> WatchHints {
        let mut inner = self.shared.lock();
        // The cursor stays where it is. Once the watches are in place it gets this answer once more, because changes before
        // that were not reported.
        let WatcherPhase::Watching(tree) = &mut inner.phase else { return WatchHints::Everything };
        match tree.catch_up() {
            Ok(PlacingProgress::Done) => tree.since(&mut cursor.next).map_or(WatchHints::Everything, WatchHints::Paths),
            Ok(PlacingProgress::MoreToDo) => {
                self.hand_over(&mut inner);
                WatchHints::Everything
            }
            Err(trouble) => {
                inner.lose(trouble);
                WatchHints::Everything
            }
        }
    }

    /// Watches the directory of this file even if it is ignored: for every file whose changes must not be missed. A file with
    /// several hard links is named in every answer from now on, since it may be changed under another name.
    pub(crate) fn watch_path(&self, path: &RelPath) {
        let mut inner = self.shared.lock();
        match &mut inner.phase {
            WatcherPhase::Placing => inner.asked.push(path.clone()),
            WatcherPhase::Watching(tree) => {
                if let Err(trouble) = tree.watch_path(path) {
                    inner.lose(trouble);
                }
            }
            WatcherPhase::Lost => {}
        }
    }

    pub(crate) fn trouble(&self) -> Option<WatchTrouble> {
        self.shared.lock().trouble.take()
    }

    /// Waits until all watches are in place, or there is trouble.
    pub(crate) fn wait(&self) {
        let thread = self.thread.lock().expect("nobody panics while holding it").take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }

    /// Leaves the tree to the thread: there is too much to do for a caller that waits.
    fn hand_over(&self, inner: &mut WatcherState) {
        if let WatcherPhase::Watching(tree) = std::mem::replace(&mut inner.phase, WatcherPhase::Placing) {
            self.place_in_background(inner, move || Ok(tree));
        }
    }

    fn place_in_background(
        &self,
        inner: &mut WatcherState,
        open: impl FnOnce() -> Result<Box<WatchedTree>, WatchTrouble> + Send + 'static,
    ) {
        let shared = self.shared.clone();
        let run = move || {
            if let Err(trouble) = open().and_then(|tree| shared.place(tree)) {
                shared.lock().lose(trouble);
            }
        };
        match std::thread::Builder::new().name("surehand-watch".to_owned()).spawn(run) {
            Ok(thread) => *self.thread.lock().expect("nobody panics while holding it") = Some(thread),
            Err(error) => inner.lose(WatchTrouble::System { act: "start a thread", error }),
        }
    }
}

impl Drop for FileWatcher {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.wait();
    }
}

impl SharedTree {
    fn lock(&self) -> MutexGuard<'_, WatcherState> {
        self.inner.lock().expect("nobody panics while holding it")
    }

    /// Lays all watches, then gives the tree to those who ask.
    fn place(&self, mut tree: Box<WatchedTree>) -> Result<(), WatchTrouble> {
        let is_closed = || self.closed.load(Ordering::Relaxed);
        loop {
            tree.place_all(is_closed)?;
            let mut inner = self.lock();
            if is_closed() || inner.asked.is_empty() {
                inner.phase = WatcherPhase::Watching(tree);
                return Ok(());
            }
            let asked = std::mem::take(&mut inner.asked);
            drop(inner);
            asked.iter().try_for_each(|path| tree.watch_path(path))?;
        }
    }
}

impl WatcherState {
    fn lose(&mut self, trouble: WatchTrouble) {
        *self = Self { phase: WatcherPhase::Lost, asked: Vec::new(), trouble: Some(trouble) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
