//! Accepts connections and serves them until the server is asked to stop.

use std::{
    convert::Infallible,
    io,
    net::{SocketAddr, TcpListener},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use http_body_util::{BodyExt, Full, LengthLimitError, Limited, combinators::BoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{ConnectionLimits, ConnectionPhase, ConnectionTable, HttpConnection},
    socket_table::{SocketOwner, SocketTable},
};

/// The most connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// A connection that stays silent for this long after an answer is closed.
const SILENCE: Duration = Duration::from_secs(75);

/// The most refused connections that get an answer at once. More are closed without one.
const MOST_REFUSED: usize = 32;

/// How long a connection stays open for its last answer before it is closed.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// The time limit for pending answers when the server ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// An answer to a request.
pub type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// Answers the requests of a server.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request of a connection. It must hold a `RequestGuard` of the connection meanwhile.
    fn answer(&self, request: Request<Incoming>, connection: Arc<HttpConnection>) -> impl Future<Output = HttpAnswer> + Send;
}

/// The users whose connections are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedCallers {
    /// All connections that reach the address. The handler must ask for a secret.
    Anyone,
    /// Connections of this user's processes. A connection with an unknown owner is refused: a port forward from a
    /// container, for example, hides the caller.
    ThisUser {
        /// The text of the refusal, for all other callers.
        otherwise: &'static str,
    },
}

/// Why a server cannot listen at its address.
#[derive(Debug, thiserror::Error)]
#[error("{address}: cannot listen: {error}")]
pub struct ListenError {
    /// The address that was requested.
    pub address: SocketAddr,
    /// The error of the system call.
    pub error: io::Error,
}

/// A listening TCP socket.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens at an address.
    pub fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let failed = |error| ListenError { address, error };
        let socket = TcpListener::bind(address).map_err(failed)?;
        // The default queue is short: in a rush of connections, refused clients would wait a second before they try
        // again.
        rustix::net::listen(&socket, BACKLOG).map_err(|error| failed(error.into()))?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address })
    }

    /// The address of the socket, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Ends a server from another thread.
#[derive(Debug, Clone, Default)]
pub struct Stopper(CancellationToken);

impl Stopper {
    /// Ends the server after pending answers.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

/// Waits for Ctrl-C, SIGTERM or the stopper.
pub async fn wait_for_stop(stopper: &Stopper) -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = stopper.0.cancelled() => {}
    }
    Ok(())
}

/// A server that is ready to accept connections.
#[derive(Debug)]
pub struct HttpServer<H> {
    /// The socket on which it accepts connections.
    pub listener: Listener,
    /// The users whose connections it serves.
    pub callers: AllowedCallers,
    /// Limits on the number of connections and their time.
    pub limits: ConnectionLimits,
    /// Cancelled when it is about to end, for answers that would not end by themselves.
    pub closing: CancellationToken,
    /// Answers the accepted requests.
    pub handler: Arc<H>,
}

impl<H: Handler> HttpServer<H> {
    /// Serves until `stop` ends, then waits for pending answers.
    pub async fn serve(self, stop: impl Future<Output = io::Result<()>>) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener.socket)?;
        let sockets = SocketTable::detect(self.listener.address);
        let (callers, limits, closing) = (self.callers, self.limits, self.closing);
        let (mut connections, mut refused) = (ConnectionTable::new(limits.count), JoinSet::new());
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                stop = &mut stop => {
                    stop?;
                    break;
                }
                accepted = accept(&listener) => match accepted {
                    Ok((stream, far, near)) => match callers {
                        // Refused connections do not count towards the limit.
                        AllowedCallers::ThisUser { otherwise } if !sockets.owner(far, near).is_some_and(SocketOwner::is_this_user) => {
                            while refused.try_join_next().is_some() {}
                            if refused.len() < MOST_REFUSED {
                                refused.spawn(timeout(LAST_ANSWER, turn_away(stream, otherwise)));
                            }
                        }
                        AllowedCallers::Anyone | AllowedCallers::ThisUser { .. } => {
                            let connection = Arc::new(HttpConnection::new(far, near, sockets));
                            let served = ConnectionTask { handler: self.handler.clone(), limits, closing: closing.clone() };
                            connections.insert(connection.clone(), served.attend(stream, connection));
                        }
                    },
                    // A temporary error, such as too many open files.
                    Err(_) => sleep(Duration::from_millis(50)).await,
                },
            }
        }
        drop(listener);
        closing.cancel();
        let _ = timeout(FAREWELL, connections.join()).await;
        Ok(())
    }
}

