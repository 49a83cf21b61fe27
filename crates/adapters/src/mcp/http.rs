//! The server over HTTP, at one address for any number of clients. Who may come in is decided here: by user, token, and the `Host` and
//! `Origin` that a browser sends along; what is said then is the SDK's.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use http_body_util::{BodyExt, Full, LengthLimitError, Limited, combinators::BoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
        CONTENT_TYPE, HeaderValue, ORIGIN, VARY, WWW_AUTHENTICATE,
    },
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService,
    streamable_http_server::session::{SessionState, SessionStore, SessionStoreError, local::LocalSessionManager},
};
use surehand_engine::SessionId;
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Server,
    bearer_token::Token,
    caller::Caller,
    connection::{ConnectionLimits, ConnectionPhase, ConnectionTable, GuardedBody, HttpConnection, RequestGuard},
    sessions::{SessionPool, lock},
    socket_table::{SocketOwner, SocketTable},
};

/// Where the tools are served.
const PATH: &str = "/mcp";

/// A session that is idle for so long is put away. When its client comes back it goes on.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// So many sessions that were put away can go on.
const MOST_IDLE: usize = 1000;

/// So many connections may wait to be accepted.
const BACKLOG: i32 = 1024;

/// A connection that says nothing for so long after an answer is closed.
const SILENCE: Duration = Duration::from_secs(75);

/// So many refused connections at once get an answer. More are just closed.
const MOST_REFUSED: usize = 32;

/// How long a connection that is to be closed stays open for its last answer.
const LAST_ANSWER: Duration = Duration::from_secs(2);

const OTHER_USER: &str = "Forbidden: without a token, only processes of the user who runs this server are served. Start it with --token and \
     send the header Authorization: Bearer TOKEN";

/// How long the answers that are under way may take when the server is to end.
const FAREWELL: Duration = Duration::from_secs(5);

type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// Why a server cannot be reached where it should be.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Others could reach it, and nothing would hold them back.
    #[error("{0} can be reached from other machines: that needs a token (--token makes one)")]
    NeedsToken(SocketAddr),
    /// The system does not give us the address.
    #[error("{address}: cannot listen: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// No browser sends this.
    #[error("{0:?} is no origin: write https://HOST or https://HOST:PORT, as a browser sends it")]
    NotAnOrigin(String),
}

/// Where a server listens, and whom it lets in.
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    token: Option<Token>,
    origins: Vec<String>,
    idle: Duration,
    limits: ConnectionLimits,
    stop: CancellationToken,
}

/// Ends a server from elsewhere.
#[derive(Debug, Clone)]
pub struct Stopper(CancellationToken);

impl Stopper {
    /// Answers what is under way, then ends.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

impl Endpoint {
    /// Takes an address. One that others can reach needs a token. Pages of these origins may call from a browser; no others may.
    pub fn bind(address: SocketAddr, token: Option<Token>, origins: &[String]) -> Result<Self, EndpointError> {
        if !address.ip().is_loopback() && token.is_none() {
            return Err(EndpointError::NeedsToken(address));
        }
        let origins = origins.iter().map(|origin| as_origin(origin)).collect::<Result<_, _>>()?;
        let failed = |error| EndpointError::Listen { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        // The queue that the library gives it is short: in a rush of connections others would wait a second for their next try.
        rustix::net::listen(&listener, BACKLOG).map_err(|error| failed(error.into()))?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            token,
            origins,
            idle: IDLE,
            limits: ConnectionLimits::default(),
            stop: CancellationToken::new(),
        })
    }

    /// The address as clients need it.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Whether clients must send a token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// To end the server that is going to listen here.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// The names by which a browser on this machine may know us. Somebody's page that has its name lead here is not let in. Where
    /// others can reach us we do not know all our names, and the token holds such a page back.
    fn hosts(&self) -> Vec<String> {
        match self.address.ip() {
            ip if ip.is_loopback() => {
                ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into_iter().chain([ip.to_string()]).collect()
            }
            IpAddr::V4(_) | IpAddr::V6(_) => Vec::new(),
        }
    }
}

