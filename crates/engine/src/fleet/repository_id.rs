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

/// The id of a repository, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRepository {
    /// The id.
    pub id: RepositoryId,
    /// Where it comes from.
    pub origin: IdOrigin,
}

/// Where the id of a repository comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdOrigin {
    /// From its first commit and the address of `origin`, so clones have it, too.
    Computed,
    /// It is random: without a remote, or with only a part of the history, nothing says which clones belong together.
    Random,
    /// A person named it.
    Joined,
}

/// Why the id of a repository is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryIdError {
    /// The state cannot be read or written.
    #[error("the id of the repository cannot be kept: {0}")]
    State(#[from] io::Error),
    /// There is a remote, and no commit yet.
    #[error("the repository has no commit yet; its id comes from the first one")]
    NoCommit,
    /// It was typed, and is none.
    #[error("{0:?} is not the id of a repository, which has 64 hexadecimal digits; `surehand board` prints it")]
    NotAnId(String),
}

/// The file in the state directory of the repository.
const NAME: &str = "repository";
const MAX_FILE: u64 = 4096;

impl Workspace {
    /// The id of its repository. The first call computes it, which reads the whole history, and keeps it.
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
        // Another process may have been first.
        Ok(read(&dir)?.unwrap_or(repository))
    }

    /// The id of its repository, if it was needed before. Computes and creates nothing.
    pub fn known_repository(&self) -> Option<KnownRepository> {
        let dir = self.repository_dir().ok()?;
        read(&dir).ok().flatten()
    }

    /// Makes this repository, with all its worktrees, the one with this id.
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

    /// This checkout, as it is called on a board.
    pub fn checkout(&self) -> Result<Checkout, BoardError> {
        let root = self.copy.tree.path();
        let stat = rustix::fs::stat(root).map_err(|errno| {
            BoardError::BadValue(format!("{}: cannot be looked at: {}", root.display(), io::Error::from(errno)))
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

/// The name of this machine.
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
    // A file that was being written when the power went is no id.
    Ok(serde_json::from_str(&text).ok().filter(|known: &KnownRepository| is_id(&known.id.0)))
}

/// What cannot be read is no reason to do without a board: a random id joins no clones, and a person can.
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

/// The id becomes the name of a directory.
fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
