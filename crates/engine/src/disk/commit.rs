//! Commit: the only writer of user files. It replaces files only if they are still what the plan was made for, at the moment
//! of replacement, and all of them or none.
//!
//! A commit is first written down as a list of [`Step`]s and then carried out step by step, so that a test can stop it after
//! every one and see what recovery makes of it.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    fs::{self as sys, Access, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
};
use surehand_core::{Base, Cause, Planned, Refusal, RelPath, Stamp};

use super::{
    journal::{Entry, How, Intent},
    lock::{self, Locks},
    read::{link_count, open_patiently},
    rescue::Displaced,
    root::refuse_io,
    stage::{self, Staged},
    sys::{LeaseState, drop_lease, lease_state, take_lease},
};
use crate::workspace::{Durability, Workspace};

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

/// A file to commit, with the stamp it had when its content was read for the plan.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// What to do.
    pub planned: &'a Planned,
    /// The stamp of the file that the plan was made for.
    pub known: Option<Stamp>,
    /// How many names it had.
    pub links: u64,
}

/// A commit that has happened.
#[derive(Debug)]
pub struct Committed {
    /// For each file, in the order given: its stamp afterwards, as far as it could be had.
    pub stamps: Vec<Option<Stamp>>,
    /// How each was written.
    pub how: Vec<How>,
}

/// Why a commit did not happen. No file is changed.
#[derive(Debug)]
pub enum CommitError {
    /// This file is no longer what the plan was made for: plan again.
    Changed(RelPath),
    /// It cannot be done.
    Refused(Box<Refusal>),
    /// A probe said so.
    Stopped,
}

/// How long to wait for somebody else's commit.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for others to close a file before going on without a lease.
const LEASE_PATIENCE: Duration = Duration::from_millis(8);

/// Carries out planned changes.
pub fn commit(workspace: &Workspace, changes: &[Change<'_>]) -> Result<Committed, CommitError> {
    let mut run = Run::new(workspace, changes)?;
    for (number, step) in steps(changes.len()).into_iter().enumerate() {
        if let Err(error) = run.step(step) {
            run.undo();
            return Err(error);
        }
        if workspace.probe().is_some_and(|probe| probe(number, step) == Verdict::Stop) {
            run.abandon();
            return Err(CommitError::Stopped);
        }
    }
    Ok(run.finish())
}

struct Run<'a> {
    workspace: &'a Workspace,
    works: Vec<Work<'a>>,
    number: u64,
    journal_name: String,
    begun: bool,
    locks: Option<Locks>,
}

/// One file on its way.
struct Work<'a> {
    planned: &'a Planned,
    known: Option<Stamp>,
    links: u64,
    dir: Option<File>,
    made: Vec<RelPath>,
    how: How,
    /// Where the staged file is, and its name.
    staged: Option<(Arc<File>, String)>,
    /// The new file.
    new: Option<File>,
    /// The file that is there, with what the system says about it.
    old: Option<(File, Box<Stat>)>,
    leased: bool,
    swapped: bool,
    /// Whether what came out is the file that was checked.
    is_old_out: bool,
}

