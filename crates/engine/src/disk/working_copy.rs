//! The working copy: the files of a work tree together with the state directory that guards them. Commits and recovery
//! act on it. It has the journal, the locks, the staging directories and the displaced files. It knows nothing of
//! stores, sessions and settings.

use std::{
    borrow::Cow,
    fs::File,
    io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::fs as sys;
use surehand_core::{Notice, RelPath};

use super::{
    checkout_state::{CheckoutState, lock},
    commit::{CommitProbe, Durability},
    export_dir::is_internal,
    file_times::FileClock,
    journal::{Journal, JournalEntry, StagingPlace},
    path_locks::LockPool,
    recovery::recover,
    rescue::DisplacedFile,
    root_dir::RootDir,
};
use crate::{
    git::{self, WorkTree},
    random::try_random,
    state_dir::StateHome,
    user::effective_user,
};

/// A root in its work tree, with the state that belongs to it.
pub(crate) struct WorkingCopy {
    root: Arc<RootDir>,
    root_dir: Arc<File>,
    /// The root of the work tree; usually the same directory as `root`.
    pub(crate) tree: Arc<RootDir>,
    pub(crate) below: Option<RelPath>,
    /// Directories of the tree whose content git or Surehand trusts, under whatever name.
    protected: Vec<RelPath>,
    /// Whether the root itself lies in such a directory.
    is_all_protected: bool,
    pub(crate) durability: Durability,
    pub(crate) state: Arc<CheckoutState>,
    journal: Mutex<Option<Journal>>,
    pub(crate) lock_pool: LockPool,
    /// The user and group of new files.
    owner: (u32, u32),
    pub(crate) probe: Option<CommitProbe>,
    can_exchange: AtomicBool,
    /// The best [`StagingLevel`] that may still work.
    staging: Mutex<StagingLevel>,
    /// The directory for staging in the tree, with its name, once it was needed.
    tree_staging: Mutex<Option<(Arc<File>, String)>>,
}

/// Where files are staged, from the best place to the last resort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StagingLevel {
    InState,
    /// In a directory of the tree, because the state is on another file system.
    InTree,
    /// Beside the target, because the target is on yet another file system.
    Beside,
}

/// If more displaced files than this are waiting, they get their second look at once.
const MAX_DISPLACED: usize = 4096;

impl WorkingCopy {
    /// `home` names the directories of the user that no tool may write.
    pub(crate) fn new(
        place: RootInTree,
        state: Arc<CheckoutState>,
        home: &StateHome,
        durability: Durability,
    ) -> io::Result<Self> {
        let (protected, is_all_protected) = place.protected(home, state.path().as_deref());
        let root_dir = place.root.dir().try_clone_to_owned()?;
        Ok(Self {
            root_dir: Arc::new(File::from(root_dir)),
            root: place.root,
            tree: place.tree_root,
            below: place.below,
            protected,
            is_all_protected,
            durability,
            journal: Mutex::new(None),
            lock_pool: LockPool::default(),
            owner: (effective_user(), rustix::process::getegid().as_raw()),
            probe: None,
            can_exchange: AtomicBool::new(true),
            staging: Mutex::new(StagingLevel::InState),
            tree_staging: Mutex::new(None),
            state,
        })
    }

    pub(crate) fn root(&self) -> &RootDir {
        &self.root
    }

    /// The root, open; always the same handle.
    pub(crate) fn root_dir(&self) -> Arc<File> {
        self.root_dir.clone()
    }

    /// Converts a path relative to the root to one relative to the work tree.
    pub(crate) fn in_tree(&self, path: &RelPath) -> RelPath {
        path.in_directory(self.below.as_ref())
    }

