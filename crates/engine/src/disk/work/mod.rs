//! One file of a commit: staged, checked, swapped in, verified; or taken back.

mod away;
mod back;

use std::{
    fs::File,
    io::{self, Seek, Write},
    os::{fd::AsFd, unix::fs::FileExt},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    fs::{self as sys, Access, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
};
use surehand_core::{Act, Cause, Content, ContentHash, Planned, Refusal, RelPath, Stamp, plan::Marks};

use super::{
    commit::{Change, CommitError, Durability},
    journal::{Entry, How, Intent, StagePlace},
    read::{Found, find, link_count, open_patiently},
    rescue::Displaced,
    root::refuse_io,
    stage::{self, Staged},
    sys::{LeaseState, drop_lease, lease_state, take_lease},
    working_copy::{Staging, WorkingCopy},
};
pub(super) use away::rename_to_free_name;

/// How long to wait for others to close a file before going on without a lease.
const LEASE_PATIENCE: Duration = Duration::from_millis(8);

/// One file on its way.
pub(super) struct Work<'a> {
    copy: &'a WorkingCopy,
    planned: &'a Planned,
    identity: Option<(u64, u64)>,
    commit: u64,
    dir: Option<Arc<File>>,
    /// The directory that a file is moved to.
    dir_to: Option<Arc<File>>,
    made: Vec<RelPath>,
    how: How,
    /// The name for what is staged, which no other file of any commit has.
    own_name: String,
    /// Where the staged file is, and its name.
    staged: Option<(Arc<File>, String)>,
    /// The new file, or the copy of the old one for a write in place.
    new: Option<File>,
    /// The stamp of the new content when it was complete.
    written: Option<Stamp>,
    /// The file that is there, with what the system says about it.
    old: Option<(File, Box<Stat>)>,
    /// Whether the old file has nothing that would have to be taken off before it can be another: owner, attributes.
    is_ordinary: bool,
    /// Whether the old file is kept open when it has come out, to be written over next.
    may_be_held: bool,
    leased: bool,
    progress: Progress,
    /// The stamp of what came out, if it is the file that was checked and nobody else had it open then.
    out: Option<Stamp>,
}

/// How far the target is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Not at all.
    Untouched,
    /// A write in place has begun; it may be torn.
    Begun,
    /// It has its new content.
    Changed,
}

impl<'a> Work<'a> {
    /// A file that nothing has been done about yet.
    pub(super) fn new(copy: &'a WorkingCopy, change: Change<'a>, commit: u64) -> Self {
        Self {
            copy,
            planned: change.planned,
            identity: change.identity,
            commit,
            dir: None,
            dir_to: None,
            made: Vec::new(),
            how: How::Create,
            own_name: String::new(),
            staged: None,
            new: None,
            written: None,
            old: None,
            is_ordinary: false,
            may_be_held: false,
            leased: false,
            progress: Progress::Untouched,
            out: None,
        }
    }

