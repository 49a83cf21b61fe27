//! Removes data on request: history from before a given time, the views of idle sessions, and the rows of a checkout.
//!
//! Data is deleted in the same order as by retention, oldest first and in small parts. So other processes can write in
//! between, and the result is a state that retention could have reached, too.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::{
    CheckoutRows, SqliteStore, attempt, retention,
    schema::{CHECKPOINT_ROOM, EVENT_ROOM, INCIDENT_ROOM, VERSION_ROOM},
    usage::{VIEW_ROOM, amount},
};
use crate::{Millis, StoreError, StoreScope, StoreUsage};

/// The amount that is removed in one transaction.
const PART_BYTES: i64 = 8 << 20;
const PART_ROWS: usize = 5000;

/// The tables in which every row belongs to a checkout.
const TABLES_OF_CHECKOUTS: [&str; 11] =
    ["views", "given", "files", "refused", "rewrites", "tasks", "story", "sessions", "tracked", "checkpoints", "incidents"];

/// The versions that sessions have seen which were active at `?1` or later.
const VERSIONS_IN_USE: &str =
    "SELECT unhex(json_extract(view, '$.version')) AS seen FROM views JOIN sessions USING (checkout, session)
    WHERE sessions.at >= ?1 AND seen IS NOT NULL";

/// Rows of sessions that were last active before `?1`, or at an unknown time.
const IDLE: &str = "(checkout, session) NOT IN (SELECT checkout, session FROM sessions WHERE at >= ?1)";

/// The history from before a given time, which can be removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldHistory {
    /// The amount of data, without views and sessions.
    pub usage: StoreUsage,
    /// The names that a person gave to checkpoints in it, oldest first.
    pub named_checkpoints: Vec<String>,
}

