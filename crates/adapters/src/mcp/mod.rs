//! The MCP server, by the official SDK: over standard input and output for the client that starts it, or over HTTP for several.

mod bearer_token;
mod caller;
mod client_log;
mod client_names;
mod client_roots;
mod connection;
mod fast_path;
mod http;
mod long_calls;
mod peer_process;
mod prompts;
mod resources;
mod sessions;
mod socket_table;
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
#[expect(deprecated, reason = "the newest revision has no log of its own any more, but the others have")]
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
use surehand_engine::{CallProgress, Done, Outcome, Tool as EngineTool, ToolNames, Workspace, core::EditDialect, render};

use crate::client_instructions;
use crate::{client_process::ClientProcess, hooks::conversation};

pub use self::{
    bearer_token::Token,
    caller::NamedConversation,
    http::{Endpoint, EndpointError, Stopper},
    sessions::OpenRoot,
};
use self::{
    caller::{Caller, by_call, by_environment, by_header},
    client_log::LogLevel,
    connection::HttpConnection,
    fast_path::KnownClient,
    long_calls::{EVERY, attend},
    resources::{ResourceChange, Subscriptions, TouchedResource},
    sessions::{RenderedAnswer, SessionPool, SharedSession, ToolCall, call, lock},
    stdio_transport::StdioTransport,
};

