//! Commit is the only writer of user files. It replaces all files of a change or none. At the moment of its
//! replacement, each file must still have the content that the plan was made for.
//!
//! With [`Durability::Full`], one file needs two syncs, of its content and of its directory. Its journal need not be on
//! the disk, because the exchange is atomic. A batch syncs all contents, the journal, and each directory once.
//!
//! A commit is a list of [`CommitStep`]s, carried out one by one, so that a test can stop after any of them and check
//! recovery.

mod create;
mod exchange;
mod in_place;
mod remove;
mod staged_file;
mod target;

use std::{
    collections::HashSet,
    fs::File,
    io,
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::fs as sys;
use surehand_core::{Cause, Planned, Refusal, RelPath, Stamp};

use self::staged_file::{StagedFile, SyncTarget};
pub(super) use self::{exchange::OLD_NAME, in_place::NEW_COPY, target::rename_to_free_name};
use super::{
    journal::{CommitMethod, JournalEntry},
    path_locks::PathLocks,
    recovery::has_half_done,
    root_dir::refuse_io,
    working_copy::WorkingCopy,
};

/// How safe a commit is against a power cut. It is always safe against the crash of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The new content is on disk before it replaces the old, and its name is on disk before the reply. For several
    /// files, the journal is on disk before the first is replaced, so a power cut, too, leaves all of them or none.
    #[default]
    Full,
    /// Nothing is synced: faster, but a power cut may lose the last changes.
    Fast,
}

/// When the directories of a change are synced, with [`Durability::Full`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameSync {
    AtOnce,
    /// Before the replies of a group of calls go out; see [`Workspace::complete_replies`](crate::Workspace). A change
    /// of several files syncs at once, because its journal relies on it.
    WithOthers,
}

/// One step of a commit. The number is the index of the file in the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStep {
    /// Take the locks of all files.
    Lock,
    /// Write the new content to a staged file.
    Stage(usize),
    /// Sync the staged files, and record in the journal what is about to happen.
    Begin,
    /// Check that the file still has the content that the plan was made for.
    Check(usize),
    /// Put the new content in its place.
    Swap(usize),
    /// Check the file that came out.
    Verify(usize),
    /// Record in the journal that the commit has happened.
    End,
}

/// The steps of a commit of this many files, in order.
pub fn steps(files: usize) -> Vec<CommitStep> {
    let stage = (0..files).map(CommitStep::Stage);
    let swap = (0..files).flat_map(|file| [CommitStep::Check(file), CommitStep::Swap(file), CommitStep::Verify(file)]);
    [CommitStep::Lock].into_iter().chain(stage).chain([CommitStep::Begin]).chain(swap).chain([CommitStep::End]).collect()
}

/// Called after each step by tests; decides whether to go on or to stop as if the process had died.
pub type CommitProbe = Arc<dyn Fn(usize, CommitStep) -> ProbeVerdict + Send + Sync>;

/// The decision of a [`CommitProbe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeVerdict {
    /// Continue with the next step.
    GoOn,
    /// Stop without a rollback, as a crash at this moment would.
    Stop,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct FileChange<'a> {
    pub planned: &'a Planned,
    /// Device and inode of a file with several hard links, so that all of them share a lock.
    pub identity: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(crate) struct Committed {
    /// The stamp of each file after the commit, in the order given; `None` if another program has changed it, or its
    /// status could not be read.
    pub stamps: Vec<Option<Stamp>>,
    pub how: Vec<CommitMethod>,
}

/// Why a commit did not happen. No file is changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommitError {
    /// This file has changed since the plan was made: plan again.
    #[error("{0} has changed since the plan was made")]
    Changed(RelPath),
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The file system is full. [`commit`] makes room, tries once more, and then refuses.
    #[error(transparent)]
    NoRoom(Box<Refusal>),
    #[error("the commit was stopped")]
    Stopped,
}

impl CommitError {
    fn of_io(path: &RelPath, what: &str, error: &io::Error) -> Self {
        let refusal = Box::new(refuse_io(path, what, error));
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoRoom(refusal),
            _ => Self::Refused(refusal),
        }
    }
}

/// How long to wait for the locks of another commit.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn commit(copy: &WorkingCopy, changes: &[FileChange<'_>], names: NameSync) -> Result<Committed, CommitError> {
    let committed = match try_commit(copy, changes, names) {
        Err(CommitError::NoRoom(_)) => {
            // Displaced files that wait for their second look take up space, too.
            copy.state.check_displaced(Duration::ZERO);
            try_commit(copy, changes, names)
        }
        committed => committed,
    };
    committed.map_err(|error| match error {
        CommitError::NoRoom(refusal) => CommitError::Refused(refusal),
        error => error,
    })
}