    /// Converts a path relative to the work tree to one relative to the root; `None` if it is not below the root.
    pub(crate) fn in_root<'a>(&self, path: &'a RelPath) -> Option<Cow<'a, RelPath>> {
        match &self.below {
            None => Some(Cow::Borrowed(path)),
            Some(below) => path.relative_to(below).map(Cow::Owned),
        }
    }

    /// Whether a path of the work tree leads into git's or Surehand's own directories, which no tool may write.
    pub(crate) fn is_protected(&self, path: &RelPath) -> bool {
        let is_below =
            |dir: &RelPath| path == dir || path.as_str().strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'));
        self.is_all_protected || path.as_str().split('/').any(is_internal) || self.protected.iter().any(is_below)
    }

    pub(crate) fn clock(&self) -> FileClock {
        self.state.rescued.clock()
    }

    /// Records that this file system cannot exchange two files.
    pub(crate) fn without_exchange(&self) {
        self.can_exchange.store(false, Ordering::Relaxed);
    }

    /// Whether two files can be exchanged in one call.
    pub(crate) fn can_exchange(&self) -> bool {
        self.can_exchange.load(Ordering::Relaxed)
    }

    /// The best place for staging that may still work.
    pub(crate) fn staging(&self) -> StagingLevel {
        *lock(&self.staging)
    }

    /// Records that files staged in this directory are on another file system than their targets, so a worse place is
    /// used from now on. Only the error of the system shows this: a bind mount has the same device number.
    pub(crate) fn staged_too_far(&self, dir: &Arc<File>) {
        let next = if self.tree_staging_name(dir).is_some() { StagingLevel::Beside } else { StagingLevel::InTree };
        let mut staging = lock(&self.staging);
        *staging = next.max(*staging);
    }

    /// The directory for staging in the tree, created when it is first needed. The journal names it before it exists.
    pub(crate) fn tree_staging(&self) -> io::Result<(Arc<File>, String)> {
        let mut staging = lock(&self.tree_staging);
        if let Some(staging) = &*staging {
            return Ok(staging.clone());
        }
        let name = format!("{TREE_STAGING}{:016x}", try_random()?);
        let entry = JournalEntry::StageDir { name: name.clone() };
        self.with_journal(|journal| journal.begin_with(&entry))?;
        let dir = Arc::new(self.state.export.make_private(&*self.state.dir()?, &name)?);
        Ok(staging.insert((dir, name)).clone())
    }

    /// The staging place of a file with this name in this directory.
    pub(crate) fn place_of(&self, dir: &Arc<File>, name: &str) -> StagingPlace {
        match self.tree_staging_name(dir) {
            Some(name) => StagingPlace::Tree(name),
            None if name.starts_with('.') => StagingPlace::Beside,
            None => StagingPlace::State,
        }
    }

    /// The name of the directory for staging in the tree, if this is it.
    pub(crate) fn tree_staging_name(&self, dir: &Arc<File>) -> Option<String> {
        lock(&self.tree_staging).as_ref().filter(|(known, _)| Arc::ptr_eq(known, dir)).map(|(_, name)| name.clone())
    }

    /// Whether a file has the owner and group that a new file of ours would have.
    pub(crate) fn is_owner(&self, stat: &sys::Stat) -> bool {
        (stat.st_uid, stat.st_gid) == self.owner
    }

    pub(crate) fn umask(&self) -> u32 {
        // The system call cannot read the mask without setting it.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
    }

    /// Runs `act` with the journal of this process, which is started when it is first needed.
    pub(crate) fn with_journal<T>(&self, act: impl FnOnce(&mut Journal) -> io::Result<T>) -> io::Result<T> {
        let mut journal = lock(&self.journal);
        if journal.is_none() {
            *journal = Some(self.start_journal()?);
        }
        act(journal.as_mut().expect("started above"))
    }

    /// Makes the state directory again if it was removed.
    pub(crate) fn recreate_state(&self) -> io::Result<()> {
        if self.state.is_read_only() {
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the state is read-only"));
        }
        if self.state.recreate_if_removed()? {
            *lock(&self.journal) = None;
            *lock(&self.tree_staging) = None;
            self.lock_pool.clear();
            self.state.notify(Notice::StateLost);
        }
        Ok(())
    }

    fn start_journal(&self) -> io::Result<Journal> {
        Journal::start(self.state.journals(), process_name()?, self.state.key().as_str())
    }

    /// Drops the journal as a crash would: it is unlocked, but not removed.
    pub(crate) fn abandon(&self) {
        *lock(&self.journal) = None;
    }

    /// Recovers from processes that died since the start. Commits that cannot be settled now are tried again at the
    /// next start.
    pub(crate) fn recover_dead_processes(&self) {
        let notices = recover(self).unwrap_or_default();
        notices.into_iter().for_each(|notice| self.state.notify(notice));
    }

    pub(crate) fn displace(&self, mut displaced: DisplacedFile) {
        displaced.share_dirs(&self.state.displaced_dirs);
        lock(&self.state.displaced).push_back((Instant::now(), displaced));
    }

    /// Ends a commit. Its displaced files get their second look later, in the background. They get it here only if too
    /// many are waiting, as in a burst of edits that the background cannot keep up with.
    pub(crate) fn end_commit(&self) {
        let is_too_long = lock(&self.journal).as_mut().is_some_and(|journal| {
            journal.end_commit();
            journal.is_too_long()
        });
        let is_too_much = || lock(&self.state.displaced).len() > MAX_DISPLACED || self.state.displaced_dirs.are_too_many();
        if is_too_long || is_too_much() {
            self.state.check_displaced(Duration::ZERO);
        }
        self.shorten_journal();
    }

    /// Empties a long journal, if nothing in it is needed any more.
    pub(crate) fn shorten_journal(&self) {
        if !lock(&self.journal).as_ref().is_some_and(Journal::is_long) {
            return;
        }
        // During a second look, the files under examination are not in the list.
        let Ok(_no_second_look) = self.state.tidying.try_lock() else { return };
        let mut journal = lock(&self.journal);
        // A commit is open until the files that it displaced are in the list.
        let is_needed = !lock(&self.state.displaced).is_empty();
        if !is_needed && journal.as_mut().is_some_and(|journal| journal.empty().is_err()) {
            // Without its first line the journal would be ignored, so the next commit starts another one.
            *journal = None;
        }
    }

    /// Moves another program's bytes to `rescued/`. The next reply names them.
    pub(crate) fn rescue(&self, dir: BorrowedFd<'_>, name: &str, path: &RelPath) {
        match self.state.rescued.take_in(dir, name, path) {
            Ok(to) => self.state.notify(Notice::Rescued { path: path.clone(), to }),
            // The file stays where it is, and the next start finds it.
            Err(error) => {
                self.state.notify(Notice::NotRemembered { why: format!("{path}: a displaced version stays in {name}: {error}") })
            }
        }
    }

    /// Cleans up at the end of this process. No commit may follow.
    pub(crate) fn close(&self) {
        self.state.check_displaced(Duration::ZERO);
        // A journal with files that are still open, or could not be removed, is left for the next start.
        if let (Some(journal), true) = (lock(&self.journal).take(), lock(&self.state.displaced).is_empty())
            && !self.state.has_staged(journal.name())
        {
            journal.remove();
            if let Some((_, name)) = lock(&self.tree_staging).take() {
                self.state.export.remove_made(&name);
            }
        }
    }
}

