//! The MCP server, by the official SDK. One connection is one session.

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
        Implementation, JsonObject, ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
        ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use surehand_engine::{
    Reply, Session,
    core::render::rules::INSTRUCTIONS,
    tools::{self, Hints},
};

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
}

impl Server {
    fn new(session: Session) -> Self {
        Self { session: Mutex::new(session), tools: tools::TABLE.iter().map(describe).collect() }
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
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
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

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        // A call takes microseconds to milliseconds, so it runs where it arrives: handing it to another thread would cost as
        // much as the call itself.
        let reply = self.call(&request.name, &arguments);
        let content = vec![ContentBlock::text(reply.text)];
        let mut result = if reply.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        // Not as structured content: some clients would show the model that instead of the text.
        result.meta = Some(MetaObject(JsonObject::from_iter([("surehand/result".to_owned(), reply.result)])));
        Ok(result.into())
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