/// An origin as browsers send it: in small letters, without a path.
fn as_origin(typed: &str) -> Result<String, EndpointError> {
    let origin = typed.trim_end_matches('/').to_ascii_lowercase();
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let is_origin = host.is_some_and(|host| !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
    if is_origin { Ok(origin) } else { Err(EndpointError::NotAnOrigin(typed.to_owned())) }
}

/// What all connections share.
struct HttpServer {
    service: StreamableHttpService<Server, LocalSessionManager>,
    sockets: SocketTable,
    token: Option<Token>,
    origins: Vec<String>,
    /// How many bytes the body of a request may have.
    largest_body: usize,
    limits: ConnectionLimits,
    closing: CancellationToken,
}

/// Serves until it is told to stop, by a signal or from elsewhere.
pub(super) async fn serve(hub: Arc<SessionPool>, endpoint: Endpoint) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(endpoint.listener.try_clone()?)?;
    let end = CancellationToken::new();
    let door = Arc::new(HttpServer {
        service: service(&hub, &endpoint, end.clone()),
        closing: hub.closing.clone(),
        sockets: SocketTable::detect(endpoint.address),
        token: endpoint.token,
        origins: endpoint.origins,
        largest_body: largest_body(&hub),
        limits: endpoint.limits,
    });
    let (mut connections, mut refused) = (ConnectionTable::new(endpoint.limits.count), JoinSet::new());
    let mut asked_to_stop = pin!(asked_to_stop(endpoint.stop));
    loop {
        tokio::select! {
            stop = &mut asked_to_stop => {
                stop?;
                break;
            }
            accepted = accept(&listener) => match accepted {
                // They take no place among the connections that are served.
                Ok((stream, far, near)) if !door.may_connect(far, near) => {
                    while refused.try_join_next().is_some() {}
                    if refused.len() < MOST_REFUSED {
                        refused.spawn(timeout(LAST_ANSWER, turn_away(stream)));
                    }
                }
                Ok((stream, far, near)) => {
                    let connection = Arc::new(HttpConnection::new(far, near, door.sockets));
                    connections.insert(connection.clone(), attend(door.clone(), stream, connection));
                }
                // Too many open files, say: it will pass.
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
        }
    }
    drop((listener, endpoint.listener));
    hub.closing.cancel();
    let _ = timeout(FAREWELL, connections.join()).await;
    end.cancel();
    hub.workspace().flush();
    Ok(())
}

/// The next connection, with its far and its near address.
async fn accept(listener: &tokio::net::TcpListener) -> io::Result<(TcpStream, SocketAddr, SocketAddr)> {
    loop {
        let (stream, far) = listener.accept().await?;
        // Some systems give no address if the client is gone already.
        if let Ok(near) = stream.local_addr() {
            return Ok((stream, far, near));
        }
    }
}

/// The SDK's part, as we want it.
fn service(
    hub: &Arc<SessionPool>,
    endpoint: &Endpoint,
    end: CancellationToken,
) -> StreamableHttpService<Server, LocalSessionManager> {
    let mut sessions = LocalSessionManager::default();
    // Some clients drop a server whose streams begin with an empty event, which this and the same setting below would send.
    sessions.session_config.sse_retry = None;
    sessions.session_config.keep_alive = Some(endpoint.idle);
    let mut config = StreamableHttpServerConfig::default()
        .with_sse_retry(None)
        .with_cancellation_token(end)
        .with_allowed_hosts(endpoint.hosts())
        .with_allowed_origins(endpoint.origins.iter().cloned())
        .enforce_origin_validation()
        .with_max_request_body_bytes(largest_body(hub));
    config.session_store = Some(Arc::new(IdleSessions { hub: hub.clone(), sessions: Mutex::default() }));
    let hub = hub.clone();
    StreamableHttpService::new(move || Ok(Server::over_http(hub.clone())), Arc::new(sessions), config)
}

/// A file at its limit, every byte escaped, and something around it.
fn largest_body(hub: &SessionPool) -> usize {
    let file_bytes = usize::try_from(hub.workspace().config().limits.file_bytes).unwrap_or(usize::MAX);
    file_bytes.saturating_mul(6).saturating_add(1 << 20)
}

/// Until somebody presses Ctrl-C, the system wants us to end, or the stopper is used.
async fn asked_to_stop(stop: CancellationToken) -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = stop.cancelled() => {}
    }
    Ok(())
}