/// Serves one client over standard input and output until it hangs up. `open` is asked when the root was removed and made again; `named` is
/// what the environment calls the conversation of the client.
pub fn serve_stdio(
    workspace: Arc<Workspace>,
    open: OpenRoot,
    dialects: &[EditDialect],
    named: Vec<NamedConversation>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let hub = Arc::new(SessionPool::new(workspace, open, dialects));
    runtime.block_on(async {
        let server = Arc::new(Server::over_stdio(hub, named));
        let transport = StdioTransport::open(server.clone())?;
        match server.serve(transport).await {
            Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
            // A client that hangs up before it has said anything has not done anything wrong.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    })
}

/// So many calls at once; more wait.
const MOST_THREADS: usize = 64;

/// Calls that are not done when the server ends are left to themselves after this.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Serves any number of clients over HTTP until it is told to stop. `open` is asked when the root was removed and made again.
pub fn serve_http(workspace: Arc<Workspace>, open: OpenRoot, dialects: &[EditDialect], endpoint: Endpoint) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(MOST_THREADS).build()?;
    let hub = Arc::new(SessionPool::new(workspace, open, dialects));
    let served = runtime.block_on(http::serve(hub, endpoint));
    runtime.shutdown_timeout(LAST_CALLS);
    served
}

/// One connection; over the newest revision and HTTP, one request.
struct Server {
    hub: Arc<SessionPool>,
    door: ClientLink,
    number: u64,
    subscriptions: Arc<Subscriptions>,
    /// How grave something must be for the client to hear of it.
    level: Mutex<LogLevel>,
    /// What is to be said with the next reply.
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
        /// Whether the client has shaken hands, and so has an id.
        has_id: AtomicBool,
    },
}

enum CallThread {
    Here,
    OnAThread,
}

impl Server {
    fn over_stdio(hub: Arc<SessionPool>, named: Vec<NamedConversation>) -> Self {
        let own = hub.fresh_seat();
        let client = if named.is_empty() { None } else { ClientProcess::client().map(|client| client.name()) };
        Self::new(hub, ClientLink::Stdio { own, named, client })
    }

    fn over_http(hub: Arc<SessionPool>) -> Self {
        Self::new(hub, ClientLink::Http { has_id: AtomicBool::new(false) })
    }

    fn new(hub: Arc<SessionPool>, door: ClientLink) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            hub,
            door,
            number,
            subscriptions: Arc::default(),
            level: Mutex::new(LogLevel::WARNING),
            notes: Mutex::default(),
            known_client: OnceLock::new(),
        }
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let is_anonymous = context.meta.is_empty() && matches!(&self.door, ClientLink::Stdio { named, .. } if named.is_empty());
        let client = if is_anonymous { None } else { context.client_info().map(|client| client.name) };
        let client = client.as_deref().unwrap_or_default();
        if let Some(id) = by_call(client, |key| context.meta.get(key).and_then(Value::as_str)) {
            return Caller::Shared(id);
        }
        match &self.door {
            ClientLink::Stdio { .. } => self.caller_over_stdio(client),
            ClientLink::Http { has_id } => over_http(context.extensions.get::<Parts>(), has_id.load(Ordering::Relaxed), client),
        }
    }

    /// Whose call it is that the client over standard input makes and that does not say so itself.
    fn caller_over_stdio(&self, client: &str) -> Caller {
        let ClientLink::Stdio { own, named, client: process } = &self.door else { return http::with_id("nobody") };
        let present = || process.as_ref().and_then(|process| conversation::of(&self.hub.workspace(), process));
        by_environment(named, client, present).map_or_else(|| own.clone(), Caller::Shared)
    }

    /// The tools, by the names that the model of this client sees.
    fn names_for(&self, context: &RequestContext<RoleServer>) -> Arc<ToolNames> {
        client_names::as_seen_by(&client_name(context), &self.hub.names).map_or_else(|| self.hub.names.clone(), Arc::new)
    }

    /// Carries out a call where it disturbs nobody.
    async fn carry_out(
        &self,
        seat: SharedSession,
        tool_call: ToolCall,
        context: &RequestContext<RoleServer>,
    ) -> io::Result<RenderedAnswer> {
        if let (CallThread::Here, Ok(mut session)) = (self.place(&tool_call.tool), seat.try_lock()) {
            return Ok(call(&mut session, &CallProgress::default(), tool_call, RenderedAnswer::of));
        }
        let course = CallProgress::default();
        let followed = course.clone();
        let token = context.meta.get_progress_token();
        let tell = |files: u64| {
            let progress = token.clone().map(|token| {
                ProgressNotificationParam::new(token, files as f64).with_message(format!("{files} files looked at"))
            });
            async {
                if let Some(progress) = progress {
                    // A client that is gone will not miss it.
                    let _ = context.peer.notify_progress(progress).await;
                }
            }
        };
        attend(course, context.ct.clone(), EVERY, tell, move || call(&mut lock(&seat), &followed, tool_call, RenderedAnswer::of))
            .await
    }

    /// Most calls take microseconds to milliseconds: for one client alone they run where they arrive, because to hand them to
    /// another thread would cost as much as the call itself.
    fn place(&self, tool: &str) -> CallThread {
        let walks = matches!(EngineTool::named(tool), Some(EngineTool::SearchFiles | EngineTool::ListFiles));
        match &self.door {
            ClientLink::Stdio { .. } if !walks => CallThread::Here,
            ClientLink::Stdio { .. } | ClientLink::Http { .. } => CallThread::OnAThread,
        }
    }

    /// Says what a call has changed to whoever wants to know.
    async fn tell_touched(&self, touched: TouchedResource, peer: &Peer<RoleServer>) {
        for uri in touched.addresses() {
            self.hub.resources.tell(ResourceChange { uri, by: self.number });
            if self.subscriptions.has(uri) {
                // A client that is gone will not miss it.
                let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(*uri)).await;
            }
        }
    }

    /// What was noted since the last call, in words.
    fn take_notes(&self) -> String {
        std::mem::take(&mut *lock(&self.notes)).iter().map(|note| format!("note: {note}\n")).collect()
    }

    async fn warn(&self, outcome: &Outcome, context: &RequestContext<RoleServer>) {
        for warning in &outcome.notes.warnings {
            let least = LogLevel::asked_for(context).unwrap_or_else(|| *lock(&self.level));
            client_log::warn(&render::notice::notice(warning), least, &context.peer).await;
        }
    }

    /// Notes, and logs, when a client that says where it works does so elsewhere.
    async fn look_at_roots(&self, peer: &Peer<RoleServer>) {
        let notes = client_roots::notes(self.hub.workspace().path(), &client_roots::ask(peer).await);
        for note in &notes {
            let least = *lock(&self.level);
            client_log::warn(note, least, peer).await;
        }
        *lock(&self.notes) = notes;
    }

    /// Does something that may take a while, on a thread.
    async fn aside<T: Send + 'static>(&self, work: impl FnOnce(&SessionPool) -> T + Send + 'static) -> Result<T, ErrorData> {
        let hub = self.hub.clone();
        let done = tokio::task::spawn_blocking(move || work(&hub)).await;
        done.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// Whose call it is that came over HTTP and does not say so itself.
fn over_http(request: Option<&Parts>, has_id: bool, client: &str) -> Caller {
    let header = |name: &str| request.and_then(|request| request.headers.get(name)?.to_str().ok());
    if let Some(id) = header("surehand-session").and_then(by_header) {
        return Caller::Shared(id);
    }
    if let Some(id) = header("mcp-session-id").filter(|_| has_id) {
        return http::with_id(id);
    }
    match request.and_then(|request| request.extensions.get::<Arc<HttpConnection>>()) {
        Some(connection) => Caller::Own(connection.who(client)),
        None => http::with_id("nobody"),
    }
}

/// What was read counts until the connection ends. One over HTTP ends when the client says so.
impl Drop for Server {
    fn drop(&mut self) {
        if let ClientLink::Stdio { own, .. } = &self.door {
            self.hub.leave(own);
        }
    }
}

impl ServerHandler for Server {
    #[expect(deprecated, reason = "the newest revision has no log of its own any more, but the others have")]
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
            .with_instructions(render::rules::instructions(&self.hub.names))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if let ClientLink::Http { has_id } = &self.door {
            has_id.store(true, Ordering::Relaxed);
        }
        let answer = self.negotiate_initialize(&request);
        context.peer.set_peer_info(request);
        answer
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.look_at_roots(&context.peer).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.look_at_roots(&context.peer).await;
    }

    #[expect(deprecated, reason = "the newest revision has no log of its own any more, but the others have")]
    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        *lock(&self.level) = LogLevel::of(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.hub.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.hub.tool(name).cloned()
    }

    /// What the SDK could not make a request of, by its method or by its parameters.
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
        let get =
            move |hub: &SessionPool| prompts::get(hub.current_workspace(), &request.name, request.arguments.as_ref(), &hub.names);
        self.aside(get).await?.map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.hub.resources.list()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.aside(move |hub| hub.resources.read(&hub.current_workspace(), &request.uri)).await?.map(Into::into)
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if self.subscriptions.add(&request.uri)? {
            let (subscriptions, changed, me) = (self.subscriptions.clone(), self.hub.resources.listen(), self.number);
            tokio::spawn(async move { subscriptions.pass_on(changed, me, context.peer).await });
        }
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(self.hub.resources.accept(requested))
    }

    /// Passes on what changes until the client has heard enough.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changed = self.hub.resources.listen();
        loop {
            let news = tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.hub.closing.cancelled() => return Ok(()),
                news = changed.recv() => news,
            };
            // Whoever fell behind hears of the next change, which is as good.
            let Ok(news) = news else { continue };
            // One that was not asked for, or a client that is gone: neither is for us to judge.
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
            instructions: client_instructions::of_mcp_client(&client_name(&context)),
        };
        let refused = self.hub.refuse_hidden(&tool_call.tool).or_else(|| self.hub.follow_root().err());
        let answer = match refused {
            Some(refused) => RenderedAnswer::of(refused, &tool_call),
            None => {
                let seat = self.hub.seat(&self.caller(&context));
                let carried_out = self.carry_out(seat, tool_call, &context).await;
                carried_out.map_err(|error| ErrorData::internal_error(error.to_string(), None))?
            }
        };
        let RenderedAnswer { outcome, text, object } = answer;
        self.warn(&outcome, &context).await;
        self.tell_touched(touched(&outcome), &context.peer).await;
        let content = vec![ContentBlock::text(text + &self.take_notes())];
        let mut result = if outcome.is_refused() { CallToolResult::error(content) } else { CallToolResult::success(content) };
        // Not as structured content, and not unasked: some clients would show the model that instead of the text, or beside it.
        if let Some(object) = object {
            result.meta = Some(MetaObject(JsonObject::from_iter([(OBJECT.to_owned(), object)])));
        }
        Ok(result.into())
    }
}

/// What a program asks for in the `_meta` of a call, and finds in that of the result: the result as an object.
const OBJECT: &str = "surehand/result";

fn wants_object(context: &RequestContext<RoleServer>) -> bool {
    // From a command line it may come as a word.
    context.meta.get(OBJECT).is_some_and(|wanted| *wanted == true || *wanted == "true")
}

/// What a call changed of what is shown as a resource.
fn touched(outcome: &Outcome) -> TouchedResource {
    match &outcome.result {
        Ok(Done::Changed(_)) => TouchedResource::Files,
        Ok(Done::Tasks(_)) => TouchedResource::Tasks,
        _ => TouchedResource::Nothing,
    }
}

fn client_name(context: &RequestContext<RoleServer>) -> String {
    context.client_info().map(|client| client.name).unwrap_or_default()
}