/// The next connection, with its far and its near address.
async fn accept(listener: &tokio::net::TcpListener) -> io::Result<(TcpStream, SocketAddr, SocketAddr)> {
    loop {
        let (stream, far) = listener.accept().await?;
        // Some systems return no address if the client is already gone.
        if let Ok(near) = stream.local_addr() {
            return Ok((stream, far, near));
        }
    }
}

/// The shared values that the task of a connection needs.
struct ConnectionTask<H> {
    handler: Arc<H>,
    limits: ConnectionLimits,
    closing: CancellationToken,
}

impl<H: Handler> ConnectionTask<H> {
    async fn attend(self, mut stream: TcpStream, connection: Arc<HttpConnection>) {
        // Answers are small, and a client waits for each.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| {
            let (handler, connection) = (self.handler.clone(), connection.clone());
            async move { Ok::<HttpAnswer, Infallible>(handler.answer(request, connection).await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(SILENCE);
        let mut serving = Box::pin(builder.serve_connection(TokioIo::new(&mut stream), service));
        tokio::select! {
            biased;
            () = connection.evicted.cancelled() => {
                // The last answer may still be in transit.
                if connection.phase() == ConnectionPhase::Idle {
                    serving.as_mut().graceful_shutdown();
                    let _ = timeout(LAST_ANSWER, serving).await;
                }
            }
            () = self.closing.cancelled() => {
                // A connection without a pending answer would not end by itself.
                if !matches!(connection.phase(), ConnectionPhase::Unproven | ConnectionPhase::Listening) {
                    serving.as_mut().graceful_shutdown();
                    let _ = serving.await;
                }
            }
            // On any error, the client is gone or has its answer.
            _ = serving.as_mut() => {
                drop(serving);
                let _ = timeout(LAST_ANSWER, hang_up(stream)).await;
            }
            () = connection.overdue(self.limits.first_head) => {}
        }
    }
}

/// Refuses a connection of another user, whatever it requests.
async fn turn_away(mut stream: TcpStream, why: &'static str) {
    let service = service_fn(|_| async { Ok::<HttpAnswer, Infallible>(plain(StatusCode::FORBIDDEN, why)) });
    let _ = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(&mut stream), service).await;
    hang_up(stream).await;
}

/// Closes the sending side, and waits until the client hangs up. Closing a socket with unread bytes resets the
/// connection, and the client might lose the answer.
async fn hang_up(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}

/// Why the body of a request is not used.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It did not arrive in time.
    #[error("Request Timeout: the body took too long")]
    Slow,
    /// It is too large.
    #[error("Payload Too Large: the body has more than {most} bytes")]
    TooLarge {
        /// The limit, in bytes.
        most: usize,
    },
    /// It is malformed, or the client hung up.
    #[error("Bad Request: the body cannot be read: {why}")]
    Unreadable {
        /// The error, as text.
        why: String,
    },
}

impl BodyError {
    /// The answer to the client.
    pub fn answer(&self) -> HttpAnswer {
        let status = match self {
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unreadable { .. } => StatusCode::BAD_REQUEST,
        };
        plain(status, self.to_string())
    }
}

/// Reads the whole body of a request, up to this many bytes, within this time.
pub async fn read_body(body: Incoming, most: usize, time: Duration) -> Result<Bytes, BodyError> {
    match timeout(time, Limited::new(body, most).collect()).await {
        Err(_) => Err(BodyError::Slow),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge { most }),
        Ok(Err(error)) => Err(BodyError::Unreadable { why: error.to_string() }),
    }
}

/// An answer of plain text.
pub fn plain(status: StatusCode, text: impl Into<Bytes>) -> HttpAnswer {
    let mut answer = Response::new(Full::new(text.into()).boxed());
    *answer.status_mut() = status;
    answer
}
