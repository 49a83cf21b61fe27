//! The tables, their migrations, and the timeline of the fencing numbers.

use std::time::Duration;

use surehand_store::board::BoardError;

use crate::{
    failure::Failure,
    session::{NOW, Session, TIMELINE, TURN},
};

/// The format of the tables. An older Surehand does not use a newer format.
const FORMAT: i64 = 1;

/// The id of the database cluster. A restored dump is in another cluster than the original.
const SYSTEM: &str = "(SELECT system_identifier::text FROM pg_control_system())";

/// The lock that programs take while they migrate: the letters of "surehand".
const MIGRATION_LOCK: i64 = i64::from_be_bytes(*b"surehand");

/// The lock of the program that begins a timeline, and the interval at which other programs check whether it is done.
const TIMELINE_LOCK: i64 = MIGRATION_LOCK + 1;
const OTHERS_BEGIN: Duration = Duration::from_millis(50);

/// Each step migrates the tables from one format to the next. The `turn` of a row is the id of the transaction that
/// wrote it last, so that a reader finds new rows. Keys are compared byte by byte, independent of the locale.
const MIGRATIONS: [&str; FORMAT as usize] = [r#"
    CREATE TABLE surehand.server (
        is_only BOOLEAN PRIMARY KEY DEFAULT true CHECK (is_only),
        format BIGINT NOT NULL, system TEXT NOT NULL, timeline BIGINT NOT NULL
    );
    INSERT INTO surehand.server (format, system, timeline) VALUES (0, '', 0);
    -- Unlogged, so it is empty after a crash, and on a replica that was promoted.
    CREATE UNLOGGED TABLE surehand.running (timeline BIGINT NOT NULL);
    CREATE TABLE surehand.repositories (
        id TEXT COLLATE "C" PRIMARY KEY, counter BIGINT NOT NULL DEFAULT 0, pruned BIGINT NOT NULL DEFAULT -1
    );
    CREATE TABLE surehand.checkouts (
        repository TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, checkout TEXT NOT NULL, seen BIGINT NOT NULL,
        turn BIGINT NOT NULL, PRIMARY KEY (repository, id)
    );
    CREATE INDEX checkouts_by_turn ON surehand.checkouts (repository, turn);
    CREATE TABLE surehand.agents (
        repository TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, agent TEXT NOT NULL, seen BIGINT NOT NULL,
        until BIGINT NOT NULL, shown_until BIGINT NOT NULL, turn BIGINT NOT NULL, PRIMARY KEY (repository, id)
    );
    CREATE INDEX agents_by_turn ON surehand.agents (repository, turn);
    CREATE TABLE surehand.tasks (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, repository TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL,
        story TEXT COLLATE "C" NOT NULL, description TEXT NOT NULL, priority BIGINT NOT NULL, status TEXT COLLATE "C" NOT NULL,
        claim TEXT COLLATE "C", holder TEXT COLLATE "C", until BIGINT, timeline BIGINT NOT NULL DEFAULT 0,
        counter BIGINT NOT NULL DEFAULT 0, seen BIGINT NOT NULL, turn BIGINT NOT NULL, UNIQUE (repository, key)
    );
    CREATE INDEX tasks_by_turn ON surehand.tasks (repository, turn);
    -- Unique, so that a request that is sent twice at the same time gets one task.
    CREATE UNIQUE INDEX tasks_by_claim ON surehand.tasks (repository, claim) WHERE claim IS NOT NULL;
    CREATE INDEX tasks_by_story ON surehand.tasks (repository, story, id);
    CREATE INDEX tasks_pending ON surehand.tasks (repository, story, priority, id) WHERE status = 'pending';
    CREATE INDEX tasks_in_progress ON surehand.tasks (repository, story, until) WHERE status = 'in_progress';
    CREATE INDEX tasks_by_holder ON surehand.tasks (repository, holder) WHERE status = 'in_progress';
    CREATE TABLE surehand.path_claims (
        repository TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, holder TEXT COLLATE "C" NOT NULL,
        pattern TEXT NOT NULL, until BIGINT NOT NULL, is_over BOOLEAN NOT NULL, timeline BIGINT NOT NULL,
        counter BIGINT NOT NULL, turn BIGINT NOT NULL, PRIMARY KEY (repository, id)
    );
    CREATE INDEX path_claims_by_turn ON surehand.path_claims (repository, turn);
    CREATE INDEX path_claims_held ON surehand.path_claims (repository, holder) WHERE NOT is_over;
    -- A path can be longer than a key, so it is found by its hash.
    CREATE TABLE surehand.changes (
        repository TEXT COLLATE "C" NOT NULL, checkout TEXT COLLATE "C" NOT NULL, path_hash TEXT COLLATE "C" NOT NULL,
        path TEXT COLLATE "C" NOT NULL, change TEXT NOT NULL, revision BIGINT NOT NULL, is_same BOOLEAN NOT NULL,
        seen BIGINT NOT NULL, turn BIGINT NOT NULL, PRIMARY KEY (repository, checkout, path_hash)
    );
    CREATE INDEX changes_by_turn ON surehand.changes (repository, turn);
    CREATE TABLE surehand.headlines (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, repository TEXT COLLATE "C" NOT NULL,
        id TEXT COLLATE "C" NOT NULL, at BIGINT NOT NULL, headline TEXT NOT NULL, turn BIGINT NOT NULL, UNIQUE (repository, id)
    );
    CREATE INDEX headlines_by_turn ON surehand.headlines (repository, turn);
    CREATE INDEX headlines_by_time ON surehand.headlines (repository, at);
"#];

/// The tables whose rows have a turn.
pub(crate) const TABLES_WITH_TURNS: [&str; 6] = ["checkouts", "agents", "tasks", "path_claims", "changes", "headlines"];

/// Creates the tables, or brings them to the current format.
pub(crate) async fn migrate(session: &Session, place: &str) -> Result<(), Failure> {
    let found = format_of_tables(session).await?;
    if found < FORMAT {
        return migrate_locked(session, place).await.map_err(|failure| explain_missing_rights(failure, place, found));
    }
    check_not_newer(found, place)
}

fn check_not_newer(found: i64, place: &str) -> Result<(), Failure> {
    match found > FORMAT {
        true => Err(BoardError::Newer { place: place.to_owned(), found, known: FORMAT }.into()),
        false => Ok(()),
    }
}

fn explain_missing_rights(failure: Failure, place: &str, found: i64) -> Failure {
    if !failure.is_denied() {
        return failure;
    }
    let state = match found {
        0 => "the database has no tables of Surehand yet".to_owned(),
        _ => format!("its tables have the old format {found}, and this Surehand needs {FORMAT}"),
    };
    let why = format!("{state}, and this user may not create them ({}); use the board once as their owner", failure.why());
    BoardError::Denied { place: place.to_owned(), why }.into()
}

/// The format of the tables; 0 if there are none.
async fn format_of_tables(session: &Session) -> Result<i64, Failure> {
    // The tables of the catalogue show what another program created while this one waited for it; `to_regclass` does
    // not.
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'server' AND relnamespace IN
            (SELECT oid FROM pg_namespace WHERE nspname = 'surehand')),
        current_setting('server_encoding'), current_setting('server_version_num')::bigint";
    let row = session.row(sql, &[]).await?.ok_or(Failure::Conflict)?;
    let (exists, encoding, version): (bool, String, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if encoding != "UTF8" {
        let why = format!("the database has the encoding {encoding}; create one for the board with ENCODING 'UTF8'");
        return Err(BoardError::BadValue(why).into());
    }
    if version < 130_000 {
        return Err(BoardError::BadValue(format!("the board needs PostgreSQL 13 or later, not {}", version / 10_000)).into());
    }
    match exists {
        true => Ok(session.row("SELECT format FROM surehand.server", &[]).await?.ok_or(Failure::Conflict)?.try_get(0)?),
        false => Ok(0),
    }
}

/// Migrates in one transaction. Programs that start at the same time wait for each other.
async fn migrate_locked(session: &Session, place: &str) -> Result<(), Failure> {
    session.batch("BEGIN").await?;
    let done = async {
        session.batch(&format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")).await?;
        let found = format_of_tables(session).await?;
        check_not_newer(found, place)?;
        if session.row("SELECT 1 FROM pg_namespace WHERE nspname = 'surehand'", &[]).await?.is_none() {
            session.batch("CREATE SCHEMA surehand").await?;
        }
        for step in MIGRATIONS.iter().skip(found as usize) {
            session.batch(step).await?;
        }
        session.batch(&format!("UPDATE surehand.server SET format = {FORMAT}")).await?;
        session.batch("COMMIT").await
    };
    let done = done.await;
    if done.is_err() {
        session.batch("ROLLBACK").await?;
    }
    done
}

/// Finds out the timeline of the fencing numbers. Begins a new one if the server may have lost its last transactions:
/// after a crash, the promotion of a replica, or the restoration of a backup. Without a new timeline, the server could
/// grant the numbers of lost claims again, and reuse the ids of lost transactions that cursors have seen.
///
/// The number of a timeline is the time of its beginning, so that it is higher than any timeline that was lost with its
/// server.
///
/// After a failover all programs reconnect at the same time. One of them begins the timeline. The others do not queue
/// for a lock, because each of them would then write and wait for the disk, one after the other.
pub(crate) async fn renew_timeline(session: &Session) -> Result<(), Failure> {
    loop {
        if let Some(timeline) = known_timeline(session).await? {
            session.timeline.set(timeline);
            return Ok(());
        }
        session.batch("BEGIN").await?;
        let begun = begin_timeline(session).await;
        session.batch(if begun.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        if !begun? {
            tokio::time::sleep(OTHERS_BEGIN).await;
        }
    }
}

/// The timeline, if this server began it.
async fn known_timeline(session: &Session) -> Result<Option<i64>, Failure> {
    let sql = format!("SELECT timeline FROM surehand.server WHERE timeline = {TIMELINE} AND system = {SYSTEM}");
    Ok(session.row(&sql, &[]).await?.map(|row| row.try_get(0)).transpose()?)
}

/// Begins a timeline, unless another program does so now or has just done so.
async fn begin_timeline(session: &Session) -> Result<bool, Failure> {
    let sql = format!("SELECT pg_try_advisory_xact_lock({TIMELINE_LOCK})");
    let is_locked: bool = session.row(&sql, &[]).await?.ok_or(Failure::Conflict)?.try_get(0)?;
    if !is_locked || known_timeline(session).await?.is_some() {
        return Ok(false);
    }
    // A restored dump has the turns of another server, which are in the future here.
    for table in TABLES_WITH_TURNS {
        let future = "turn >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
        session.batch(&format!("UPDATE surehand.{table} SET turn = {TURN} WHERE {future}")).await?;
    }
    session.batch(&format!("UPDATE surehand.repositories SET pruned = {TURN} WHERE pruned >= {TURN}")).await?;
    let sql =
        format!("UPDATE surehand.server SET timeline = greatest(timeline + 1, {NOW}), system = {SYSTEM} RETURNING timeline");
    let timeline: i64 = session.row(&sql, &[]).await?.ok_or(Failure::Conflict)?.try_get(0)?;
    session.batch("DELETE FROM surehand.running").await?;
    session.run("INSERT INTO surehand.running VALUES ($1)", &[&timeline]).await?;
    Ok(true)
}
