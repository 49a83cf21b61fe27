//! Displaced files: the old versions that commits took out of the workspace. Each gets a second look before it is
//! removed.
//!
//! A commit verifies the old file right after the exchange, but a program can act later. A program that opened the file
//! before the exchange goes on writing to it. A program that looked up the name and was then suspended changes the mode
//! of a file that is no longer in place. Neither made a mistake, and both believe that they came first. So a displaced
//! file stays in the state directory for a quarter of a second, and longer while a process has it open, which a lease
//! shows. Then:
//!
//! - If its stamp is unchanged, it is removed.
//! - If its mode, owner or attributes changed, the file in its place gets the same change.
//! - If its bytes changed, it moves to `rescued/`, and the next reply names it.
//!
//! A displaced file is never used as a staged file again: an open handle must keep referring to the file that it was
//! opened for.
//!
//! A process checks its displaced files a last time before it ends. Its journal keeps those that are still open, and
//! the next start checks them.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex},
};

use rustix::{
    fs::{self as sys, AtFlags, FileType, Mode, OFlags, RenameFlags},
    io::Errno,
};
use surehand_core::{ContentHash, RelPath, Stamp};

use super::{
    file_times::FileClock,
    lease::{Lease, NoLease},
    metadata::Metadata,
    read_file::{link_count, open_at, open_patiently},
    rescued_files,
    shared_dirs::SharedDirs,
    staging,
};
use crate::{
    random::try_random,
    state_dir::{StateDir, make_dir},
    time::now,
};

/// A file that a commit took out of the workspace.
#[derive(Debug)]
pub(crate) struct DisplacedFile {
    pub dir: Arc<File>,
    pub name: String,
    pub path: RelPath,
    /// Version of its bytes when it was taken out.
    pub version: ContentHash,
    /// Its stamp right after it was taken out, if no other process had it open then.
    pub stamp: Option<Stamp>,
    pub replacement: Option<ReplacementFile>,
    /// The file itself, open, if it has lost its name and `name` is only a copy.
    pub handle: Option<File>,
}

/// The file in the place of a displaced one. A change of mode, owner or attributes of the displaced file was meant for
/// this one: the program looked up the name just before the exchange.
#[derive(Debug)]
pub(crate) struct ReplacementFile {
    pub dir: Arc<File>,
    /// The displaced file's metadata, which this file was given.
    pub metadata: Metadata,
}

/// The result of a second look at a displaced file.
#[derive(Debug)]
pub(crate) enum SecondLookResult {
    /// Unchanged and not open anywhere: it can be removed.
    Untouched,
    InUse,
    /// A program wrote to it. It is kept at this path.
    Rescued(String),
}

impl DisplacedFile {
    /// A file that was taken from its place, if only its version is known.
    pub(crate) fn taken_back(dir: Arc<File>, name: String, path: RelPath, version: ContentHash) -> Self {
        Self { dir, name, path, version, stamp: None, replacement: None, handle: None }
    }

    /// Replaces its directory handles with shared ones that are open already.
    pub(crate) fn share_dirs(&mut self, shared: &SharedDirs) {
        self.dir = shared.share(self.dir.clone());
        if let Some(replacement) = &mut self.replacement {
            replacement.dir = shared.share(replacement.dir.clone());
        }
    }

    pub(crate) fn check_again(&mut self, rescued: &RescueDir) -> io::Result<SecondLookResult> {
        if let Some(handle) = self.handle.take() {
            return self.check_handle(&handle, rescued);
        }
        let mut file = match open_at(&*self.dir, &self.name) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(SecondLookResult::Untouched),
            Err(Errno::AGAIN) => return Ok(SecondLookResult::InUse),
            Err(errno) => return Err(errno.into()),
        };
        // A lease is granted only if no other process has the file open. Then none can write to it any more, since none
        // knows its present name.
        let lease = match Lease::take(&file) {
            Err(NoLease::IsOpen) if rescued.leases_exist() => return Ok(SecondLookResult::InUse),
            lease => lease.ok(),
        };
        let stat = sys::fstat(&file)?;
        let stamp = rescued.clock.stamp(&stat);
        if self.stamp.is_some_and(|then| then.agrees_with(&stamp) && !then.is_racy()) {
            return Ok(SecondLookResult::Untouched);
        }
        // If it cannot be carried over, nothing else can be done.
        let _ = self.carry_over_metadata(&file);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // A file with another hard link lives on there, with all bytes that were written to it.
        if ContentHash::of(&bytes) == self.version || link_count(&stat) > 1 {
            return Ok(SecondLookResult::Untouched);
        }
        if let Some(lease) = lease {
            // The file may have to be copied, and our own lease would make us wait when we open it.
            lease.release(&file);
        }
        rescued.take_in(self.dir.as_fd(), &self.name, &self.path).map(SecondLookResult::Rescued)
    }

    /// Like [`Self::check_again`], for a file without a name: if its bytes changed, the copy gets them and is rescued.
    fn check_handle(&self, mut handle: &File, rescued: &RescueDir) -> io::Result<SecondLookResult> {
        let mut bytes = Vec::new();
        handle.rewind()?;
        handle.read_to_end(&mut bytes)?;
        if ContentHash::of(&bytes) == self.version {
            return Ok(SecondLookResult::Untouched);
        }
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        File::from(sys::openat(&*self.dir, &self.name, flags, Mode::empty())?).write_all(&bytes)?;
        rescued.take_in(self.dir.as_fd(), &self.name, &self.path).map(SecondLookResult::Rescued)
    }

    /// Applies metadata changes of this file to the file in its place.
    pub(crate) fn carry_over_metadata(&mut self, file: &File) -> io::Result<()> {
        let Some(replacement) = &mut self.replacement else { return Ok(()) };
        let now = Metadata::of(file, &sys::fstat(file)?)?.without_labels();
        let Some(change) = now.change_from(&replacement.metadata.clone().without_labels()) else { return Ok(()) };
        let in_place = match open_patiently(|| open_at(&*replacement.dir, self.path.name())) {
            Err(Errno::NOENT | Errno::LOOP) => return Ok(()),
            opened => opened?,
        };
        if FileType::from_raw_mode(sys::fstat(&in_place)?.st_mode) == FileType::RegularFile {
            change.apply(&in_place)?;
            replacement.metadata = now;
        }
        Ok(())
    }

    /// Removes the file after a look that found it untouched. Returns `false` if nothing may be removed now; then it
    /// must wait.
    pub(crate) fn remove(&self) -> bool {
        staging::remove(self.dir.as_fd(), &self.name)
    }
}

