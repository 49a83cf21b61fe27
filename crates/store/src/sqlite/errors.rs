//! Converts errors of SQLite into [`StoreError`]s, and finds out details that SQLite does not report.

use std::{error::Error, io, path::Path};

use rusqlite::ErrorCode;
use rustix::{
    fs::{self as sys, Mode, OFlags},
    io::Errno,
};

use crate::StoreError;

pub(crate) fn failed(path: &Path, error: impl Error + Send + Sync + 'static) -> StoreError {
    let may_be_full = matches!(code(&error), Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen));
    match may_be_full.then(|| no_room(path)).flatten() {
        Some(error) => StoreError::DiskFull { path: path.display().to_string(), error },
        None => StoreError::Backend { path: path.display().to_string(), error: Box::new(error) },
    }
}

/// Whether this file system has no room. SQLite reports "disk I/O error" for most kinds of full disks and quotas, so
/// this tries to write an unnamed file.
fn no_room(path: &Path) -> Option<io::Error> {
    let dir = path.parent()?;
    let written = (|| {
        let file = sys::open(dir, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o600))?;
        let mut rest = &[0x5a_u8; 1 << 17][..];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        sys::fsync(&file)
    })();
    written.err().filter(|errno| matches!(*errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG)).map(Into::into)
}

fn code(error: &(dyn Error + 'static)) -> Option<ErrorCode> {
    match error.downcast_ref::<rusqlite::Error>()? {
        rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
        error => error.sqlite_error_code(),
    }
}

/// An invalid statement is damage as well: the tables are not the ones we created.
pub(crate) fn is_damage(error: &(dyn Error + 'static)) -> bool {
    matches!(code(error), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown))
}

pub(crate) fn is_busy(error: &(dyn Error + 'static)) -> bool {
    matches!(code(error), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
