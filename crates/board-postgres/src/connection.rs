//! Finds the primary server among its hosts. After an outage, it tries again with growing pauses.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use surehand_store::board::{BoardError, RepositoryId};
use tokio::{
    runtime::{Builder, Runtime},
    time::{Instant, timeout},
};

use crate::{
    Patience,
    failure::Failure,
    server_url::ServerUrl,
    session::{History, Session},
};

/// The time between attempts to connect: the first one, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Runs the driver, which is asynchronous, on the thread of the caller.
pub(crate) struct Executor(Option<Runtime>);

impl Executor {
    pub(crate) fn new() -> Result<Self, BoardError> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let failed = |error| BoardError::BadValue(format!("the system does not let this process connect: {error}"));
        Ok(Self(Some(runtime.map_err(failed)?)))
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("the runtime is only taken on drop").block_on(work)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Resolving the name of a host can take minutes, and cannot be cancelled.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The last failure to connect.
struct Outage {
    attempts: u32,
    until: Instant,
    is_denied: bool,
    why: String,
}

/// The connection to a board, current or future.
pub(crate) struct Link {
    server: ServerUrl,
    repository: RepositoryId,
    pub(crate) patience: Patience,
    session: Option<Session>,
    outage: Option<Outage>,
    last_host: usize,
    history: Option<History>,
}

impl Link {
    pub(crate) fn new(server: ServerUrl, repository: &RepositoryId, patience: Patience) -> Self {
        let repository = repository.clone();
        Self { server, repository, patience, session: None, outage: None, last_host: 0, history: None }
    }

    pub(crate) fn place(&self) -> &str {
        &self.server.place
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn disconnect(&mut self) {
        self.session = None;
    }

    /// When the next attempt to connect is due.
    pub(crate) fn next_attempt(&self) -> Instant {
        self.outage.as_ref().map_or_else(Instant::now, |outage| outage.until)
    }

    /// The session, on a new connection if there is none. After a failure it fails at once until the next attempt is
    /// due.
    pub(crate) async fn session(&mut self) -> Result<&Session, Failure> {
        if self.session.is_none() {
            let session = self.connect().await?;
            self.outage = None;
            self.session = Some(session);
        }
        Ok(self.session.as_ref().expect("it was just set"))
    }

    async fn connect(&mut self) -> Result<Session, Failure> {
        if let Some(outage) = self.outage.as_ref().filter(|outage| Instant::now() < outage.until) {
            let wait = outage.until.duration_since(Instant::now()).as_millis();
            return Err(match outage.is_denied {
                true => BoardError::Denied { place: self.place().to_owned(), why: outage.why.clone() }.into(),
                false => Failure::Unreachable(format!("{}; tried again in {wait} ms", outage.why)),
            });
        }
        let begun = Instant::now();
        self.connect_to_any_host().await.inspect_err(|failure| {
            let attempts = self.outage.as_ref().map_or(0, |outage| outage.attempts) + 1;
            // A slow server still has to accept and drop the attempts that timed out.
            let until = Instant::now() + pause(attempts).max(begun.elapsed());
            self.outage = Some(Outage { attempts, until, is_denied: failure.is_denied(), why: failure.why() });
        })
    }

    /// Tries the last host first. If all fail, a permanent error is more useful than an outage.
    async fn connect_to_any_host(&mut self) -> Result<Session, Failure> {
        let hosts = self.server.hosts.len();
        let last = self.last_host;
        let mut outages = Vec::new();
        let mut refusal = None;
        for host in (0..hosts).map(|step| (last + step) % hosts) {
            match self.connect_to(host).await {
                Ok(session) => {
                    self.last_host = host;
                    return Ok(session);
                }
                Err(failure) if failure.is_outage() => outages.push(failure.why()),
                Err(failure) => refusal = Some(failure),
            }
        }
        Err(refusal.unwrap_or(Failure::Unreachable(outages.join("; "))))
    }

    async fn connect_to(&mut self, host: usize) -> Result<Session, Failure> {
        let Patience { connect, answer } = self.patience;
        let opened = Session::open(&self.server.hosts[host], self.server.tls.clone(), &self.repository);
        let session = within(connect, opened).await?;
        let history = within(answer, session.history()).await?;
        if self.history.as_ref().is_some_and(|last| history.is_before(last)) {
            let why = "a server has an older state than the one before; is a former primary running beside the new one?";
            return Err(Failure::Unreachable(why.to_owned()));
        }
        // This may wait for another program that is creating the tables.
        within(answer, session.prepare(answer, self.place())).await?;
        self.history = Some(history);
        Ok(session)
    }
}

/// Fails if the work takes longer than this.
pub(crate) async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(limit, work).await.unwrap_or(Err(Failure::TimedOut(limit)))
}

/// The pause after so many failed attempts. Many programs lose their connections at the same time, and must not all
/// reconnect at the same time.
fn pause(attempts: u32) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << attempts.min(10)).min(LONGEST_PAUSE);
    let random = RandomState::new().hash_one(attempts) as f64 / u64::MAX as f64;
    longest.mul_f64(0.5 + random / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound_and_differ() {
        for attempts in [1, 3, 7, 30, u32::MAX] {
            let longest = FIRST_PAUSE.saturating_mul(1 << attempts.min(10)).min(LONGEST_PAUSE);
            let pauses: Vec<_> = (0..20).map(|_| pause(attempts)).collect();
            assert!(pauses.iter().all(|pause| (longest / 2..=longest).contains(pause)));
            assert!(pauses.iter().any(|pause| pause != &pauses[0]));
        }
    }
}
