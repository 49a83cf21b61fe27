//! Keeps the database within its bounds. Deletes the least recently used versions, events and sessions in small parts,
//! so that other writers never wait long.
//!
//! Age is measured in turns and in days with records, never by the present time: a wrong clock must not delete the
//! record of anyone's work.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::schema::{CHECKPOINT_ROOM, EVENT_ROOM, INCIDENT_ROOM, VERSION_ROOM};
use crate::{Millis, SessionId, StoreBounds, StoreRecord};

const MILLIS_OF_A_DAY: Millis = 24 * 60 * 60 * 1000;

/// The bytes and rows that are deleted in one transaction; at least twice the bytes that were added.
const PART_BYTES: i64 = 8 << 20;
const PART_ROWS: usize = 2000;

/// The number of pages released at once.
const PART_PAGES: i64 = 512;

/// A batch of writes, with its effect on the bounds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WrittenTurn {
    pub number: i64,
    /// The size of versions and events, and the part of it that this turn added.
    bytes: i64,
    added: i64,
    /// Whether some records may be too old, or the sessions too many.
    pub is_trim_due: bool,
}

impl WrittenTurn {
    /// Takes over unfinished trimming from the previous turn.
    pub(super) fn after(self, before: &WrittenTurn) -> Self {
        Self { is_trim_due: self.is_trim_due || before.is_trim_due, ..self }
    }

    pub(super) fn end(self, transaction: &Transaction<'_>) -> rusqlite::Result<Self> {
        let bytes = bytes(transaction)?;
        Ok(Self { bytes, added: bytes - self.bytes, ..self })
    }
}

/// Assigns a turn to these records, and records their days and sessions.
pub(super) fn begin_turn(transaction: &Transaction<'_>, checkout: i64, records: &[StoreRecord]) -> rusqlite::Result<WrittenTurn> {
    let sql = "UPDATE counters SET turn = turn + 1 RETURNING turn, bytes";
    let counters = transaction.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (number, bytes): (i64, i64) = counters;
    let mut is_new = false;
    for day in days(records) {
        let sql = "INSERT OR IGNORE INTO days (day, first_turn) VALUES (?1, ?2)";
        is_new |= transaction.prepare_cached(sql)?.execute(params![day, number])? > 0;
    }
    let (in_use, ended) = sessions(records);
    for session in in_use {
        // The time is for display only. Retention ignores it.
        const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
        let sql = format!("UPDATE sessions SET turn = ?3, at = {NOW} WHERE checkout = ?1 AND session = ?2");
        let values = params![checkout, session.0, number];
        if transaction.prepare_cached(&sql)?.execute(values)? == 0 {
            let sql = format!("INSERT INTO sessions (checkout, session, turn, at) VALUES (?1, ?2, ?3, {NOW})");
            transaction.prepare_cached(&sql)?.execute(values)?;
            is_new = true;
        }
    }
    for session in ended {
        let sql = "DELETE FROM sessions WHERE checkout = ?1 AND session = ?2";
        transaction.prepare_cached(sql)?.execute(params![checkout, session.0])?;
    }
    Ok(WrittenTurn { number, bytes, added: 0, is_trim_due: is_new })
}

fn days(records: &[StoreRecord]) -> HashSet<i64> {
    let at = |record: &StoreRecord| match record {
        StoreRecord::Kept { at, .. } => Some(*at),
        StoreRecord::Happened(event) => Some(event.at),
        StoreRecord::Checkpointed(checkpoint) => Some(checkpoint.info.at),
        StoreRecord::Noticed(incident) => Some(incident.at),
        _ => None,
    };
    records.iter().filter_map(at).map(|at| at.div_euclid(MILLIS_OF_A_DAY)).collect()
}

/// The sessions that still have records after these ones, and those that have none.
fn sessions(records: &[StoreRecord]) -> (HashSet<&SessionId>, HashSet<&SessionId>) {
    let (mut in_use, mut ended) = (HashSet::new(), HashSet::new());
    for record in records {
        match record {
            StoreRecord::Viewed { session, .. }
            | StoreRecord::Given { session, .. }
            | StoreRecord::Refused { session, .. }
            | StoreRecord::Rewrote { session, .. }
            | StoreRecord::InUse { session } => {
                ended.remove(session);
                in_use.insert(session);
            }
            StoreRecord::Cleared { session } => {
                in_use.remove(session);
                ended.insert(session);
            }
            StoreRecord::Forgot { .. }
            | StoreRecord::Found { .. }
            | StoreRecord::Kept { .. }
            | StoreRecord::Happened(_)
            | StoreRecord::Checkpointed(_)
            | StoreRecord::StillSo { .. }
            | StoreRecord::Noticed(_)
            | StoreRecord::Touched { .. }
            | StoreRecord::Mended { .. } => {}
        }
    }
    (in_use, ended)
}

fn bytes(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT bytes FROM counters")?.query_row([], |row| row.get(0))
}

/// The first turn of the last `days` days with records.
fn first_turn(connection: &Connection, days: u32) -> rusqlite::Result<i64> {
    let sql = "SELECT first_turn FROM days ORDER BY number DESC LIMIT 1 OFFSET ?1";
    let turn = connection.prepare_cached(sql)?.query_row([days.saturating_sub(1)], |row| row.get(0)).optional()?;
    Ok(turn.unwrap_or(i64::MIN))
}

