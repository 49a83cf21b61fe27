//! Removes data that is kept, at the request of a person. Data that a running process needs stays: the views of
//! recently active sessions, rescued files that a program has open, and states in which a process holds a journal.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{self as sys, FlockOperation, Mode, OFlags};
use surehand_store::{Millis, OldHistory, SqliteStore, StoreError, StoreScope, StoreUsage};

use crate::{
    disk::{rescue::RESCUED, rescued_files},
    rescued::{Rescue, RescuePlace},
    state_dir::{
        StateHome,
        inventory::{CHECKOUTS, FoundCheckout, FoundState, TreePresence, names_in, states_in_home},
    },
    time::now,
    usage::{BoardUsage, boards, size_of},
    workspace::Workspace,
};

/// A session that was active within this time may continue at any moment.
pub const SESSION_IN_USE: Duration = Duration::from_secs(30 * 60);

/// The state of a work tree that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GoneState {
    /// The state directory of its repository.
    pub state: PathBuf,
    /// The name of its checkout in that state; `None` if the whole state belongs to trees that are gone.
    pub checkout: Option<String>,
    /// The last known path of the work tree.
    pub root: PathBuf,
    /// Its records in the database. Only a whole state includes versions.
    pub store: StoreUsage,
    /// The size of its files in bytes.
    pub bytes: u64,
    /// The number of rescued files in it.
    pub rescued: u64,
    key: String,
}