#[derive(Debug, Default)]
pub(crate) struct RescueDir {
    /// `None` if the state is read-only. It may be removed and created again; see [`Self::moved`].
    state: Mutex<Option<Arc<StateDir>>>,
    /// A file of our own, to find out whether this file system grants leases.
    probe: Option<File>,
    clock: FileClock,
}

impl RescueDir {
    pub(crate) fn of(state: Arc<StateDir>) -> io::Result<Self> {
        let probe = private_file(&state.checkout)?;
        Ok(Self { state: Mutex::new(Some(state)), clock: FileClock::try_out(&probe), probe: Some(probe) })
    }

    pub(crate) fn moved(&self, state: Arc<StateDir>) {
        *self.state.lock().expect("no thread panics while it holds the lock") = Some(state);
    }

    /// Whether this file system grants leases, tried on a file that no other process can open.
    pub(crate) fn leases_exist(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| Lease::take(probe).is_ok())
    }

    /// The clock of the file system that holds the state.
    pub(crate) fn clock(&self) -> FileClock {
        self.clock
    }

    /// Moves a file into `rescued/`, under a name that shows where it came from. Returns its new path.
    pub(crate) fn take_in(&self, dir: BorrowedFd<'_>, name: &str, path: &RelPath) -> io::Result<String> {
        let (state, home) = self.open()?;
        let place = state.checkout_path.join(RESCUED);
        let taken_in = |name: &str| {
            rescued_files::write_note(&state.checkout, name, path, now());
            place.join(name).display().to_string()
        };
        let flat = path.as_str().replace('/', "__");
        let flat: String = flat.chars().rev().take(150).collect::<Vec<_>>().into_iter().rev().collect();
        for number in 1.. {
            let new_name = format!("{number}-{flat}");
            match sys::renameat_with(dir, name, &*home, &new_name, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(taken_in(&new_name)),
                Err(Errno::EXIST) => {}
                Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS) => match self.copy_in(dir, name, &home, &new_name) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    copied => return copied.map(|()| taken_in(&new_name)),
                },
                Err(errno) => return Err(errno.into()),
            }
        }
        unreachable!("numbers do not end")
    }

    fn copy_in(&self, dir: BorrowedFd<'_>, name: &str, home: &File, new_name: &str) -> io::Result<()> {
        let mut bytes = Vec::new();
        open_patiently(|| open_at(dir, name))?.read_to_end(&mut bytes)?;
        staging::write_copy(home.as_fd(), new_name, &bytes)?.sync_all()?;
        sys::unlinkat(dir, name, AtFlags::empty())?;
        Ok(())
    }

    fn open(&self) -> io::Result<(Arc<StateDir>, Arc<File>)> {
        let state = self.state.lock().expect("no thread panics while it holds the lock").clone().ok_or(Errno::ROFS)?;
        let home = make_dir(&state.checkout, RESCUED)?;
        Ok((state, home))
    }
}

/// Name of the directory for rescued files, in the state directory of a checkout.
pub const RESCUED: &str = "rescued";

/// A file without a name, which no other process can open.
fn private_file(dir: &File) -> io::Result<File> {
    let name = format!("probe-{:016x}", try_random()?);
    let file = staging::create_new(dir.as_fd(), &name, Mode::RUSR | Mode::WUSR)?;
    sys::unlinkat(dir, &name, AtFlags::empty())?;
    Ok(file)
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "tests play the other program")]
mod tests {
    use std::{fs, time::Instant};

    use super::*;
    use crate::{git::WorkTree, state_dir::StateHome};

    /// A rescue between two file systems copies the file. On most machines, `/dev/shm` is another file system than the
    /// disk.
    #[test]
    fn a_rescue_from_another_file_system_does_not_wait() {
        let home = tempfile::tempdir().unwrap();
        let Ok(away) = tempfile::tempdir_in("/dev/shm") else { return };
        let tree = WorkTree::without_git(home.path().to_owned());
        let state_home = StateHome { fixed: Some(home.path().join("state")), ..StateHome::default() };
        let rescued = RescueDir::of(Arc::new(StateDir::open(&tree, &state_home).unwrap())).unwrap();
        fs::write(away.path().join("staged"), "theirs").unwrap();
        let mut displaced = DisplacedFile {
            dir: Arc::new(File::open(away.path()).unwrap()),
            name: "staged".to_owned(),
            path: RelPath::new("a.txt").unwrap(),
            version: ContentHash::of(b"ours"),
            stamp: None,
            replacement: None,
            handle: None,
        };
        let began = Instant::now();
        let SecondLookResult::Rescued(to) = displaced.check_again(&rescued).unwrap() else { panic!("it was not rescued") };
        assert_eq!(fs::read_to_string(to).unwrap(), "theirs");
        assert!(!away.path().join("staged").exists());
        assert!(began.elapsed().as_secs() < 5, "it waited {:?}", began.elapsed());
    }
}
