//! The board of all checkouts that one user has on one machine, in one SQLite file. Its clock is that of the machine.

mod news;
mod paths;
mod schema;
mod summary;
mod tasks;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};
use serde::Serialize;
use surehand_core::timestamp::Millis;

use self::schema::{FORMAT, MIGRATIONS};
pub use self::summary::BoardSummary;
use super::{
    AgentId, Board, BoardBounds, BoardError, BoardTask, BoardTaskId, Checkout, CheckoutId, ClaimId, ContentChange, Cursor, Fence,
    FileChange, Headline, Heartbeat, Holdings, NewTask, News, PathClaim, PathClaimRequest, TaskClaimRequest, TaskEdit, TaskEnd,
    checks::{Checked, check_all, check_story, millis},
};
use crate::{
    StoreError,
    sqlite::{
        database::{self, PATIENCE, attempt},
        errors::failed,
        journal_mode,
    },
};

/// The interval at which `wait` checks for news, by reading one number in shared memory.
const LOOK: Duration = Duration::from_millis(50);

/// A connection to the file of a board. Several may be open at once, in this process and in others.
pub struct SqliteBoard {
    connection: Connection,
    path: PathBuf,
}

/// The reason why a transaction fails: an error of SQLite, or a decision of the board to roll back.
enum Failure {
    Sqlite(rusqlite::Error),
    Board(BoardError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<BoardError> for Failure {
    fn from(error: BoardError) -> Self {
        Self::Board(error)
    }
}

struct Write<'a> {
    transaction: Transaction<'a>,
    now: Millis,
    turn: i64,
    timeline: i64,
}

impl SqliteBoard {
    /// Opens the board at this path, or creates it. The directory must exist. A damaged file is moved aside: living
    /// agents report their data again, and a new file starts with higher numbers.
    pub fn open(path: &Path) -> Result<Self, BoardError> {
        Ok(database::open(path, || Self::try_open(path))?.0)
    }

    /// A board in memory, which ends when it is dropped.
    pub fn in_memory() -> Result<Self, BoardError> {
        let path = PathBuf::from(":memory:");
        let connection = attempt(&path, Connection::open_in_memory)?;
        Ok(Self::migrated(connection, path)?)
    }

    fn try_open(path: &Path) -> Result<Self, StoreError> {
        // Never follow a link, because it could lead anywhere.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = attempt(path, || {
            let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)?;
            journal_mode::set_journal_mode(&connection, path, PATIENCE)?;
            // A power cut ends all programs that write here, so it may lose their last updates.
            connection.pragma_update(None, "synchronous", "normal")?;
            connection.set_prepared_statement_cache_capacity(64);
            Ok(connection)
        })?;
        Self::migrated(connection, path.to_owned())
    }

    fn migrated(mut connection: Connection, path: PathBuf) -> Result<Self, StoreError> {
        database::migrate(&mut connection, &path, FORMAT, |found| MIGRATIONS.get(found..).unwrap_or_default())?;
        Ok(Self { connection, path })
    }

    /// Runs a transaction that writes everything or nothing.
    fn write<T>(&mut self, work: impl FnOnce(&Write<'_>) -> Result<T, Failure>) -> Result<T, BoardError> {
        let run = || {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let sql = "UPDATE board SET turn = turn + 1 RETURNING turn, timeline";
            let (turn, timeline) = transaction.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let write = Write { transaction, now: now(), turn, timeline };
            let done = work(&write)?;
            write.transaction.commit()?;
            Ok(done)
        };
        let done: Result<T, Failure> = { run }();
        done.map_err(|failure| match failure {
            Failure::Sqlite(error) => failed(&self.path, error).into(),
            Failure::Board(error) => error,
        })
    }

    /// Runs a transaction that reads a consistent state.
    fn read<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, BoardError> {
        Ok(attempt(&self.path, || work(&self.connection.transaction()?))?)
    }
}

/// The clock of the board.
fn now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data can be serialized")
}

