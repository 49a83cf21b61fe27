//! The state of a checkout while it is in use: open directories, displaced files that wait for their second look, and
//! notices for the next reply.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{fs as sys, io::Errno};
use surehand_core::Notice;

use super::{
    change_counter::ChangeCounterFile,
    export_dir::ExportDir,
    rescue::{DisplacedFile, RescueDir, SecondLookResult},
    shared_dirs::SharedDirs,
    unsynced_dirs::UnsyncedDirs,
    working_copy::RootInTree,
};
use crate::{
    git::WorkTree,
    state_dir::{self, CheckoutKey, PassedOver, StateDir, StateDirError, StateHome, make_dir},
};

#[derive(Debug)]
pub(crate) struct CheckoutState {
    tree: WorkTree,
    home: StateHome,
    handles: Mutex<StateHandles>,
    pub(crate) device: u64,
    pub(crate) rescued: RescueDir,
    pub(crate) displaced: Mutex<VecDeque<(Instant, DisplacedFile)>>,
    /// Held while displaced files are checked, because they are in no list then.
    pub(crate) tidying: Mutex<()>,
    pub(crate) unsynced: UnsyncedDirs,
    pub(crate) displaced_dirs: SharedDirs,
    pub(crate) notices: Arc<Mutex<Vec<Notice>>>,
    pub(crate) work_dir: String,
    pub(crate) export: ExportDir,
    own_announcements: AtomicU64,
}

#[derive(Debug, Clone)]
enum StateHandles {
    Open(Arc<StateParts>),
    /// Nothing is written; `None` if no state exists yet.
    ReadOnly(Option<Arc<StateDir>>),
}

#[derive(Debug)]
struct StateParts {
    dir: Arc<StateDir>,
    staged: Arc<File>,
    locks: Arc<File>,
    journals: Arc<File>,
    outbox: Arc<File>,
}

/// How long a displaced file is kept before the second look.
pub(crate) const SECOND_LOOK_AFTER: Duration = Duration::from_millis(250);

impl CheckoutState {
    pub(crate) fn open(place: &RootInTree, dir: StateDir, home: &StateHome) -> io::Result<Self> {
        let parts = Arc::new(StateParts::open(Arc::new(dir))?);
        let rescued = RescueDir::of(parts.dir.clone())?;
        let device = rescued.clock().stamp(&sys::fstat(&*parts.dir.checkout)?).device;
        Ok(Self { device, ..Self::new(place, home, StateHandles::Open(parts), rescued)? })
    }

    pub(crate) fn open_read_only(place: &RootInTree, dir: Option<StateDir>, home: &StateHome) -> io::Result<Self> {
        Self::new(place, home, StateHandles::ReadOnly(dir.map(Arc::new)), RescueDir::default())
    }

    fn new(place: &RootInTree, home: &StateHome, handles: StateHandles, rescued: RescueDir) -> io::Result<Self> {
        let root = Arc::new(File::from(place.tree_root.dir().try_clone_to_owned()?));
        Ok(Self {
            export: ExportDir::new(root, place.tree.git.as_ref().map(|git| git.own.clone())),
            tree: place.tree.clone(),
            home: home.clone(),
            handles: Mutex::new(handles),
            device: 0,
            rescued,
            displaced: Mutex::default(),
            tidying: Mutex::default(),
            unsynced: UnsyncedDirs::default(),
            displaced_dirs: SharedDirs::default(),
            notices: Arc::default(),
            work_dir: place.tree.root.display().to_string(),
            own_announcements: AtomicU64::new(0),
        })
    }

    pub(crate) fn is_read_only(&self) -> bool {
        matches!(*lock(&self.handles), StateHandles::ReadOnly(_))
    }

    /// Creates the state directory again if it, or a part of it, was removed while open. Returns whether it did.
    pub(crate) fn recreate_if_removed(&self) -> io::Result<bool> {
        let mut handles = lock(&self.handles);
        let StateHandles::Open(parts) = &*handles else { return Ok(false) };
        let is_gone = |part: &Arc<File>| sys::fstat(part).is_ok_and(|stat| stat.st_nlink == 0);
        // These are removed together with the whole directory. A checkout in use is never set aside, so nothing else
        // needs a check.
        if ![&parts.journals, &parts.staged, &parts.locks].into_iter().any(is_gone) {
            return Ok(false);
        }
        let dir = Arc::new(StateDir::open(&self.tree, &self.home).map_err(io::Error::other)?);
        self.rescued.moved(dir.clone());
        *handles = StateHandles::Open(Arc::new(StateParts::open(dir)?));
        Ok(true)
    }

