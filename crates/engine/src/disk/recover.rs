//! Recovery: finishes or undoes what a crash left. A commit whose files all have their new content has happened; any other is
//! taken back. What somebody else has written since stays as it is; only of a file that is written in place nobody can tell whether
//! it is torn or changed, so its bytes are rescued before the old ones come back.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    os::fd::AsFd,
    sync::Arc,
    time::Duration,
};

use rustix::{
    fs::{self as sys, AtFlags, Dir, Mode, OFlags, RenameFlags},
    io::Errno,
};
use surehand_core::{ContentHash, Notice, RelPath};

use super::{
    journal::{Entry, How, Intent, entries},
    lock,
    rescue::{Displaced, SecondLook},
    stage,
};
use crate::workspace::Workspace;

/// Takes up every journal that no living process holds. What cannot be settled now is told and left for a later start.
pub fn recover(workspace: &Workspace) -> io::Result<Vec<Notice>> {
    let journals = workspace.state().journals();
    let mut notices = Vec::new();
    for name in names(&journals)? {
        match take_up_journal(workspace, &journals, &name, &mut notices) {
            Ok(true) => stage::remove(journals.as_fd(), &name),
            Ok(false) => {}
            Err(error) => notices.push(Notice::NotRecovered { why: error.to_string() }),
        }
    }
    Ok(notices)
}

/// Works through one journal file; `true` when it is of no more use.
fn take_up_journal(workspace: &Workspace, journals: &File, name: &str, notices: &mut Vec<Notice>) -> io::Result<bool> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = match sys::openat(journals, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(errno.into()),
    };
    if file.try_lock().is_err() || sys::fstat(&file)?.st_nlink == 0 {
        // Its process lives, or somebody else has just settled it.
        return Ok(false);
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    take_up(workspace, name, &entries(&content), notices)
}

fn names(dir: &File) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Works through one journal; `false` when something in it must wait for a later start.
fn take_up(workspace: &Workspace, journal: &str, entries: &[Entry], notices: &mut Vec<Notice>) -> io::Result<bool> {
    let mut settled = true;
    let mut kept: Vec<String> = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        let Entry::Begin { commit, files } = entry else { continue };
        // A staged file that was used again belongs to whatever used it.
        let files: Vec<&Intent> = files.iter().filter(|file| !is_reused(file, &entries[place + 1..])).collect();
        let ended = entries.iter().any(|entry| matches!(entry, Entry::End { commit: ended, .. } if ended == commit));
        let paths: Vec<RelPath> = files.iter().filter_map(|file| RelPath::new(&file.path).ok()).collect();
        let locks_dir = workspace.state().locks();
        let locks = lock::lock(locks_dir.as_fd(), &paths.iter().collect::<Vec<_>>(), &[], Duration::from_secs(10))?;
        let look =
            || files.iter().zip(&paths).map(|(intent, path)| Left::look(workspace, intent, path)).collect::<io::Result<Vec<_>>>();
        if locks.is_some() && !ended {
            finish_or_undo(workspace, &look()?, notices)?;
        }
        for left in look()? {
            if locks.is_none() || !left.clear(workspace, notices)? {
                settled = false;
                kept.extend(left.staged_name());
            }
        }
    }
    for entry in entries {
        let happened = |commit: &u64| {
            entries.iter().any(|entry| matches!(entry, Entry::End { commit: ended, done: true } if ended == commit))
        };
        match entry {
            Entry::Stage { commit, path, staged } if !begun(entries, *commit) => {
                if let Some(dir) = RelPath::new(path).ok().and_then(|path| workspace.root().open_parent(&path).ok()) {
                    stage::remove(dir.as_fd(), staged);
                }
            }
            Entry::Make { commit, dirs } if !happened(commit) => {
                let dirs = dirs.iter().rev().filter_map(|dir| RelPath::new(dir).ok());
                dirs.for_each(|dir| workspace.root().remove_dir_if_empty(&dir));
            }
            _ => {}
        }
    }
    // What is left of that process was never swapped with anything, or was about to be written over.
    let staged = workspace.state().staged();
    for name in names(&staged)? {
        if name.starts_with(&format!("{journal}-")) && !kept.contains(&name) {
            stage::remove(staged.as_fd(), &name);
        }
    }
    Ok(settled)
}

fn begun(entries: &[Entry], number: u64) -> bool {
    entries.iter().any(|entry| matches!(entry, Entry::Begin { commit, .. } if *commit == number))
}

fn is_reused(file: &Intent, later: &[Entry]) -> bool {
    later.iter().any(|entry| matches!(entry, Entry::Reuse { staged } if file.staged.as_ref() == Some(staged)))
}

/// A file of a commit as the crash left it.
struct Left<'a> {
    intent: &'a Intent,
    path: &'a RelPath,
    dir: Option<File>,
    /// What is at the target.
    now: Option<Vec<u8>>,
    /// What is in the staged file.
    staged: Option<Vec<u8>>,
    staged_dir: Arc<File>,
}

