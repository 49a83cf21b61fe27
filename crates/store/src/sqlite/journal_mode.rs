//! Chooses SQLite's journal mode.
//!
//! A write-ahead log is fastest, but its processes share memory through a mapped file (`-shm`). On a file system that
//! allocates space whenever a mapped page is written, a full disk then kills the process with SIGBUS. There we use a
//! rollback journal, which maps nothing.

use std::{fs::File, io::Read, path::Path, time::Duration};

use rusqlite::Connection;

use super::errors::is_busy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalMode {
    WriteAhead,
    Rollback,
}

/// Larger logs and journals are truncated after use.
const LONGEST: i64 = 4 << 20;

/// Chooses the journal for a connection that has not read anything yet. Waits for other processes for at most
/// `patience`.
pub(crate) fn set_journal_mode(connection: &Connection, path: &Path, patience: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(patience)?;
    match mode_for(path) {
        JournalMode::WriteAhead => {
            // If the system cannot share memory, the pragma keeps the old mode, which works, too, but is slower.
            let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
            if mode != "wal" {
                connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            }
        }
        JournalMode::Rollback => {
            if mode_of(path) == Some(JournalMode::WriteAhead) {
                give_up_log(connection, patience)?;
            } else {
                connection.pragma_update_and_check(None, "journal_mode", "truncate", |_| Ok(()))?;
            }
        }
    }
    connection.pragma_update_and_check(None, "journal_size_limit", LONGEST, |_| Ok(()))
}

/// Merges the log into the database and switches to a rollback journal. This needs exclusive access to the database,
/// because the shared memory of the log is then unused. While an older program has the database open, the mode stays.
fn give_up_log(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    // The older program may run for days.
    connection.busy_timeout(Duration::ZERO)?;
    let set_locking = |wanted: &str| connection.pragma_update_and_check(None, "locking_mode", wanted, |_| Ok(()));
    set_locking("exclusive")?;
    let changed = connection.pragma_update_and_check(None, "journal_mode", "truncate", |_| Ok(()));
    set_locking("normal")?;
    // The next read releases the lock.
    let released = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    connection.busy_timeout(patience)?;
    match changed.and(released) {
        Err(error) if is_busy(&error) => Ok(()),
        done => done,
    }
}

pub(super) fn mode_of(path: &Path) -> Option<JournalMode> {
    let mut header = [0; 20];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).ok()?;
    // The format version required for reading: 2 means a write-ahead log.
    Some(if header[19] == 2 { JournalMode::WriteAhead } else { JournalMode::Rollback })
}

/// The journal mode for a database at this path.
fn mode_for(path: &Path) -> JournalMode {
    let dir = path.parent().unwrap_or(path);
    if finds_room_on_write(dir) { JournalMode::Rollback } else { JournalMode::WriteAhead }
}

/// Whether the file system allocates space on every write, even over existing data.
#[cfg(target_os = "linux")]
fn finds_room_on_write(dir: &Path) -> bool {
    const BTRFS: u64 = 0x9123_683e;
    const BCACHEFS: u64 = 0xca45_1a4e;
    const F2FS: u64 = 0xf2f5_2010;
    const ZFS: u64 = 0x2fc1_2fc1;
    const NILFS: u64 = 0x3434;
    #[allow(clippy::unnecessary_cast, reason = "signed or narrower on some systems")]
    let kind = rustix::fs::statfs(dir).map(|fs| fs.f_type as u64 & 0xffff_ffff);
    kind.is_ok_and(|kind| [BTRFS, BCACHEFS, F2FS, ZFS, NILFS].contains(&kind))
}

#[cfg(not(target_os = "linux"))]
fn finds_room_on_write(_: &Path) -> bool {
    false
}
