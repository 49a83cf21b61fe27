//! The news of the board: reports that become news, their delivery to readers, and the deletion of old rows.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};
use surehand_core::ContentHash;
use surehand_store::board::{
    BoardBounds, BoardError, CheckoutId, ContentChange, Cursor, FileChange, Headline, News, PostedHeadline, Presence,
    checks::millis,
};
use tokio_postgres::Row;

use crate::{
    failure::Failure,
    paths,
    schema::TABLES_WITH_TURNS,
    session::{NOW, Session, TURN, TransactionStart},
    tasks,
};

/// The most rows of each table that are deleted at once.
const PART: i64 = 500;
/// The interval at which a reader polls for news that was not announced.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// The rows that a reader has not seen. `$2` is the oldest transaction that it may not have seen, or less, and `$3` its
/// snapshot, if it has one.
const UNSEEN: &str = "repository = $1 AND turn >= $2 AND ($3::text IS NULL OR NOT pg_visible_in_snapshot(turn::text::xid8, $3::text::pg_snapshot))";

pub(crate) fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data is valid JSON")
}

fn from_json<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, Failure> {
    let parsed = serde_json::from_str(row.try_get(column)?);
    parsed.map_err(|error| BoardError::BadValue(format!("the board has a row that cannot be read: {error}")).into())
}

/// Lines are JSON in a column of text, because the database's own JSON does not have NUL characters.
pub(crate) async fn report_changes(session: &Session, checkout: &CheckoutId, changes: &[FileChange]) -> Result<(), Failure> {
    let hashes: Vec<String> = changes.iter().map(|change| ContentHash::of(change.path.as_str().as_bytes()).to_string()).collect();
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let texts: Vec<String> = changes.iter().map(as_json).collect();
    let revisions: Vec<i64> = changes.iter().map(|change| change.revision).collect();
    let same: Vec<bool> = changes.iter().map(|change| change.change == ContentChange::Same).collect();
    let sql = format!(
        "INSERT INTO surehand.changes AS c
            SELECT $1, $2, hash, path, change, revision, is_same, {NOW}, {TURN}
                FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::boolean[])
                    AS change (hash, path, change, revision, is_same) ORDER BY hash
            ON CONFLICT (repository, checkout, path_hash) DO UPDATE SET change = excluded.change, revision = excluded.revision,
                is_same = excluded.is_same, seen = excluded.seen, turn = excluded.turn WHERE excluded.revision >= c.revision"
    );
    session.run(&sql, &[&session.repository, &checkout.0, &hashes, &paths, &texts, &revisions, &same]).await?;
    Ok(())
}

pub(crate) async fn post(session: &Session, headlines: &[Headline]) -> Result<(), Failure> {
    let ids: Vec<&str> = headlines.iter().map(|headline| headline.id.as_str()).collect();
    let texts: Vec<String> = headlines.iter().map(as_json).collect();
    let sql = format!(
        "INSERT INTO surehand.headlines (repository, id, at, headline, turn)
            SELECT $1, id, {NOW}, headline, {TURN}
                FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS headline (id, headline, place) ORDER BY place
            ON CONFLICT (repository, id) DO NOTHING"
    );
    session.run(&sql, &[&session.repository, &ids, &texts]).await?;
    Ok(())
}

/// The position of a reader: the timeline, and a snapshot as PostgreSQL writes it, such as `10:20:10,14`.
struct Position {
    timeline: i64,
    oldest_unseen: i64,
    snapshot: String,
}

impl Position {
    /// Parses it strictly, because the server refuses a malformed snapshot.
    fn parse(cursor: &Cursor) -> Option<Self> {
        let (timeline, snapshot) = cursor.0.split_once('/')?;
        let mut parts = snapshot.split(':');
        let (oldest, next, running) = (parts.next()?, parts.next()?, parts.next()?);
        let numbers: Vec<i64> = [oldest, next]
            .into_iter()
            .chain(running.split(',').filter(|id| !id.is_empty()))
            .map(|id| id.parse().ok())
            .collect::<Option<_>>()?;
        let is_valid = parts.next().is_none()
            && numbers[0] > 0
            && numbers[0] <= numbers[1]
            && numbers[2..].iter().all(|id| (numbers[0]..numbers[1]).contains(id))
            && numbers[2..].is_sorted();
        is_valid.then_some(Self { timeline: timeline.parse().ok()?, oldest_unseen: numbers[0], snapshot: snapshot.to_owned() })
    }
}

pub(crate) async fn since(session: &Session, since: Option<&Cursor>) -> Result<News, Failure> {
    session.read(async |head| Reader::new(session, head, since).news().await).await
}

/// Reads one state of the board for a reader at a position.
struct Reader<'a> {
    session: &'a Session,
    head: &'a TransactionStart,
    known: Option<Position>,
}

impl<'a> Reader<'a> {
    fn new(session: &'a Session, head: &'a TransactionStart, since: Option<&Cursor>) -> Self {
        // A cursor from another timeline may have seen transactions that are lost here. A cursor from before a deletion
        // does not show which rows the reader must forget.
        let known = since.and_then(Position::parse);
        let known = known.filter(|known| known.timeline == head.timeline && head.pruned < known.oldest_unseen);
        Self { session, head, known }
    }

