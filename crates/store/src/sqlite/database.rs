//! Opens and migrates the SQLite files of the store and of the board.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::{Connection, TransactionBehavior};

use super::errors::{failed, is_busy, is_damage};
use crate::StoreError;

/// How long a connection waits for other processes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Runs `work` on the database at this path, and adds the path to its error.
pub(crate) fn attempt<T>(path: &Path, work: impl FnOnce() -> rusqlite::Result<T>) -> Result<T, StoreError> {
    work().map_err(|error| failed(path, error))
}

/// Opens a database. A damaged one is moved aside and replaced by a new one; then the result has its new path.
pub(crate) fn open<T>(path: &Path, try_open: impl Fn() -> Result<T, StoreError>) -> Result<(T, Option<PathBuf>), StoreError> {
    match while_busy(&try_open) {
        Err(StoreError::Backend { error, .. }) if is_damage(error.as_ref()) => {
            let aside = set_aside(path).map_err(|error| failed(path, error))?;
            Ok((while_busy(&try_open)?, Some(aside)))
        }
        opened => Ok((opened?, None)),
    }
}

/// Retries while the database is busy: if several processes create it at once, SQLite reports "busy" to all but one,
/// without waiting.
fn while_busy<T>(try_open: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match try_open() {
            Err(StoreError::Backend { error, .. }) if is_busy(error.as_ref()) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            opened => return opened,
        }
    }
}

pub(crate) fn format_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Migrates the tables to this format, by the steps from an older one. Returns whether a migration was necessary.
pub(crate) fn migrate(
    connection: &mut Connection,
    path: &Path,
    format: i64,
    steps_from: impl Fn(usize) -> &'static [&'static str],
) -> Result<bool, StoreError> {
    let found = attempt(path, || format_of(connection))?;
    if found > format {
        return Err(StoreError::Newer { path: path.display().to_string(), found, known: format });
    }
    if found == format {
        return Ok(false);
    }
    attempt(path, || {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have migrated it meanwhile.
        let found = usize::try_from(format_of(&transaction)?).unwrap_or_default();
        steps_from(found).iter().try_for_each(|step| transaction.execute_batch(step))?;
        transaction.pragma_update(None, "user_version", format)?;
        transaction.commit()
    })?;
    Ok(true)
}

/// Moves a damaged file and its companions aside, under a free name.
#[expect(clippy::disallowed_methods, reason = "a state file, not a user's")]
fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let with = |ending: &str| with_ending(path, ending);
    let aside = (1..).map(|number| with(&format!(".damaged-{number}"))).find(|name| !name.exists()).expect("numbers do not end");
    fs::rename(path, &aside)?;
    for ending in ["-wal", "-shm", "-journal"] {
        // They belong to the damaged file, and SQLite would apply them to the new one.
        match fs::remove_file(with(ending)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
