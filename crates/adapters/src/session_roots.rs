//! The workspaces of a session. Its home is fixed when it starts, whatever directory the client reports later; files of
//! other work trees are guarded in their own workspaces under the same session id. The record is kept in the user's
//! state, where every workspace finds it.

use std::{
    collections::BTreeSet,
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
use surehand_engine::{SessionId, StateHome, store::KeptAmount};

use crate::locked_json;

/// The workspaces of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionRoots {
    /// The root of its home; `None` before its first hook.
    pub home: Option<PathBuf>,
    /// Other roots in which it has read or changed files, at most 64.
    pub others: Vec<PathBuf>,
    /// Warnings that the person and the model have already seen.
    #[serde(rename = "told")]
    pub shown_warnings: Vec<String>,
}

const DIRECTORY: &str = "sessions";

/// The numbers and sizes of the records of sessions, for `surehand usage` and `surehand clean`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRootsUsage {
    /// The records of all sessions.
    pub records: KeptAmount,
    /// The records of sessions whose workspaces do not exist any more.
    pub gone: KeptAmount,
    /// The roots of all workspaces in the records, sorted.
    pub roots: Vec<PathBuf>,
}

/// A record that was not changed for this long belongs to a session that has ended.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const MOST_OTHERS: usize = 64;

impl SessionRoots {
    /// Reads the record of a session.
    pub fn of(state: &StateHome, session: &SessionId) -> Self {
        locked_json::read(directory(state).ok().as_ref(), &locked_json::file_name(session))
    }

    /// Counts the records of all sessions.
    pub fn usage(state: &StateHome) -> io::Result<SessionRootsUsage> {
        let mut usage = SessionRootsUsage::default();
        let mut roots = BTreeSet::new();
        each_record(state, |dir, name, size| {
            let record: Self = locked_json::read(Some(dir), name);
            let amount = KeptAmount { count: 1, bytes: size };
            usage.records += amount;
            if record.is_gone() {
                usage.gone += amount;
            }
            roots.extend(record.home.into_iter().chain(record.others));
            Ok(())
        })?;
        usage.roots = roots.into_iter().collect();
        Ok(usage)
    }

    /// Removes the records of sessions whose workspaces do not exist any more.
    pub fn remove_gone(state: &StateHome) -> io::Result<()> {
        each_record(state, |dir, name, _| {
            locked_json::change(Some(dir), name, |record: &mut Self| {
                if record.is_gone() {
                    *record = Self::default();
                }
            });
            Ok(())
        })
    }

    fn is_gone(&self) -> bool {
        let mut roots = self.home.iter().chain(&self.others).peekable();
        roots.peek().is_some() && roots.all(|root| is_missing(root))
    }

    /// Whether records can be written.
    pub fn can_be_kept(state: &StateHome) -> bool {
        make_directory(state).is_ok()
    }

    /// Changes the record of a session under a lock.
    pub fn change<T>(state: &StateHome, session: &SessionId, change: impl FnOnce(&mut Self) -> T) -> T {
        let dir = make_directory(state).ok();
        let (is_new, result) = locked_json::change(dir.as_ref(), &locked_json::file_name(session), |roots: &mut Self| {
            (*roots == Self::default(), change(roots))
        });
        if let (true, Some(dir)) = (is_new, &dir) {
            let _ = forget_old(dir);
        }
        result
    }

    /// Adds a root. Returns whether it is new.
    pub fn add(&mut self, root: &Path) -> bool {
        let is_news = self.home.as_deref() != Some(root) && !self.others.iter().any(|other| other == root);
        if is_news && self.others.len() < MOST_OTHERS {
            self.others.push(root.to_owned());
        }
        is_news
    }

    /// Records that a warning is shown. Returns whether it is new.
    pub fn show_once(&mut self, warning: &str) -> bool {
        let is_news = !self.shown_warnings.iter().any(|shown| shown == warning);
        if is_news {
            self.shown_warnings.push(warning.to_owned());
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
    // Another user could have written to it.
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

fn is_missing(root: &Path) -> bool {
    let missing = |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    root.symlink_metadata().is_err_and(missing)
}

/// Calls a function with the name and size of each record.
fn each_record(state: &StateHome, mut act: impl FnMut(&OwnedFd, &str, u64) -> io::Result<()>) -> io::Result<()> {
    let dir = match directory(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        dir => dir?,
    };
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().ok().filter(|name| name.len() == 64) else { continue };
        if let Ok(stat) = sys::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            act(&dir, name, u64::try_from(stat.st_size).unwrap_or_default())?;
        }
    }
    Ok(())
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
        SessionRoots::change(&state, &session, |roots| roots.home = Some("/p".into()));
        assert!(SessionRoots::change(&state, &session, |roots| roots.add(Path::new("/q"))));
        assert!(!SessionRoots::change(&state, &session, |roots| roots.add(Path::new("/p"))));
        let known = SessionRoots::of(&state, &session);
        assert_eq!((known.home.unwrap(), known.others), (PathBuf::from("/p"), vec![PathBuf::from("/q")]));
        assert_eq!(SessionRoots::of(&state, &SessionId("claude-2".to_owned())), SessionRoots::default());
        // If records cannot be written, nothing is known, and no call is blocked.
        let nowhere = StateHome::default();
        assert!(SessionRoots::change(&nowhere, &session, |roots| roots.show_once("x")));
    }
}