/// A root, and the work tree that it is in.
#[derive(Debug)]
pub(crate) struct RootInTree {
    pub root: Arc<RootDir>,
    pub tree: WorkTree,
    pub tree_root: Arc<RootDir>,
    /// Path from the work tree to the root; `None` if they are the same.
    pub below: Option<RelPath>,
}

impl RootInTree {
    /// Finds the work tree around a root. `home` is the home directory, which is a work tree only if it is the root.
    pub(crate) fn find(root: &Path, home: Option<&Path>) -> io::Result<Self> {
        let root = Arc::new(RootDir::open(root)?);
        // A root that is the home directory was named on purpose.
        let home = home.filter(|home| !git::is_same_file(home, root.path()));
        let tree = git::discover(root.path(), home).unwrap_or_else(|| WorkTree::without_git(root.path().to_owned()));
        let below = root.path().strip_prefix(&tree.root).ok().and_then(Path::to_str).and_then(|below| RelPath::new(below).ok());
        let is_named = below.is_some() || tree.root == root.path();
        if !is_named {
            // The path to the root is not UTF-8, so the root counts as a tree of its own.
            let tree = WorkTree::without_git(root.path().to_owned());
            return Ok(Self { tree_root: root.clone(), root, tree, below: None });
        }
        let tree_root = if below.is_some() { Arc::new(RootDir::open(&tree.root)?) } else { root.clone() };
        Ok(Self { root, tree, tree_root, below })
    }

    /// The protected directories inside the tree, and whether the root lies in one of them or in a bare repository.
    fn protected(&self, home: &StateHome, state: Option<&Path>) -> (Vec<RelPath>, bool) {
        let dirs = self.protected_dirs(home, state);
        let is_inside = dirs.iter().any(|dir| self.root.path().starts_with(dir)) || git::is_in_bare_repository(self.root.path());
        let inside = |path: &PathBuf| RelPath::new(path.strip_prefix(self.tree_root.path()).ok()?.to_str()?).ok();
        (dirs.iter().filter_map(inside).collect(), is_inside)
    }

    /// The directories of git, of the state and of the user's settings, wherever they are.
    pub(crate) fn protected_dirs(&self, home: &StateHome, state: Option<&Path>) -> Vec<PathBuf> {
        let git = self.tree.git.iter().flat_map(|git| [git.own.as_path(), git.common.as_path()]);
        let users = [&home.fixed, &home.user, &home.settings].into_iter().flatten().map(PathBuf::as_path);
        // The paths of git and of the state contain no symlinks.
        let users = users.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let others = git.chain(self.tree.points_to.as_deref()).chain(state).map(Path::to_owned);
        users.chain(others).collect()
    }
}

/// Prefix of the names of directories for staging in the tree.
pub(crate) const TREE_STAGING: &str = "staged-";

/// A name for the files of this process that no other process has or had.
pub(crate) fn process_name() -> io::Result<String> {
    Ok(format!("{}-{:016x}", std::process::id(), try_random()?))
}