impl Write<'_> {
    fn run(&self, sql: &str, params: &[&dyn rusqlite::ToSql]) -> Result<(), Failure> {
        self.transaction.prepare_cached(sql)?.execute(params)?;
        Ok(())
    }

    fn beat(&self, beat: &Heartbeat) -> Result<Holdings, Failure> {
        let agent = &beat.agent;
        self.run(
            "INSERT OR REPLACE INTO agents VALUES (?1, ?2, ?3, ?4, ?5)",
            params![agent.id.0, as_json(agent), self.now, self.now + millis(beat.alive_for), self.turn],
        )?;
        self.run("UPDATE checkouts SET seen = ?2 WHERE id = ?1", params![agent.checkout.0, self.now])?;
        // A lease is written again only after half of its time.
        let lease = millis(beat.lease);
        let params = params![agent.id.0, self.now + lease, self.now + lease / 2, self.turn];
        self.run("UPDATE tasks SET until = ?2, turn = ?4 WHERE holder = ?1 AND status = 'in_progress' AND until <= ?3", params)?;
        self.run("UPDATE path_claims SET until = ?2, turn = ?4 WHERE holder = ?1 AND NOT is_over AND until <= ?3", params)?;
        Ok(Holdings { tasks: self.held_tasks(&agent.id)?, paths: self.held_paths(&agent.id)? })
    }

    fn leave(&self, agent: &AgentId) -> Result<(), Failure> {
        let params = params![agent.0, self.now, self.turn];
        self.run("UPDATE agents SET until = min(until, ?2), turn = ?3 WHERE id = ?1", params)?;
        self.run(
            "UPDATE tasks SET status = 'pending', holder = NULL, until = NULL, counter = counter + 1, seen = ?2, turn = ?3
                WHERE holder = ?1 AND status = 'in_progress'",
            params,
        )?;
        self.run(
            "UPDATE path_claims SET is_over = 1, until = min(until, ?2), turn = ?3 WHERE holder = ?1 AND NOT is_over",
            params,
        )
    }

    fn report(&self, checkout: &CheckoutId, change: &FileChange) -> Result<(), Failure> {
        let is_same = change.change == ContentChange::Same;
        self.run(
            "INSERT INTO changes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET
                change = excluded.change, revision = excluded.revision, is_same = excluded.is_same, seen = excluded.seen,
                turn = excluded.turn WHERE excluded.revision >= changes.revision",
            params![checkout.0, change.path.as_str(), as_json(change), change.revision, is_same, self.now, self.turn],
        )
    }

    fn post(&self, headline: &Headline) -> Result<(), Failure> {
        self.run(
            "INSERT INTO headlines (id, at, headline, turn) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            params![headline.id, self.now, as_json(headline), self.turn],
        )
    }
}

impl Board for SqliteBoard {
    fn join(&mut self, checkout: &Checkout) -> Result<(), BoardError> {
        checkout.check()?;
        self.write(|write| {
            let params = params![checkout.id().0, as_json(checkout), write.now, write.turn];
            write.run("INSERT OR REPLACE INTO checkouts VALUES (?1, ?2, ?3, ?4)", params)
        })
    }

    fn heartbeat(&mut self, beats: &[Heartbeat]) -> Result<Vec<Holdings>, BoardError> {
        check_all(beats, |beat| &beat.agent.id.0)?;
        self.write(|write| beats.iter().map(|beat| write.beat(beat)).collect())
    }

    fn leave(&mut self, agent: &AgentId) -> Result<(), BoardError> {
        self.write(|write| write.leave(agent))
    }

    fn add_tasks(&mut self, story: &str, tasks: &[NewTask]) -> Result<Vec<BoardTaskId>, BoardError> {
        check_story(story)?;
        check_all(tasks, |task| &task.key)?;
        self.write(|write| tasks.iter().map(|task| write.add_task(story, task)).collect())
    }

    fn edit_task(&mut self, edit: &TaskEdit) -> Result<BoardTask, BoardError> {
        edit.check()?;
        self.write(|write| write.edit_task(edit))
    }

    fn tasks(&mut self, story: &str) -> Result<Vec<BoardTask>, BoardError> {
        self.read(|transaction| tasks::of_story(transaction, story))
    }

    fn claim_task(&mut self, request: &TaskClaimRequest) -> Result<Option<BoardTask>, BoardError> {
        request.check()?;
        self.write(|write| write.claim_task(request))
    }

    fn end_task(&mut self, task: BoardTaskId, fence: Fence, end: TaskEnd) -> Result<(), BoardError> {
        self.write(|write| write.end_task(task, fence, end))
    }

    fn claim_paths(&mut self, request: &PathClaimRequest) -> Result<PathClaim, BoardError> {
        request.check()?;
        self.write(|write| write.claim_paths(request))
    }

    fn release_paths(&mut self, claim: &ClaimId) -> Result<(), BoardError> {
        self.write(|write| write.release_paths(claim))
    }

    fn report_changes(&mut self, checkout: &CheckoutId, changes: &[FileChange]) -> Result<(), BoardError> {
        check_all(changes, |change| change.path.as_str())?;
        self.write(|write| changes.iter().try_for_each(|change| write.report(checkout, change)))
    }

    fn post(&mut self, headlines: &[Headline]) -> Result<(), BoardError> {
        check_all(headlines, |headline| &headline.id)?;
        self.write(|write| headlines.iter().try_for_each(|headline| write.post(headline)))
    }

    fn news(&mut self, since: Option<&Cursor>) -> Result<News, BoardError> {
        self.read(|transaction| news::since(transaction, since))
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, BoardError> {
        let version = |board: &Self| {
            let version = board.connection.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0));
            version.map_err(|error| failed(&board.path, error))
        };
        let (before, until) = (version(self)?, Instant::now() + timeout);
        while version(self)? == before {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(LOOK));
        }
        Ok(true)
    }

    fn prune(&mut self, bounds: &BoardBounds) -> Result<bool, BoardError> {
        self.write(|write| news::prune(write, bounds))
    }
}
