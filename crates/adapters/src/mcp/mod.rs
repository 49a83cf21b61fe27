//! The MCP server, built on the official SDK. It serves the client that starts it over standard input and output, or
//! several clients over HTTP.

mod caller;
mod client_log;
mod client_names;
mod client_roots;
mod fast_path;
mod http;
mod long_calls;
mod peer_process;
mod prompts;
mod resources;
mod sessions;
mod stdio_transport;

use std::{
    io,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper::http::request::Parts;
#[expect(deprecated, reason = "the newest revision dropped logging, but the others have it")]
use rmcp::model::SetLevelRequestParams;
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
        GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult, JsonObject,
        ListPromptsResult, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams, ProgressNotificationParam,
        ReadResourceRequestParams, ReadResourceResponse, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, ServerInitializeError, SubscriptionContext},
};
use serde_json::Value;
use surehand_engine::{
    CallProgress, ClientInstructions, Outcome, Tool as EngineTool, ToolNames, Workspace, client_process::ClientProcess,
    core::EditDialect, render,
};
use surehand_http::HttpConnection;

use crate::{
    client_instructions,
    hooks::{HookClient, conversation},
};

pub use surehand_http::{Stopper, Token};

pub use self::{
    caller::NamedConversation,
    http::{Endpoint, EndpointError},
    sessions::OpenRoot,
};
use self::{
    caller::{Caller, by_call, by_environment, by_header},
    client_log::LogLevel,
    fast_path::KnownClient,
    long_calls::{EVERY, attend},
    resources::Subscriptions,
    sessions::{RenderedAnswer, SessionPool, SharedSession, ToolCall, call, lock},
    stdio_transport::StdioTransport,
};

