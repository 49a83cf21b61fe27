//! Commit: the only writer of user files. It replaces files only if they are still what the plan was made for, at the moment
//! of replacement, and all of them or none.
//!
//! A commit is first written down as a list of [`Step`]s and then carried out step by step, so that a test can stop it after
//! every one and see what recovery makes of it.

use std::{
    io,
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use surehand_core::{Cause, Planned, Refusal, RelPath, Stamp};

use super::{
    journal::{Entry, How},
    lock::Locks,
    recover::has_half_done,
    root::refuse_io,
    work::Work,
    working_copy::WorkingCopy,
};

/// How safe a commit is against a power cut. It is always safe against the crash of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Files, directories and the journal are synced.
    #[default]
    Full,
    /// Nothing is synced: faster, and the last changes may be lost with the power.
    Fast,
}

/// One step of a commit. The number is that of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Take the locks of all files.
    Lock,
    /// Write the new content where nobody looks.
    Stage(usize),
    /// Write down what is about to happen.
    Begin,
    /// Look whether the file is still what the plan was made for.
    Check(usize),
    /// Put the new content in its place.
    Swap(usize),
    /// Look at what came out.
    Verify(usize),
    /// Write down that it has happened.
    End,
}

/// The steps of a commit of so many files.
pub fn steps(files: usize) -> Vec<Step> {
    let stage = (0..files).map(Step::Stage);
    let swap = (0..files).flat_map(|file| [Step::Check(file), Step::Swap(file), Step::Verify(file)]);
    [Step::Lock].into_iter().chain(stage).chain([Step::Begin]).chain(swap).chain([Step::End]).collect()
}

/// What is done after each step, for tests: go on, or stop as if the process had died.
pub type Probe = Arc<dyn Fn(usize, Step) -> Verdict + Send + Sync>;

/// What a [`Probe`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    GoOn,
    /// Leave everything as it is at this moment.
    Stop,
}

/// A file to commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    /// What to do.
    pub planned: &'a Planned,
    /// Device and inode of a file that has several names, so that all of them share a lock.
    pub identity: Option<(u64, u64)>,
}

/// A commit that has happened.
#[derive(Debug)]
pub(crate) struct Committed {
    /// For each file, in the order given: its stamp afterwards, as far as it could be had.
    pub stamps: Vec<Option<Stamp>>,
    /// How each was written.
    pub how: Vec<How>,
}

/// Why a commit did not happen. No file is changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommitError {
    /// This file is no longer what the plan was made for: plan again.
    #[error("{0} is no longer what the change was planned for")]
    Changed(RelPath),
    /// It cannot be done.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// A probe said so.
    #[error("the commit was stopped")]
    Stopped,
}

/// How long to wait for somebody else's commit.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Carries out planned changes.
pub(crate) fn commit(copy: &WorkingCopy, changes: &[Change<'_>]) -> Result<Committed, CommitError> {
    let mut run = Run::new(copy, changes)?;
    for (number, step) in steps(changes.len()).into_iter().enumerate() {
        if let Err(error) = run.step(step) {
            run.undo();
            return Err(error);
        }
        if copy.probe().is_some_and(|probe| probe(number, step) == Verdict::Stop) {
            run.abandon();
            return Err(CommitError::Stopped);
        }
    }
    Ok(run.finish())
}

struct Run<'a> {
    copy: &'a WorkingCopy,
    works: Vec<Work<'a>>,
    number: u64,
    journal_name: String,
    begun: bool,
    locks: Option<Locks>,
}

