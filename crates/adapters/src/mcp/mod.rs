//! The MCP server, by the official SDK. One connection is one session.

mod resources;
mod transport;

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
        Implementation, JsonObject, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
        SubscribeRequestParams, SubscriptionFilter, Tool, ToolAnnotations, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use surehand_engine::{
    Reply, Session,
    core::render::rules::INSTRUCTIONS,
    tools::{self, Hints},
};

use resources::{Resources, Touched};
use transport::StdioTransport;

/// Serves one client over standard input and output until it hangs up.
pub fn serve_stdio(session: Session) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let served = runtime.block_on(async {
        let transport = StdioTransport::open()?;
        let running = Server::new(session).serve(transport).await.map_err(io::Error::other)?;
        running.waiting().await.map_err(io::Error::other)
    });
    // A client that hangs up before it has said anything has not done anything wrong.
    match served {
        Err(error) if !error.to_string().contains("connection closed") => Err(error),
        _ => Ok(()),
    }
}

struct Server {
    session: Mutex<Session>,
    tools: Vec<Tool>,
    resources: Resources,
}

impl Server {
    fn new(session: Session) -> Self {
        let resources = Resources::new(session.workspace().clone());
        Self { session: Mutex::new(session), tools: tools::TABLE.iter().map(describe).collect(), resources }
    }
}

impl Server {
    /// A fault of ours in one call must not be the end of the others.
    fn call(&self, tool: &str, arguments: &Value) -> Reply {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let called = panic::catch_unwind(AssertUnwindSafe(|| session.call(tool, arguments)));
        called.unwrap_or_else(|_| {
            session.reset();
            let why = "Error: Surehand failed inside on this call; nothing more is known. What was read before counts no longer: read again.\n";
            Reply { text: why.to_owned(), is_error: true, result: json!({ "success": false, "refusal": { "code": "io" } }) }
        })
    }
}

/// What was read counts until the connection ends.
impl Drop for Server {
    fn drop(&mut self) {
        self.session.get_mut().unwrap_or_else(PoisonError::into_inner).reset();
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("surehand", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
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

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.resources.list()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.resources.read(&request.uri).map(Into::into)
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.resources.subscribe(&request.uri, true)
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.resources.subscribe(&request.uri, false)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(self.resources.accept(requested))
    }

    /// Passes on what changes until the client has heard enough.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changed = self.resources.listen();
        loop {
            let uri = tokio::select! {
                () = context.cancelled() => return Ok(()),
                uri = changed.recv() => uri,
            };
            // Whoever fell behind hears of the next change, which is as good.
            let Ok(uri) = uri else { continue };
            // One that was not asked for, or a client that is gone: neither is for us to judge.
            let _ = context.sink().notify_resource_updated(uri).await;
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        // A call takes microseconds to milliseconds, so it runs where it arrives: handing it to another thread would cost as
        // much as the call itself.
        let reply = self.call(&request.name, &arguments);
        for uri in self.resources.touch(touched(&request.name, &reply)) {
            // A client that is gone will not miss it.
            let _ = context.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
        }
        let content = vec![ContentBlock::text(reply.text)];
        let mut result = if reply.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        // Not as structured content: some clients would show the model that instead of the text.
        result.meta = Some(MetaObject(JsonObject::from_iter([("surehand/result".to_owned(), reply.result)])));
        Ok(result.into())
    }
}

/// What a call changed of what is shown as a resource.
fn touched(tool: &str, reply: &Reply) -> Touched {
    match tools::find(tool).map(|tool| tool.hints) {
        _ if reply.is_error => Touched::Nothing,
        Some(Hints::Edits) if tool == "update_tasks" => Touched::Tasks,
        Some(Hints::Edits) => Touched::Files,
        Some(Hints::ReadOnly) | None => Touched::Nothing,
    }
}

fn describe(tool: &tools::Tool) -> Tool {
    let annotations = match tool.hints {
        Hints::ReadOnly => ToolAnnotations::new().read_only(true).idempotent(true),
        Hints::Edits => ToolAnnotations::new().read_only(false).destructive(true).idempotent(false),
    };
    // Several clients hide the tools of a server behind a search unless they are marked.
    let always = MetaObject(JsonObject::from_iter([("anthropic/alwaysLoad".to_owned(), Value::Bool(true))]));
    Tool::new(tool.name, tool.description(), Arc::new(tool.input_schema()))
        .with_annotations(annotations.open_world(false))
        .with_meta(always)
}
