//! Reads the news of the board, and deletes old data.

use rusqlite::{Row, Transaction, params, types::Type};
use serde::de::DeserializeOwned;

use super::{Failure, Write, now, paths, tasks};
use crate::board::{BoardBounds, CheckoutId, Cursor, News, PostedHeadline, Presence, checks::millis};

/// The number of rows of each table that are deleted at once.
const PART: i64 = 500;

fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let parsed = serde_json::from_str(row.get_ref(column)?.as_str()?);
    parsed.map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

fn place(cursor: &Cursor) -> Option<(i64, i64)> {
    let (timeline, turn) = cursor.0.split_once('.')?;
    Some((timeline.parse().ok()?, turn.parse().ok()?))
}

pub(super) fn since(transaction: &Transaction<'_>, since: Option<&Cursor>) -> rusqlite::Result<News> {
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (timeline, turn, pruned) = transaction.query_row("SELECT timeline, turn, pruned FROM board", [], read)?;
    // A cursor from another file, or from before a deletion, cannot be used.
    let known = since.and_then(place).filter(|(of, seen)| *of == timeline && *seen >= pruned && *seen <= turn);
    let seen = known.map_or(-1, |(_, seen)| seen);
    let tasks_sql = format!("SELECT {} FROM tasks WHERE turn > ?1 ORDER BY id", tasks::COLUMNS);
    let paths_sql = format!("SELECT {} FROM path_claims WHERE turn > ?1 ORDER BY id", paths::COLUMNS);
    Ok(News {
        cursor: Cursor(format!("{timeline}.{turn}")),
        now: now(),
        is_everything: known.is_none(),
        checkouts: rows(transaction, "SELECT checkout FROM checkouts WHERE turn > ?1 ORDER BY id", seen, |row| json(row, 0))?,
        agents: rows(transaction, "SELECT agent, seen, until FROM agents WHERE turn > ?1 ORDER BY id", seen, |row| {
            Ok(Presence { agent: json(row, 0)?, seen: row.get(1)?, until: row.get(2)? })
        })?,
        tasks: rows(transaction, &tasks_sql, seen, tasks::read)?,
        paths: rows(transaction, &paths_sql, seen, paths::read)?,
        changes: rows(
            transaction,
            "SELECT checkout, change FROM changes WHERE turn > ?1 ORDER BY checkout, path",
            seen,
            |row| Ok((CheckoutId(row.get(0)?), json(row, 1)?)),
        )?,
        headlines: rows(transaction, "SELECT at, headline FROM headlines WHERE turn > ?1 ORDER BY number", seen, |row| {
            Ok(PostedHeadline { at: row.get(0)?, headline: json(row, 1)? })
        })?,
    })
}

fn rows<T>(
    transaction: &Transaction<'_>,
    sql: &str,
    since: i64,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    transaction.prepare_cached(sql)?.query_map([since], read)?.collect()
}

pub(super) fn prune(write: &Write<'_>, bounds: &BoardBounds) -> Result<bool, Failure> {
    let before = |span| write.now - millis(span);
    let mut dropped = Vec::new();
    for (table, which, key, before) in [
        ("headlines", "at <= ?1", "number", before(bounds.headlines)),
        ("agents", "until <= ?1", "id", before(bounds.ended)),
        ("path_claims", "until <= ?1", "id", before(bounds.ended)),
        ("changes", "is_same AND seen <= ?1", "(checkout, path)", before(bounds.ended)),
        ("changes", "checkout NOT IN (SELECT id FROM checkouts) AND seen <= ?1", "(checkout, path)", before(bounds.checkouts)),
        ("tasks", "status IN ('completed', 'cancelled') AND seen <= ?1", "id", before(bounds.closed_tasks)),
        ("checkouts", "seen <= ?1", "id", before(bounds.checkouts)),
    ] {
        let keys = key.trim_matches(['(', ')']);
        let sql =
            format!("DELETE FROM {table} WHERE {key} IN (SELECT {keys} FROM {table} WHERE {which} LIMIT {PART}) RETURNING turn");
        let mut delete = write.transaction.prepare_cached(&sql)?;
        let turns: rusqlite::Result<Vec<i64>> = delete.query_map([before], |row| row.get(0))?.collect();
        dropped.push(turns?);
    }
    let last = dropped.iter().flatten().max().copied().unwrap_or_default();
    write.run("UPDATE board SET pruned = max(pruned, ?1)", params![last])?;
    Ok(dropped.iter().any(|turns| turns.len() as i64 == PART))
}
