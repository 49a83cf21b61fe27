//! The target of a write and the place of its staged file, as all write strategies need them.

use std::{
    fs::File,
    io,
    os::{fd::AsFd, unix::fs::FileExt},
    sync::Arc,
};

use rustix::{
    fs::{self as sys, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
};
use surehand_core::{Content, ContentHash, Planned, RelPath, Stamp};

use super::{CommitError, Durability};
use crate::disk::{
    journal::JournalEntry,
    lease::Lease,
    read_file::{link_count, open_patiently},
    root_dir::is_other_letters,
    staging,
    working_copy::{StagingLevel, WorkingCopy},
};

pub(super) struct CommitTarget<'a> {
    pub(super) copy: &'a WorkingCopy,
    pub(super) planned: &'a Planned,
    commit: u64,
    /// Name for the staged file, unique among the files of all commits.
    own_name: String,
    pub(super) dir: Arc<File>,
    made: Vec<RelPath>,
}

#[derive(Debug, Clone)]
pub(super) struct StagedName {
    pub(super) dir: Arc<File>,
    pub(super) name: String,
}

/// The file at the target, open, with its status at that time.
#[derive(Debug)]
pub(super) struct OldFile {
    pub(super) file: File,
    pub(super) stat: Box<Stat>,
    /// Taken when the file is checked, if the system grants it.
    pub(super) lease: Option<Lease>,
}

impl OldFile {
    /// Takes a lease, and checks that the file still has the content that the plan was made for.
    pub(super) fn check(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        // Without a lease, the verification after the change must suffice.
        self.lease = Lease::take_patiently(&self.file).ok();
        place.check_base(self)
    }
}

impl<'a> CommitTarget<'a> {
    /// Opens the directory of a file. For a new file, missing directories are created.
    pub(super) fn open(copy: &'a WorkingCopy, planned: &'a Planned, commit: u64, own_name: String) -> Result<Self, CommitError> {
        // The root's directory is a placeholder until the parent is open; errors before that do not depend on it.
        let mut place = Self { copy, planned, commit, own_name, dir: copy.root_dir(), made: Vec::new() };
        if planned.is_new() {
            place.make_directories(planned.path())?;
        }
        match place.open_parent(planned.path()) {
            Ok(dir) => Ok(Self { dir, ..place }),
            Err(error) => {
                place.remove_made_directories();
                Err(error)
            }
        }
    }