impl<'a> Left<'a> {
    fn look(workspace: &Workspace, intent: &'a Intent, path: &'a RelPath) -> io::Result<Self> {
        let dir = match workspace.root().open_parent(path) {
            Ok(dir) => Some(File::from(dir)),
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => None,
            Err(errno) => return Err(errno.into()),
        };
        let now = match &dir {
            Some(dir) => content(dir, path.name())?,
            None => None,
        };
        let staged_dir = match (intent.beside, &dir) {
            (true, Some(dir)) => Arc::new(dir.try_clone()?),
            _ => workspace.state().staged(),
        };
        let mut left = Self { intent, path, dir, now, staged: None, staged_dir };
        if let Some(name) = left.staged_name() {
            left.staged = content(&left.staged_dir, &name)?;
        }
        Ok(left)
    }

    /// The staged file, or the second name of the old one where it was renamed over.
    fn staged_name(&self) -> Option<String> {
        let name = self.intent.staged.as_ref()?;
        let kept = format!("{name}.old");
        let is_kept = sys::statat(&*self.staged_dir, &kept, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let is_staged = sys::statat(&*self.staged_dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        Some(if is_kept && !is_staged { kept } else { name.clone() })
    }

    fn is(content: &Option<Vec<u8>>, version: Option<ContentHash>) -> bool {
        content.as_ref().map(|bytes| ContentHash::of(bytes)) == version
    }

    fn has_new(&self) -> bool {
        Self::is(&self.now, Some(self.intent.new))
    }

    /// Whether the target holds a mixture of old and new bytes that only an interrupted write in place can have left.
    fn is_torn(&self) -> bool {
        self.intent.how == How::InPlace && !self.has_new() && !Self::is(&self.now, self.intent.base)
    }

    fn undo(&self, workspace: &Workspace, notices: &mut Vec<Notice>) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let name = self.path.name();
        match self.intent.how {
            How::Create if self.has_new() => {
                stage::remove(dir.as_fd(), name);
            }
            How::Swap | How::Rename if self.has_new() && Self::is(&self.staged, self.intent.base) => {
                let staged = self.staged_name().expect("a swap has a staged file");
                match sys::renameat_with(&*self.staged_dir, &staged, dir, name, RenameFlags::EXCHANGE) {
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => sys::renameat(&*self.staged_dir, &staged, dir, name)?,
                    exchanged => exchanged?,
                }
            }
            How::InPlace if self.has_new() || self.is_torn() => {
                let Some(copy) = self.staged.as_ref().filter(|_| Self::is(&self.staged, self.intent.base)) else { return Ok(()) };
                if self.is_torn() {
                    self.keep_torn(workspace, notices)?;
                }
                let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
                let mut file = File::from(sys::openat(dir, name, flags, Mode::empty())?);
                file.rewind()?;
                file.write_all(copy)?;
                file.set_len(copy.len() as u64)?;
                file.sync_all()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Bytes that may be more than a mixture of ours are kept aside before the old content comes back.
    fn keep_torn(&self, workspace: &Workspace, notices: &mut Vec<Notice>) -> io::Result<()> {
        let Some(now) = &self.now else { return Ok(()) };
        let staged = workspace.state().staged();
        let name = format!("torn-{}", ContentHash::of(now));
        match stage::copy(staged.as_fd(), &name, now) {
            // An earlier start came as far as this.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            copied => drop(copied?),
        }
        let to = workspace.rescued().take_in(staged.as_fd(), &name, self.path)?;
        notices.push(Notice::Rescued { path: self.path.clone(), to });
        Ok(())
    }

    /// Removes what is staged, if it is ours or still the base; anything else is somebody's work. `false` when somebody has it
    /// open: then it must wait.
    fn clear(&self, workspace: &Workspace, notices: &mut Vec<Notice>) -> io::Result<bool> {
        let (Some(name), Some(_)) = (self.staged_name(), &self.staged) else { return Ok(true) };
        if Self::is(&self.staged, Some(self.intent.new)) {
            stage::remove(self.staged_dir.as_fd(), &name);
            return Ok(true);
        }
        let version = self.intent.base.unwrap_or(self.intent.new);
        let displaced =
            Displaced { dir: self.staged_dir.clone(), name, path: self.path.clone(), version, stamp: None, reusable: false };
        match displaced.look(workspace.rescued())? {
            SecondLook::Untouched(_) => {
                displaced.remove();
                Ok(true)
            }
            SecondLook::InUse => Ok(false),
            SecondLook::Rescued(to) => {
                notices.push(Notice::Rescued { path: self.path.clone(), to });
                Ok(true)
            }
        }
    }
}

fn finish_or_undo(workspace: &Workspace, files: &[Left<'_>], notices: &mut Vec<Notice>) -> io::Result<()> {
    let paths = files.iter().map(|file| file.path.clone()).collect();
    if files.iter().all(Left::has_new) {
        notices.push(Notice::Completed { paths });
        return Ok(());
    }
    for file in files.iter().rev() {
        file.undo(workspace, notices)?;
    }
    notices.push(Notice::TakenBack { paths });
    Ok(())
}

fn content(dir: &File, name: &str) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = match super::read::open_patiently(|| sys::openat(dir, name, flags, Mode::empty())) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let mut file = File::from(fd);
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