impl<'a> Run<'a> {
    fn new(copy: &'a WorkingCopy, changes: &[Change<'a>]) -> Result<Self, CommitError> {
        let numbered = copy
            .revive_state()
            .and_then(|()| copy.with_journal(|journal| Ok((journal.open_commit(), journal.name().to_owned()))));
        let (number, journal_name) = numbered
            .map_err(|error| CommitError::Refused(Box::new(refuse_io(changes[0].planned.path(), "start the journal", &error))))?;
        let works = changes.iter().map(|change| Work::new(copy, *change, number)).collect();
        Ok(Self { copy, works, number, journal_name, begun: false, locks: None })
    }

    fn step(&mut self, step: Step) -> Result<(), CommitError> {
        match step {
            Step::Lock => self.lock(),
            Step::Stage(file) => {
                let name = format!("{}-{}-{file}", self.journal_name, self.number);
                self.works[file].stage(name)
            }
            Step::Begin => self.begin(),
            Step::Check(file) => self.works[file].check(),
            Step::Swap(file) => self.works[file].swap(),
            Step::Verify(file) => self.works[file].verify(),
            Step::End => self.end(),
        }
    }

    /// Takes the locks. If their last holder died in the middle of a commit, that is settled first, and may have changed what we
    /// planned for.
    fn lock(&mut self) -> Result<(), CommitError> {
        let until = Instant::now() + LOCK_PATIENCE;
        let mut is_settling = false;
        loop {
            let locks = self.take_locks()?;
            let failed = |error: io::Error| self.works[0].failed("lock", error);
            let marks = locks.marks().map_err(failed)?;
            if !marks.iter().any(|journal| has_half_done(self.copy, journal)) {
                if !marks.is_empty() {
                    // It has been settled, and the mark is all that remains.
                    locks.unmark().map_err(failed)?;
                }
                self.locks = Some(locks);
                return if is_settling { Err(CommitError::Changed(self.works[0].path().clone())) } else { Ok(()) };
            }
            drop(locks);
            if Instant::now() > until {
                let why = "what a process left that died while writing it could not be settled yet; try again".to_owned();
                return Err(CommitError::Refused(Box::new(Refusal::of(self.works[0].path(), Cause::Conflict { why }))));
            }
            is_settling = true;
            self.copy.settle_what_is_left();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn take_locks(&self) -> Result<Locks, CommitError> {
        let paths = self.works.iter().flat_map(|work| [work.path()].into_iter().chain(work.to()));
        let paths: Vec<RelPath> = paths.map(|path| self.copy.in_tree(path)).collect();
        let paths: Vec<&RelPath> = paths.iter().collect();
        let identities: Vec<(u64, u64)> = self.works.iter().filter_map(Work::identity).collect();
        let locks_dir = self.copy.state().locks();
        let locks = self.copy.lock_pool().lock(locks_dir.as_fd(), &paths, &identities, LOCK_PATIENCE);
        locks.map_err(|error| self.works[0].failed("lock", error))?.ok_or_else(|| {
            let why = "another Surehand process holds its lock for too long; try again".to_owned();
            CommitError::Refused(Box::new(Refusal::of(self.works[0].path(), Cause::Conflict { why })))
        })
    }

    fn begin(&mut self) -> Result<(), CommitError> {
        let files = self.works.iter().map(Work::intent).collect();
        let entry = Entry::Begin { commit: self.number, files };
        self.begun = true;
        self.write_journal(&entry)?;
        if !self.may_be_found_half_done() {
            return Ok(());
        }
        let locks = self.locks.as_ref().expect("taken in the first step");
        locks.mark(&self.journal_name).map_err(|error| self.works[0].failed("mark its lock", error))
    }

    /// One file that is swapped is old or new at any instant. Several are not, nor is one that is written in place.
    fn may_be_found_half_done(&self) -> bool {
        self.works.len() > 1 || self.works.iter().any(|work| work.how() == How::InPlace)
    }

    fn end(&mut self) -> Result<(), CommitError> {
        if self.copy.durability() == Durability::Full {
            for work in &self.works {
                work.sync_directories().map_err(|error| work.failed("sync", error))?;
            }
        }
        // The files are in place: from here on the commit has happened, whatever becomes of this line.
        self.write_end(true);
        Ok(())
    }

    fn write_end(&self, done: bool) {
        drop(self.write_journal(&Entry::End { commit: self.number, done }));
        if let (Some(locks), true) = (&self.locks, self.may_be_found_half_done()) {
            // A mark that stays only makes the next one look for what is not there.
            drop(locks.unmark());
        }
    }

    fn write_journal(&self, entry: &Entry) -> Result<(), CommitError> {
        let sync = self.copy.durability() == Durability::Full && matches!(entry, Entry::Begin { .. });
        self.copy
            .with_journal(|journal| journal.write(entry, sync))
            .map_err(|error| self.works[0].failed("write the journal", error))
    }

    /// Takes back what has been done, from the last file to the first.
    fn undo(&mut self) {
        for work in self.works.iter_mut().rev() {
            work.undo();
        }
        if self.begun {
            self.write_end(false);
        }
        self.copy.settle_commit();
    }

    /// Lets go of everything without tidying up, as a crash would.
    fn abandon(self) {
        self.copy.abandon();
    }

    fn finish(self) -> Committed {
        let mut committed = Committed { stamps: Vec::new(), how: Vec::new() };
        for work in self.works {
            committed.stamps.push(work.stamp_now());
            committed.how.push(work.how());
            work.settle();
        }
        if let Some(locks) = self.locks {
            self.copy.lock_pool().give_back(locks);
        }
        self.copy.settle_commit();
        committed
    }
}