impl<'a> Run<'a> {
    fn new(workspace: &'a Workspace, changes: &[Change<'a>]) -> Result<Self, CommitError> {
        let numbered = workspace
            .revive_state()
            .and_then(|()| workspace.with_journal(|journal| Ok((journal.open_commit(), journal.name().to_owned()))));
        let (number, journal_name) = numbered
            .map_err(|error| CommitError::Refused(Box::new(refuse_io(changes[0].planned.path(), "start the journal", &error))))?;
        let works = changes.iter().map(|change| Work {
            planned: change.planned,
            known: change.known,
            links: change.links,
            dir: None,
            made: Vec::new(),
            how: How::Create,
            staged: None,
            new: None,
            old: None,
            leased: false,
            swapped: false,
            is_old_out: false,
        });
        Ok(Self { workspace, works: works.collect(), number, journal_name, begun: false, locks: None })
    }

    fn step(&mut self, step: Step) -> Result<(), CommitError> {
        match step {
            Step::Lock => self.lock(),
            Step::Stage(file) => {
                let name = format!("{}-{}-{file}", self.journal_name, self.number);
                self.works[file].stage(self.workspace, name)
            }
            Step::Begin => self.begin(),
            Step::Check(file) => self.works[file].check(self.workspace),
            Step::Swap(file) => self.works[file].swap(self.workspace),
            Step::Verify(file) => self.works[file].verify(),
            Step::End => self.end(),
        }
    }

    fn lock(&mut self) -> Result<(), CommitError> {
        let paths: Vec<&RelPath> = self.works.iter().map(|work| work.planned.path()).collect();
        let linked = self.works.iter().filter(|work| work.links > 1).filter_map(|work| work.known);
        let identities: Vec<(u64, u64)> = linked.map(|stamp| (stamp.device, stamp.inode)).collect();
        let first = self.works[0].planned.path();
        let failed = |error: io::Error| CommitError::Refused(Box::new(refuse_io(first, "lock", &error)));
        let locks_dir = self.workspace.state().locks();
        match lock::lock(locks_dir.as_fd(), &paths, &identities, LOCK_PATIENCE).map_err(failed)? {
            Some(locks) => {
                self.locks = Some(locks);
                Ok(())
            }
            None => {
                let why = "another Surehand process holds its lock for too long; try again".to_owned();
                Err(CommitError::Refused(Box::new(Refusal::of(first, Cause::Conflict { why }))))
            }
        }
    }

    fn begin(&mut self) -> Result<(), CommitError> {
        let files = self.works.iter().map(Work::intent).collect();
        let entry = Entry::Begin { commit: self.number, files };
        self.begun = true;
        self.write_journal(&entry)
    }

    fn end(&mut self) -> Result<(), CommitError> {
        if self.workspace.durability() == Durability::Full {
            for work in &self.works {
                work.sync_directories().map_err(|error| work.failed("sync", error))?;
            }
        }
        // The files are in place: from here on the commit has happened, whatever becomes of this line.
        let entry = Entry::End { commit: self.number, done: true };
        drop(self.write_journal(&entry));
        Ok(())
    }

    fn write_journal(&self, entry: &Entry) -> Result<(), CommitError> {
        let sync = self.workspace.durability() == Durability::Full && matches!(entry, Entry::Begin { .. });
        self.workspace
            .with_journal(|journal| journal.write(entry, sync))
            .map_err(|error| self.works[0].failed("write the journal", error))
    }

    /// Takes back what has been done, from the last file to the first.
    fn undo(&mut self) {
        for work in self.works.iter_mut().rev() {
            work.undo(self.workspace);
        }
        if self.begun {
            drop(self.write_journal(&Entry::End { commit: self.number, done: false }));
        }
        self.workspace.settle_commit();
    }

    /// Lets go of everything without tidying up, as a crash would.
    fn abandon(self) {
        self.workspace.abandon_journal();
    }

    fn finish(self) -> Committed {
        let mut committed = Committed { stamps: Vec::new(), how: Vec::new() };
        for work in self.works {
            committed.stamps.push(work.stamp_now(self.workspace));
            committed.how.push(work.how);
            work.settle(self.workspace);
        }
        self.workspace.settle_commit();
        committed
    }
}