    pub(super) fn path(&self) -> &'a RelPath {
        self.planned.path()
    }

    pub(super) fn name(&self) -> &'a str {
        self.planned.path().name()
    }

    pub(super) fn base(&self) -> &'a [u8] {
        self.planned.base().map_or(&[], Content::bytes)
    }

    pub(super) fn base_version(&self) -> Option<ContentHash> {
        self.planned.base().map(Content::version)
    }

    pub(super) fn content(&self) -> &'a [u8] {
        self.planned.after().map_or(&[], Content::bytes)
    }

    pub(super) fn content_version(&self) -> Option<ContentHash> {
        self.planned.after().map(Content::version)
    }

    pub(super) fn is_durable(&self) -> bool {
        self.copy.durability == Durability::Full
    }

    /// The error for a file that has changed since the plan was made.
    pub(super) fn changed(&self) -> CommitError {
        CommitError::Changed(self.path().clone())
    }

    pub(super) fn failed(&self, what: &str, error: impl Into<io::Error>) -> CommitError {
        CommitError::of_io(self.path(), what, &error.into())
    }

    /// An I/O refusal; if another program has removed the directory, a change.
    pub(super) fn failed_unless_gone(&self, what: &str, error: impl Into<io::Error>) -> CommitError {
        if sys::fstat(&self.dir).is_ok_and(|stat| link_count(&stat) == 0) { self.changed() } else { self.failed(what, error) }
    }

    /// A directory that is gone or has become a symlink is a change like any other: the next plan will see it.
    fn refuse_place(&self, errno: Errno, what: &str) -> CommitError {
        match errno {
            Errno::LOOP | Errno::NOENT => self.changed(),
            errno => self.failed(what, errno),
        }
    }

    /// The error of a rename or link between the target and a staged file.
    pub(super) fn refuse_rename(&self, errno: Errno, what: &str, staged: &StagedName) -> CommitError {
        match errno {
            Errno::NOENT => self.changed(),
            Errno::XDEV => {
                // The two are on different file systems after all: the next plan stages the file closer.
                self.copy.staged_too_far(&staged.dir);
                self.changed()
            }
            errno => self.failed(what, errno),
        }
    }

    pub(super) fn open_parent(&self, path: &RelPath) -> Result<Arc<File>, CommitError> {
        if path.parent().is_none() {
            return Ok(self.copy.root_dir());
        }
        let dir = self.copy.root().open_parent(path).map_err(|errno| self.refuse_place(errno, "open its directory"))?;
        Ok(Arc::new(File::from(dir)))
    }

    pub(super) fn make_directories(&mut self, path: &RelPath) -> Result<(), CommitError> {
        let root = self.copy.root();
        let missing = root.missing_parents(path).map_err(|errno| self.refuse_place(errno, "look for its directory"))?;
        if missing.is_empty() {
            return Ok(());
        }
        // Recorded first, so that a crash leaves no empty directories.
        let dirs = missing.iter().map(|dir| self.copy.in_tree(dir).to_string()).collect();
        self.write_journal(&JournalEntry::Make { commit: self.commit, dirs })?;
        for dir in missing {
            match root.make_dir(&dir) {
                Ok(true) => self.made.push(dir),
                Ok(false) => {}
                Err(errno) => {
                    self.remove_made_directories();
                    return Err(self.refuse_place(errno, "create its directory"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn remove_made_directories(&self) {
        for dir in self.made.iter().rev() {
            self.copy.root().remove_dir_if_empty(dir);
        }
    }

    /// The parents of the directories that were made, to be synced. One that another program has moved since is left
    /// out.
    pub(super) fn parents_of_made_directories(&self) -> Vec<Arc<File>> {
        let parents = self.made.iter().filter_map(|made| self.copy.root().open_parent(made).ok());
        parents.map(|parent| Arc::new(File::from(parent))).collect()
    }

    fn write_journal(&self, entry: &JournalEntry) -> Result<(), CommitError> {
        self.copy.with_journal(|journal| journal.write(entry, false)).map_err(|error| self.failed("write the journal", error))
    }

    /// Announces a staged file in the journal: recovery never removes one that no entry names.
    pub(super) fn announce(&self, staged: &StagedName) -> Result<(), CommitError> {
        let (path, place) = (self.copy.in_tree(self.path()).to_string(), self.copy.place_of(&staged.dir, &staged.name));
        self.write_journal(&JournalEntry::Stage { commit: self.commit, path, place, staged: staged.name.clone() })
    }

    /// Where to stage a file for a target on this device, so that both can be exchanged. The state directory is best:
    /// no other program searches it, and files left there by a crash disturb no one.
    pub(super) fn stage_on(&self, device: u64) -> StagedName {
        let near = |dir: Arc<File>| StagedName { dir, name: self.own_name.clone() };
        let is_far = self.copy.state.device != device;
        match self.copy.staging() {
            StagingLevel::InState if !is_far => return near(self.copy.state.staged()),
            StagingLevel::InState | StagingLevel::InTree => {}
            StagingLevel::Beside => return self.stage_beside(),
        }
        let is_near = |dir: &Arc<File>| sys::fstat(dir).is_ok_and(|stat| identity(&stat).0 == device);
        match self.copy.tree_staging() {
            Ok((dir, _)) if is_near(&dir) => near(dir),
            _ => self.stage_beside(),
        }
    }

    pub(super) fn stage_beside(&self) -> StagedName {
        StagedName { dir: self.dir.clone(), name: format!(".surehand-{}", self.own_name) }
    }

    pub(super) fn open_old(&self, access: OFlags) -> Result<OldFile, CommitError> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match open_patiently(|| sys::openat(&self.dir, self.name(), flags, Mode::empty())) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT | Errno::LOOP) => return Err(self.changed()),
            Err(errno) => return Err(self.failed("open", errno)),
        };
        let stat = sys::fstat(&file).map_err(|errno| self.failed("stat", errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.changed());
        }
        Ok(OldFile { file, stat: Box::new(stat), lease: None })
    }

    pub(super) fn stamp_of(&self, file: &File) -> Option<Stamp> {
        sys::fstat(file).ok().map(|stat| self.copy.clock().stamp(&stat))
    }

    /// The open file must still hold the content that the plan was made for. The bytes themselves are compared: a
    /// program that writes through a memory map leaves no trace in the times.
    pub(super) fn check_base(&self, old: &OldFile) -> Result<(), CommitError> {
        let holds = same_bytes(&old.file, self.base()).map_err(|error| self.failed("read", error))?;
        if holds { Ok(()) } else { Err(self.changed()) }
    }
}

impl StagedName {
    pub(super) fn remove(&self) -> bool {
        staging::remove(self.dir.as_fd(), &self.name)
    }

    /// The file beside it whose name has this ending.
    pub(super) fn with_ending(&self, ending: &str) -> Self {
        Self { dir: self.dir.clone(), name: format!("{}{ending}", self.name) }
    }

    /// Whether this name leads to this open file.
    pub(super) fn is_same_file(&self, file: &File) -> bool {
        is_file_at(&self.dir, &self.name, file)
    }
}

/// Device and inode, which identify a file.
pub(super) fn identity(stat: &Stat) -> (u64, u64) {
    #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
    let identity = (stat.st_dev as u64, stat.st_ino as u64);
    identity
}

pub(super) fn is_file_at(dir: &File, name: &str, file: &File) -> bool {
    let open = sys::fstat(file).map(|stat| identity(&stat));
    let named = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| identity(&stat));
    open.is_ok() && open == named
}

pub(super) fn same_bytes(file: &File, content: &[u8]) -> io::Result<bool> {
    if sys::fstat(file)?.st_size != content.len() as i64 {
        return Ok(false);
    }
    let mut buffer = vec![0; content.len().min(64 * 1024)];
    for (index, chunk) in content.chunks(64 * 1024).enumerate() {
        let buffer = &mut buffer[..chunk.len()];
        match file.read_exact_at(buffer, index as u64 * 64 * 1024) {
            Ok(()) if buffer == chunk => {}
            Ok(()) => return Ok(false),
            // The file has become shorter.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Renames a file to a name that must be free, else fails with [`Errno::EXIST`].
pub(in crate::disk) fn rename_to_free_name(from: (&File, &str), to: (&File, &str)) -> rustix::io::Result<()> {
    match sys::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // Where this call is missing, a hard link does the same: it fails as well if the name is taken.
        Err(Errno::INVAL | Errno::NOSYS) => match sys::linkat(from.0, from.1, to.0, to.1, AtFlags::empty()) {
            Ok(()) => sys::unlinkat(from.0, from.1, AtFlags::empty()),
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => rename_over_own_file(from, to),
            Err(errno) => Err(errno),
        },
        renamed => renamed,
    }
}

/// For file systems without hard links: an empty file takes the name, if it is free, and is then replaced.
fn rename_over_own_file(from: (&File, &str), to: (&File, &str)) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    drop(sys::openat(to.0, to.1, flags, Mode::RUSR | Mode::WUSR)?);
    sys::renameat(from.0, from.1, to.0, to.1).inspect_err(|_| {
        let _ = sys::unlinkat(to.0, to.1, AtFlags::empty());
    })
}

/// Like [`rename_to_free_name`], but also changes only the case of a name on file systems that ignore case.
pub(super) fn rename_in_other_letters(from: (&File, &str), to: (&File, &str)) -> rustix::io::Result<()> {
    let identity_of = |dir: &File| sys::fstat(dir).map(|stat| identity(&stat)).ok();
    match rename_to_free_name(from, to) {
        Err(Errno::EXIST) if identity_of(from.0) == identity_of(to.0) && is_other_letters(from.0, from.1, to.1) => {
            sys::renameat(from.0, from.1, to.0, to.1)
        }
        renamed => renamed,
    }
}
