//! Chooses SQLite's journal mode.
//!
//! A write-ahead log is fastest, and its processes share memory through a mapped file (`-shm`). On a file system that must
//! allocate space each time a mapped page is written, a full disk then ends the process with SIGBUS. There a rollback journal
//! is used, which maps nothing.

use std::{fs::File, io::Read, path::Path, time::Duration};

use rusqlite::Connection;

use super::errors::is_busy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalMode {
    WriteAhead,
    Rollback,
}

/// Longer logs and journals are cut when they are done with.
const LONGEST: i64 = 4 << 20;

/// Chooses the journal for a connection that has not read anything yet, and waits for others as long as `patience` says.
pub(super) fn set_journal_mode(connection: &Connection, path: &Path, patience: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(patience)?;
    match mode_for(path) {
        JournalMode::WriteAhead => {
            // Where the system cannot share memory the pragma leaves the old mode in place, which works as well, only slower.
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

/// Merges the log into the database and switches to a rollback journal. That needs the database exclusively, because the
/// shared memory of the log is then not used. While an older program has the database open, its mode stays.
fn give_up_log(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    // That one may stay for days.
    connection.busy_timeout(Duration::ZERO)?;
    let alone = |wanted: &str| connection.pragma_update_and_check(None, "locking_mode", wanted, |_| Ok(()));
    alone("exclusive")?;
    let changed = connection.pragma_update_and_check(None, "journal_mode", "truncate", |_| Ok(()));
    alone("normal")?;
    // The lock goes with the next look.
    let looked = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    connection.busy_timeout(patience)?;
    match changed.and(looked) {
        Err(error) if is_busy(&error) => Ok(()),
        done => done,
    }
}

pub(super) fn mode_of(path: &Path) -> Option<JournalMode> {
    let mut header = [0; 20];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).ok()?;
    // The version that a reader must understand; 2 is that with a log.
    Some(if header[19] == 2 { JournalMode::WriteAhead } else { JournalMode::Rollback })
}

/// The journal that a database at this place should have.
fn mode_for(path: &Path) -> JournalMode {
    let dir = path.parent().unwrap_or(path);
    if finds_room_on_write(dir) { JournalMode::Rollback } else { JournalMode::WriteAhead }
}

/// Whether the file system takes new room for whatever is written, also where something is already.
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