impl Work<'_> {
    fn path(&self) -> &RelPath {
        self.planned.path()
    }

    fn name(&self) -> &str {
        self.planned.path().name()
    }

    fn failed(&self, what: &str, error: impl Into<io::Error>) -> CommitError {
        CommitError::Refused(Box::new(refuse_io(self.path(), what, &error.into())))
    }

    fn changed(&self) -> CommitError {
        CommitError::Changed(self.path().clone())
    }

    fn dir(&self) -> &File {
        self.dir.as_ref().expect("the directory is opened when the file is staged")
    }

    fn staged(&self) -> (&File, &str) {
        let (dir, name) = self.staged.as_ref().expect("a swap has a staged file");
        (dir, name)
    }

    fn old(&self) -> (&File, &Stat) {
        let (file, stat) = self.old.as_ref().expect("a file that is replaced is open");
        (file, stat)
    }

    fn base(&self) -> &[u8] {
        match self.planned.base() {
            Base::Text(text) => text.bytes(),
            Base::Absent => &[],
        }
    }

    fn intent(&self) -> Intent {
        let base = match self.planned.base() {
            Base::Text(text) => Some(text.version()),
            Base::Absent => None,
        };
        let beside = self.staged.as_ref().is_some_and(|(_, name)| name.starts_with('.'));
        Intent {
            path: self.path().to_string(),
            how: self.how,
            base,
            new: self.planned.text().version(),
            staged: self.staged.as_ref().map(|(_, name)| name.clone()),
            beside,
        }
    }

    fn stage(&mut self, workspace: &Workspace, name: String) -> Result<(), CommitError> {
        if self.planned.is_new() {
            self.made =
                workspace.root().make_parents(self.path()).map_err(|errno| self.refuse_place(errno, "create its directory"))?;
        }
        let dir = workspace.root().open_parent(self.path()).map_err(|errno| self.refuse_place(errno, "open its directory"))?;
        self.dir = Some(File::from(dir));
        if self.planned.is_new() {
            self.stage_new(workspace, name)?
        } else {
            self.stage_replacement(workspace, name)?
        }
        if let (Durability::Full, Some(new)) = (workspace.durability(), &self.new) {
            new.sync_all().map_err(|error| self.failed("sync", error))?;
        }
        Ok(())
    }

    /// A directory that is gone, or is a link all of a sudden, is a change like any other: planning again will see it.
    fn refuse_place(&self, errno: Errno, what: &str) -> CommitError {
        match errno {
            Errno::LOOP | Errno::NOENT => self.changed(),
            errno => self.failed(what, errno),
        }
    }

    fn stage_new(&mut self, workspace: &Workspace, name: String) -> Result<(), CommitError> {
        self.how = How::Create;
        let content = self.planned.text().bytes();
        let nameless = stage::nameless(self.dir().as_fd(), content).map_err(|error| self.failed("write", error))?;
        if nameless.is_some() {
            self.new = nameless;
            return Ok(());
        }
        // Beside its place, so that it gets the owner, group and rights that new files get there.
        let (dir, name) = self.stage_place(workspace, name, true)?;
        let file = stage::copy(dir.as_fd(), &name, content).map_err(|error| self.failed("write", error))?;
        self.staged = Some((dir, name));
        sys::fchmod(&file, Mode::from_raw_mode(0o666 & !workspace.umask())).map_err(|errno| self.failed("write", errno))?;
        self.new = Some(file);
        Ok(())
    }

    fn stage_replacement(&mut self, workspace: &Workspace, name: String) -> Result<(), CommitError> {
        let (old, stat) = self.open_old(OFlags::RDONLY)?;
        if !may_write(self.dir(), self.name()) {
            let error = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(self.failed("write (the file is read-only)", error));
        }
        let far = sys::fstat(workspace.state().dir()).is_ok_and(|state| state.st_dev != stat.st_dev);
        let (dir, mut name) = self.stage_place(workspace, name, far || workspace.stage_beside())?;
        if link_count(&stat) == 1 {
            let spare = workspace.take_spare(&dir).map(|(spare, its_name)| {
                name = its_name;
                spare
            });
            let staged = stage::replacement(dir.as_fd(), &name, spare, self.planned.text().bytes(), &old, &stat);
            // Registered before anything can fail, so that it is tidied up.
            self.staged = Some((dir.clone(), name.clone()));
            if let Staged::Ready(file) = staged.map_err(|error| self.failed("write", error))? {
                self.how = How::Swap;
                self.new = Some(file);
                self.old = Some((old, stat));
                return Ok(());
            }
        }
        drop(old);
        self.how = How::InPlace;
        self.old = Some(self.open_old(OFlags::RDWR)?);
        self.staged = Some((dir.clone(), name.clone()));
        let copy = stage::copy(dir.as_fd(), &name, self.base()).map_err(|error| self.failed("keep a copy", error))?;
        self.new = Some(copy);
        Ok(())
    }

    fn stage_place(&self, workspace: &Workspace, name: String, beside: bool) -> Result<(Arc<File>, String), CommitError> {
        if beside {
            let dir = self.dir().try_clone().map_err(|error| self.failed("open its directory", error))?;
            return Ok((Arc::new(dir), format!(".surehand-{name}")));
        }
        Ok((workspace.state().staged(), name))
    }

    fn open_old(&self, access: OFlags) -> Result<(File, Box<Stat>), CommitError> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match open_patiently(|| sys::openat(self.dir(), self.name(), flags, Mode::empty())) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT | Errno::LOOP) => return Err(self.changed()),
            Err(errno) => return Err(self.failed("open", errno)),
        };
        let stat = sys::fstat(&file).map_err(|errno| self.failed("stat", errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.changed());
        }
        Ok((file, Box::new(stat)))
    }

    fn check(&mut self, workspace: &Workspace) -> Result<(), CommitError> {
        if self.how == How::Create {
            return Ok(());
        }
        self.take_lease();
        let (old, _) = self.old();
        let stamp = workspace.clock().stamp(&sys::fstat(old).map_err(|errno| self.failed("stat", errno))?);
        let stands = self.known.is_some_and(|known| known.agrees_with(&stamp) && !known.is_racy());
        if stands || same_bytes(old, self.base()).map_err(|error| self.failed("read", error))? {
            Ok(())
        } else {
            Err(self.changed())
        }
    }

    /// Waits a little for others to close the file. Without a lease the look at what came out must be enough.
    fn take_lease(&mut self) {
        let until = Instant::now() + LEASE_PATIENCE;
        let (old, _) = self.old();
        let leased = loop {
            if take_lease(old.as_fd()) {
                break true;
            }
            if Instant::now() >= until {
                break false;
            }
            std::thread::sleep(Duration::from_micros(200));
        };
        self.leased = leased;
    }

    fn swap(&mut self, workspace: &Workspace) -> Result<(), CommitError> {
        match self.how {
            How::Create => self.put_new(),
            How::InPlace => self.write_in_place(self.planned.text().bytes()).map_err(|error| self.failed("write", error)),
            How::Swap | How::Rename => self.exchange(workspace),
        }?;
        self.swapped = true;
        Ok(())
    }

    fn put_new(&self) -> Result<(), CommitError> {
        let new = self.new.as_ref().expect("a new file is staged");
        let put = match &self.staged {
            None => stage::name_it(new, self.dir().as_fd(), self.name()),
            Some((dir, name)) => match sys::renameat_with(dir, name, self.dir(), self.name(), RenameFlags::NOREPLACE) {
                Err(Errno::INVAL | Errno::NOSYS) => sys::linkat(dir, name, self.dir(), self.name(), AtFlags::empty()),
                put => put,
            },
        };
        put.map_err(|errno| if errno == Errno::EXIST { self.changed() } else { self.failed("create", errno) })
    }

    fn write_in_place(&self, content: &[u8]) -> io::Result<()> {
        let (mut file, _) = self.old();
        file.rewind()?;
        file.write_all(content)?;
        file.set_len(content.len() as u64)
    }

    fn exchange(&mut self, workspace: &Workspace) -> Result<(), CommitError> {
        let (staged_dir, staged) = self.staged();
        let exchanged = if workspace.can_exchange() {
            sys::renameat_with(staged_dir, staged, self.dir(), self.name(), RenameFlags::EXCHANGE)
        } else {
            Err(Errno::OPNOTSUPP)
        };
        match exchanged {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => Err(self.changed()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.rename_over(),
            Err(Errno::XDEV) => {
                workspace.set_stage_beside();
                Err(self.changed())
            }
            Err(errno) => Err(self.failed("replace", errno)),
        }
    }

    /// Where nothing can be exchanged: the old file gets a second name, then the new one takes its place.
    fn rename_over(&mut self) -> Result<(), CommitError> {
        self.how = How::Rename;
        let (dir, staged) = self.staged();
        let kept = format!("{staged}.old");
        let renamed = sys::linkat(self.dir(), self.name(), dir, &kept, AtFlags::empty())
            .and_then(|()| sys::renameat(dir, staged, self.dir(), self.name()));
        match renamed {
            Ok(()) => {
                let dir = self.staged.take().expect("checked above").0;
                self.staged = Some((dir, kept));
                Ok(())
            }
            Err(Errno::NOENT) => Err(self.changed()),
            Err(errno) => {
                stage::remove(dir.as_fd(), &kept);
                Err(self.failed("replace", errno))
            }
        }
    }

    /// What came out must be what the plan was made for. If it is not, it goes back.
    fn verify(&mut self) -> Result<(), CommitError> {
        if matches!(self.how, How::Create | How::InPlace) {
            return Ok(());
        }
        let (old, old_stat) = self.old();
        let state = if self.leased { lease_state(old.as_fd()) } else { LeaseState::Broken };
        let (dir, name) = self.staged();
        let came_out =
            sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| self.failed("look at the old file", errno))?;
        let same_file = (came_out.st_dev, came_out.st_ino) == (old_stat.st_dev, old_stat.st_ino);
        let good = match (same_file, self.leased, state) {
            (true, true, LeaseState::Held | LeaseState::ReaderWaits) => true,
            // A writer waits for the old file. Let it have it, and begin again after it.
            (true, true, LeaseState::Broken) => false,
            (true, false, _) => same_bytes(old, self.base()).unwrap_or(false),
            (false, _, _) => self.came_out_is_base(),
        };
        self.is_old_out = same_file;
        if good { Ok(()) } else { Err(self.changed()) }
    }

    fn came_out_is_base(&self) -> bool {
        let (dir, name) = self.staged();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = open_patiently(|| sys::openat(dir, name, flags, Mode::empty()));
        opened.is_ok_and(|fd| same_bytes(&File::from(fd), self.base()).unwrap_or(false))
    }

    fn undo(&mut self, workspace: &Workspace) {
        if self.swapped {
            self.swapped = false;
            match self.how {
                How::Create => self.take_out_new(workspace),
                How::InPlace => {
                    // Under the lease nobody else has written; without it, what is not ours is kept.
                    let (old, _) = self.old();
                    if same_bytes(old, self.planned.text().bytes()).unwrap_or(false) {
                        drop(self.write_in_place(self.base()));
                    }
                }
                How::Swap => self.exchange_back(workspace),
                How::Rename => self.rename_back(workspace),
            }
        }
        self.release();
        if let Some((dir, name)) = &self.staged {
            self.discard(workspace, dir, name);
        }
        for dir in self.made.iter().rev() {
            if let Ok(parent) = workspace.root().open_parent(dir) {
                // Not empty any more if somebody else has put something into it: then it stays.
                let _ = sys::unlinkat(parent, dir.name(), AtFlags::REMOVEDIR);
            }
        }
    }

    /// Takes a created file out again, unless it has become somebody else's.
    fn take_out_new(&mut self, workspace: &Workspace) {
        let dir = workspace.state().staged();
        let name = format!("undo-{}-{}", std::process::id(), self.planned.text().version());
        if sys::renameat(self.dir(), self.name(), &*dir, &name).is_err() {
            return;
        }
        let ours = self.new.as_ref().and_then(|new| sys::fstat(new).ok()).map(|stat| stat.st_ino);
        let out = sys::statat(&*dir, &name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_ino);
        let untouched = self.new.as_ref().is_some_and(|_| file_is(&dir, &name, self.planned.text().bytes()));
        if ours == out && untouched {
            stage::remove(dir.as_fd(), &name);
        } else if sys::renameat_with(&*dir, &name, self.dir(), self.name(), RenameFlags::NOREPLACE).is_err() {
            workspace.rescue(dir.as_fd(), &name, self.path());
        }
    }

    /// Puts back what came out. If by now somebody has replaced our file, theirs stays and what came out is rescued.
    fn exchange_back(&mut self, workspace: &Workspace) {
        let (dir, name) = self.staged();
        let exchange = || sys::renameat_with(dir, name, self.dir(), self.name(), RenameFlags::EXCHANGE);
        if exchange().is_err() {
            // Nothing has the name any more: what came out gets it back.
            let _ = sys::renameat_with(dir, name, self.dir(), self.name(), RenameFlags::NOREPLACE);
            return;
        }
        let out = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| (stat.st_dev, stat.st_ino));
        let ours = self.new.as_ref().and_then(|new| sys::fstat(new).ok()).map(|stat| (stat.st_dev, stat.st_ino));
        if out != ours {
            let _ = exchange();
            workspace.rescue(dir.as_fd(), name, self.path());
        }
    }

    fn rename_back(&mut self, workspace: &Workspace) {
        let (dir, name) = self.staged();
        let ours = self.new.as_ref().and_then(|new| sys::fstat(new).ok()).map(|stat| (stat.st_dev, stat.st_ino));
        let now = sys::statat(self.dir(), self.name(), AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| (stat.st_dev, stat.st_ino));
        if ours == now {
            let _ = sys::renameat(dir, name, self.dir(), self.name());
        } else {
            workspace.rescue(dir.as_fd(), name, self.path());
        }
    }

    /// Removes a staged file if it is ours or a copy of the base; anything else is somebody's work.
    fn discard(&self, workspace: &Workspace, dir: &Arc<File>, name: &str) {
        if file_is(dir, name, self.planned.text().bytes()) || file_is(dir, name, self.base()) || self.is_unfinished(dir, name) {
            stage::remove(dir.as_fd(), name);
        } else {
            workspace.rescue(dir.as_fd(), name, self.path());
        }
    }

    /// Whether the staged file is one that we were still writing.
    fn is_unfinished(&self, dir: &File, name: &str) -> bool {
        self.new.is_none() && self.old.is_none() && sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn release(&mut self) {
        if let (true, Some((old, _))) = (self.leased, &self.old) {
            drop_lease(old.as_fd());
        }
        self.leased = false;
    }

    fn sync_directories(&self) -> io::Result<()> {
        if self.how == How::InPlace {
            return self.old().0.sync_data();
        }
        self.dir().sync_all()?;
        match &self.staged {
            Some((dir, _)) => dir.sync_all(),
            None => Ok(()),
        }
    }

    /// The stamp of what is at the target now, if that is the file that we put there.
    fn stamp_now(&self, workspace: &Workspace) -> Option<Stamp> {
        let stat = sys::statat(self.dir(), self.name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let ours = match self.how {
            How::InPlace => sys::fstat(self.old().0).ok()?,
            How::Create | How::Swap | How::Rename => sys::fstat(self.new.as_ref()?).ok()?,
        };
        let (now, ours) = (workspace.clock().stamp(&stat), workspace.clock().stamp(&ours));
        (now.agrees_with(&ours) && now.size == self.planned.text().bytes().len() as u64).then_some(now)
    }

    /// The commit has happened: what came out waits for a second look.
    fn settle(mut self, workspace: &Workspace) {
        self.release();
        let Some((dir, name)) = self.staged.take() else { return };
        match self.how {
            How::Create => {}
            // A copy of ours that nobody else has ever had open.
            How::InPlace => stage::remove(dir.as_fd(), &name),
            How::Swap | How::Rename => {
                let (old, old_stat) = self.old();
                let same_file = self.is_old_out;
                let stamp = if same_file { sys::fstat(old).ok().map(|stat| workspace.clock().stamp(&stat)) } else { None };
                let Base::Text(base) = self.planned.base() else { return };
                let reusable = same_file && is_ordinary(old, old_stat);
                let (path, version) = (self.path().clone(), base.version());
                workspace.displace(Displaced { dir, name, path, version, stamp, reusable });
            }
        }
    }
}

/// Whether a file has nothing that would have to be taken off before it can be another: owner, attributes, special bits.
fn is_ordinary(file: &File, stat: &Stat) -> bool {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    (stat.st_uid, stat.st_gid) == (user, group) && matches!(sys::flistxattr_query(file), Ok(0) | Err(Errno::OPNOTSUPP))
}

fn may_write(dir: &File, name: &str) -> bool {
    sys::accessat(dir, name, Access::WRITE_OK, AtFlags::EACCESS) != Err(Errno::ACCESS)
}

fn file_is(dir: &File, name: &str, content: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = open_patiently(|| sys::openat(dir, name, flags, Mode::empty()));
    opened.is_ok_and(|fd| same_bytes(&File::from(fd), content).unwrap_or(false))
}

/// Whether an open file holds exactly these bytes.
fn same_bytes(mut file: &File, content: &[u8]) -> io::Result<bool> {
    if file.metadata()?.len() != content.len() as u64 {
        return Ok(false);
    }
    file.rewind()?;
    let mut buffer = vec![0; content.len().clamp(1, 64 * 1024)];
    let mut rest = content;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(rest.is_empty()),
            read if rest.len() >= read && rest[..read] == buffer[..read] => rest = &rest[read..],
            _ => return Ok(false),
        }
    }
}
