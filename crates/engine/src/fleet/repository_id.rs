//! The id of a repository, the same in all its worktrees and clones. It is computed once and then kept in the common
//! git directory, so it stays the same when `origin` gets another address.

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use surehand_core::ContentHash;
use surehand_store::board::{BoardError, Checkout, RepositoryId};

use crate::{
    git::{self, GitDirs, Head},
    state_dir::{self, IfThere},
    workspace::Workspace,
};

/// The id of a repository, with its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRepository {
    /// 64 hexadecimal digits.
    pub id: RepositoryId,
    /// How the id was chosen.
    pub origin: IdOrigin,
}

/// How the id of a repository was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdOrigin {
    /// Computed from the first commit and the address of `origin`, so that clones have the same id.
    Computed,
    /// Random, because without a remote, or with only a part of the history, related clones cannot be recognized.
    Random,
    /// Given by a person.
    Joined,
}

/// Why the id of a repository is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryIdError {
    /// The state could not be read or written.
    #[error("the id of the repository cannot be kept: {0}")]
    State(#[from] io::Error),
    /// The repository has a remote, but no commit yet.
    #[error("the repository has no commit yet; its id comes from the first one")]
    NoCommit,
    /// The input of a person is not an id.
    #[error("{0:?} is not the id of a repository, which has 64 hexadecimal digits; `surehand board` prints it")]
    NotAnId(String),
}

/// A file in the state directory of the repository.
const NAME: &str = "repository";
const MAX_FILE: u64 = 4096;

impl Workspace {
    /// The id of the repository. The first call computes and stores it, which reads the whole history.
    pub fn repository_id(&self) -> Result<KnownRepository, RepositoryIdError> {
        let dir = self.repository_dir()?;
        if let Some(known) = read(&dir)? {
            return Ok(known);
        }
        let computed = self.git_dirs().map_or(Ok(None), |git| computed_id(&git))?;
        let repository = match computed {
            Some(id) => KnownRepository { id, origin: IdOrigin::Computed },
            None => KnownRepository { id: random_id()?, origin: IdOrigin::Random },
        };
        match state_dir::write_file(&dir, NAME, &serde_json::to_vec(&repository).map_err(io::Error::from)?, IfThere::Keep) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            written => written?,
        }
        // If another process was first, its id counts.
        Ok(read(&dir)?.unwrap_or(repository))
    }

    /// The id of the repository, if it was needed before. Computes and creates nothing.
    pub fn known_repository(&self) -> Option<KnownRepository> {
        let dir = self.repository_dir().ok()?;
        read(&dir).ok().flatten()
    }

    /// Gives this repository, with all its worktrees, the id of another one.
    pub fn join_repository(&self, id: &str) -> Result<KnownRepository, RepositoryIdError> {
        let id = id.trim().to_ascii_lowercase();
        if !is_id(&id) {
            return Err(RepositoryIdError::NotAnId(id));
        }
        let joined = KnownRepository { id: RepositoryId(id), origin: IdOrigin::Joined };
        let content = serde_json::to_vec(&joined).map_err(io::Error::from)?;
        let dir = self.repository_dir()?;
        state_dir::write_file(&dir, NAME, &content, IfThere::Replace)?;
        Ok(joined)
    }

    /// This checkout, with the id that it has on a board.
    pub fn checkout(&self) -> Result<Checkout, BoardError> {
        let root = self.copy.tree.path();
        let stat = rustix::fs::stat(root).map_err(|errno| {
            BoardError::BadValue(format!("{}: cannot be examined: {}", root.display(), io::Error::from(errno)))
        })?;
        #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
        let (device, inode) = (stat.st_dev as u64, stat.st_ino as u64);
        Ok(Checkout { host: host(), device, inode, path: root.display().to_string() })
    }

    pub(super) fn repository_dir(&self) -> io::Result<Arc<File>> {
        let state = self.state().state_dir().ok_or(io::ErrorKind::NotFound)?;
        Ok(state.dir.clone())
    }
}

/// The host name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn read(dir: &File) -> io::Result<Option<KnownRepository>> {
    let file = match state_dir::open_file(dir, NAME, MAX_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text)?;
    // A file that is incomplete because of a power failure has no valid id.
    Ok(serde_json::from_str(&text).ok().filter(|known: &KnownRepository| is_id(&known.id.0)))
}

/// Computes the id. Data that cannot be read leads to a random id, so that there is always a board. A random id joins
/// no clones, but a person can join them.
fn computed_id(git: &GitDirs) -> Result<Option<RepositoryId>, RepositoryIdError> {
    let Some(origin) = git::origin_of(git) else { return Ok(None) };
    if matches!(git::head_of(git), Ok(Head::Unborn)) {
        return Err(RepositoryIdError::NoCommit);
    }
    let root = git::smallest_root_commit(git).ok().flatten();
    Ok(root.map(|root| RepositoryId(ContentHash::of(format!("{root}\0{origin}").as_bytes()).to_string())))
}

fn random_id() -> io::Result<RepositoryId> {
    let mut random = [0_u8; 32];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(RepositoryId(random.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Only hexadecimal digits are valid, because the id becomes the name of a directory.
fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