/// Answers the requests of one connection.
async fn attend(door: Arc<HttpServer>, mut stream: TcpStream, connection: Arc<HttpConnection>) {
    // Answers are small, and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let (door, connection) = (door.clone(), connection.clone());
        async move { Ok::<HttpAnswer, Infallible>(door.answer(request, connection).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(SILENCE);
    let mut serving = Box::pin(builder.serve_connection(TokioIo::new(&mut stream), service));
    tokio::select! {
        biased;
        () = connection.evicted.cancelled() => {
            // What was answered may still be on the way.
            if connection.phase() == ConnectionPhase::Idle {
                serving.as_mut().graceful_shutdown();
                let _ = timeout(LAST_ANSWER, serving).await;
            }
        }
        () = door.closing.cancelled() => {
            // A connection on which nothing is owed would not end by itself.
            if !matches!(connection.phase(), ConnectionPhase::Unproven | ConnectionPhase::Listening) {
                serving.as_mut().graceful_shutdown();
                let _ = serving.await;
            }
        }
        // Whatever went wrong, the client is gone or has its answer.
        _ = serving.as_mut() => {
            drop(serving);
            let _ = timeout(LAST_ANSWER, hang_up(stream)).await;
        }
        () = connection.overdue(door.limits.first_head) => {}
    }
}

/// Answers a connection of another user, whatever it asks.
async fn turn_away(mut stream: TcpStream) {
    let service = service_fn(|_| async { Ok::<HttpAnswer, Infallible>(plain(StatusCode::FORBIDDEN, OTHER_USER)) });
    let _ = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(&mut stream), service).await;
    hang_up(stream).await;
}

/// Says that no more comes, and waits until the client hangs up. Closing a socket that has unread bytes resets the connection, and the
/// client might lose the answer.
async fn hang_up(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}

impl HttpServer {
    /// Whether requests of this connection are looked at. With a token, each request must show it. Without one, the far end must be a
    /// socket of our own user, and if that cannot be determined, it is not: a port forward from a container, say, hides who calls.
    fn may_connect(&self, far: SocketAddr, near: SocketAddr) -> bool {
        self.token.is_some() || self.sockets.owner(far, near).is_some_and(SocketOwner::is_this_user)
    }

    async fn answer(&self, request: Request<Incoming>, connection: Arc<HttpConnection>) -> HttpAnswer {
        let origin = match self.origin(request.headers()) {
            Ok(origin) => origin,
            Err(refused) => return refused,
        };
        let mut answer = match self.refuse(&request) {
            Some(refused) => refused,
            None => self.call(request, connection).await.unwrap_or_else(|refused| refused),
        };
        if let Some(origin) = origin {
            let headers = answer.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Mcp-Session-Id"));
            headers.insert(VARY, HeaderValue::from_static("Origin"));
        }
        answer
    }

    /// Has the SDK answer a request that was let in, and mends the statuses that it gets wrong.
    async fn call(&self, request: Request<Incoming>, connection: Arc<HttpConnection>) -> Result<HttpAnswer, HttpAnswer> {
        let guard = RequestGuard::new(connection.clone());
        let (mut head, body) = request.into_parts();
        let body = self.collect(body).await?;
        let (method, is_json) = (head.method.clone(), is_json(&head.headers));
        guard.enter(if method == Method::GET { ConnectionPhase::Listening } else { ConnectionPhase::Answering });
        head.extensions.insert(connection);
        let mut answer = self.service.handle(Request::from_parts(head, Full::new(body))).await;
        let status = match answer.status() {
            // Some clients take "accepted" for a failure.
            StatusCode::ACCEPTED if method == Method::DELETE => StatusCode::NO_CONTENT,
            // The type is right, so it is the content that is wrong.
            StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => StatusCode::BAD_REQUEST,
            status => status,
        };
        *answer.status_mut() = status;
        Ok(answer.map(|body| GuardedBody::new(body, guard).boxed()))
    }

    /// The whole body of a request. The SDK would answer 500 to a body that cannot be read, such as one with a malformed chunk.
    async fn collect(&self, body: Incoming) -> Result<Bytes, HttpAnswer> {
        let Ok(collected) = timeout(self.limits.body, Limited::new(body, self.largest_body).collect()).await else {
            return Err(plain(StatusCode::REQUEST_TIMEOUT, "Request Timeout: the body took too long"));
        };
        match collected {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {
                let why = format!("Payload Too Large: the body has more than {} bytes", self.largest_body);
                Err(plain(StatusCode::PAYLOAD_TOO_LARGE, why))
            }
            Err(error) => Err(plain(StatusCode::BAD_REQUEST, format!("Bad Request: the body cannot be read: {error}"))),
        }
    }

    /// The page that a browser calls for, if it is a browser; pages of other origins are refused.
    fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, HttpAnswer> {
        let is_allowed = |origin: &HeaderValue| {
            origin.to_str().is_ok_and(|origin| self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)))
        };
        match headers.get_all(ORIGIN).iter().find(|origin| !is_allowed(origin)) {
            Some(_) => {
                Err(plain(StatusCode::FORBIDDEN, "Forbidden: pages of this origin may not call; --allow-origin lets them"))
            }
            None => Ok(headers.get(ORIGIN).cloned()),
        }
    }

    /// What is wrong with a request before anybody reads what it says.
    fn refuse(&self, request: &Request<Incoming>) -> Option<HttpAnswer> {
        if request.uri().path().trim_end_matches('/') != PATH {
            return Some(plain(StatusCode::NOT_FOUND, "Not Found: the tools are served at /mcp"));
        }
        // What a browser asks first, without the token. Only pages that may call come here.
        if request.method() == Method::OPTIONS && request.headers().contains_key(ORIGIN) {
            return Some(preflight());
        }
        let is_let_in = self.token.as_ref().is_none_or(|token| token.is_shown(request.headers()));
        (!is_let_in).then(|| {
            let mut answer = plain(StatusCode::UNAUTHORIZED, "Unauthorized: send the header Authorization: Bearer TOKEN");
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            answer
        })
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

fn plain(status: StatusCode, why: impl Into<Bytes>) -> HttpAnswer {
    let mut answer = Response::new(Full::new(why.into()).boxed());
    *answer.status_mut() = status;
    answer
}

fn preflight() -> HttpAnswer {
    const HEADERS: &str = "Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, Surehand-Session";
    let mut answer = plain(StatusCode::NO_CONTENT, "");
    answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
    answer
}

/// The session of a client that has shaken hands, by the id that it was given.
pub(super) fn with_id(id: &str) -> Caller {
    Caller::Own(SessionId(format!("http-{id}")))
}

/// Sessions that may have been put away, with what their clients said when they shook hands. What they have seen is in the store.
struct IdleSessions {
    hub: Arc<SessionPool>,
    sessions: Mutex<Vec<(String, SessionState)>>,
}

#[async_trait::async_trait]
impl SessionStore for IdleSessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(lock(&self.sessions).iter().find(|(known, _)| known == id).map(|(_, state)| state.clone()))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= MOST_IDLE {
            sessions.remove(0);
        }
        sessions.push((id.to_owned(), state.clone()));
        Ok(())
    }

    /// The client has ended the session.
    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        lock(&self.sessions).retain(|(known, _)| known != id);
        self.hub.leave(&with_id(id));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use serde_json::json;
    use surehand_engine::{Config, Workspace, core::EditDialect};

    use super::{super::serve_http, *};

    /// A server in a thread of its own.
    struct RunningServer {
        address: SocketAddr,
        stopper: Stopper,
        thread: std::thread::JoinHandle<io::Result<()>>,
        _dir: tempfile::TempDir,
    }

    impl RunningServer {
        fn start(change: impl FnOnce(&mut Endpoint)) -> Self {
            let dir = surehand_testkit::repository();
            let workspace = Workspace::open(dir.path(), Config::default()).unwrap();
            let mut endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), None, &[]).unwrap();
            change(&mut endpoint);
            let (address, stopper) = (endpoint.address, endpoint.stopper());
            let open = |_: &std::path::Path| Err("it is not made again here".to_owned());
            let thread = std::thread::spawn(move || serve_http(workspace, Box::new(open), &EditDialect::ALL, endpoint));
            Self { address, stopper, thread, _dir: dir }
        }

        fn stop(self) {
            self.stopper.stop();
            self.thread.join().unwrap().unwrap();
        }

        fn connect(&self) -> std::net::TcpStream {
            std::net::TcpStream::connect(self.address).unwrap()
        }

        /// Sends a request and gives all of the answer.
        fn send(&self, method: &str, session: &str, body: &serde_json::Value) -> String {
            let mut stream = self.connect();
            let (session, body) =
                (if session.is_empty() { String::new() } else { format!("mcp-session-id: {session}\r\n") }, body.to_string());
            let request = format!(
                "{method} /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                 accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
                 {session}content-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        }

        /// Shakes hands; gives the id of the session.
        #[track_caller]
        fn shake_hands(&self) -> String {
            let client = json!({ "name": "test", "version": "0" });
            let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
            let answer = self.send("POST", "", &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
            let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
            self.send("POST", id, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
            id.to_owned()
        }
    }

    /// Whether the server has not closed this connection, which has nothing to read.
    fn is_open(stream: &std::net::TcpStream) -> bool {
        stream.set_nonblocking(true).unwrap();
        stream.peek(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Writes one byte again and again. Gives what the server says before it hangs up.
    fn trickle(mut stream: std::net::TcpStream) -> String {
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut answer = Vec::new();
        loop {
            let _ = stream.write_all(b"x");
            match stream.read_to_end(&mut answer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return String::from_utf8(answer).unwrap(),
            }
        }
    }

    #[test]
    fn a_session_that_was_idle_goes_on_where_it_was() {
        let server = RunningServer::start(|endpoint| endpoint.idle = Duration::from_millis(300));
        let id = server.shake_hands();
        let call = |tool: &str, arguments: serde_json::Value| {
            let params = json!({ "name": tool, "arguments": arguments, "_meta": { "surehand/result": true } });
            server.send("POST", &id, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }))
        };
        assert!(call("write_file", json!({ "path": "a.txt", "content": "one\n" })).contains("\"success\":true"));
        // The stream of a session ends with it.
        server.send("GET", &id, &json!(null));
        let edited = call("edit_file", json!({ "path": "a.txt", "old_string": "one", "new_string": "1" }));
        assert!(edited.contains("\"success\":true"), "{edited}");
        server.stop();
    }

    #[test]
    fn silent_connections_make_room_the_oldest_first() {
        let server = RunningServer::start(|endpoint| {
            endpoint.limits = ConnectionLimits { count: 4, first_head: Duration::from_secs(3600), ..endpoint.limits };
        });
        let mut silent: Vec<_> = (0..20).map(|_| server.connect()).collect();
        server.shake_hands();
        // The two connections of the client took the places of two at most.
        let last = silent.split_off(18);
        assert!(last.iter().all(is_open));
        for mut stream in silent.into_iter().take(16) {
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it is closed");
        }
        server.stop();
    }

    #[test]
    fn a_head_that_trickles_in_is_cut_off() {
        let server = RunningServer::start(|endpoint| endpoint.limits.first_head = Duration::from_millis(200));
        let mut stream = server.connect();
        stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: ").unwrap();
        assert_eq!(trickle(stream), "");
        // Nor do requests that are not let in keep a connection.
        let mut stream = server.connect();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\nGET /").unwrap();
        assert!(trickle(stream).starts_with("HTTP/1.1 404"));
        server.stop();
    }

    #[test]
    fn a_body_that_trickles_in_is_cut_off() {
        let server = RunningServer::start(|endpoint| endpoint.limits.body = Duration::from_millis(200));
        let mut stream = server.connect();
        stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n").unwrap();
        assert!(trickle(stream).starts_with("HTTP/1.1 408"));
        server.stop();
    }

    #[track_caller]
    fn check_origin(typed: &str, expected: Option<&str>) {
        assert_eq!(as_origin(typed).ok().as_deref(), expected);
    }

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        check_origin("https://App.example.com/", Some("https://app.example.com"));
        check_origin("http://localhost:3000", Some("http://localhost:3000"));
        check_origin("app.example.com", None);
        check_origin("https://", None);
        check_origin("https://example.com/path", None);
        check_origin("*", None);
    }

    #[test]
    fn an_address_that_others_can_reach_needs_a_token() {
        let everywhere = "0.0.0.0:0".parse().unwrap();
        let error = Endpoint::bind(everywhere, None, &[]).unwrap_err();
        assert_eq!(error.to_string(), "0.0.0.0:0 can be reached from other machines: that needs a token (--token makes one)");
        assert!(Endpoint::bind(everywhere, Some(Token::generate().unwrap()), &[]).is_ok());
        assert!(Endpoint::bind("127.0.0.1:0".parse().unwrap(), None, &[]).is_ok());
    }
}