/// Deletes a part of the data that exceeds the bounds. Returns whether more is left.
pub(super) fn trim(connection: &mut Connection, bounds: &StoreBounds, turn: &mut WrittenTurn) -> rusqlite::Result<bool> {
    let most = i64::try_from(bounds.bytes).unwrap_or(i64::MAX);
    if !turn.is_trim_due && turn.bytes <= most {
        return Ok(false);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let part = PART_BYTES.max(turn.added.saturating_mul(2));
    let has_more_content = drop_oldest(&transaction, most, first_turn(&transaction, bounds.days)?, part)?;
    let has_more_sessions = drop_sessions(&transaction, bounds)?;
    turn.bytes = bytes(&transaction)?;
    transaction.commit()?;
    turn.added = 0;
    turn.is_trim_due = has_more_content || has_more_sessions;
    Ok(turn.is_trim_due)
}

/// Deletes versions, events, checkpoints and incidents in the order of their turns, until the rest takes at most `most`
/// bytes and nothing is older than `first_turn`, or until `part` bytes are deleted. Returns whether more is left.
pub(super) fn drop_oldest(transaction: &Transaction<'_>, most: i64, first_turn: i64, part: i64) -> rusqlite::Result<bool> {
    let oldest = |sql: &str| -> rusqlite::Result<Option<(i64, i64, i64)>> {
        let mut statement = transaction.prepare_cached(sql)?;
        statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
    };
    let event = format!("SELECT coalesce(turn, at), id, {EVENT_ROOM} FROM events ORDER BY id LIMIT 1");
    let checkpoint = format!("SELECT turn, number, {CHECKPOINT_ROOM} FROM checkpoints ORDER BY number LIMIT 1");
    let incident = format!("SELECT turn, number, {INCIDENT_ROOM} FROM incidents ORDER BY number LIMIT 1");
    let version = format!("SELECT used_at, rowid, {VERSION_ROOM} FROM versions ORDER BY used_at, rowid LIMIT 1");
    let total = bytes(transaction)?;
    let mut dropped = 0;
    for _ in 0..PART_ROWS {
        // Within a turn, events and checkpoints go first: they may need a version, but never the reverse.
        let next = [
            (oldest(&event)?, "DELETE FROM events WHERE id = ?1"),
            (oldest(&checkpoint)?, "DELETE FROM checkpoints WHERE number = ?1"),
            (oldest(&incident)?, "DELETE FROM incidents WHERE number = ?1"),
            (oldest(&version)?, "DELETE FROM versions WHERE rowid = ?1"),
        ];
        let next = next.into_iter().filter_map(|(oldest, sql)| Some((oldest?, sql))).min_by_key(|((turn, ..), _)| *turn);
        let Some(((turn, row, room), sql)) = next else { return Ok(false) };
        if total - dropped <= most && turn >= first_turn {
            return Ok(false);
        }
        if dropped > part {
            return Ok(true);
        }
        transaction.prepare_cached(sql)?.execute([row])?;
        dropped += room;
    }
    Ok(true)
}

/// Deletes the views of the least recently used session, if it is too old or the sessions are too many. Returns whether
/// more may be left.
fn drop_sessions(transaction: &Transaction<'_>, bounds: &StoreBounds) -> rusqlite::Result<bool> {
    let sql = "SELECT checkout, session, turn FROM sessions ORDER BY turn LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let oldest: Option<(i64, String, i64)> = transaction.prepare_cached(sql)?.query_row([], read).optional()?;
    let Some((checkout, session, turn)) = oldest else { return Ok(false) };
    let count: i64 = transaction.prepare_cached("SELECT count(*) FROM sessions")?.query_row([], |row| row.get(0))?;
    let is_old = turn < first_turn(transaction, bounds.days.max(2))?;
    if !is_old && usize::try_from(count).unwrap_or_default() <= bounds.sessions.max(1) {
        return Ok(false);
    }
    let mut rows = 0;
    for (table, key) in [("views", "path"), ("given", "path"), ("refused", "call"), ("rewrites", "path")] {
        let sql = format!(
            "DELETE FROM {table} WHERE checkout = ?1 AND session = ?2 AND {key} IN
                (SELECT {key} FROM {table} WHERE checkout = ?1 AND session = ?2 LIMIT {PART_ROWS})"
        );
        rows += transaction.prepare_cached(&sql)?.execute(params![checkout, session])?;
    }
    if rows < PART_ROWS {
        transaction.execute("DELETE FROM sessions WHERE checkout = ?1 AND session = ?2", params![checkout, session])?;
    }
    Ok(true)
}

/// Returns free pages to the system if there are many, and returns whether more are left. With `may_rewrite`, it
/// rewrites the file, which is tried only once because it needs extra space.
pub(super) fn release_space(connection: &Connection, may_rewrite: &mut bool) -> rusqlite::Result<bool> {
    const INCREMENTAL: i64 = 2;
    let read = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (pages, free) = (read("page_count")?, read("freelist_count")?);
    // A few free pages are soon used again.
    if free <= PART_PAGES || free <= pages / 8 {
        return Ok(false);
    }
    if read("auto_vacuum")? == INCREMENTAL {
        let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({PART_PAGES})"))?;
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
        return Ok(true);
    }
    // A file of an older format can only be rewritten. That is worth the time if most of it is free.
    if free > pages / 2 && std::mem::take(may_rewrite) {
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
        connection.execute_batch("VACUUM")?;
    }
    Ok(false)
}
