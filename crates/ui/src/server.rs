//! Serves the page: its files to a browser of this user, and the data of the workspace to a page that has the token.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
};
use surehand_engine::Workspace;
use surehand_http::{
    AllowedCallers, ConnectionLimits, ConnectionPhase, GuardedBody, Handler, HttpAnswer, HttpConnection, HttpServer, ListenError,
    Listener, RequestGuard, Stopper, Token, plain, read_body, wait_for_stop,
};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::{
    api,
    board::{BoardAccess, BoardView},
    feed::Feed,
    live::LiveState,
    page,
    request_filter::{API, RequestFilter, protect},
};

const OTHER_USER: &str = "Forbidden: only browsers of the user who runs this server are served";

/// The most requests that are answered at once; further ones wait.
const MOST_THREADS: usize = 8;

/// When the server ends, it waits this long for running calls.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// The largest body of a request, in bytes.
const MOST_BYTES: usize = 64 << 10;

/// Why the page cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is not available.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system has no random numbers.
    #[error("cannot generate a token: {0}")]
    Token(io::Error),
    /// An I/O error of the running server.
    #[error("the server failed: {0}")]
    Server(#[from] io::Error),
}

/// A server that listens and has not begun to answer.
#[derive(Debug)]
pub struct PageServer {
    listener: Listener,
    filter: RequestFilter,
    stopper: Stopper,
}

impl PageServer {
    /// Listens on loopback at this port; 0 for any.
    pub fn bind(port: u16) -> Result<Self, ServeError> {
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, port).into())?;
        let token = Token::generate().map_err(ServeError::Token)?;
        let filter = RequestFilter::new(token, listener.address());
        Ok(Self { listener, filter, stopper: Stopper::default() })
    }

    /// The address and port of the listener.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The URL for a browser. Everyone who has it can see and change the workspace. Browsers do not send the part after
    /// `#` to the server.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.listener.address(), self.filter.token().secret())
    }

    /// Ends the server from another thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }
}

/// Serves the page of a workspace until a signal or the stopper ends it. Without `board`, the page says that there is
/// no board.
pub fn serve(workspace: Arc<Workspace>, server: PageServer, board: Option<Box<dyn BoardAccess>>) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(MOST_THREADS).build()?;
    let live = LiveState::new(workspace.clone(), BoardView::new(board));
    let limits = ConnectionLimits::default();
    let closing = CancellationToken::new();
    let handler =
        Arc::new(PageHandler { filter: server.filter, live: live.clone(), closing: closing.clone(), body_time: limits.body });
    let http = HttpServer {
        listener: server.listener,
        callers: AllowedCallers::ThisUser { otherwise: OTHER_USER },
        limits,
        closing,
        handler,
    };
    let served = runtime.block_on(http.serve(wait_for_stop(&server.stopper)));
    runtime.shutdown_timeout(LAST_CALLS);
    live.end();
    workspace.flush();
    Ok(served?)
}

struct PageHandler {
    filter: RequestFilter,
    live: Arc<LiveState>,
    closing: CancellationToken,
    body_time: Duration,
}

impl Handler for PageHandler {
    async fn answer(&self, request: Request<Incoming>, connection: Arc<HttpConnection>) -> HttpAnswer {
        let answer = match self.filter.refuse(&request) {
            Some(refused) => refused,
            None => self.admitted(request, connection).await,
        };
        protect(answer)
    }
}

impl PageHandler {
    async fn admitted(&self, request: Request<Incoming>, connection: Arc<HttpConnection>) -> HttpAnswer {
        let guard = RequestGuard::new(connection);
        let (head, body) = request.into_parts();
        let body = match read_body(body, MOST_BYTES, self.body_time).await {
            Ok(body) => body,
            Err(error) => return error.answer(),
        };
        let Some(question) = head.uri.path().strip_prefix(API) else { return page_file(head.uri.path()) };
        if question == "feed" && head.method == Method::GET {
            return self.feed(guard);
        }
        guard.enter(ConnectionPhase::Answering);
        let question = api::Question {
            name: question.to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            body: (head.method == Method::POST).then_some(body),
        };
        let live = self.live.clone();
        match spawn_blocking(move || api::answer(&live, &question)).await {
            Ok(answer) => answer.map(|body| GuardedBody::new(body, guard).boxed()),
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("Internal Server Error: {error}")),
        }
    }

    fn feed(&self, guard: RequestGuard) -> HttpAnswer {
        guard.enter(ConnectionPhase::Listening);
        let feed = Feed::start(self.live.subscribe(), self.closing.clone());
        with_type("text/event-stream", Response::new(GuardedBody::new(feed, guard).boxed()))
    }
}

fn page_file(path: &str) -> HttpAnswer {
    match page::file(path) {
        Some(file) => with_type(file.content_type, Response::new(Full::new(file.content.into()).boxed())),
        None => plain(StatusCode::NOT_FOUND, "Not Found"),
    }
}

fn with_type(content_type: &'static str, mut answer: HttpAnswer) -> HttpAnswer {
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