    /// The state directory of the repository; `None` if none exists yet.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.state_dir().map(|dir| dir.path.clone())
    }

    /// The state directory as it was opened; `None` if none exists yet.
    pub(crate) fn state_dir(&self) -> Option<Arc<StateDir>> {
        match &*lock(&self.handles) {
            StateHandles::Open(parts) => Some(parts.dir.clone()),
            StateHandles::ReadOnly(dir) => dir.clone(),
        }
    }

    /// The state in the git directory that is not used, with the reason.
    pub(crate) fn passed_over(&self) -> Option<PassedOver> {
        let opened = self.state_dir().and_then(|dir| dir.passed_over.clone());
        opened.or_else(|| state_dir::passed_over(&self.tree, &self.home))
    }

    /// Why no state could be created, if none exists.
    pub(crate) fn why_not_made(&self) -> Option<StateDirError> {
        if self.state_dir().is_some() { None } else { state_dir::why_not_made(&self.tree, &self.home) }
    }

    /// The random key of this checkout; empty if it has no state.
    pub(crate) fn key(&self) -> CheckoutKey {
        self.state_dir().map(|dir| dir.key.clone()).unwrap_or_default()
    }

    /// Syncs the key of this checkout, once.
    pub(crate) fn sync_key(&self) -> io::Result<()> {
        self.state_dir().map_or(Ok(()), |dir| dir.sync_key())
    }

    /// Syncs the key of this checkout if this process made it.
    pub(crate) fn sync_new_key(&self) -> io::Result<()> {
        self.state_dir().map_or(Ok(()), |dir| dir.sync_new_key())
    }

    /// Whether files may be staged for this journal. `true` if the directory cannot be read.
    pub(crate) fn has_staged(&self, journal: &str) -> bool {
        let prefix = format!("{journal}-");
        let has_prefix = |entry: rustix::io::Result<sys::DirEntry>| {
            entry.is_ok_and(|entry| entry.file_name().to_bytes().starts_with(prefix.as_bytes()))
        };
        sys::Dir::read_from(&*self.staged()).map_or(true, |mut entries| entries.any(has_prefix))
    }

    /// The part of the state directory that belongs to this checkout; an error of kind `NotFound` if none exists.
    pub(crate) fn dir(&self) -> io::Result<Arc<File>> {
        match self.state_dir() {
            Some(dir) => Ok(dir.checkout.clone()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(crate) fn staged(&self) -> Arc<File> {
        self.parts().staged.clone()
    }

    pub(crate) fn locks(&self) -> Arc<File> {
        self.parts().locks.clone()
    }

    pub(crate) fn journals(&self) -> Arc<File> {
        self.parts().journals.clone()
    }

    pub(crate) fn outbox(&self) -> Arc<File> {
        self.parts().outbox.clone()
    }

    fn parts(&self) -> Arc<StateParts> {
        match &*lock(&self.handles) {
            StateHandles::Open(parts) => parts.clone(),
            StateHandles::ReadOnly(_) => unreachable!("commits are refused if the state is read-only"),
        }
    }

    /// Announces a change of the store that this process knows already.
    pub(crate) fn announce_own(&self) {
        self.announce();
        self.own_announcements.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn own_announcements(&self) -> u64 {
        self.own_announcements.load(Ordering::Acquire)
    }

    /// Announces a change of the store to all processes, including this one. If the lock is held, its holder is about
    /// to read the store anyway.
    pub(crate) fn announce(&self) {
        const PATIENCE: Duration = Duration::from_millis(20);
        let file = self.dir().and_then(|dir| ChangeCounterFile::open(&dir));
        if let Ok(Ok(Some(mut held))) = file.as_ref().map(|file| file.hold(PATIENCE)) {
            held.advance();
        }
    }

    pub(crate) fn notify(&self, notice: Notice) {
        lock(&self.notices).push(notice);
    }

    /// Takes a second look at the displaced files that are old enough. Returns whether some are left.
    pub(crate) fn check_displaced(&self, age: Duration) -> bool {
        let _one_at_a_time = lock(&self.tidying);
        let waiting = std::mem::take(&mut *lock(&self.displaced));
        let is_due = |(since, _): &(Instant, DisplacedFile)| since.elapsed() >= age;
        if waiting.iter().any(is_due) && !self.unsynced.sync_early() {
            // Without that sync, a directory might still name a displaced file after a power cut.
            lock(&self.displaced).extend(waiting);
            return true;
        }
        let mut left = VecDeque::new();
        for (since, mut displaced) in waiting {
            if since.elapsed() < age {
                left.push_back((since, displaced));
                continue;
            }
            match displaced.check_again(&self.rescued) {
                Ok(SecondLookResult::Untouched) if displaced.remove() => {}
                Ok(SecondLookResult::Untouched | SecondLookResult::InUse) | Err(_) => left.push_back((since, displaced)),
                Ok(SecondLookResult::Rescued(to)) => self.notify(Notice::Rescued { path: displaced.path, to }),
            }
        }
        let mut displaced = lock(&self.displaced);
        displaced.extend(left);
        !displaced.is_empty()
    }
}

impl StateParts {
    fn open(dir: Arc<StateDir>) -> io::Result<Self> {
        let part = |name: &str| make_dir(&dir.checkout, name);
        Ok(Self { staged: part("staged")?, locks: part("locks")?, journals: part("journal")?, outbox: part("outbox")?, dir })
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds the lock")
}
