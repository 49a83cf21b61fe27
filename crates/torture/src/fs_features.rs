//! The features of a directory's file system: atomic exchange of two files, and leases. Without them Surehand promises
//! less, and the races leave out what it does not promise.

use std::{
    fs::{self, File},
    os::fd::AsRawFd,
    path::Path,
};

use anyhow::{Context, Result};
use rustix::fs::{CWD, FsWord, RenameFlags, renameat_with, statfs};

/// The type that `statfs` reports for FUSE.
const FUSE: FsWord = 0x6573_5546;

/// The features of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FsFeatures {
    /// Whether `RENAME_EXCHANGE` works.
    pub exchange: bool,
    /// Whether write leases work.
    pub leases: bool,
}

impl FsFeatures {
    /// Tests the features in `dir`.
    pub(crate) fn of(dir: &Path) -> Result<Self> {
        let home = tempfile::tempdir_in(dir).with_context(|| dir.display().to_string())?;
        let (one, two) = (home.path().join("one"), home.path().join("two"));
        fs::write(&one, "1").context("a file to try it out")?;
        fs::write(&two, "2").context("a file to try it out")?;
        let exchange = renameat_with(CWD, &one, CWD, &two, RenameFlags::EXCHANGE).is_ok();
        let file = File::open(&one).context("a file to try it out")?;
        // A FUSE file system grants leases, but one file may have several inodes, each with its own leases.
        let is_in_program = statfs(home.path())?.f_type == FUSE;
        Ok(Self { exchange, leases: !is_in_program && takes_lease(&file) })
    }

    /// The promises that do not hold here, for the report.
    pub(crate) fn lack(self) -> Option<&'static str> {
        match (self.leases, self.exchange) {
            (true, true) => None,
            (true, false) => Some("programs that rename: without exchange a rename in the instant before ours is replaced"),
            (false, _) => Some(
                "the account of other programs' tokens: without leases, no process knows whether another one has a file open",
            ),
        }
    }
}

/// Whether a write through one hard link shows through the others. Some FUSE file systems have a cache per name.
pub(crate) fn names_agree(dir: &Path) -> bool {
    let agree = || {
        let home = tempfile::tempdir_in(dir)?;
        let (one, other) = (home.path().join("one"), home.path().join("other"));
        fs::write(&one, "1")?;
        fs::hard_link(&one, &other)?;
        let before = fs::read(&other)?;
        fs::write(&one, "2")?;
        std::io::Result::Ok(before == b"1" && fs::read(&other)? == b"2")
    };
    agree().unwrap_or(false)
}

fn takes_lease(file: &File) -> bool {
    // SAFETY: the file is open while it is borrowed; the command takes an integer and touches no memory of ours.
    #[expect(unsafe_code, reason = "leases have no safe wrapper")]
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
    answer == 0
}
