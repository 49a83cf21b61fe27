//! Measures how much is kept, for a person: for the repository of a workspace, and for all repositories of the user.
//! Measuring changes nothing, and a repository need not exist any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use surehand_store::{KeptAmount, SqliteStore, StoreScope, StoreUsage, board::BoardSummary};

pub use crate::state_dir::inventory::TreePresence;
use crate::{
    state_dir::{
        StateHome,
        inventory::{BOARDS, CHECKOUTS, FoundCheckout, FoundState, home_dir, names_in, state_in_git, states_in_home},
    },
    workspace::Workspace,
};

/// The data that is kept for one repository, or for a directory outside repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateUsage {
    /// The directory of the state.
    pub path: PathBuf,
    /// The size of all its files in bytes.
    pub bytes: u64,
    /// The contents of the database, or why they are unknown.
    pub store: Result<StoreUsage, String>,
    /// Its checkouts, sorted by name.
    pub checkouts: Vec<CheckoutUsage>,
}

/// The data that is kept for one checkout, besides the database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckoutUsage {
    /// Its name: `main`, or that of a worktree.
    pub name: String,
    /// The last known path of its work tree.
    pub root: PathBuf,
    /// Whether the work tree still exists.
    pub presence: TreePresence,
    /// The size of all its files in bytes.
    pub bytes: u64,
    /// Its directories by name, such as `rescued`, `runs` and `staged`, with the number of entries and their size.
    pub parts: BTreeMap<String, KeptAmount>,
}

/// The board of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoardUsage {
    /// The directory of the board.
    pub path: PathBuf,
    /// The size of its files in bytes.
    pub bytes: u64,
    /// The work trees that it knows, or why they are unknown.
    pub roots: Result<Vec<PathBuf>, String>,
    /// Whether an agent on it is alive.
    pub is_in_use: bool,
}

impl StateUsage {
    /// Measures a state directory; `None` if it does not exist.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let Some(state) = FoundState::open(path)? else { return Ok(None) };
        let checkout = |found: FoundCheckout| {
            let path = path.join(CHECKOUTS).join(&found.name);
            let parts = directories(&path)?;
            Ok(CheckoutUsage { bytes: size_of(&path)?, name: found.name, root: found.root, presence: found.presence, parts })
        };
        let checkouts = state.checkouts()?.into_iter().map(checkout).collect::<io::Result<Vec<_>>>()?;
        // Connected processes share memory through this file. It disappears with the last of them.
        let shared = fs::symlink_metadata(path.join("state.db-shm")).map_or(0, |meta| meta.len());
        let bytes = size_of(path)?.saturating_sub(shared);
        Ok(Some(Self { path: path.to_owned(), bytes, store: store_usage(path), checkouts }))
    }

    /// Whether no tree that it was kept for exists any more.
    pub fn is_gone(&self) -> bool {
        !self.checkouts.is_empty() && self.checkouts.iter().all(|checkout| checkout.presence != TreePresence::There)
    }

    /// The sum of the directories of this name, over all checkouts.
    pub fn part(&self, name: &str) -> KeptAmount {
        let mut sum = KeptAmount::default();
        self.checkouts.iter().filter_map(|checkout| checkout.parts.get(name)).for_each(|part| sum += *part);
        sum
    }
}

impl BoardUsage {
    /// Whether none of the work trees that it knows exists any more.
    pub fn is_gone(&self) -> bool {
        let is_gone = |root: &PathBuf| root.is_absolute() && !root.exists();
        self.roots.as_ref().is_ok_and(|roots| !roots.is_empty() && roots.iter().all(is_gone))
    }
}

impl Workspace {
    /// Measures the state of its repository, for all checkouts; `None` if there is no state yet.
    pub fn usage(&self) -> io::Result<Option<StateUsage>> {
        self.flush();
        self.state_report().paths.map_or(Ok(None), |paths| StateUsage::of(&paths.repository))
    }
}

/// The directories of all states: those in the user's own directory, and those in the git directories of these trees.
pub fn state_directories(home: &StateHome, trees: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut found: BTreeSet<PathBuf> = states_in_home(home)?.into_iter().collect();
    found.extend(trees.iter().filter_map(|tree| state_in_git(tree)));
    Ok(found.into_iter().collect())
}

/// The boards of all repositories of the user on this machine.
pub fn boards(home: &StateHome) -> io::Result<Vec<BoardUsage>> {
    let Some(home) = home_dir(home) else { return Ok(Vec::new()) };
    let all = home.join(BOARDS);
    let mut boards = Vec::new();
    for name in names_in(&all)? {
        let path = all.join(name);
        let (roots, is_in_use) = match BoardSummary::read(&path.join("board.db")) {
            Ok(summary) => {
                let roots = summary.checkouts.into_iter().map(|checkout| PathBuf::from(checkout.path)).collect();
                (Ok(roots), summary.is_in_use)
            }
            Err(error) => (Err(error.to_string()), false),
        };
        boards.push(BoardUsage { bytes: size_of(&path)?, path, roots, is_in_use });
    }
    Ok(boards)
}

fn store_usage(state: &Path) -> Result<StoreUsage, String> {
    let path = state.join("state.db");
    if !path.exists() {
        return Ok(StoreUsage::default());
    }
    let store = SqliteStore::open_read_only(&path, &StoreScope::default());
    store.and_then(|store| store.usage()).map_err(|error| error.to_string())
}

/// The directories in a directory, with the number of their entries.
fn directories(path: &Path) -> io::Result<BTreeMap<String, KeptAmount>> {
    let mut parts = BTreeMap::new();
    for name in names_in(path)? {
        let part = path.join(&name);
        if fs::symlink_metadata(&part).is_ok_and(|meta| meta.is_dir()) {
            let count = names_in(&part)?.len() as u64;
            parts.insert(name, KeptAmount { count, bytes: size_of(&part)? });
        }
    }
    Ok(parts)
}

/// The size of a file, or of all files below a directory. Files that vanish meanwhile do not count, and symlinks are
/// not followed.
pub(crate) fn size_of(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let meta = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            meta => meta?,
        };
        if !meta.is_dir() {
            bytes += meta.len();
            continue;
        }
        match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            entries => {
                for entry in entries? {
                    open.push(entry?.path());
                }
            }
        }
    }
    Ok(bytes)
}
