//! The board of all machines of a team, in PostgreSQL 13 or later. Its clock is that of the server.
//!
//! One database holds the boards of many repositories. [`PostgresBoard`] is one connection. It connects on the first
//! operation, reconnects after an outage, and never waits longer than its [`Patience`].
//!
//! Three facts of the server carry the guarantees:
//!
//! - **Row locks**: a claim locks the row of its task, so two agents never get the same task. A claim skips locked
//!   rows, so that agents do not queue.
//! - **The timeline**: a table that the server empties after a crash and when a replica is promoted. The board then
//!   raises the first part of all fencing numbers, because the server may have lost the last claims.
//! - **Snapshots**: each row has the id of the transaction that wrote it last. A cursor is a snapshot, which knows
//!   exactly which transactions its reader has seen, also those that commit out of order.

mod connection;
mod failure;
mod news;
mod paths;
mod presence;
mod schema;
mod server_url;
mod session;
mod tasks;
mod tls;

use std::time::{Duration, Instant};

use surehand_store::board::{
    AgentId, Board, BoardBounds, BoardError, BoardTask, BoardTaskId, Checkout, CheckoutId, ClaimId, Cursor, Fence, FileChange,
    Headline, Heartbeat, Holdings, NewTask, News, PathClaim, PathClaimRequest, RepositoryId, TaskClaimRequest, TaskEdit, TaskEnd,
    checks::{Checked, check_all, check_repository, check_story},
};

use self::{
    connection::{Executor, Link, within},
    failure::Failure,
    server_url::ServerUrl,
    session::Session,
};

/// The shortest interval between the announcements of a connection. While one transaction announces, all other
/// announcing transactions must wait. So it is rare, and readers also poll.
const NOTIFY_EVERY: Duration = Duration::from_secs(5);

/// Time limits for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The time limit for connecting to each host, until the server has accepted the user.
    pub connect: Duration,
    /// The time limit for the answer to an operation.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect: Duration::from_secs(3), answer: Duration::from_secs(10) }
    }
}

/// A connection to the board of one repository. Do not use it from asynchronous code: its operations block.
pub struct PostgresBoard {
    link: Link,
    executor: Executor,
    /// The cursor of the last call of `news`, after which `wait` looks for more.
    seen: Option<Cursor>,
    notified: Option<Instant>,
}

impl PostgresBoard {
    /// The board of a repository on the server at this URL, such as
    /// `postgres://user:password@host1,host2/database?sslmode=verify-full`. Connects on the first operation. Fails if
    /// the URL has an error, or if its file of certificates cannot be read.
    pub fn new(url: &str, repository: &RepositoryId, patience: Patience) -> Result<Self, BoardError> {
        check_repository(repository)?;
        let link = Link::new(ServerUrl::parse(url, patience)?, repository, patience);
        Ok(Self { link, executor: Executor::new()?, seen: None, notified: None })
    }

    /// Runs an operation. If the connection turns out to be broken, connects again and sends the operation once more,
    /// because the server may have restarted since the last one.
    fn run<T>(&mut self, work: impl AsyncFn(&Session) -> Result<T, Failure>) -> Result<T, BoardError> {
        let was_connected = self.link.is_connected();
        let mut done = self.attempt(&work);
        if was_connected && matches!(&done, Err(failure) if failure.is_broken_connection()) {
            done = self.attempt(&work);
        }
        done.map_err(|failure| failure.into_board_error(self.link.place()))
    }

    fn attempt<T>(&mut self, work: &impl AsyncFn(&Session) -> Result<T, Failure>) -> Result<T, Failure> {
        let Self { link, executor, .. } = self;
        executor.block_on(async {
            let answer = link.patience.answer;
            let session = link.session().await?;
            let done = within(answer, session.repeat_conflicts(work)).await;
            if matches!(&done, Err(failure) if failure.is_outage()) {
                link.disconnect();
            }
            done
        })
    }

