//! Write leases on files (`F_SETLEASE`), through the few system calls that have no safe wrapper.
//!
//! The kernel grants a write lease only while no other process has the file open. A process that opens the file later
//! waits until the lease is released, for at most the system's limit (45 s), and the holder can ask whether one is
//! waiting. So a commit takes a lease, compares the bytes of the file, replaces it, and asks again. If the lease still
//! holds, no other process had the file open between the comparison and the replacement, so none can have written to
//! it. If a writer is waiting, the file is put back, and the writer gets the file that it asked for. A waiting reader
//! does no harm: it gets the old file, as if it had opened it a moment earlier.
//!
//! A lease does not cover changes of mode, owner or attributes: those need no open file.

use std::{
    fs::File,
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

/// How long to wait for other programs to close a file before going on without a lease.
const PATIENCE: Duration = Duration::from_millis(8);

/// A granted write lease. It ends when its file is closed.
#[derive(Debug)]
pub(crate) struct Lease(());

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoLease {
    /// Another process has the file open.
    IsOpen,
    /// The file belongs to another user, and we are not privileged.
    NotOurs,
    /// The file system or the operating system does not support leases.
    NotHere,
}

impl Lease {
    pub(crate) fn take(file: &File) -> Result<Self, NoLease> {
        take_lease(file.as_fd()).map(|()| Self(()))
    }

    /// Like [`Self::take`], but waits briefly for other programs to close the file.
    pub(crate) fn take_patiently(file: &File) -> Result<Self, NoLease> {
        let until = Instant::now() + PATIENCE;
        loop {
            match Self::take(file) {
                Err(NoLease::IsOpen) if Instant::now() < until => std::thread::sleep(Duration::from_micros(200)),
                taken => return taken,
            }
        }
    }

    pub(crate) fn state(&self, file: &File) -> LeaseState {
        lease_state(file.as_fd())
    }

    /// Releases the lease before the file is closed.
    pub(crate) fn release(self, file: &File) {
        drop_lease(file.as_fd());
    }
}

/// Releases the lease on a file, if there is one.
pub(crate) fn give_back(file: &File) {
    drop_lease(file.as_fd());
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseState {
    Held,
    /// A reader is waiting, which does no harm.
    ReaderWaits,
    /// A writer is waiting, or the lease is gone.
    Broken,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{io, os::fd::AsRawFd};

    use super::*;

    /// Not in the libc crate for every target.
    const F_SETSIG: libc::c_int = 10;

    fn control(file: BorrowedFd<'_>, command: libc::c_int, argument: libc::c_int) -> io::Result<libc::c_int> {
        // SAFETY: the descriptor is borrowed, so it is open; these commands take an integer and touch no memory of
        // ours.
        #[expect(unsafe_code, reason = "fcntl leases have no safe wrapper")]
        let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
    }

    pub(super) fn take_lease(file: BorrowedFd<'_>) -> Result<(), NoLease> {
        // By default the signal that announces a break ends the process. SIGURG is ignored by default, and we poll
        // anyway.
        let taken =
            control(file, F_SETSIG, libc::SIGURG).and_then(|_| control(file, libc::F_SETLEASE, libc::c_int::from(F_WRLCK)));
        taken.map(drop).map_err(|error| match error.raw_os_error() {
            Some(libc::EAGAIN) => NoLease::IsOpen,
            Some(libc::EACCES | libc::EPERM) => NoLease::NotOurs,
            _ => NoLease::NotHere,
        })
    }

    pub(super) fn drop_lease(file: BorrowedFd<'_>) {
        let _ = control(file, libc::F_SETLEASE, libc::c_int::from(F_UNLCK));
    }

    /// While a process waits, the kernel reports what the lease will be reduced to.
    pub(super) fn lease_state(file: BorrowedFd<'_>) -> LeaseState {
        match control(file, libc::F_GETLEASE, 0) {
            Ok(kind) if kind == libc::c_int::from(F_WRLCK) => LeaseState::Held,
            Ok(kind) if kind == libc::c_int::from(F_RDLCK) => LeaseState::ReaderWaits,
            _ => LeaseState::Broken,
        }
    }

    const F_RDLCK: i16 = libc::F_RDLCK as i16;
    const F_WRLCK: i16 = libc::F_WRLCK as i16;
    const F_UNLCK: i16 = libc::F_UNLCK as i16;
}

#[cfg(target_os = "linux")]
use linux::{drop_lease, lease_state, take_lease};

/// Other systems have no leases.
#[cfg(not(target_os = "linux"))]
fn take_lease(_: BorrowedFd<'_>) -> Result<(), NoLease> {
    Err(NoLease::NotHere)
}

#[cfg(not(target_os = "linux"))]
fn drop_lease(_: BorrowedFd<'_>) {}

#[cfg(not(target_os = "linux"))]
fn lease_state(_: BorrowedFd<'_>) -> LeaseState {
    LeaseState::Broken
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "tests play the other program")]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_not_granted_while_the_file_is_open_elsewhere_and_breaks_when_it_is_opened() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ours = File::open(file.path()).unwrap();
        assert_eq!(Lease::take(&ours).unwrap_err(), NoLease::IsOpen, "the temporary file itself is still open");
        let path = file.into_temp_path();
        let lease = Lease::take(&ours).expect("no other process has it open");
        assert_eq!(lease.state(&ours), LeaseState::Held);
        std::thread::scope(|scope| {
            let opener = scope.spawn(|| File::options().append(true).open(&path).unwrap());
            while lease.state(&ours) == LeaseState::Held {
                std::thread::sleep(Duration::from_micros(100));
            }
            assert_eq!(lease.state(&ours), LeaseState::Broken);
            assert!(!opener.is_finished(), "the opener waits for us");
            lease.release(&ours);
            opener.join().unwrap();
        });
    }
}