impl SqliteStore {
    /// Counts the versions, changes, checkpoints and other entries of the log that are from before `moment`. Versions
    /// in views of sessions that were active since `in_use_since` are not counted.
    pub fn history_before(&self, moment: Millis, in_use_since: Millis) -> Result<OldHistory, StoreError> {
        let connection = &self.connection;
        attempt(&self.path, || {
            let Some(end) = first_turn_since(connection, moment)? else { return Ok(OldHistory::default()) };
            let amount = |table: &str, count: &str, room: &str, is_old: &str| {
                amount(connection, &format!("SELECT {count}, coalesce(sum({room}), 0) FROM {table} WHERE {is_old}"), params![end])
            };
            let versions = format!(
                "SELECT count(*), coalesce(sum({VERSION_ROOM}), 0) FROM versions WHERE used_at < ?2 AND version NOT IN ({VERSIONS_IN_USE})"
            );
            let usage = StoreUsage {
                versions: self::amount(connection, &versions, params![in_use_since, end])?,
                changes: amount("events", "count(DISTINCT change)", EVENT_ROOM, "coalesce(turn, at) < ?1")?,
                checkpoints: amount("checkpoints", "count(*)", CHECKPOINT_ROOM, "turn < ?1")?,
                incidents: amount("incidents", "count(*)", INCIDENT_ROOM, "turn < ?1")?,
                ..StoreUsage::default()
            };
            let sql = "SELECT name FROM checkpoints WHERE turn < ?1 AND name IS NOT NULL ORDER BY number";
            let named_checkpoints =
                connection.prepare(sql)?.query_map([end], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            Ok(OldHistory { usage, named_checkpoints })
        })
    }

    /// Removes the history that [`Self::history_before`] counts.
    pub fn drop_history_before(&mut self, moment: Millis, in_use_since: Millis) -> Result<(), StoreError> {
        let mut has_more = true;
        while has_more {
            has_more = attempt(&self.path, || {
                let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let Some(end) = first_turn_since(&transaction, moment)? else { return Ok(false) };
                let sql = format!(
                    "UPDATE versions SET used_at = (SELECT turn FROM counters) WHERE used_at < ?2 AND version IN ({VERSIONS_IN_USE})"
                );
                transaction.execute(&sql, params![in_use_since, end])?;
                let has_more = retention::drop_oldest(&transaction, i64::MAX, end, PART_BYTES)?;
                transaction.commit()?;
                Ok(has_more)
            })?;
        }
        Ok(())
    }

    /// Counts the views of sessions that were last active before `moment`, and these sessions.
    pub fn idle_sessions(&self, moment: Millis) -> Result<StoreUsage, StoreError> {
        let connection = &self.connection;
        attempt(&self.path, || {
            let views = format!("SELECT count(*), coalesce(sum({VIEW_ROOM}), 0) FROM views WHERE {IDLE}");
            let sessions = format!("SELECT count(*), 0 FROM (SELECT DISTINCT checkout, session FROM views WHERE {IDLE})");
            let views = amount(connection, &views, params![moment])?;
            Ok(StoreUsage { views, sessions: amount(connection, &sessions, params![moment])?.count, ..StoreUsage::default() })
        })
    }

    /// Removes the views, instructions and counters of sessions that were last active before `moment`. Their changes
    /// stay in the log.
    pub fn drop_idle_sessions(&mut self, moment: Millis) -> Result<(), StoreError> {
        for (table, key) in [("views", "path"), ("given", "path"), ("refused", "call"), ("rewrites", "path")] {
            let keys = format!("checkout, session, {key}");
            let sql =
                format!("DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM {table} WHERE {IDLE} LIMIT {PART_ROWS})");
            self.run_in_parts(&sql, moment)?;
        }
        self.run_in_parts("DELETE FROM sessions WHERE at IS NULL OR at < ?1", moment)
    }

    /// The data of one checkout in the store.
    pub fn usage_of_checkout(&self, checkout: &str) -> Result<StoreUsage, StoreError> {
        let number = CheckoutRows::of(&StoreScope { checkout: checkout.to_owned(), below: None }).checkout;
        let connection = &self.connection;
        attempt(&self.path, || {
            let of = |table: &str, count: &str, room: &str| {
                let sql = format!("SELECT {count}, coalesce(sum({room}), 0) FROM {table} WHERE checkout = ?1");
                amount(connection, &sql, params![number])
            };
            Ok(StoreUsage {
                changes: of("events", "count(DISTINCT change)", EVENT_ROOM)?,
                checkpoints: of("checkpoints", "count(*)", CHECKPOINT_ROOM)?,
                incidents: of("incidents", "count(*)", INCIDENT_ROOM)?,
                views: of("views", "count(*)", VIEW_ROOM)?,
                sessions: of("views", "count(DISTINCT session)", "0")?.count,
                ..StoreUsage::default()
            })
        })
    }

    /// Removes all data of a checkout. The contents of files, which all checkouts share, are removed by retention when
    /// they have not been used for a long time.
    pub fn drop_checkout(&mut self, checkout: &str) -> Result<(), StoreError> {
        let number = CheckoutRows::of(&StoreScope { checkout: checkout.to_owned(), below: None }).checkout;
        // Oldest first, because an earlier content is computed from later changes.
        let events =
            format!("DELETE FROM events WHERE id IN (SELECT id FROM events WHERE checkout = ?1 ORDER BY id LIMIT {PART_ROWS})");
        self.run_in_parts(&events, number)?;
        for table in TABLES_OF_CHECKOUTS {
            self.run_in_parts(&format!("DELETE FROM {table} WHERE checkout = ?1"), number)?;
        }
        Ok(())
    }

    /// Runs a statement until it changes fewer rows than a full part.
    fn run_in_parts(&mut self, sql: &str, key: i64) -> Result<(), StoreError> {
        while attempt(&self.path, || self.connection.execute(sql, params![key]))? >= PART_ROWS {}
        Ok(())
    }

    /// Returns all free space to the system.
    pub fn give_back_space(&mut self) -> Result<(), StoreError> {
        let connection = &self.connection;
        attempt(&self.path, || {
            retention::release_space(connection, &mut true)?;
            let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
            let mut pages = vacuum.query([])?;
            while pages.next()?.is_some() {}
            // Merges the log as far as other processes allow it.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).optional().map(drop)
        })
    }
}

/// The first turn that is not from before `moment`; `None` if all turns are from after it, or if their times are
/// unknown.
///
/// Turns have no time of their own, so the function uses that of the first change, checkpoint or incident after
/// `moment`. If a clock was wrong for a while, less is removed, not more.
fn first_turn_since(connection: &Connection, moment: Millis) -> rusqlite::Result<Option<i64>> {
    const DATED: &str = "SELECT coalesce(turn, at) AS turn, at FROM events UNION ALL SELECT turn, until FROM checkpoints
        UNION ALL SELECT turn, at FROM incidents";
    let turn = |sql: String, key: i64| connection.query_row(&sql, [key], |row| row.get::<_, Option<i64>>(0));
    if let Some(first) = turn(format!("SELECT min(turn) FROM ({DATED}) WHERE at >= ?1"), moment)? {
        return Ok(Some(first));
    }
    // No entry is dated later. Versions that were only read on a day that was over by then are older as well.
    const DAY: Millis = 24 * 60 * 60 * 1000;
    let is_over = "SELECT (SELECT turn FROM counters) + 1 WHERE (SELECT max(day) FROM days) < ?1".to_owned();
    match connection.query_row(&is_over, [moment.div_euclid(DAY)], |row| row.get(0)).optional()? {
        Some(next) => Ok(Some(next)),
        None => Ok(turn(format!("SELECT max(turn) FROM ({DATED}) WHERE at < ?1"), moment)?.map(|last| last + 1)),
    }
}