fn try_commit(copy: &WorkingCopy, changes: &[FileChange<'_>], names: NameSync) -> Result<Committed, CommitError> {
    let mut run = CommitRun::new(copy, changes, names)?;
    for (number, step) in steps(changes.len()).into_iter().enumerate() {
        if let Err(error) = run.step(step) {
            run.roll_back();
            return Err(error);
        }
        if copy.probe.as_ref().is_some_and(|probe| probe(number, step) == ProbeVerdict::Stop) {
            run.abandon();
            return Err(CommitError::Stopped);
        }
    }
    Ok(run.finish())
}

struct CommitRun<'a> {
    copy: &'a WorkingCopy,
    changes: &'a [FileChange<'a>],
    names: NameSync,
    files: Vec<StagedFile<'a>>,
    number: u64,
    journal_name: String,
    begun: bool,
    locks: Option<PathLocks>,
}

impl<'a> CommitRun<'a> {
    fn new(copy: &'a WorkingCopy, changes: &'a [FileChange<'a>], names: NameSync) -> Result<Self, CommitError> {
        let numbered = copy
            .recreate_state()
            .and_then(|()| if copy.durability == Durability::Full { copy.state.sync_new_key() } else { Ok(()) })
            .and_then(|()| copy.with_journal(|journal| Ok((journal.open_commit(), journal.name().to_owned()))));
        let (number, journal_name) = numbered.map_err(|error| failed(changes, "start the journal", &error))?;
        Ok(Self { copy, changes, names, files: Vec::new(), number, journal_name, begun: false, locks: None })
    }

    fn step(&mut self, step: CommitStep) -> Result<(), CommitError> {
        match step {
            CommitStep::Lock => self.lock(),
            CommitStep::Stage(file) => self.stage(file),
            CommitStep::Begin => self.begin(),
            CommitStep::Check(file) => self.files[file].check(),
            CommitStep::Swap(file) => self.files[file].swap(),
            CommitStep::Verify(file) => self.files[file].verify(),
            CommitStep::End => self.end(),
        }
    }

    fn failed(&self, what: &str, error: &io::Error) -> CommitError {
        failed(self.changes, what, error)
    }

    /// Takes the locks. If their last holder died during a commit, that commit is settled first. This may have changed
    /// the files that we planned for.
    fn lock(&mut self) -> Result<(), CommitError> {
        let until = Instant::now() + LOCK_PATIENCE;
        let path = self.changes[0].planned.path();
        let mut is_settling = false;
        loop {
            let locks = self.take_locks()?;
            let marks = locks.marks().map_err(|error| self.failed("lock", &error))?;
            if !marks.iter().any(|journal| has_half_done(self.copy, journal)) {
                if !marks.is_empty() {
                    // The dead commit has been settled, and only its mark remains.
                    locks.unmark().map_err(|error| self.failed("lock", &error))?;
                }
                self.locks = Some(locks);
                return if is_settling { Err(CommitError::Changed(path.clone())) } else { Ok(()) };
            }
            drop(locks);
            if Instant::now() > until {
                let why = "an earlier Surehand process crashed while writing this file and recovery has not finished; try again"
                    .to_owned();
                return Err(CommitError::Refused(Box::new(Refusal::of(path, Cause::Conflict { why }))));
            }
            is_settling = true;
            self.copy.recover_dead_processes();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn take_locks(&self) -> Result<PathLocks, CommitError> {
        let paths = self.changes.iter().flat_map(|change| [change.planned.path()].into_iter().chain(change.planned.moved_to()));
        let paths: Vec<RelPath> = paths.map(|path| self.copy.in_tree(path)).collect();
        let paths: Vec<&RelPath> = paths.iter().collect();
        let identities: Vec<(u64, u64)> = self.changes.iter().filter_map(|change| change.identity).collect();
        let locks_dir = self.copy.state.locks();
        let locks = self.copy.lock_pool.lock(locks_dir.as_fd(), &paths, &identities, LOCK_PATIENCE);
        locks.map_err(|error| self.failed("lock", &error))?.ok_or_else(|| {
            let why = "another Surehand process holds its lock for too long; try again".to_owned();
            CommitError::Refused(Box::new(Refusal::of(self.changes[0].planned.path(), Cause::Conflict { why })))
        })
    }

    fn stage(&mut self, file: usize) -> Result<(), CommitError> {
        let name = format!("{}-{}-{file}", self.journal_name, self.number);
        self.files.push(StagedFile::stage(self.copy, self.changes[file], self.number, name)?);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), CommitError> {
        if self.is_durable() {
            let staged: Vec<&File> = self.files.iter().flat_map(StagedFile::to_sync_before).collect();
            sync(&staged).map_err(|(nth, error)| self.failed_to_sync(nth, error))?;
        }
        let files = self.files.iter().map(StagedFile::intent).collect();
        self.begun = true;
        self.write_journal(&JournalEntry::Begin { commit: self.number, files })?;
        if !self.may_be_found_half_done() {
            return Ok(());
        }
        let locks = self.locks.as_ref().expect("taken in the first step");
        locks.mark(&self.journal_name).map_err(|error| self.failed("mark its lock", &error))
    }

    /// Names the file that the nth synced handle belongs to.
    fn failed_to_sync(&self, nth: usize, error: io::Error) -> CommitError {
        let files = self.files.iter().flat_map(|file| file.to_sync_before().into_iter().map(move |_| file));
        match files.into_iter().nth(nth) {
            Some(file) => file.place.failed("sync", error),
            None => self.failed("sync", &error),
        }
    }

    fn is_durable(&self) -> bool {
        self.copy.durability == Durability::Full
    }

    /// Whether a crash or power cut can leave this commit half done. A single file is replaced, created, moved or
    /// removed in one system call, so it is old or new at any instant. Several files are not, nor is a file that is
    /// written in place.
    fn may_be_found_half_done(&self) -> bool {
        self.files.len() > 1 || self.files.iter().any(|file| file.method() == CommitMethod::InPlace)
    }

    fn end(&mut self) -> Result<(), CommitError> {
        if self.is_durable() {
            self.sync_after()?;
        }
        // The files are in place: from here on the commit has happened, even if this entry cannot be written.
        self.write_end();
        Ok(())
    }

    /// Syncs the directories that hold the names, or the files that were written in place.
    fn sync_after(&self) -> Result<(), CommitError> {
        let targets = self.files.iter().flat_map(StagedFile::to_sync_after);
        if self.names == NameSync::WithOthers && !self.may_be_found_half_done() {
            self.copy.state.unsynced.add(targets.filter_map(SyncTarget::into_directory));
            return Ok(());
        }
        let targets = distinct(targets);
        let files: Vec<&File> = targets.iter().map(SyncTarget::file).collect();
        sync(&files).map_err(|(_, error)| self.failed("sync", &error))
    }

    fn write_end(&self) {
        let numbered = self.files.iter().enumerate();
        let carried_over = numbered.filter_map(|(nth, file)| Some((nth, file.carried_over()?.clone()))).collect();
        drop(self.write_journal(&JournalEntry::End { commit: self.number, done: true, carried_over }));
        if let (Some(locks), true) = (&self.locks, self.may_be_found_half_done()) {
            // A mark that stays only makes the next commit search for a half-done one in vain.
            drop(locks.unmark());
        }
    }

    fn write_journal(&self, entry: &JournalEntry) -> Result<(), CommitError> {
        let is_needed_after_power_cut = matches!(entry, JournalEntry::Begin { .. }) && self.may_be_found_half_done();
        let sync = self.is_durable() && is_needed_after_power_cut;
        let synced = if sync { self.copy.state.sync_key() } else { Ok(()) };
        synced
            .and_then(|()| self.copy.with_journal(|journal| journal.write(entry, sync)))
            .map_err(|error| self.failed("write the journal", &error))
    }

    /// Rolls back the files, from the last to the first.
    fn roll_back(mut self) {
        let half_done = self.may_be_found_half_done();
        while let Some(file) = self.files.pop() {
            file.roll_back();
        }
        if self.begun {
            drop(self.write_journal(&JournalEntry::End { commit: self.number, done: false, carried_over: Vec::new() }));
            if let (Some(locks), true) = (&self.locks, half_done) {
                drop(locks.unmark());
            }
        }
        self.copy.end_commit();
    }

    /// Stops without cleaning up, as a crash would.
    fn abandon(self) {
        self.copy.abandon();
    }

    fn finish(self) -> Committed {
        let mut committed = Committed { stamps: Vec::new(), how: Vec::new() };
        for file in self.files {
            committed.stamps.push(file.stamp_now());
            committed.how.push(file.method());
            file.finish();
        }
        if let Some(locks) = self.locks {
            self.copy.lock_pool.give_back(locks);
        }
        self.copy.end_commit();
        committed
    }
}

fn failed(changes: &[FileChange<'_>], what: &str, error: &io::Error) -> CommitError {
    CommitError::of_io(changes[0].planned.path(), what, error)
}

/// The most threads that sync at once. The file system writes its journal once for all that wait together.
const SYNCED_AT_ONCE: usize = 16;

/// Waits until all of these are on disk. The error has the index of the file that could not be synced.
fn sync(files: &[&File]) -> Result<(), (usize, io::Error)> {
    let sync_every = |first: usize, step: usize| {
        let mut numbered = files.iter().enumerate().skip(first).step_by(step);
        numbered.try_for_each(|(nth, file)| file.sync_all().map_err(|error| (nth, error)))
    };
    // For a few files, starting threads takes longer than waiting.
    let threads = files.len().div_ceil(4).min(SYNCED_AT_ONCE);
    if threads < 2 {
        return sync_every(0, 1);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|first| scope.spawn(move || sync_every(first, threads))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("the thread does not panic"))
    })
}

fn distinct<'f>(files: impl Iterator<Item = SyncTarget<'f>>) -> Vec<SyncTarget<'f>> {
    let mut seen = HashSet::new();
    let identity = |file: &File| sys::fstat(file).ok().map(|stat| (stat.st_dev, stat.st_ino));
    files.filter(|synced| identity(synced.file()).is_none_or(|identity| seen.insert(identity))).collect()
}
