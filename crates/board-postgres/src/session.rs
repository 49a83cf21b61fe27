//! A connection that is ready for work: it is bound to a repository, and its tables have the right format.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use surehand_core::timestamp::Millis;
use surehand_store::board::RepositoryId;
use tokio::{sync::Notify, task::JoinHandle};
use tokio_postgres::{AsyncMessage, Client, Config, Row, Statement, types::ToSql};

use crate::{failure::Failure, schema, tls::TlsConnector};

/// The time of the server, in milliseconds. It is that of the statement, so an index can be searched for it.
pub(crate) const NOW: &str = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint";
/// The transaction that writes a row.
pub(crate) const TURN: &str = "pg_current_xact_id()::text::bigint";
/// The current timeline of the fencing numbers, or nothing if one must begin. See [`schema::renew_timeline`].
pub(crate) const TIMELINE: &str = "(SELECT timeline FROM surehand.running)";
/// The channel on which a change of the repository in the payload is announced.
const CHANNEL: &str = "surehand";
/// The most repetitions of an operation after conflicts with other transactions.
const MOST_CONFLICTS: u32 = 20;

pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection that is ready for work.
pub(crate) struct Session {
    client: Client,
    statements: RefCell<HashMap<String, Statement>>,
    news: Arc<Announcements>,
    is_listening: Cell<bool>,
    driver: JoinHandle<()>,
    /// The repository. Each statement has it as its first parameter.
    pub(crate) repository: String,
    /// The last known timeline of the fencing numbers.
    pub(crate) timeline: Cell<i64>,
}

#[derive(Default)]
struct Announcements {
    wake: Notify,
    is_closed: AtomicBool,
}

impl Drop for Session {
    fn drop(&mut self) {
        // With a frozen server, the task would never end by itself.
        self.driver.abort();
    }
}

/// The values that a transaction reads at its start.
pub(crate) struct TransactionStart {
    /// The time of the server, in milliseconds since the Unix epoch.
    pub(crate) now: Millis,
    /// The current timeline of the fencing numbers.
    pub(crate) timeline: i64,
    /// The youngest turn of all deleted rows.
    pub(crate) pruned: i64,
    pub(crate) snapshot: String,
}

/// The history of a server's data. A replica shares that of its primary until it is promoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct History {
    system: String,
    promotions: i64,
}

impl History {
    /// Whether a server that was promoted later took over from the one with this history.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        self.system == other.system && self.promotions < other.promotions
    }
}

