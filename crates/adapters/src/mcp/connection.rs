//! The connections of the HTTP server: what each is doing, how many there may be, and which one makes room for a new one. What is said
//! over them is left to `http`.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::body::{Body, Frame, SizeHint};
use surehand_engine::SessionId;
use tokio::{
    task::{AbortHandle, JoinSet},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{peer_process, sessions::lock, socket_table::SocketTable};

#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// How many there may be at once.
    pub count: usize,
    /// How long a new connection may take until its first request head is complete and let in.
    pub first_head: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { count: 256, first_head: Duration::from_secs(5), body: Duration::from_secs(60) }
    }
}

/// What a connection is doing. The order is the one in which connections make room for new ones, the first first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionPhase {
    /// No request was let in yet: the client is silent, slow, or was refused.
    Unproven,
    /// The last request is answered.
    Idle,
    /// A request head was let in, and its body is on the way.
    Receiving,
    /// The client waits for an answer. Such a connection never makes room.
    Answering,
    /// The client listens to what the server has to say, and nothing is owed. Such a connection never makes room either.
    Listening,
}

impl ConnectionPhase {
    fn may_make_room(self) -> bool {
        self < Self::Answering
    }
}

/// A connection, as far as its requests need to know it.
#[derive(Debug)]
pub(super) struct HttpConnection {
    far: SocketAddr,
    near: SocketAddr,
    sockets: SocketTable,
    process: OnceLock<Option<String>>,
    phase: Mutex<(ConnectionPhase, Instant)>,
    /// Cancelled when the connection must make room for another.
    pub evicted: CancellationToken,
}

impl HttpConnection {
    pub(super) fn new(far: SocketAddr, near: SocketAddr, sockets: SocketTable) -> Self {
        let phase = Mutex::new((ConnectionPhase::Unproven, Instant::now()));
        Self { far, near, sockets, process: OnceLock::new(), phase, evicted: CancellationToken::new() }
    }

    /// A name for the client at the other end, when nothing better is known.
    pub(super) fn who(&self, client: &str) -> SessionId {
        let process = self.process.get_or_init(|| self.sockets.owner(self.far, self.near).and_then(peer_process::holding));
        SessionId(match process {
            Some(process) => format!("process-{process}"),
            None => format!("peer-{}-{client}", self.far.ip()),
        })
    }

    pub(super) fn phase(&self) -> ConnectionPhase {
        lock(&self.phase).0
    }

    fn enter(&self, phase: ConnectionPhase) {
        *lock(&self.phase) = (phase, Instant::now());
    }

    /// Ends if no request is let in within this time, however many bytes come.
    pub(super) async fn overdue(&self, limit: Duration) {
        sleep(limit).await;
        if self.phase() != ConnectionPhase::Unproven {
            std::future::pending().await
        }
    }
}

/// A request that was let in. The connection is idle again when it is dropped.
#[derive(Debug)]
pub(super) struct RequestGuard(Arc<HttpConnection>);

impl RequestGuard {
    pub(super) fn new(connection: Arc<HttpConnection>) -> Self {
        connection.enter(ConnectionPhase::Receiving);
        Self(connection)
    }

    pub(super) fn enter(&self, phase: ConnectionPhase) {
        self.0.enter(phase);
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.enter(ConnectionPhase::Idle);
    }
}

/// The body of an answer, which holds its request until it is sent.
pub(super) struct GuardedBody<B> {
    body: B,
    _guard: RequestGuard,
}

impl<B> GuardedBody<B> {
    pub(super) fn new(body: B, guard: RequestGuard) -> Self {
        Self { body, _guard: guard }
    }
}

impl<B: Body + Unpin> Body for GuardedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The connections that are open, and the tasks that serve them.
pub(super) struct ConnectionTable {
    limit: usize,
    open: Vec<(Arc<HttpConnection>, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl ConnectionTable {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, open: Vec::new(), tasks: JoinSet::new() }
    }

    /// Serves a connection. If the table is full, another connection makes room. If all of them are at work, the new one is closed.
    pub(super) fn insert(&mut self, connection: Arc<HttpConnection>, serve: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|(_, task)| !task.is_finished());
        if self.open.len() >= self.limit && !self.evict() {
            return;
        }
        let task = self.tasks.spawn(serve);
        self.open.push((connection, task));
    }

    /// Closes one connection that nobody waits for. Returns whether there was one.
    fn evict(&mut self) -> bool {
        let phases = self.open.iter().enumerate().map(|(at, (connection, _))| (*lock(&connection.phase), at));
        let Some((_, at)) = phases.filter(|((phase, _), _)| phase.may_make_room()).min() else { return false };
        let (connection, _) = self.open.swap_remove(at);
        connection.evicted.cancel();
        true
    }

    pub(super) async fn join(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(phase: ConnectionPhase) -> Arc<HttpConnection> {
        let address = "127.0.0.1:1".parse().unwrap();
        let connection = HttpConnection::new(address, address, SocketTable::ProcNet);
        connection.enter(phase);
        Arc::new(connection)
    }

    /// Which connections, of those that come in this order, a table of three closes.
    #[track_caller]
    fn check(phases: &[ConnectionPhase], expected: &[usize]) {
        let connections: Vec<_> = phases.iter().map(|phase| connection(*phase)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut table = ConnectionTable::new(3);
            for connection in &connections {
                table.insert(connection.clone(), std::future::pending());
            }
        });
        let evicted: Vec<usize> = (0..phases.len()).filter(|at| connections[*at].evicted.is_cancelled()).collect();
        assert_eq!(evicted, expected, "{phases:?}");
    }

    #[test]
    fn the_oldest_connection_that_nobody_waits_for_makes_room() {
        use ConnectionPhase::{Answering, Idle, Listening, Receiving, Unproven};
        check(&[Unproven, Unproven, Unproven], &[]);
        check(&[Unproven, Unproven, Unproven, Unproven, Unproven], &[0, 1]);
        check(&[Idle, Unproven, Idle, Idle, Idle], &[0, 1]);
        check(&[Receiving, Idle, Receiving, Unproven], &[1]);
        check(&[Answering, Listening, Unproven, Unproven, Unproven], &[2, 3]);
        check(&[Answering, Receiving, Listening, Unproven], &[1]);
        check(&[Answering, Listening, Answering, Unproven, Idle], &[]);
    }

    #[test]
    fn a_table_has_room_again_when_a_connection_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (one, other) = (connection(ConnectionPhase::Answering), connection(ConnectionPhase::Answering));
        let open = runtime.block_on(async {
            let mut table = ConnectionTable::new(1);
            table.insert(one, std::future::ready(()));
            tokio::task::yield_now().await;
            table.insert(other.clone(), std::future::pending());
            table.open.pop().unwrap().0
        });
        assert!(Arc::ptr_eq(&open, &other));
    }

    #[test]
    fn a_request_that_was_answered_leaves_the_connection_idle() {
        let connection = connection(ConnectionPhase::Unproven);
        let guard = RequestGuard::new(connection.clone());
        assert_eq!(connection.phase(), ConnectionPhase::Receiving);
        guard.enter(ConnectionPhase::Answering);
        assert_eq!(connection.phase(), ConnectionPhase::Answering);
        drop(guard);
        assert_eq!(connection.phase(), ConnectionPhase::Idle);
    }
}
