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
    io,
    os::fd::AsRawFd,
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
        // By default the signal that announces a break ends the process. SIGURG is ignored by default, and we query
        // the lease ourselves.
        let taken = control(file, F_SETSIG, libc::SIGURG).and_then(|_| control(file, F_SETLEASE, F_WRLCK));
        taken.map(|_| Self(())).map_err(|error| match error.raw_os_error() {
            Some(libc::EAGAIN) => NoLease::IsOpen,
            Some(libc::EACCES | libc::EPERM) => NoLease::NotOurs,
            _ => NoLease::NotHere,
        })
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

    /// While a process waits, the kernel reports what the lease will be reduced to.
    pub(crate) fn state(&self, file: &File) -> LeaseState {
        match control(file, F_GETLEASE, 0) {
            Ok(F_WRLCK) => LeaseState::Held,
            Ok(F_RDLCK) => LeaseState::ReaderWaits,
            _ => LeaseState::Broken,
        }
    }

    /// Releases the lease before the file is closed.
    pub(crate) fn release(self, file: &File) {
        give_back(file);
    }
}

/// Releases the lease on a file, if there is one.
pub(crate) fn give_back(file: &File) {
    let _ = control(file, F_SETLEASE, F_UNLCK);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseState {
    Held,
    /// A reader is waiting, which does no harm.
    ReaderWaits,
    /// A writer is waiting, or the lease is gone.
    Broken,
}

// The numbers of Linux: the libc crate does not have all of them for every target.
const F_SETSIG: libc::c_int = 10;
const F_SETLEASE: libc::c_int = 1024;
const F_GETLEASE: libc::c_int = 1025;
const F_RDLCK: libc::c_int = libc::F_RDLCK as libc::c_int;
const F_WRLCK: libc::c_int = libc::F_WRLCK as libc::c_int;
const F_UNLCK: libc::c_int = libc::F_UNLCK as libc::c_int;

fn control(file: &File, command: libc::c_int, argument: libc::c_int) -> io::Result<libc::c_int> {
    // Other systems have no leases.
    if cfg!(not(target_os = "linux")) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: the file is borrowed, so its descriptor is open; these commands take an integer and touch no memory of
    // ours.
    #[expect(unsafe_code, reason = "fcntl leases have no safe wrapper")]
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
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
