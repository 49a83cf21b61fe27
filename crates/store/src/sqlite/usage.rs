//! Measures the data in the tables.

use rusqlite::{Connection, ToSql};

use super::{
    SqliteStore, attempt,
    schema::{CHECKPOINT_ROOM, EVENT_ROOM, INCIDENT_ROOM, VERSION_ROOM},
};
use crate::{KeptAmount, StoreError, StoreUsage};

/// The estimated bytes of a row of `views`, including its index.
pub(super) const VIEW_ROOM: &str = "60 + 2 * length(session) + 2 * length(path) + length(view)";

impl SqliteStore {
    /// The data that the store keeps for all checkouts.
    pub fn usage(&self) -> Result<StoreUsage, StoreError> {
        Ok(StoreUsage {
            versions: self.amount("versions", "count(*)", VERSION_ROOM)?,
            changes: self.amount("events", "count(DISTINCT change)", EVENT_ROOM)?,
            checkpoints: self.amount("checkpoints", "count(*)", CHECKPOINT_ROOM)?,
            incidents: self.amount("incidents", "count(*)", INCIDENT_ROOM)?,
            views: self.amount("views", "count(*)", VIEW_ROOM)?,
            sessions: self.amount("(SELECT DISTINCT checkout, session FROM views)", "count(*)", "0")?.count,
        })
    }

    fn amount(&self, table: &str, count: &str, room: &str) -> Result<KeptAmount, StoreError> {
        let sql = format!("SELECT {count}, coalesce(sum({room}), 0) FROM {table}");
        attempt(&self.path, || amount(&self.connection, &sql, &[]))
    }
}

/// The number and the size of the rows that a query selects.
pub(super) fn amount(connection: &Connection, sql: &str, keys: &[&dyn ToSql]) -> rusqlite::Result<KeptAmount> {
    let number = |number: i64| u64::try_from(number).unwrap_or_default();
    connection.query_row(sql, keys, |row| Ok(KeptAmount { count: number(row.get(0)?), bytes: number(row.get(1)?) }))
}
