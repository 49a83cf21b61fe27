//! In which workspaces a client's session works. Its home is fixed when it begins, whatever directory the client reports later; files
//! of other work trees are guarded in their own workspaces under the same name. This is kept among the user's own state, so that
//! it is found from anywhere.

use std::{
    io,
    os::{fd::OwnedFd, unix::fs::DirBuilderExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{self as sys, AtFlags, Dir, Mode, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use surehand_engine::{SessionId, StateHome};

use crate::locked_json;

/// The workspaces of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionRoots {
    /// The root of its own.
    pub home: Option<PathBuf>,
    /// The roots of others in which it has read or changed files.
    pub others: Vec<PathBuf>,
    /// What the person and the model were told once and for all.
    pub told: Vec<String>,
}

const DIRECTORY: &str = "sessions";

/// What nobody has changed for so long is of a session that has ended.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// More workspaces than this are not remembered.
const MOST_OTHERS: usize = 64;

impl SessionRoots {
    /// What is known of a session.
    pub fn of(state: &StateHome, session: &SessionId) -> Self {
        locked_json::look(directory(state).ok().as_ref(), &locked_json::file_name(session))
    }

    /// Whether anything can be kept.
    pub fn can_be_kept(state: &StateHome) -> bool {
        make_directory(state).is_ok()
    }

    /// Changes what is known of a session; no other process does meanwhile.
    pub fn change<T>(state: &StateHome, session: &SessionId, change: impl FnOnce(&mut Self) -> T) -> T {
        let dir = make_directory(state).ok();
        let (is_new, result) = locked_json::change(dir.as_ref(), &locked_json::file_name(session), |places: &mut Self| {
            (*places == Self::default(), change(places))
        });
        if let (true, Some(dir)) = (is_new, &dir) {
            let _ = forget_old(dir);
        }
        result
    }

    /// The session works in this workspace as well. `true` if that is news.
    pub fn add(&mut self, root: &Path) -> bool {
        let is_news = self.home.as_deref() != Some(root) && !self.others.iter().any(|other| other == root);
        if is_news && self.others.len() < MOST_OTHERS {
            self.others.push(root.to_owned());
        }
        is_news
    }

    /// Something is told for the first time.
    pub fn tell(&mut self, what: &str) -> bool {
        let is_news = !self.told.iter().any(|told| told == what);
        if is_news {
            self.told.push(what.to_owned());
        }
        is_news
    }
}

fn path(state: &StateHome) -> io::Result<PathBuf> {
    let base = state.fixed.as_ref().or(state.user.as_ref()).ok_or(io::ErrorKind::NotFound)?;
    Ok(base.join(DIRECTORY))
}

fn directory(state: &StateHome) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = sys::open(path(state)?, flags, Mode::empty())?;
    let stat = sys::fstat(&dir)?;
    // What others can write says nothing about us.
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o077 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(dir)
}

fn make_directory(state: &StateHome) -> io::Result<OwnedFd> {
    match directory(state) {
        Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path(state)?)?;
            directory(state)
        }
        opened => opened,
    }
}

fn forget_old(dir: &OwnedFd) -> io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let stat = sys::statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
        let age = now.saturating_sub(u64::try_from(stat.st_mtime).unwrap_or_default());
        if !entry.file_name().to_bytes().starts_with(b".") && age > KEPT_FOR.as_secs() {
            sys::unlinkat(dir, entry.file_name(), AtFlags::empty())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_session_stays_known() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateHome { user: Some(dir.path().join("a/b")), ..StateHome::default() };
        let session = SessionId("claude-1".to_owned());
        assert_eq!(SessionRoots::of(&state, &session), SessionRoots::default());
        SessionRoots::change(&state, &session, |places| places.home = Some("/p".into()));
        assert!(SessionRoots::change(&state, &session, |places| places.add(Path::new("/q"))));
        assert!(!SessionRoots::change(&state, &session, |places| places.add(Path::new("/p"))));
        let known = SessionRoots::of(&state, &session);
        assert_eq!((known.home.unwrap(), known.others), (PathBuf::from("/p"), vec![PathBuf::from("/q")]));
        assert_eq!(SessionRoots::of(&state, &SessionId("claude-2".to_owned())), SessionRoots::default());
        // Where nothing can be kept, nothing is known, and nobody is stopped.
        let nowhere = StateHome::default();
        assert!(SessionRoots::change(&nowhere, &session, |places| places.tell("x")));
    }
}