/// Serves one client over standard input and output until it hangs up. `open` opens the workspace again if the root was
/// removed and created anew; `named` are the conversations that the environment names.
pub fn serve_stdio(
    workspace: Arc<Workspace>,
    open: OpenRoot,
    dialects: &[EditDialect],
    named: Vec<NamedConversation>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let pool = Arc::new(SessionPool::new(workspace, open, dialects));
    runtime.block_on(async {
        let server = Arc::new(Server::over_stdio(pool, named));
        let transport = StdioTransport::open(server.clone())?;
        match server.serve(transport).await {
            Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
            // A client may hang up before its first message.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    })
}

/// The most calls that run at once; further calls wait.
const MOST_THREADS: usize = 64;

/// When the server ends, it waits this long for running calls.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Serves any number of clients over HTTP until it is stopped. `open` opens the workspace again if the root was removed
/// and created anew.
pub fn serve_http(workspace: Arc<Workspace>, open: OpenRoot, dialects: &[EditDialect], endpoint: Endpoint) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(MOST_THREADS).build()?;
    let pool = Arc::new(SessionPool::new(workspace, open, dialects));
    let served = runtime.block_on(http::serve(pool, endpoint));
    runtime.shutdown_timeout(LAST_CALLS);
    served
}

/// One connection; over HTTP with the newest revision, one request.
struct Server {
    pool: Arc<SessionPool>,
    link: ClientLink,
    number: u64,
    subscriptions: Arc<Subscriptions>,
    /// The lowest log level that the client gets.
    level: Mutex<LogLevel>,
    notes: Mutex<Vec<String>>,
    /// The client over standard input, once it has made a call.
    known_client: OnceLock<KnownClient>,
}

enum ClientLink {
    Stdio {
        /// The session of a client that does not name its conversation.
        own: Caller,
        named: Vec<NamedConversation>,
        client: Option<String>,
    },
    Http {
        /// Whether the client has completed the handshake and so has an id.
        has_id: AtomicBool,
    },
}

enum CallThread {
    Here,
    OnAThread,
}

impl Server {
    fn over_stdio(pool: Arc<SessionPool>, named: Vec<NamedConversation>) -> Self {
        let own = pool.new_session();
        let client = if named.is_empty() { None } else { ClientProcess::client().map(|client| client.name()) };
        Self::new(pool, ClientLink::Stdio { own, named, client })
    }

    fn over_http(pool: Arc<SessionPool>) -> Self {
        Self::new(pool, ClientLink::Http { has_id: AtomicBool::new(false) })
    }

    fn new(pool: Arc<SessionPool>, link: ClientLink) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            pool,
            link,
            number,
            subscriptions: Arc::default(),
            level: Mutex::new(LogLevel::WARNING),
            notes: Mutex::default(),
            known_client: OnceLock::new(),
        }
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let is_anonymous = context.meta.is_empty() && matches!(&self.link, ClientLink::Stdio { named, .. } if named.is_empty());
        let client = if is_anonymous { None } else { context.client_info().map(|client| client.name) };
        let client = client.as_deref().unwrap_or_default();
        if let Some(id) = by_call(client, |key| context.meta.get(key).and_then(Value::as_str)) {
            return Caller::Shared(id);
        }
        match &self.link {
            ClientLink::Stdio { .. } => self.caller_over_stdio(client),
            ClientLink::Http { has_id } => over_http(context.extensions.get::<Parts>(), has_id.load(Ordering::Relaxed), client),
        }
    }

    /// The session of a call over standard input that names none.
    fn caller_over_stdio(&self, client: &str) -> Caller {
        let ClientLink::Stdio { own, named, client: process } = &self.link else { return http::with_id("nobody") };
        let present = || process.as_ref().and_then(|process| conversation::of(&self.pool.workspace(), process));
        by_environment(named, client, present).map_or_else(|| own.clone(), Caller::Shared)
    }

    /// The names of the tools as the model of this client sees them.
    fn names_for(&self, context: &RequestContext<RoleServer>) -> Arc<ToolNames> {
        client_names::as_seen_by(&client_name(context), &self.pool.names).map_or_else(|| self.pool.names.clone(), Arc::new)
    }

    /// Runs a call on the thread that `place` chooses.
    async fn carry_out(
        &self,
        shared: SharedSession,
        tool_call: ToolCall,
        context: &RequestContext<RoleServer>,
    ) -> io::Result<RenderedAnswer> {
        if let (CallThread::Here, Ok(mut session)) = (self.place(&tool_call.tool), shared.try_lock()) {
            return Ok(call(&mut session, &CallProgress::default(), tool_call, RenderedAnswer::of));
        }
        let call_progress = CallProgress::default();
        let followed_progress = call_progress.clone();
        let token = context.meta.get_progress_token();
        let report = |files: u64| {
            let progress = token.clone().map(|token| {
                ProgressNotificationParam::new(token, files as f64).with_message(format!("{files} files looked at"))
            });
            async {
                if let Some(progress) = progress {
                    // The client may be gone.
                    let _ = context.peer.notify_progress(progress).await;
                }
            }
        };
        attend(call_progress, context.ct.clone(), EVERY, report, move || {
            call(&mut lock(&shared), &followed_progress, tool_call, RenderedAnswer::of)
        })
        .await
    }

    /// Most calls take microseconds to milliseconds: with one client they run where they arrive, because handing them
    /// to another thread would cost as much as the call itself.
    fn place(&self, tool: &str) -> CallThread {
        let walks = EngineTool::named(tool).is_some_and(EngineTool::walks_directories);
        match &self.link {
            ClientLink::Stdio { .. } if !walks => CallThread::Here,
            ClientLink::Stdio { .. } | ClientLink::Http { .. } => CallThread::OnAThread,
        }
    }

    async fn notify_subscribers(&self, outcome: &Outcome, peer: &Peer<RoleServer>) {
        for uri in resources::changed_by(outcome) {
            self.pool.resources.announce(uri, self.number);
            if self.subscriptions.has(uri) {
                // The client may have disconnected.
                let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(*uri)).await;
            }
        }
    }

    fn take_notes(&self) -> String {
        std::mem::take(&mut *lock(&self.notes)).iter().map(|note| format!("note: {note}\n")).collect()
    }

    async fn warn(&self, outcome: &Outcome, context: &RequestContext<RoleServer>) {
        for warning in &outcome.notes.warnings {
            let least = LogLevel::asked_for(context).unwrap_or_else(|| *lock(&self.level));
            client_log::warn(&render::notice::notice(warning), least, &context.peer).await;
        }
    }

    /// Notes and logs the roots of the client that are outside of the workspace.
    async fn check_roots(&self, peer: &Peer<RoleServer>) {
        let notes = client_roots::notes(self.pool.workspace().path(), &client_roots::ask(peer).await);
        for note in &notes {
            let least = *lock(&self.level);
            client_log::warn(note, least, peer).await;
        }
        *lock(&self.notes) = notes;
    }

    /// Does work that may take long on another thread.
    async fn aside<T: Send + 'static>(&self, work: impl FnOnce(&SessionPool) -> T + Send + 'static) -> Result<T, ErrorData> {
        let pool = self.pool.clone();
        let done = tokio::task::spawn_blocking(move || work(&pool)).await;
        done.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// The session of a call over HTTP that names none in its metadata.
fn over_http(request: Option<&Parts>, has_id: bool, client: &str) -> Caller {
    let header = |name: &str| request.and_then(|request| request.headers.get(name)?.to_str().ok());
    if let Some(id) = header("surehand-session").and_then(by_header) {
        return Caller::Shared(id);
    }
    if let Some(id) = header("mcp-session-id").filter(|_| has_id) {
        return http::with_id(id);
    }
    match request.and_then(|request| request.extensions.get::<Arc<HttpConnection>>()) {
        Some(connection) => Caller::Own(http::session_of(connection, client)),
        None => http::with_id("nobody"),
    }
}

/// Views last until the connection ends. Over HTTP the client ends its session.
impl Drop for Server {
    fn drop(&mut self) {
        if let ClientLink::Stdio { own, .. } = &self.link {
            self.pool.leave(own);
        }
    }
}

impl ServerHandler for Server {
    #[expect(deprecated, reason = "the newest revision dropped logging, but the others have it")]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("surehand", env!("CARGO_PKG_VERSION")))
            .with_instructions(render::rules::instructions(&self.pool.names))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if let ClientLink::Http { has_id } = &self.link {
            has_id.store(true, Ordering::Relaxed);
        }
        let answer = self.negotiate_initialize(&request);
        context.peer.set_peer_info(request);
        answer
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.check_roots(&context.peer).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.check_roots(&context.peer).await;
    }

    #[expect(deprecated, reason = "the newest revision dropped logging, but the others have it")]
    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        *lock(&self.level) = LogLevel::of(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.pool.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.pool.tool(name).cloned()
    }

    /// Answers requests whose method or parameters the SDK does not know.
    async fn on_custom_request(&self, request: CustomRequest, _: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        let method: String = request.method.chars().take(60).collect();
        if method == "tools/call" {
            let why = "tools/call takes params {\"name\": string, \"arguments\": object}";
            return Err(ErrorData::invalid_params(why, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method:?}"), None))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let get = move |pool: &SessionPool| {
            prompts::get(pool.current_workspace(), &request.name, request.arguments.as_ref(), &pool.names)
        };
        self.aside(get).await?.map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.pool.resources.list()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.aside(move |pool| pool.resources.read(&pool.current_workspace(), &request.uri)).await?.map(Into::into)
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if self.subscriptions.add(&request.uri)? {
            let (subscriptions, changed, me) = (self.subscriptions.clone(), self.pool.resources.listen(), self.number);
            tokio::spawn(async move { subscriptions.pass_on(changed, me, context.peer).await });
        }
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(self.pool.resources.accept(requested))
    }

    /// Passes on changes until the client cancels.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changed = self.pool.resources.listen();
        loop {
            let news = tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.pool.closing.cancelled() => return Ok(()),
                news = changed.recv() => news,
            };
            // A client that fell behind gets the next change, which is enough.
            let Ok(news) = news else { continue };
            // It fails if the client did not subscribe to this resource, or is gone.
            let _ = context.sink().notify_resource_updated(news.uri).await;
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.remember_client(&context);
        let tool_call = ToolCall {
            tool: request.name.into_owned(),
            arguments: Value::Object(request.arguments.unwrap_or_default()),
            names: self.names_for(&context),
            wants_object: wants_object(&context),
            instructions: instructions_loaded_by(&client_name(&context)),
        };
        let refused = self.pool.refuse_hidden(&tool_call.tool).or_else(|| self.pool.follow_root().err());
        let answer = match refused {
            Some(refused) => RenderedAnswer::of(refused, &tool_call),
            None => {
                let shared = self.pool.session_of(&self.caller(&context));
                let carried_out = self.carry_out(shared, tool_call, &context).await;
                carried_out.map_err(|error| ErrorData::internal_error(error.to_string(), None))?
            }
        };
        let RenderedAnswer { outcome, text, object } = answer;
        self.warn(&outcome, &context).await;
        self.notify_subscribers(&outcome, &context.peer).await;
        let content = vec![ContentBlock::text(text + &self.take_notes())];
        let mut result = if outcome.is_refused() { CallToolResult::error(content) } else { CallToolResult::success(content) };
        // Not as structured content, and only on request: some clients would show it to the model instead of the text,
        // or beside it.
        if let Some(object) = object {
            result.meta = Some(MetaObject(JsonObject::from_iter([(OBJECT.to_owned(), object)])));
        }
        Ok(result.into())
    }
}

/// The key in the `_meta` of a call that requests the result as an object, and in the `_meta` of the result that holds
/// it.
const OBJECT: &str = "surehand/result";

fn wants_object(context: &RequestContext<RoleServer>) -> bool {
    // Command-line clients may send it as a string.
    context.meta.get(OBJECT).is_some_and(|wanted| *wanted == true || *wanted == "true")
}

/// The instruction files that the client with this name loads itself.
fn instructions_loaded_by(client: &str) -> &'static ClientInstructions {
    match HookClient::with_mcp_name(client) {
        Some(client) => client.instructions(),
        // It has no hooks.
        None if client.to_lowercase().starts_with("continue") => &client_instructions::CONTINUE,
        None => &client_instructions::NOTHING,
    }
}

fn client_name(context: &RequestContext<RoleServer>) -> String {
    context.client_info().map(|client| client.name).unwrap_or_default()
}