    /// The file.
    pub(super) fn path(&self) -> &'a RelPath {
        self.planned.path()
    }

    /// The name that it is moved to.
    pub(super) fn to(&self) -> Option<&'a RelPath> {
        match self.planned.act() {
            Act::Move { to } => Some(to),
            Act::Write { .. } | Act::Remove => None,
        }
    }

    /// How it is written.
    pub(super) fn how(&self) -> How {
        self.how
    }

    /// Device and inode of a file that has several names.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }

    /// For the journal.
    pub(super) fn intent(&self) -> Intent {
        let staged = if self.how == How::Create { self.retreat() } else { self.staged.clone() };
        Intent {
            path: self.copy.in_tree(self.path()).to_string(),
            to: self.to().map(|to| self.copy.in_tree(to).to_string()),
            how: self.how,
            base: self.planned.base().map(Content::version),
            new: self.planned.after().map(Content::version),
            place: staged.as_ref().map_or(StagePlace::State, |(dir, name)| self.copy.place_of(dir, name)),
            staged: staged.map(|(_, name)| name),
            inode: self.written.map_or(0, |stamp| stamp.inode),
            modified: self.written.map_or(0, |stamp| stamp.modified),
        }
    }

    /// A refusal because the system said no.
    pub(super) fn failed(&self, what: &str, error: impl Into<io::Error>) -> CommitError {
        CommitError::Refused(Box::new(refuse_io(self.path(), what, &error.into())))
    }

    fn changed(&self) -> CommitError {
        CommitError::Changed(self.path().clone())
    }

    fn name(&self) -> &'a str {
        self.planned.path().name()
    }

    fn dir(&self) -> &Arc<File> {
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

    fn base(&self) -> &'a [u8] {
        self.planned.base().map_or(&[], Content::bytes)
    }

    fn base_version(&self) -> Option<ContentHash> {
        self.planned.base().map(Content::version)
    }

    fn content(&self) -> &'a [u8] {
        self.planned.after().map_or(&[], Content::bytes)
    }

    fn write_journal(&self, entry: &Entry) -> Result<(), CommitError> {
        self.copy.with_journal(|journal| journal.write(entry, false)).map_err(|error| self.failed("write the journal", error))
    }

    /// Writes the new content where nobody looks.
    pub(super) fn stage(&mut self, name: String) -> Result<(), CommitError> {
        self.own_name.clone_from(&name);
        if self.planned.is_new() {
            self.make_directories(self.path())?;
        }
        self.dir = Some(self.open_parent(self.path())?);
        match self.planned.act() {
            Act::Write { .. } if self.planned.is_new() => self.stage_new(name)?,
            Act::Write { .. } => self.stage_replacement(name)?,
            Act::Remove => self.stage_removal(name)?,
            Act::Move { to } => self.stage_move(to)?,
        }
        let Some(new) = &self.new else { return Ok(()) };
        if self.copy.durability() == Durability::Full {
            new.sync_all().map_err(|error| self.failed("sync", error))?;
        }
        if self.how != How::InPlace && self.written.is_none() {
            self.written = self.stamp_of(new);
        }
        Ok(())
    }

    fn stamp_of(&self, file: &File) -> Option<Stamp> {
        sys::fstat(file).ok().map(|stat| self.copy.clock().stamp(&stat))
    }

    fn open_parent(&self, path: &RelPath) -> Result<Arc<File>, CommitError> {
        if path.parent().is_none() {
            return Ok(self.copy.root_dir());
        }
        let dir = self.copy.root().open_parent(path).map_err(|errno| self.refuse_place(errno, "open its directory"))?;
        Ok(Arc::new(File::from(dir)))
    }

    fn make_directories(&mut self, path: &RelPath) -> Result<(), CommitError> {
        let root = self.copy.root();
        let missing = root.missing_parents(path).map_err(|errno| self.refuse_place(errno, "look for its directory"))?;
        if missing.is_empty() {
            return Ok(());
        }
        // Written down first, so that a crash leaves no empty directories.
        let dirs = missing.iter().map(|dir| self.copy.in_tree(dir).to_string()).collect();
        self.write_journal(&Entry::Make { commit: self.commit, dirs })?;
        for dir in missing {
            if root.make_dir(&dir).map_err(|errno| self.refuse_place(errno, "create its directory"))? {
                self.made.push(dir);
            }
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

    /// A refusal because the system said no, unless that is because somebody has removed the directory.
    fn failed_unless_gone(&self, what: &str, error: impl Into<io::Error>) -> CommitError {
        if sys::fstat(self.dir()).is_ok_and(|stat| link_count(&stat) == 0) { self.changed() } else { self.failed(what, error) }
    }

    fn stage_new(&mut self, name: String) -> Result<(), CommitError> {
        self.how = How::Create;
        let nameless = stage::nameless(self.dir().as_fd(), self.content()).map_err(|error| self.failed("write", error))?;
        if let Some(file) = nameless {
            self.give_marks(&file)?;
            self.new = Some(file);
            return Ok(());
        }
        // Beside its place, so that it gets the owner, group and rights that new files get there.
        let (dir, name) = self.beside(name);
        self.staged = Some((dir.clone(), name.clone()));
        self.announce(&dir, &name)?;
        let file = stage::copy(dir.as_fd(), &name, self.content()).map_err(|error| self.failed_unless_gone("write", error))?;
        let mode = Mode::from_raw_mode(0o666 & !self.copy.umask());
        sys::fchmod(&file, mode).map_err(|errno| self.failed("write", errno))?;
        self.give_marks(&file)?;
        self.new = Some(file);
        Ok(())
    }

    /// Gives a new file the mode, and as far as we may the owner and attributes, of the one that it continues.
    fn give_marks(&self, file: &File) -> Result<(), CommitError> {
        let Act::Write { marks, .. } = self.planned.act() else { return Ok(()) };
        let given = match marks {
            Marks::Usual => Ok(()),
            Marks::Mode(mode) => sys::fchmod(file, Mode::from_raw_mode(mode & 0o777)),
            Marks::Of(other) => match find(self.copy.root(), other) {
                Ok(Found::File { file: other, stat }) => stage::give_marks(&other, &stat, file),
                _ => return Err(CommitError::Changed(other.clone())),
            },
        };
        given.map_err(|errno| self.failed("write", errno))
    }

    fn stage_replacement(&mut self, name: String) -> Result<(), CommitError> {
        let (old, stat, is_writable) = self.open_replaced()?;
        if !is_writable && sys::accessat(self.dir(), self.name(), Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ACCESS) {
            return Err(self.failed("write (the file is read-only)", Errno::ACCESS));
        }
        let (dir, mut name) = self.stage_place(name, identity(&stat).0);
        if link_count(&stat) == 1 {
            let spare = self.copy.take_spare(&dir).map(|(spare, its_name)| {
                name = its_name;
                spare
            });
            // Registered before anything can fail, so that it is tidied up.
            self.staged = Some((dir.clone(), name.clone()));
            if spare.is_none() {
                self.announce(&dir, &name)?;
            }
            let staged = stage::replacement(dir.as_fd(), &name, spare, self.content(), &old, &stat);
            if let Staged::Ready { file, has_attributes, stat: new } = staged.map_err(|error| self.failed("write", error))? {
                self.how = How::Swap;
                self.is_ordinary = !has_attributes && self.copy.is_owner(&stat);
                self.may_be_held = is_writable && self.is_ordinary;
                self.written = Some(self.copy.clock().stamp(&new));
                self.new = Some(file);
                self.old = Some((old, stat));
                return Ok(());
            }
        }
        drop(old);
        self.how = How::InPlace;
        self.staged = Some((dir.clone(), name.clone()));
        self.announce(&dir, &name)?;
        let keep =
            |name: &str, content| stage::copy(dir.as_fd(), name, content).map_err(|error| self.failed("keep a copy", error));
        let copy = keep(&name, self.base())?;
        // Only with both can a torn file be told from one that somebody has changed.
        keep(&new_copy(&name), self.content())?;
        self.new = Some(copy);
        self.old = Some(self.open_old(OFlags::RDWR)?);
        Ok(())
    }

    /// Writes down that a staged file is about to be made: one that no entry names is nobody's, and is not removed unseen.
    fn announce(&self, dir: &Arc<File>, name: &str) -> Result<(), CommitError> {
        let (path, place) = (self.copy.in_tree(self.path()).to_string(), self.copy.place_of(dir, name));
        self.write_journal(&Entry::Stage { commit: self.commit, path, place, staged: name.to_owned() })
    }

    /// Where to stage a file for a target on this device: it must be possible to exchange the two. The state directory is best,
    /// because nobody looks there and what a crash leaves is in nobody's way.
    fn stage_place(&self, name: String, device: u64) -> (Arc<File>, String) {
        let far = self.copy.state().device() != device;
        match self.copy.staging() {
            Staging::InState if !far => return (self.copy.state().staged(), name),
            Staging::InState | Staging::InTree => {}
            Staging::Beside => return self.beside(name),
        }
        let is_near = |dir: &Arc<File>| sys::fstat(dir).is_ok_and(|stat| identity(&stat).0 == device);
        match self.copy.tree_staging() {
            Ok((dir, _)) if is_near(&dir) => (dir, name),
            _ => self.beside(name),
        }
    }

    fn beside(&self, name: String) -> (Arc<File>, String) {
        (self.dir().clone(), format!(".surehand-{name}"))
    }

    /// Opens the file that is to be replaced and says whether it is open for writing: then it can be the next staged file without
    /// being opened again. A program is not: while it is open for writing nobody can start it.
    fn open_replaced(&self) -> Result<(File, Box<Stat>, bool), CommitError> {
        if let Ok((old, stat)) = self.open_old(OFlags::RDWR)
            && stat.st_mode & 0o111 == 0
        {
            return Ok((old, stat, true));
        }
        self.open_old(OFlags::RDONLY).map(|(old, stat)| (old, stat, false))
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

    /// Looks whether the file is still what the plan was made for.
    pub(super) fn check(&mut self) -> Result<(), CommitError> {
        if self.how == How::Create {
            return Ok(());
        }
        self.leased = self.take_lease();
        let (old, _) = self.old();
        if self.how == How::InPlace && !self.leased && self.copy.rescued().leases_exist() {
            // Nothing would show what somebody wrote into it while we did.
            let why = "has several names, so it can only be written in place, and another program has it open; try again when it is closed";
            let refusal = Refusal::of(self.path(), Cause::Conflict { why: why.to_owned() });
            return Err(CommitError::Refused(Box::new(refusal)));
        }
        // The bytes themselves: a program that writes through a memory map leaves no trace in the times.
        let holds = same_bytes(old, self.base()).map_err(|error| self.failed("read", error))?;
        if holds { Ok(()) } else { Err(self.changed()) }
    }

    /// Waits a little for others to close the file. Without a lease the look at what came out must be enough.
    fn take_lease(&self) -> bool {
        let until = Instant::now() + LEASE_PATIENCE;
        let (old, _) = self.old();
        loop {
            if take_lease(old.as_fd()) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Puts the new content in its place.
    pub(super) fn swap(&mut self) -> Result<(), CommitError> {
        match self.how {
            How::Create => self.put_new()?,
            How::Swap | How::Rename => self.exchange()?,
            How::Remove => self.take_out()?,
            How::Move => self.move_over()?,
            How::InPlace => {
                self.progress = Progress::Begun;
                self.write_in_place(self.content()).map_err(|error| self.failed("write", error))?;
                self.written = self.stamp_of(self.old().0);
            }
        }
        self.progress = Progress::Changed;
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
        put.map_err(|errno| if errno == Errno::EXIST { self.changed() } else { self.failed_unless_gone("create", errno) })
    }

    fn write_in_place(&self, content: &[u8]) -> io::Result<()> {
        let (mut file, _) = self.old();
        file.rewind()?;
        file.write_all(content)?;
        file.set_len(content.len() as u64)
    }

    fn exchange(&mut self) -> Result<(), CommitError> {
        let (staged_dir, staged) = self.staged();
        let exchanged = if self.copy.can_exchange() {
            sys::renameat_with(staged_dir, staged, self.dir(), self.name(), RenameFlags::EXCHANGE)
        } else {
            Err(Errno::OPNOTSUPP)
        };
        match exchanged {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => Err(self.changed()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.rename_over(),
            Err(Errno::XDEV) => {
                self.staged_too_far();
                Err(self.changed())
            }
            Err(errno) => Err(self.failed("replace", errno)),
        }
    }

    fn staged_too_far(&self) {
        if let Some((dir, _)) = &self.staged {
            self.copy.staged_too_far(dir);
        }
    }

    /// Where nothing can be exchanged: the old file gets a second name, then the new one takes its place.
    fn rename_over(&mut self) -> Result<(), CommitError> {
        self.how = How::Rename;
        let (dir, staged) = self.staged();
        let kept = format!("{staged}.old");
        let renamed = sys::linkat(self.dir(), self.name(), dir, &kept, AtFlags::empty())
            .and_then(|()| sys::statat(dir, &kept, AtFlags::SYMLINK_NOFOLLOW))
            // A name that was added meanwhile must not lose its file.
            .and_then(|stat| if link_count(&stat) > 2 { Err(Errno::NOENT) } else { Ok(()) })
            .and_then(|()| sys::renameat(dir, staged, self.dir(), self.name()));
        match renamed {
            Ok(()) => {
                let dir = self.staged.take().expect("checked above").0;
                self.staged = Some((dir, kept));
                Ok(())
            }
            Err(errno) => {
                // A second name of the file that is still there under its first.
                stage::remove(dir.as_fd(), &kept);
                Err(match errno {
                    Errno::NOENT => self.changed(),
                    Errno::XDEV => {
                        self.staged_too_far();
                        self.changed()
                    }
                    errno => self.failed("replace", errno),
                })
            }
        }
    }

    /// What came out must be what the plan was made for. If it is not, it goes back.
    pub(super) fn verify(&mut self) -> Result<(), CommitError> {
        if self.how == How::Create {
            return Ok(());
        }
        let (old, old_stat) = self.old();
        if self.how == How::InPlace {
            // Somebody may have renamed the file that we have open, and put another one in its place: then nothing was done to that.
            let there = sys::statat(self.dir(), self.name(), AtFlags::SYMLINK_NOFOLLOW);
            let is_there = there.is_ok_and(|stat| identity(&stat) == identity(old_stat));
            return if is_there { Ok(()) } else { Err(self.changed()) };
        }
        let (dir, name) = self.place_of_old();
        let came_out =
            sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| self.failed("look at the old file", errno))?;
        let same_file = identity(&came_out) == identity(old_stat);
        let stamp = self.copy.clock().stamp(&came_out);
        // Asked after the stamp was taken: what is written later than that shows.
        let state = if self.leased { lease_state(old.as_fd()) } else { LeaseState::Broken };
        // A name that was added meanwhile must not lose its file. One that is only taken away, or moved, loses nothing. One that was
        // renamed over was asked before that: some file systems in programs then keep it under a name of their own, since we
        // have it open.
        let one_name = link_count(&came_out) == 1 || matches!(self.how, How::Remove | How::Move | How::Rename);
        let good = match (same_file && one_name, self.leased, state) {
            (true, true, LeaseState::Held | LeaseState::ReaderWaits) => {
                self.out = Some(stamp);
                true
            }
            // A writer waits for the old file. Let it have it, and begin again after it.
            (true, true, LeaseState::Broken) => false,
            (true, false, _) => same_bytes(old, self.base()).unwrap_or(false),
            (false, _, _) => one_name && file_is(dir, name, self.base()),
        };
        if good { Ok(()) } else { Err(self.changed()) }
    }

    fn release(&mut self) {
        if let (true, Some((old, _))) = (self.leased, &self.old) {
            drop_lease(old.as_fd());
        }
        self.leased = false;
    }

    /// Waits until the names are on the disk.
    pub(super) fn sync_directories(&self) -> io::Result<()> {
        if self.how == How::InPlace {
            return self.old().0.sync_data();
        }
        self.dir().sync_all()?;
        self.dir_to.as_ref().map_or(Ok(()), |dir| dir.sync_all())?;
        for made in &self.made {
            match self.copy.root().open_parent(made) {
                Ok(parent) => File::from(parent).sync_all()?,
                // Somebody has moved it or taken it away since; where it is now is theirs to sync.
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        match &self.staged {
            Some((dir, _)) => dir.sync_all(),
            None => Ok(()),
        }
    }

    /// The stamp of what is at the target now, if that is still the content that we put there.
    pub(super) fn stamp_now(&self) -> Option<Stamp> {
        let (dir, name) = match (self.to(), &self.dir_to) {
            (Some(to), Some(dir)) => (dir, to.name()),
            _ => (self.dir(), self.name()),
        };
        let stat = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let (now, then) = (self.copy.clock().stamp(&stat), self.written?);
        // A rename changes neither size nor time of the content.
        (now.same_file(&then) && (now.size, now.modified) == (then.size, then.modified)).then_some(now)
    }

    /// The commit has happened: what came out waits for a second look.
    pub(super) fn settle(mut self) {
        let reusable = self.how == How::Swap && self.out.is_some() && self.is_ordinary;
        let held = if reusable && self.may_be_held && self.leased { self.old.take().map(|(old, _)| old) } else { None };
        self.release();
        let Some((dir, name)) = self.staged.take() else { return };
        match self.how {
            // Copies, or a second name of the new file: nobody else has ever had them.
            How::Create => {
                stage::remove(dir.as_fd(), &name);
            }
            How::InPlace => {
                stage::remove(dir.as_fd(), &new_copy(&name));
                stage::remove(dir.as_fd(), &name);
            }
            How::Move => {}
            How::Swap | How::Rename | How::Remove => {
                let Some(version) = self.base_version() else { return };
                let path = self.path().clone();
                self.copy.displace(Displaced { dir, name, path, version, stamp: self.out, reusable, held });
            }
        }
    }
}

/// The name of the copy of the new content, beside that of the old, for a write in place.
pub(super) fn new_copy(staged: &str) -> String {
    format!("{staged}.new")
}

fn identity(stat: &Stat) -> (u64, u64) {
    #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
    let identity = (stat.st_dev as u64, stat.st_ino as u64);
    identity
}

fn file_is(dir: &File, name: &str, content: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = open_patiently(|| sys::openat(dir, name, flags, Mode::empty()));
    opened.is_ok_and(|fd| same_bytes(&File::from(fd), content).unwrap_or(false))
}

/// Whether an open file holds exactly these bytes.
fn same_bytes(file: &File, content: &[u8]) -> io::Result<bool> {
    if sys::fstat(file)?.st_size != content.len() as i64 {
        return Ok(false);
    }
    let mut buffer = vec![0; content.len().min(64 * 1024)];
    for (index, chunk) in content.chunks(64 * 1024).enumerate() {
        let buffer = &mut buffer[..chunk.len()];
        match file.read_exact_at(buffer, index as u64 * 64 * 1024) {
            Ok(()) if buffer == chunk => {}
            Ok(()) => return Ok(false),
            // It has become shorter.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