/// Why something was not removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CleanError {
    /// A process is using it.
    #[error("{what}: in use by another process")]
    InUse {
        /// The path of a work tree or board, or the id of a rescued file.
        what: String,
    },
    /// The operating system reported an error.
    #[error("{what}: {error}")]
    Io {
        /// The path of a work tree or board, or the id of a rescued file.
        what: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The store reported an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn in_use_since() -> Millis {
    now() - i64::try_from(SESSION_IN_USE.as_millis()).expect("half an hour fits")
}

impl Workspace {
    /// The history of its repository from before `moment`.
    pub fn old_history(&self, moment: Millis) -> Result<OldHistory, StoreError> {
        self.flush();
        self.store.ask_database(|store| store.history_before(moment, in_use_since()))
    }

    /// Removes the history of its repository from before `moment`. The views of recently active sessions stay.
    pub fn drop_history(&self, moment: Millis) -> Result<(), StoreError> {
        self.flush();
        self.store.ask_database(|store| store.drop_history_before(moment, in_use_since()))
    }

    /// The views of sessions that were last active before `moment`, and not recently.
    pub fn idle_sessions(&self, moment: Millis) -> Result<StoreUsage, StoreError> {
        self.flush();
        self.store.ask_database(|store| store.idle_sessions(moment.min(in_use_since())))
    }

    /// Removes the views that [`Self::idle_sessions`] counts.
    pub fn drop_idle_sessions(&self, moment: Millis) -> Result<(), StoreError> {
        self.store.ask_database(|store| store.drop_idle_sessions(moment.min(in_use_since())))
    }

    /// Removes a rescued file permanently, unless a program has it open.
    pub fn remove_rescue(&self, rescue: &Rescue) -> Result<(), CleanError> {
        let RescuePlace::File { path, .. } = &rescue.place else { return Ok(()) };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let failed = |error| CleanError::Io { what: rescue.id.clone(), error };
        let state = self.state().dir().map_err(failed)?;
        match rescued_files::discard_unless_open(&state, &name).map_err(failed)? {
            true => Ok(()),
            false => Err(CleanError::InUse { what: rescue.id.clone() }),
        }
    }

    /// Gives free space in the database back to the system.
    pub fn give_back_space(&self) -> Result<(), StoreError> {
        self.store.ask_database(SqliteStore::give_back_space)
    }
}

/// Finds the state of work trees that are gone: states in the user's own directory, and worktrees of the repositories
/// with these states.
pub fn gone_states(home: &StateHome, repositories: &[PathBuf]) -> io::Result<Vec<GoneState>> {
    let mut gone = Vec::new();
    let in_home = states_in_home(home)?;
    let others = repositories.iter().filter(|path| !in_home.contains(path));
    for path in in_home.iter().chain(others) {
        // A state that cannot be opened is not ours, or has an unknown format, and stays.
        let Ok(Some(state)) = FoundState::open(path) else { continue };
        let Ok(checkouts) = state.checkouts() else { continue };
        let is_gone = |checkout: &&FoundCheckout| checkout.presence != TreePresence::There;
        if state.git_dir().is_none() && !checkouts.is_empty() && checkouts.iter().all(|checkout| is_gone(&checkout)) {
            gone.push(whole_state(path, &checkouts)?);
            continue;
        }
        for checkout in checkouts.iter().filter(is_gone) {
            gone.push(part_of_state(path, checkout)?);
        }
    }
    Ok(gone)
}

fn whole_state(path: &Path, checkouts: &[FoundCheckout]) -> io::Result<GoneState> {
    let store = read_only(path).and_then(|store| store.usage()).unwrap_or_default();
    let mut rescued = 0;
    for checkout in checkouts {
        rescued += names_in(&path.join(CHECKOUTS).join(&checkout.name).join(RESCUED))?.len() as u64;
    }
    let named = checkouts.iter().find(|checkout| checkout.presence == TreePresence::Gone).unwrap_or(&checkouts[0]);
    let root = named.root.clone();
    Ok(GoneState { state: path.to_owned(), checkout: None, root, store, bytes: size_of(path)?, rescued, key: String::new() })
}

fn part_of_state(path: &Path, checkout: &FoundCheckout) -> io::Result<GoneState> {
    let key = checkout.key.as_str().to_owned();
    let store = read_only(path).and_then(|store| store.usage_of_checkout(&key)).unwrap_or_default();
    let dir = path.join(CHECKOUTS).join(&checkout.name);
    Ok(GoneState {
        state: path.to_owned(),
        checkout: Some(checkout.name.clone()),
        root: checkout.root.clone(),
        store,
        bytes: size_of(&dir)?,
        rescued: names_in(&dir.join(RESCUED))?.len() as u64,
        key,
    })
}

fn read_only(state: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open_read_only(&state.join("state.db"), &StoreScope::default())
}

impl GoneState {
    /// Removes it, unless a process holds a journal in it.
    pub fn remove(&self) -> Result<(), CleanError> {
        let path = || self.root.display().to_string();
        let failed = |error| CleanError::Io { what: path(), error };
        let Some(state) = FoundState::open(&self.state).map_err(failed)? else { return Ok(()) };
        let checkouts = state.checkouts().map_err(failed)?;
        let is_meant = |checkout: &&FoundCheckout| self.checkout.as_ref().is_none_or(|name| *name == checkout.name);
        for checkout in checkouts.iter().filter(is_meant) {
            let dir = self.state.join(CHECKOUTS).join(&checkout.name);
            // It may have come back since it was listed.
            if checkout.presence == TreePresence::There || is_in_use(&dir).map_err(failed)? {
                return Err(CleanError::InUse { what: path() });
            }
        }
        let Some(name) = &self.checkout else {
            let parent = self.state.parent().expect("it is below another directory");
            return discard(parent, &self.state).map_err(failed);
        };
        if !self.key.is_empty() && self.state.join("state.db").exists() {
            let mut store = SqliteStore::open(&self.state.join("state.db"), &StoreScope::default())?.store;
            store.drop_checkout(&self.key)?;
            store.give_back_space()?;
        }
        discard(&self.state, &self.state.join(CHECKOUTS).join(name)).map_err(failed)
    }
}

/// The boards of repositories that are gone.
pub fn gone_boards(home: &StateHome) -> io::Result<Vec<BoardUsage>> {
    Ok(boards(home)?.into_iter().filter(BoardUsage::is_gone).collect())
}

impl BoardUsage {
    /// Removes it, unless an agent on it is alive.
    pub fn remove(&self) -> Result<(), CleanError> {
        let path = || self.path.display().to_string();
        if self.is_in_use {
            return Err(CleanError::InUse { what: path() });
        }
        let parent = self.path.parent().expect("it is below another directory");
        discard(parent, &self.path).map_err(|error| CleanError::Io { what: path(), error })
    }
}

/// Whether a process that changes files holds a journal or an outbox of a checkout.
fn is_in_use(checkout: &Path) -> io::Result<bool> {
    for part in ["journal", "outbox"] {
        let dir = checkout.join(part);
        for name in names_in(&dir)? {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(file) = sys::open(dir.join(name), flags, Mode::empty()).map(File::from) else { continue };
            if sys::flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Prefix of the name of a directory that is being removed.
const REMOVED: &str = "removed-";

/// Removes a directory of the state. It is renamed first, so that a process that starts meanwhile creates a new one.
fn discard(parent: &Path, dir: &Path) -> io::Result<()> {
    let nameless = parent.join(format!("{REMOVED}{:016x}", crate::random::random()));
    #[expect(clippy::disallowed_methods, reason = "a directory of the state")]
    fs::rename(dir, &nameless)?;
    // Directories that a killed process left are removed as well.
    for name in names_in(parent)?.iter().filter(|name| name.starts_with(REMOVED)) {
        match fs::remove_dir_all(parent.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
