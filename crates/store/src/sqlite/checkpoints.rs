//! The table of checkpoints. The files of a checkpoint are compressed into one value, because they are always read
//! together.

use rusqlite::{Row, Transaction, params};
use surehand_core::SessionId;

use super::{CheckoutRows, Packer, SqliteStore, pack as pack_bytes, unpack};
use crate::{Checkpoint, CheckpointFile, CheckpointId, CheckpointInfo, StoreError};

/// The columns of [`CheckpointInfo`].
const COLUMNS: &str = "id, at, until, session, occasion, name, head, is_whole, took, count, not_kept";

pub(super) fn pack(packer: &mut Packer, checkpoint: &Checkpoint) -> std::io::Result<Vec<u8>> {
    pack_bytes(packer, &serde_json::to_vec(&checkpoint.files)?)
}

/// Writes a checkpoint. The versions that it needs are marked as used, so that they are kept as long as it is.
pub(super) fn write(
    transaction: &Transaction<'_>,
    rows: &CheckoutRows,
    turn: i64,
    checkpoint: &Checkpoint,
    packed: Vec<u8>,
) -> rusqlite::Result<()> {
    let mut in_use = transaction.prepare_cached("UPDATE versions SET used_at = max(used_at, ?2) WHERE version = ?1")?;
    for version in checkpoint.versions() {
        in_use.execute(params![version.as_bytes(), turn])?;
    }
    let info = &checkpoint.info;
    let not_kept = serde_json::to_string(&info.not_kept).map_err(|error| super::not_packed(error.into()))?;
    let sql =
        "INSERT INTO checkpoints (checkout, directory, turn, files, id, at, until, session, occasion, name, head, is_whole, took,
        count, not_kept) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    let session = info.session.as_ref().map(|session| &session.0);
    transaction
        .prepare_cached(sql)?
        .execute(params![
            rows.checkout,
            rows.directory(),
            turn,
            packed,
            info.id.0,
            info.at,
            info.until,
            session,
            info.occasion,
            info.name,
            info.commit,
            info.is_whole,
            info.took,
            checkpoint.files.len() as i64,
            not_kept
        ])
        .map(drop)
}

pub(super) fn list(store: &SqliteStore, limit: usize) -> Result<Vec<CheckpointInfo>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM checkpoints WHERE checkout = ?1 AND directory = ?2 ORDER BY number DESC LIMIT ?3");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    store.all(&sql, params![store.rows.checkout, store.rows.directory(), limit], read_info)
}

/// A checkpoint with its files; `None` if they cannot be read.
pub(super) fn read(store: &SqliteStore, id: &CheckpointId) -> Result<Option<Checkpoint>, StoreError> {
    let sql = format!("SELECT {COLUMNS}, files FROM checkpoints WHERE checkout = ?1 AND directory = ?2 AND id = ?3");
    let found = store.one(&sql, params![store.rows.checkout, store.rows.directory(), id.0], |row| {
        Ok((read_info(row)?, row.get::<_, Vec<u8>>(11)?))
    })?;
    let Some((info, files)) = found else { return Ok(None) };
    let files = unpack(files).and_then(|files| serde_json::from_slice::<Vec<CheckpointFile>>(&files).ok());
    Ok(files.map(|files| Checkpoint { info, files }))
}

fn read_info(row: &Row<'_>) -> rusqlite::Result<CheckpointInfo> {
    let not_kept: String = row.get(10)?;
    Ok(CheckpointInfo {
        id: CheckpointId(row.get(0)?),
        at: row.get(1)?,
        until: row.get(2)?,
        session: row.get::<_, Option<String>>(3)?.map(SessionId),
        occasion: row.get(4)?,
        name: row.get(5)?,
        commit: row.get(6)?,
        is_whole: row.get(7)?,
        took: row.get(8)?,
        files: usize::try_from(row.get::<_, i64>(9)?).unwrap_or_default(),
        // Unreadable values are dropped.
        not_kept: serde_json::from_str(&not_kept).unwrap_or_default(),
    })
}
