//! The server over HTTP, at one address for any number of clients. This module decides which requests are accepted: by
//! token, and by the `Host` and `Origin` that a browser sends. The SDK handles accepted requests.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::Incoming,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
        CONTENT_TYPE, HeaderValue, ORIGIN, VARY, WWW_AUTHENTICATE,
    },
};
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService,
    streamable_http_server::session::{SessionState, SessionStore, SessionStoreError, local::LocalSessionManager},
};
use surehand_engine::SessionId;
use surehand_http::{
    AllowedCallers, ConnectionLimits, ConnectionPhase, GuardedBody, Handler, HttpAnswer, HttpConnection, HttpServer, ListenError,
    Listener, RequestGuard, Stopper, Token, plain, read_body, wait_for_stop,
};
use tokio_util::sync::CancellationToken;

use super::{
    Server,
    caller::Caller,
    peer_process,
    sessions::{SessionPool, lock},
};

const PATH: &str = "/mcp";

/// A session that is idle for this long is removed from memory, and resumed when its client calls again.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// The most sessions that can be resumed.
const MOST_IDLE: usize = 1000;

const OTHER_USER: &str = "Forbidden: without a token, only processes of the user who runs this server are served. Start it with --token and \
     send the header Authorization: Bearer TOKEN";

/// Why a server cannot listen at its address.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Other machines could reach it without a token.
    #[error("{0} can be reached from other machines: that needs a token (--token makes one)")]
    NeedsToken(SocketAddr),
    /// The system does not provide the address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// No browser sends such an origin.
    #[error("{0:?} is not an origin: write https://HOST or https://HOST:PORT, as a browser sends it")]
    NotAnOrigin(String),
}

/// The address of a server, and the rules for its callers.
#[derive(Debug)]
pub struct Endpoint {
    listener: Listener,
    token: Option<Token>,
    origins: Vec<String>,
    idle: Duration,
    limits: ConnectionLimits,
    stopper: Stopper,
}

impl Endpoint {
    /// Listens at an address. One that other machines can reach needs a token. Only web pages of these origins may call
    /// from a browser.
    pub fn bind(address: SocketAddr, token: Option<Token>, origins: &[String]) -> Result<Self, EndpointError> {
        if !address.ip().is_loopback() && token.is_none() {
            return Err(EndpointError::NeedsToken(address));
        }
        let origins = origins.iter().map(|origin| as_origin(origin)).collect::<Result<_, _>>()?;
        let listener = Listener::bind(address)?;
        let (limits, stopper) = (ConnectionLimits::default(), Stopper::default());
        Ok(Self { listener, token, origins, idle: IDLE, limits, stopper })
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.listener.address())
    }

    /// Whether clients must send a token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Ends the server that will listen here.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// The host names that a browser on this machine may use, against DNS rebinding. If other machines can reach the
    /// server, it cannot know all its names, and the token keeps such pages out.
    fn hosts(&self) -> Vec<String> {
        let ip = self.listener.address().ip();
        if ip.is_loopback() { ["localhost", "127.0.0.1", "::1", &ip.to_string()].map(str::to_owned).into() } else { Vec::new() }
    }
}

