//! The few system calls that no safe wrapper offers: leases on files. A write lease is granted only while nobody else has the
//! file open, and tells us when somebody starts to open it.

use std::os::fd::BorrowedFd;

/// What has become of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// Nobody else has opened the file.
    Held,
    /// Somebody waits to read it, which does no harm.
    ReaderWaits,
    /// Somebody waits to write it, or the lease is gone.
    Broken,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Not in the libc crate for every target.
    const F_SETSIG: libc::c_int = 10;

    fn control(file: BorrowedFd<'_>, command: libc::c_int, argument: libc::c_int) -> Option<libc::c_int> {
        // SAFETY: the descriptor is borrowed, so it is open; these commands take an integer and touch no memory of ours.
        #[expect(unsafe_code, reason = "fcntl leases have no safe wrapper")]
        let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
        (answer >= 0).then_some(answer)
    }

    /// Asks for a write lease. `false` when somebody has the file open, or the system gives none.
    pub(crate) fn take_lease(file: BorrowedFd<'_>) -> bool {
        // The signal that announces a break would end the process by default. SIGURG is ignored by default, and we ask anyway.
        control(file, F_SETSIG, libc::SIGURG).is_some() && control(file, libc::F_SETLEASE, libc::c_int::from(F_WRLCK)).is_some()
    }

    /// Gives the lease back.
    pub(crate) fn drop_lease(file: BorrowedFd<'_>) {
        control(file, libc::F_SETLEASE, libc::c_int::from(F_UNLCK));
    }

    /// What has become of the lease. While somebody waits, the kernel tells which kind it will be reduced to.
    pub(crate) fn lease_state(file: BorrowedFd<'_>) -> LeaseState {
        match control(file, libc::F_GETLEASE, 0) {
            Some(kind) if kind == libc::c_int::from(F_WRLCK) => LeaseState::Held,
            Some(kind) if kind == libc::c_int::from(F_RDLCK) => LeaseState::ReaderWaits,
            _ => LeaseState::Broken,
        }
    }

    const F_RDLCK: i16 = libc::F_RDLCK as i16;
    const F_WRLCK: i16 = libc::F_WRLCK as i16;
    const F_UNLCK: i16 = libc::F_UNLCK as i16;
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{drop_lease, lease_state, take_lease};

/// There are no leases here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn take_lease(_: BorrowedFd<'_>) -> bool {
    false
}

/// There are no leases here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_lease(_: BorrowedFd<'_>) {}

/// There are no leases here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn lease_state(_: BorrowedFd<'_>) -> LeaseState {
    LeaseState::Broken
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "tests play the other program")]
mod tests {
    use std::{fs::File, os::fd::AsFd, time::Duration};

    use super::*;

    #[test]
    fn a_lease_is_not_granted_while_the_file_is_open_elsewhere_and_breaks_when_it_is_opened() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ours = File::open(file.path()).unwrap();
        assert!(!take_lease(ours.as_fd()), "the temporary file itself is still open");
        let path = file.into_temp_path();
        assert!(take_lease(ours.as_fd()), "nobody else has it open");
        assert_eq!(lease_state(ours.as_fd()), LeaseState::Held);
        std::thread::scope(|scope| {
            let opener = scope.spawn(|| File::options().append(true).open(&path).unwrap());
            while lease_state(ours.as_fd()) == LeaseState::Held {
                std::thread::sleep(Duration::from_micros(100));
            }
            assert_eq!(lease_state(ours.as_fd()), LeaseState::Broken);
            assert!(!opener.is_finished(), "the opener waits for us");
            drop_lease(ours.as_fd());
            opener.join().unwrap();
        });
    }
}