    /// Like [`run`](Self::run), and wakes up readers afterwards.
    fn change<T>(&mut self, work: impl AsyncFn(&Session) -> Result<T, Failure>) -> Result<T, BoardError> {
        let done = self.run(work)?;
        if self.notified.is_none_or(|last| last.elapsed() >= NOTIFY_EVERY) {
            self.notified = Some(Instant::now());
            // If this fails, readers find the news when they poll.
            let _ = self.attempt(&async |session: &Session| session.notify().await);
        }
        Ok(done)
    }
}

impl Board for PostgresBoard {
    fn join(&mut self, checkout: &Checkout) -> Result<(), BoardError> {
        checkout.check()?;
        self.change(async |session| presence::join(session, checkout).await)
    }

    fn heartbeat(&mut self, beats: &[Heartbeat]) -> Result<Vec<Holdings>, BoardError> {
        check_all(beats, |beat| &beat.agent.id.0)?;
        self.change(async |session| presence::heartbeat(session, beats).await)
    }

    fn leave(&mut self, agent: &AgentId) -> Result<(), BoardError> {
        self.change(async |session| presence::leave(session, agent).await)
    }

    fn add_tasks(&mut self, story: &str, tasks: &[NewTask]) -> Result<Vec<BoardTaskId>, BoardError> {
        check_story(story)?;
        check_all(tasks, |task| &task.key)?;
        self.change(async |session| tasks::add(session, story, tasks).await)
    }

    fn edit_task(&mut self, edit: &TaskEdit) -> Result<BoardTask, BoardError> {
        edit.check()?;
        self.change(async |session| tasks::edit(session, edit).await)
    }

    fn tasks(&mut self, story: &str) -> Result<Vec<BoardTask>, BoardError> {
        self.run(async |session| tasks::of_story(session, story).await)
    }

    fn claim_task(&mut self, request: &TaskClaimRequest) -> Result<Option<BoardTask>, BoardError> {
        request.check()?;
        self.change(async |session| tasks::claim(session, request).await)
    }

    fn end_task(&mut self, task: BoardTaskId, fence: Fence, end: TaskEnd) -> Result<(), BoardError> {
        self.change(async |session| tasks::end_claim(session, task, fence, end).await)
    }

    fn claim_paths(&mut self, request: &PathClaimRequest) -> Result<PathClaim, BoardError> {
        request.check()?;
        self.change(async |session| paths::claim(session, request).await)
    }

    fn release_paths(&mut self, claim: &ClaimId) -> Result<(), BoardError> {
        self.change(async |session| paths::release(session, claim).await)
    }

    fn report_changes(&mut self, checkout: &CheckoutId, changes: &[FileChange]) -> Result<(), BoardError> {
        check_all(changes, |change| change.path.as_str())?;
        self.change(async |session| news::report_changes(session, checkout, changes).await)
    }

    fn post(&mut self, headlines: &[Headline]) -> Result<(), BoardError> {
        check_all(headlines, |headline| &headline.id)?;
        self.change(async |session| news::post(session, headlines).await)
    }

    fn news(&mut self, since: Option<&Cursor>) -> Result<News, BoardError> {
        let news = self.run(async |session| news::since(session, since).await)?;
        self.seen = Some(news.cursor.clone());
        Ok(news)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, BoardError> {
        let Some(seen) = &self.seen else { return Ok(true) };
        let Self { link, executor, .. } = self;
        let done = executor.block_on(async {
            let until = tokio::time::Instant::now() + timeout;
            if !link.is_connected() {
                tokio::time::sleep_until(link.next_attempt().min(until)).await;
                // There may be news from the time of the outage.
                return link.session().await.map(|_| true);
            }
            let session = link.session().await?;
            let done = tokio::time::timeout_at(until, news::wait(session, seen)).await.unwrap_or(Ok(false));
            if matches!(&done, Err(failure) if failure.is_outage()) {
                link.disconnect();
            }
            done
        });
        done.map_err(|failure| failure.into_board_error(self.link.place()))
    }

    fn prune(&mut self, bounds: &BoardBounds) -> Result<bool, BoardError> {
        self.run(async |session| news::prune(session, bounds).await)
    }
}
