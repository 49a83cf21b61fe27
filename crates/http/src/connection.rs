//! The connections of an HTTP server: their phases, their limit, and which one is closed to make room for a new one.
//! `server` accepts the connections.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::body::{Body, Frame, SizeHint};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::socket_table::{SocketOwner, SocketTable};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The limits of a server.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// The most connections at once.
    pub count: usize,
    /// The time limit for the first request head of a new connection.
    pub first_head: Duration,
    /// The time limit for the body of a request.
    pub body: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { count: 256, first_head: Duration::from_secs(5), body: Duration::from_secs(60) }
    }
}

/// The phase of a connection. Earlier phases are closed first to make room for new connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionPhase {
    /// No request was accepted yet: the client is silent, slow, or was refused.
    Unproven,
    /// The last request was answered.
    Idle,
    /// A request head was accepted, and its body is still arriving.
    Receiving,
    /// The client waits for an answer. Such a connection is never closed to make room.
    Answering,
    /// The client listens for events and expects no answer. Such a connection is never closed to make room.
    Listening,
}

impl ConnectionPhase {
    fn may_make_room(self) -> bool {
        self < Self::Answering
    }
}

/// The data of a connection that its requests need.
#[derive(Debug)]
pub struct HttpConnection {
    far: SocketAddr,
    near: SocketAddr,
    sockets: SocketTable,
    peer: OnceLock<Option<String>>,
    phase: Mutex<(ConnectionPhase, Instant)>,
    /// Cancelled when the connection must make room for another.
    pub(crate) evicted: CancellationToken,
}

impl HttpConnection {
    pub(crate) fn new(far: SocketAddr, near: SocketAddr, sockets: SocketTable) -> Self {
        let phase = Mutex::new((ConnectionPhase::Unproven, Instant::now()));
        Self { far, near, sockets, peer: OnceLock::new(), phase, evicted: CancellationToken::new() }
    }

    /// The address of the caller.
    pub fn far(&self) -> SocketAddr {
        self.far
    }

    /// The name of the process at the other end, if `name` finds one. It is looked up once.
    pub fn peer_name(&self, name: impl FnOnce(SocketOwner) -> Option<String>) -> Option<&str> {
        self.peer.get_or_init(|| self.sockets.owner(self.far, self.near).and_then(name)).as_deref()
    }

    pub(crate) fn phase(&self) -> ConnectionPhase {
        lock(&self.phase).0
    }

    fn enter(&self, phase: ConnectionPhase) {
        *lock(&self.phase) = (phase, Instant::now());
    }

    /// Ends if no request is accepted within this time, however many bytes arrive.
    pub(crate) async fn overdue(&self, limit: Duration) {
        sleep(limit).await;
        if self.phase() != ConnectionPhase::Unproven {
            std::future::pending().await
        }
    }
}

/// An accepted request. The connection is idle again when this is dropped.
#[derive(Debug)]
pub struct RequestGuard(Arc<HttpConnection>);

impl RequestGuard {
    /// Starts a request whose head was accepted.
    pub fn new(connection: Arc<HttpConnection>) -> Self {
        connection.enter(ConnectionPhase::Receiving);
        Self(connection)
    }

    /// Sets the next phase of the connection.
    pub fn enter(&self, phase: ConnectionPhase) {
        self.0.enter(phase);
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.enter(ConnectionPhase::Idle);
    }
}

/// The body of an answer, which keeps the guard of its request until it is sent.
pub struct GuardedBody<B> {
    body: B,
    _guard: RequestGuard,
}

impl<B> GuardedBody<B> {
    /// Combines a body with the guard of its request.
    pub fn new(body: B, guard: RequestGuard) -> Self {
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

pub(crate) struct ConnectionTable {
    limit: usize,
    open: Vec<(Arc<HttpConnection>, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl ConnectionTable {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, open: Vec::new(), tasks: JoinSet::new() }
    }

    /// Serves a connection. If the table is full, an idle connection is closed; if none is idle, the new one is.
    pub(crate) fn insert(&mut self, connection: Arc<HttpConnection>, serve: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|(_, task)| !task.is_finished());
        if self.open.len() >= self.limit && !self.evict() {
            return;
        }
        let task = self.tasks.spawn(serve);
        self.open.push((connection, task));
    }

    /// Closes one connection on which no client waits. Returns whether there was one.
    fn evict(&mut self) -> bool {
        let phases = self.open.iter().enumerate().map(|(at, (connection, _))| (*lock(&connection.phase), at));
        let Some((_, at)) = phases.filter(|((phase, _), _)| phase.may_make_room()).min() else { return false };
        let (connection, _) = self.open.swap_remove(at);
        connection.evicted.cancel();
        true
    }

    pub(crate) async fn join(&mut self) {
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

    /// Checks which of these connections, arriving in this order, a table of three closes.
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
    fn the_oldest_idle_connection_makes_room() {
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