/// An origin as browsers send it: in lower case, without a path.
fn as_origin(typed: &str) -> Result<String, EndpointError> {
    let origin = typed.trim_end_matches('/').to_ascii_lowercase();
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let is_origin = host.is_some_and(|host| !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
    if is_origin { Ok(origin) } else { Err(EndpointError::NotAnOrigin(typed.to_owned())) }
}

/// Answers the requests of all connections.
struct McpHandler {
    service: StreamableHttpService<Server, LocalSessionManager>,
    token: Option<Token>,
    origins: Vec<String>,
    largest_body: usize,
    body_time: Duration,
}

/// Serves until a signal or the stopper ends it.
pub(super) async fn serve(pool: Arc<SessionPool>, endpoint: Endpoint) -> io::Result<()> {
    let end = CancellationToken::new();
    let handler = Arc::new(McpHandler {
        service: service(&pool, &endpoint, end.clone()),
        token: endpoint.token,
        origins: endpoint.origins,
        largest_body: largest_body(&pool),
        body_time: endpoint.limits.body,
    });
    let callers =
        if handler.token.is_some() { AllowedCallers::Anyone } else { AllowedCallers::ThisUser { otherwise: OTHER_USER } };
    let Endpoint { listener, limits, stopper, .. } = endpoint;
    let server = HttpServer { listener, callers, limits, closing: pool.closing.clone(), handler };
    server.serve(wait_for_stop(&stopper)).await?;
    end.cancel();
    pool.workspace().flush();
    Ok(())
}

/// The SDK's service with our settings.
fn service(
    pool: &Arc<SessionPool>,
    endpoint: &Endpoint,
    end: CancellationToken,
) -> StreamableHttpService<Server, LocalSessionManager> {
    let mut sessions = LocalSessionManager::default();
    // Some clients drop a server whose streams begin with an empty event, which this setting and the one below would
    // send.
    sessions.session_config.sse_retry = None;
    sessions.session_config.keep_alive = Some(endpoint.idle);
    let mut config = StreamableHttpServerConfig::default()
        .with_sse_retry(None)
        .with_cancellation_token(end)
        .with_allowed_hosts(endpoint.hosts())
        .with_allowed_origins(endpoint.origins.iter().cloned())
        .enforce_origin_validation()
        .with_max_request_body_bytes(largest_body(pool));
    config.session_store = Some(Arc::new(IdleSessions { pool: pool.clone(), sessions: Mutex::default() }));
    let pool = pool.clone();
    StreamableHttpService::new(move || Ok(Server::over_http(pool.clone())), Arc::new(sessions), config)
}

/// Room for a file at the size limit with every byte escaped, and for the message around it.
fn largest_body(pool: &SessionPool) -> usize {
    let file_bytes = usize::try_from(pool.workspace().config().limits.file_bytes).unwrap_or(usize::MAX);
    file_bytes.saturating_mul(6).saturating_add(1 << 20)
}

impl Handler for McpHandler {
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
}

impl McpHandler {
    /// Passes an accepted request to the SDK, and corrects the statuses that the SDK gets wrong.
    async fn call(&self, request: Request<Incoming>, connection: Arc<HttpConnection>) -> Result<HttpAnswer, HttpAnswer> {
        let guard = RequestGuard::new(connection.clone());
        let (mut head, body) = request.into_parts();
        let body = read_body(body, self.largest_body, self.body_time).await.map_err(|error| error.answer())?;
        let (method, is_json) = (head.method.clone(), is_json(&head.headers));
        guard.enter(if method == Method::GET { ConnectionPhase::Listening } else { ConnectionPhase::Answering });
        head.extensions.insert(connection);
        let mut answer = self.service.handle(Request::from_parts(head, Full::new(body))).await;
        let status = match answer.status() {
            // Some clients treat "accepted" as a failure.
            StatusCode::ACCEPTED if method == Method::DELETE => StatusCode::NO_CONTENT,
            // The content type is right, so the content is wrong.
            StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => StatusCode::BAD_REQUEST,
            status => status,
        };
        *answer.status_mut() = status;
        Ok(answer.map(|body| GuardedBody::new(body, guard).boxed()))
    }

    /// The origin of a call from a browser. Other origins than the allowed ones are refused.
    fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, HttpAnswer> {
        let is_allowed = |origin: &HeaderValue| {
            origin.to_str().is_ok_and(|origin| self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)))
        };
        match headers.get_all(ORIGIN).iter().find(|origin| !is_allowed(origin)) {
            Some(_) => {
                Err(plain(StatusCode::FORBIDDEN, "Forbidden: pages of this origin may not call; allow them with --allow-origin"))
            }
            None => Ok(headers.get(ORIGIN).cloned()),
        }
    }

    /// Refuses a request by its head, or returns `None`.
    fn refuse(&self, request: &Request<Incoming>) -> Option<HttpAnswer> {
        if request.uri().path().trim_end_matches('/') != PATH {
            return Some(plain(StatusCode::NOT_FOUND, "Not Found: the tools are served at /mcp"));
        }
        // A browser's preflight, which has no token. `origin` has refused other pages.
        if request.method() == Method::OPTIONS && request.headers().contains_key(ORIGIN) {
            return Some(preflight());
        }
        let is_admitted = self.token.as_ref().is_none_or(|token| token.is_shown(request.headers()));
        (!is_admitted).then(|| {
            let mut answer = plain(StatusCode::UNAUTHORIZED, "Unauthorized: send the header Authorization: Bearer TOKEN");
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            answer
        })
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

fn preflight() -> HttpAnswer {
    const HEADERS: &str = "Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, Surehand-Session";
    let mut answer = plain(StatusCode::NO_CONTENT, "");
    answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
    answer
}

/// The session of a client after its handshake, by the id that it got.
pub(super) fn with_id(id: &str) -> Caller {
    Caller::Own(SessionId(format!("http-{id}")))
}

/// A session for a client that names none.
pub(super) fn session_of(connection: &HttpConnection, client: &str) -> SessionId {
    SessionId(match connection.peer_name(peer_process::holding) {
        Some(process) => format!("process-{process}"),
        None => format!("peer-{}-{client}", connection.far().ip()),
    })
}

/// The handshakes of sessions that may have been removed from memory. Their views are in the store.
struct IdleSessions {
    pool: Arc<SessionPool>,
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

    /// Called when the client ends the session.
    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        lock(&self.sessions).retain(|(known, _)| known != id);
        self.pool.leave(&with_id(id));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::SocketAddr,
    };

    use serde_json::json;
    use surehand_engine::{Config, Workspace, core::EditDialect};

    use super::{super::serve_http, *};

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
            let (address, stopper) = (endpoint.listener.address(), endpoint.stopper());
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

        /// Sends a request and returns the whole answer.
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

        /// Makes the handshake and returns the id of the session.
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

    /// Writes one byte again and again. Returns what the server sends before it hangs up.
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
        // The two connections of the client replaced at most two others.
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
        // Refused requests do not keep a connection open either.
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