impl Session {
    /// Connects, and passes the checks of the server.
    pub(crate) async fn open(config: &Config, tls: TlsConnector, repository: &RepositoryId) -> Result<Self, Failure> {
        let (client, mut connection) = config.connect(tls).await?;
        let news = Arc::new(Announcements::default());
        let (announced, of) = (Arc::clone(&news), repository.0.clone());
        let driver = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if matches!(message, AsyncMessage::Notification(notification) if notification.payload() == of) {
                    announced.wake.notify_one();
                }
            }
            announced.is_closed.store(true, Ordering::Release);
            announced.wake.notify_one();
        });
        let (statements, is_listening) = (RefCell::default(), Cell::new(false));
        Ok(Self { client, statements, news, is_listening, driver, repository: repository.0.clone(), timeline: Cell::new(0) })
    }

    /// Limits the time that the server spends on a client that has disappeared, and creates or checks the tables.
    pub(crate) async fn prepare(&self, answer: Duration, place: &str) -> Result<(), Failure> {
        let millis = answer.as_millis();
        // The timeout of statements does not cover the commit. Interrupting a commit that waits for a replica would
        // confirm data that the replica does not have.
        let settings =
            format!("SET statement_timeout = {millis}; SET idle_in_transaction_session_timeout = {millis}; SET search_path = ''");
        self.client.batch_execute(&settings).await?;
        schema::migrate(self, place).await?;
        schema::renew_timeline(self).await?;
        self.run("INSERT INTO surehand.repositories (id) VALUES ($1) ON CONFLICT DO NOTHING", &[&self.repository]).await?;
        Ok(())
    }

    pub(crate) async fn history(&self) -> Result<History, Failure> {
        // The name of a file of the write-ahead log begins with the timeline, in hexadecimal.
        let sql = "SELECT system_identifier::text, substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
            FROM pg_control_system()";
        let row = self.row(sql, &[]).await?.ok_or(Failure::Conflict)?;
        Ok(History { system: row.try_get(0)?, promotions: i64::from_str_radix(row.try_get(1)?, 16).unwrap_or(0) })
    }

    /// Runs statements that have neither parameters nor results.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(sql).await?)
    }

    async fn statement(&self, sql: &str) -> Result<Statement, Failure> {
        let known = self.statements.borrow().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.borrow_mut().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Runs a statement, and returns its rows.
    pub(crate) async fn rows(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        Ok(self.client.query(&self.statement(sql).await?, params).await?)
    }

    /// Runs a statement, and returns its row if there is one.
    pub(crate) async fn row(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>, Failure> {
        Ok(self.client.query_opt(&self.statement(sql).await?, params).await?)
    }

    /// Runs a statement, and returns the number of rows that it changed.
    pub(crate) async fn run(&self, sql: &str, params: Params<'_>) -> Result<u64, Failure> {
        Ok(self.client.execute(&self.statement(sql).await?, params).await?)
    }

    /// Runs a transaction that writes everything or nothing.
    pub(crate) async fn write<T>(&self, work: impl AsyncFnOnce(&TransactionStart) -> Result<T, Failure>) -> Result<T, Failure> {
        self.transaction("BEGIN", work).await
    }

    /// Runs a transaction that reads one state.
    pub(crate) async fn read<T>(&self, work: impl AsyncFnOnce(&TransactionStart) -> Result<T, Failure>) -> Result<T, Failure> {
        self.transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work).await
    }

    async fn transaction<T>(
        &self,
        begin: &str,
        work: impl AsyncFnOnce(&TransactionStart) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // The second message does not wait for the answer to the first one.
        let (begun, head) = tokio::join!(biased; self.batch(begin), self.head());
        let done = match (begun, head) {
            (Ok(()), Ok(head)) => work(&head).await,
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        };
        match done {
            Ok(done) => self.batch("COMMIT").await.map(|()| done),
            Err(failure) => {
                self.batch("ROLLBACK").await?;
                Err(failure)
            }
        }
    }

    async fn head(&self) -> Result<TransactionStart, Failure> {
        let sql = format!(
            "SELECT {NOW}, s.timeline, r.pruned, pg_current_snapshot()::text FROM surehand.server s, surehand.repositories r
                WHERE r.id = $1 AND s.timeline = {TIMELINE}"
        );
        let row = self.row(&sql, &[&self.repository]).await?.ok_or(Failure::OtherTimeline)?;
        Ok(TransactionStart {
            now: row.try_get(0)?,
            timeline: row.try_get(1)?,
            pruned: row.try_get(2)?,
            snapshot: row.try_get(3)?,
        })
    }

    /// Runs an operation, and repeats it after conflicts with other transactions.
    pub(crate) async fn repeat_conflicts<T>(&self, work: &impl AsyncFn(&Self) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut conflicts = 0;
        loop {
            match work(self).await {
                Err(failure) if failure.is_conflict() && conflicts < MOST_CONFLICTS => {
                    conflicts += 1;
                    if matches!(failure, Failure::OtherTimeline) {
                        schema::renew_timeline(self).await?;
                    }
                }
                done => return done,
            }
        }
    }

    /// Announces news to readers.
    pub(crate) async fn notify(&self) -> Result<(), Failure> {
        // The announcement is a transaction of its own, which does not wait for the disk or a replica: until it has
        // ended, no other transaction of the database can announce anything.
        let statement = self.statement("SELECT pg_notify($2, $1)").await?;
        let params: Params<'_> = &[&self.repository, &CHANNEL];
        let (begun, notified, committed) = tokio::join!(biased;
            self.batch("BEGIN; SET LOCAL synchronous_commit = off"),
            self.client.execute(&statement, params),
            self.batch("COMMIT"),
        );
        notified?;
        begun.and(committed)
    }

    /// Subscribes to announcements. A server or pooler without them ignores or refuses that, and the reader only polls.
    pub(crate) async fn listen(&self) -> Result<(), Failure> {
        if self.is_listening.replace(true) {
            return Ok(());
        }
        match self.batch(&format!("LISTEN {CHANNEL}")).await {
            Err(failure) if failure.is_outage() => Err(failure),
            _ => Ok(()),
        }
    }

    pub(crate) async fn announcement(&self) -> Result<(), Failure> {
        self.news.wake.notified().await;
        match self.news.is_closed.load(Ordering::Acquire) {
            true => Err(Failure::Unreachable("the connection was closed".to_owned())),
            false => Ok(()),
        }
    }
}
