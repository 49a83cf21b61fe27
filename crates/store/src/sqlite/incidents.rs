//! The table of incidents.

use rusqlite::{Transaction, params};
use surehand_core::SessionId;

use super::{CheckoutRows, SqliteStore};
use crate::{Incident, IncidentId, StoreError};

/// Writes an incident. An outside change is written once for each new content, until a change of ours is recorded.
pub(super) fn write(transaction: &Transaction<'_>, rows: &CheckoutRows, turn: i64, incident: &Incident) -> rusqlite::Result<()> {
    let Incident { id, at, session, path, kind } = incident;
    let path = path.as_ref().map(|path| rows.key(path));
    let found = kind.found_outside();
    let what = serde_json::to_string(kind).map_err(|error| super::not_packed(error.into()))?;
    let sql = "INSERT INTO incidents (checkout, turn, id, at, session, path, is_outside, after, what)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE NOT ?7 OR NOT EXISTS (
            SELECT 1 FROM (SELECT after, turn FROM incidents WHERE checkout = ?1 AND path = ?6 AND is_outside
                ORDER BY number DESC LIMIT 1) AS last
            WHERE last.after IS ?8 AND NOT EXISTS (
                SELECT 1 FROM events WHERE checkout = ?1 AND (path = ?6 OR moved_to = ?6) AND turn > last.turn))";
    let after = found.flatten().map(|version| *version.as_bytes());
    let values = params![rows.checkout, turn, id.0, at, session.0, path, found.is_some(), after, what];
    transaction.prepare_cached(sql)?.execute(values).map(drop)
}

pub(super) fn list(store: &SqliteStore, limit: usize) -> Result<Vec<Incident>, StoreError> {
    let sql = "SELECT id, at, session, path, what FROM incidents
        WHERE checkout = ?1 AND (path IS NULL OR (path >= ?2 AND path < ?3)) ORDER BY number DESC LIMIT ?4";
    let (from, to) = store.rows.range();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = store.all(sql, params![store.rows.checkout, from, to, limit], |row| {
        let path = row.get::<_, Option<String>>(3)?.and_then(|path| store.rows.path(&path));
        // Unreadable incidents are dropped.
        let kind = serde_json::from_str(row.get_ref(4)?.as_str()?).ok();
        let (id, at, session) = (IncidentId(row.get(0)?), row.get(1)?, SessionId(row.get(2)?));
        Ok(kind.map(|kind| Incident { id, at, session, path, kind }))
    })?;
    Ok(found.into_iter().flatten().collect())
}
