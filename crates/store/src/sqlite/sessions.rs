//! Reads the sessions that have records in the store.

use rusqlite::params;
use surehand_core::SessionId;

use super::SqliteStore;
use crate::{KnownSession, StoreError};

/// Every session that has a view, a change, an incident or a checkpoint, by id.
pub(super) fn list(store: &SqliteStore) -> Result<Vec<KnownSession>, StoreError> {
    let sql = "SELECT session, sum(viewed), sum(changes), max(coalesce(max(at), 0), coalesce((
                SELECT at FROM sessions WHERE checkout = ?1 AND sessions.session = known.session), 0)) FROM (
            SELECT session, count(*) AS viewed, 0 AS changes, NULL AS at FROM views
                WHERE checkout = ?1 AND path >= ?2 AND path < ?3 GROUP BY session
            UNION ALL SELECT session, 0, count(DISTINCT change), max(at) FROM events
                WHERE checkout = ?1 AND path >= ?2 AND path < ?3 GROUP BY session
            UNION ALL SELECT session, 0, 0, max(until) FROM checkpoints
                WHERE checkout = ?1 AND directory = ?4 AND session IS NOT NULL GROUP BY session
            UNION ALL SELECT session, 0, 0, max(at) FROM incidents
                WHERE checkout = ?1 AND (path IS NULL OR (path >= ?2 AND path < ?3)) GROUP BY session
        ) AS known GROUP BY session ORDER BY session";
    let (from, to) = store.rows.range();
    let count = |number: i64| usize::try_from(number).unwrap_or_default();
    store.all(sql, params![store.rows.checkout, from, to, store.rows.directory()], |row| {
        let last_active = Some(row.get(3)?).filter(|at| *at > 0);
        Ok(KnownSession { id: SessionId(row.get(0)?), viewed: count(row.get(1)?), changes: count(row.get(2)?), last_active })
    })
}
