//! Watches a workspace for a long-running server and provides hints: the paths that may have changed since the last
//! call. A hint decides nothing; the caller compares content.
//!
//! The answer of [`FileWatcher::hints`] covers everything that happened before the call, because events are read on the
//! caller's thread. A background thread only adds the watches of a large tree. Until it is done, the answer is
//! [`WatchHints::Everything`], as it is whenever hints are unavailable or unreliable. Three kinds of change are never
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
    /// Only these paths may have changed. They are sorted and unique. A directory covers everything below it.
    Paths(Vec<RelPath>),
    Everything,
}

impl WatchHints {
    pub(crate) fn covers(&self, path: &RelPath) -> bool {
        let Self::Paths(paths) = self else { return true };
        std::iter::successors(Some(path.clone()), RelPath::parent).any(|path| paths.binary_search(&path).is_ok())
    }
}

/// The position of a reader. Each reader has its own.
#[derive(Debug, Default)]
pub(crate) struct HintCursor {
    next: u64,
}

/// Why there are no hints.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchTrouble {
    /// The user has no inotify instances left, or the process no file descriptors.
    #[error("no file watcher is left (fs.inotify.max_user_instances, or the limit of open files)")]
    NoWatcherLeft,
    /// The user has no inotify watches left.
    #[error("no watch on a directory is left (fs.inotify.max_user_watches)")]
    NoWatchLeft,
    /// We would use too large a share of the user's watches.
    #[error("there are more than {limit} directories to watch")]
    TooManyDirectories {
        /// The maximum number of watched directories.
        limit: usize,
    },
    /// A network file system, or an unknown one.
    #[error("the file system may not report changes made elsewhere")]
    NotLocal,
    /// The root was moved or removed, so changes at its old place are not reported.
    #[error("the workspace directory was moved or removed")]
    RootGone,
    /// Another error of the system.
    #[error("cannot {act}: {error}")]
    System {
        /// The operation that failed.
        act: &'static str,
        /// The error of the system.
        error: io::Error,
    },
    /// There is no watcher for this system.
    #[error("files are watched on Linux only")]
    NotHere,
}

/// Tries to watch a tree, and returns why that is impossible, if so.
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

/// The state shared by the thread that adds watches and the callers.
#[derive(Debug)]
struct SharedTree {
    state: Mutex<WatcherState>,
    closed: AtomicBool,
}

#[derive(Debug)]
enum WatcherState {
    /// A thread has the tree and adds watches. These paths are to be watched, too.
    Placing(Vec<RelPath>),
    Watching(Box<WatchedTree>),
    /// Nothing is watched. The reason is taken when it is reported.
    Lost(Option<WatchTrouble>),
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no tree"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlacingProgress {
    Done,
    /// [`WatchedTree::watch_all`] must be called.
    MoreToDo,
}

/// More directories than this are not watched, because each costs the kernel about a kilobyte.
const MOST_DIRECTORIES: usize = 50_000;

impl FileWatcher {
    /// Starts to watch on a thread. This never fails: if nothing can be watched, every answer is
    /// [`WatchHints::Everything`], and [`FileWatcher::trouble`] has the reason.
    pub(crate) fn start(root: &Path) -> Self {
        Self::start_with(root, MOST_DIRECTORIES)
    }

    fn start_with(root: &Path, most_directories: usize) -> Self {
        let state = Mutex::new(WatcherState::Placing(Vec::new()));
        let shared = Arc::new(SharedTree { state, closed: AtomicBool::new(false) });
        let watch = Self { shared, thread: Mutex::new(None) };
        let root: PathBuf = root.to_owned();
        watch.place_in_background(&mut watch.shared.lock(), move || WatchedTree::open(&root, most_directories).map(Box::new));
        watch
    }

    /// A new reader, whose first answer is [`WatchHints::Everything`].
    pub(crate) fn cursor(&self) -> HintCursor {
        HintCursor::default()
    }

    /// The paths that may have changed since this reader's last call, including changes of our own.
    pub(crate) fn hints(&self, cursor: &mut HintCursor) -> WatchHints {
        let mut state = self.shared.lock();
        // The cursor does not move. Once the watches are in place, it gets this answer again, because earlier changes
        // were not reported.
        let WatcherState::Watching(tree) = &mut *state else { return WatchHints::Everything };
        match tree.catch_up() {
            Ok(PlacingProgress::Done) => tree.since(&mut cursor.next).map_or(WatchHints::Everything, WatchHints::Paths),
            Ok(PlacingProgress::MoreToDo) => {
                self.hand_over(&mut state);
                WatchHints::Everything
            }
            Err(trouble) => {
                *state = WatcherState::Lost(Some(trouble));
                WatchHints::Everything
            }
        }
    }

    /// Watches the directory of this file even if it is ignored. Call this for every file whose changes must be
    /// noticed. A file with several hard links is part of every answer from now on, because it may change under another
    /// name.
    pub(crate) fn watch_path(&self, path: &RelPath) {
        let mut state = self.shared.lock();
        match &mut *state {
            WatcherState::Placing(asked) => asked.push(path.clone()),
            WatcherState::Watching(tree) => {
                if let Err(trouble) = tree.watch_path(path) {
                    *state = WatcherState::Lost(Some(trouble));
                }
            }
            WatcherState::Lost(_) => {}
        }
    }

    pub(crate) fn trouble(&self) -> Option<WatchTrouble> {
        if let WatcherState::Lost(trouble) = &mut *self.shared.lock() { trouble.take() } else { None }
    }

    /// Waits until all watches are in place, or watching has failed.
    pub(crate) fn wait(&self) {
        let thread = self.thread.lock().expect("no thread panics while it holds the lock").take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }

    /// Leaves the tree to the thread, because a caller cannot wait that long.
    fn hand_over(&self, state: &mut WatcherState) {
        if let WatcherState::Watching(tree) = std::mem::replace(state, WatcherState::Placing(Vec::new())) {
            self.place_in_background(state, move || Ok(tree));
        }
    }

    fn place_in_background(
        &self,
        state: &mut WatcherState,
        open: impl FnOnce() -> Result<Box<WatchedTree>, WatchTrouble> + Send + 'static,
    ) {
        let shared = self.shared.clone();
        let run = move || {
            if let Err(trouble) = open().and_then(|tree| shared.watch_tree(tree)) {
                *shared.lock() = WatcherState::Lost(Some(trouble));
            }
        };
        match std::thread::Builder::new().name("surehand-watch".to_owned()).spawn(run) {
            Ok(thread) => *self.thread.lock().expect("no thread panics while it holds the lock") = Some(thread),
            Err(error) => *state = WatcherState::Lost(Some(WatchTrouble::System { act: "start a thread", error })),
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
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    /// Adds all watches, then shares the tree with the callers.
    fn watch_tree(&self, mut tree: Box<WatchedTree>) -> Result<(), WatchTrouble> {
        let is_closed = || self.closed.load(Ordering::Relaxed);
        loop {
            tree.watch_all(is_closed)?;
            let mut state = self.lock();
            let asked = match &mut *state {
                WatcherState::Placing(asked) if !is_closed() => std::mem::take(asked),
                _ => Vec::new(),
            };
            if asked.is_empty() {
                *state = WatcherState::Watching(tree);
                return Ok(());
            }
            drop(state);
            asked.iter().try_for_each(|path| tree.watch_path(path))?;
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