    async fn rows<T>(
        &self,
        columns: &str,
        table: &str,
        order: &str,
        read: impl Fn(&Row) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let (oldest, snapshot) = self.known.as_ref().map(|known| (known.oldest_unseen, known.snapshot.as_str())).unzip();
        let sql = format!("SELECT {columns} FROM surehand.{table} WHERE {UNSEEN} ORDER BY {order}");
        let rows = self.session.rows(&sql, &[&self.session.repository, &oldest.unwrap_or(i64::MIN), &snapshot]).await?;
        rows.iter().map(read).collect()
    }

    async fn news(&self) -> Result<News, Failure> {
        // All queries are on their way before the first one is answered.
        let (checkouts, agents, tasks, paths, changes, headlines) = tokio::try_join!(
            self.rows("checkout", "checkouts", "id", |row| from_json(row, 0)),
            self.rows("agent, seen, until", "agents", "id", |row| {
                Ok(Presence { agent: from_json(row, 0)?, seen: row.try_get(1)?, until: row.try_get(2)? })
            }),
            self.rows(tasks::COLUMNS, "tasks t", "id", |row| Ok(tasks::read(row)?.task)),
            self.rows(paths::COLUMNS, "path_claims", "id", paths::read),
            self.rows("checkout, change", "changes", "checkout, path", |row| Ok((
                CheckoutId(row.try_get(0)?),
                from_json(row, 1)?
            ))),
            self.rows("at, headline", "headlines", "number", |row| {
                Ok(PostedHeadline { at: row.try_get(0)?, headline: from_json(row, 1)? })
            }),
        )?;
        Ok(News {
            cursor: Cursor(format!("{}/{}", self.head.timeline, self.head.snapshot)),
            now: self.head.now,
            is_everything: self.known.is_none(),
            checkouts,
            agents,
            tasks,
            paths,
            changes,
            headlines,
        })
    }
}

/// Waits until there is something that a reader with this cursor has not seen.
pub(crate) async fn wait(session: &Session, seen: &Cursor) -> Result<bool, Failure> {
    let Some(position) = Position::parse(seen).filter(|position| position.timeline == session.timeline.get()) else {
        return Ok(true);
    };
    session.listen().await?;
    let parts = TABLES_WITH_TURNS.map(|table| format!("EXISTS (SELECT 1 FROM surehand.{table} WHERE {UNSEEN})"));
    let sql = format!("SELECT {}", parts.join(" OR "));
    loop {
        let row = session.row(&sql, &[&session.repository, &position.oldest_unseen, &position.snapshot]).await?;
        if row.is_some_and(|row| row.get(0)) {
            return Ok(true);
        }
        tokio::select! {
            announced = session.announcement() => announced?,
            () = tokio::time::sleep(POLL_EVERY) => {}
        }
    }
}

pub(crate) async fn prune(session: &Session, bounds: &BoardBounds) -> Result<bool, Failure> {
    session
        .write(async |head| {
            let before = |span| head.now - millis(span);
            let mut dropped = Vec::new();
            for (table, which, key, before) in [
                ("headlines", "at <= $2", "number", before(bounds.headlines)),
                ("agents", "until <= $2", "id", before(bounds.ended)),
                ("path_claims", "until <= $2", "id", before(bounds.ended)),
                ("changes", "is_same AND seen <= $2", "checkout, path_hash", before(bounds.ended)),
                (
                    "changes",
                    "seen <= $2 AND NOT EXISTS (SELECT 1 FROM surehand.checkouts c WHERE c.repository = $1 AND c.id = checkout)",
                    "checkout, path_hash",
                    before(bounds.checkouts),
                ),
                ("tasks", "status IN ('completed', 'cancelled') AND seen <= $2", "id", before(bounds.closed_tasks)),
                ("checkouts", "seen <= $2", "id", before(bounds.checkouts)),
            ] {
                // Rows that other transactions have locked are left for the next time.
                let sql = format!(
                    "DELETE FROM surehand.{table} WHERE repository = $1 AND ({key}) IN (SELECT {key} FROM surehand.{table}
                        WHERE repository = $1 AND {which} LIMIT {PART} FOR UPDATE SKIP LOCKED) RETURNING turn"
                );
                let rows = session.rows(&sql, &[&session.repository, &before]).await?;
                let turns: Result<Vec<i64>, _> = rows.iter().map(|row| row.try_get(0)).collect();
                dropped.push(turns?);
            }
            if let Some(last) = dropped.iter().flatten().max() {
                let sql = "UPDATE surehand.repositories SET pruned = greatest(pruned, $2) WHERE id = $1";
                session.run(sql, &[&session.repository, last]).await?;
            }
            Ok(dropped.iter().any(|turns| turns.len() as i64 == PART))
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_writes_is_a_position() {
        for good in ["7/10:10:", "7/10:20:10,14", "1732038000000/3:5:3"] {
            assert!(Position::parse(&Cursor(good.to_owned())).is_some(), "{good}");
        }
        for bad in
            ["", "7", "7/", "7/10:", "x/10:20:", "7/20:10:", "7/10:20:9", "7/10:20:20", "7/10:20:14,11", "7/10:20::", "7/0:0:"]
        {
            assert!(Position::parse(&Cursor(bad.to_owned())).is_none(), "{bad}");
        }
    }
}
