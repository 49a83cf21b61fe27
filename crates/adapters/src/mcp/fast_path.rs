//! Calls over standard input that are answered where they arrive. For every call the SDK makes a task, two cancellation tokens
//! and a way through two queues, which together take longer than a read. A plain call of a client that the SDK has let in needs
//! none of them: it can neither be cancelled nor tell how far it is, because it is done before the next line is looked at.

use std::sync::Arc;

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, ClientRequest, JsonObject, JsonRpcMessage, Request, RequestId, ResourceUpdatedNotification,
        ResourceUpdatedNotificationParam, ServerNotification,
    },
    service::{RequestContext, RxJsonRpcMessage, TxJsonRpcMessage},
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;
use surehand_engine::{CallProgress, ClientInstructions, Outcome, ToolNames, render};

use super::{
    CallThread, ClientLink, Server, client_log, client_name,
    resources::ResourceChange,
    sessions::{ToolCall, call, lock},
    touched,
};
use crate::client_instructions;

/// A call without anything that only the SDK knows what to do with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainCall<'a> {
    pub jsonrpc: &'a str,
    pub id: RequestId,
    pub method: &'a str,
    pub params: PlainParams,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainParams {
    name: String,
    arguments: Option<JsonObject>,
    #[serde(rename = "_meta")]
    meta: Option<IdleMeta>,
}

/// What clients send along that makes no difference to a call that is answered at once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IdleMeta {
    #[serde(rename = "progressToken")]
    _progress_token: Option<IgnoredAny>,
    #[serde(rename = "claudecode/toolUseId")]
    _tool_use_id: Option<IgnoredAny>,
}

impl PlainCall<'_> {
    /// The same for the SDK; nothing if it came with more than is kept here.
    pub(super) fn into_message(self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let PlainParams { name, arguments, meta: None } = self.params else { return None };
        let mut call = CallToolRequestParams::new(name);
        call.arguments = arguments;
        Some(RxJsonRpcMessage::<RoleServer>::request(ClientRequest::CallToolRequest(Request::new(call)), self.id))
    }
}

/// A client whose first call the SDK has let in.
pub(super) struct KnownClient {
    name: String,
    names: Arc<ToolNames>,
    instructions: &'static ClientInstructions,
}

/// An answer up to its text, which is rendered in place.
#[derive(Serialize)]
struct AnswerHead<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
}

impl Server {
    /// Remembers a client that has shaken hands: its next plain calls need not go through the SDK. By the newest revision every
    /// call says anew who makes it, so there is nothing to remember.
    pub(super) fn remember_client(&self, context: &RequestContext<RoleServer>) {
        let is_old = context.meta.protocol_version().is_none() && context.peer.peer_info().is_some();
        if is_old && matches!(self.door, ClientLink::Stdio { .. }) {
            self.known_client.get_or_init(|| {
                let name = client_name(context);
                let instructions = client_instructions::of_mcp_client(&name);
                KnownClient { name, names: self.names_for(context), instructions }
            });
        }
    }

    /// Answers a call at once, at the end of `out`, with what is to be said before the answer. Gives the call back if it takes a
    /// while, or if the SDK has not let the client in yet.
    pub(super) fn answer<'a>(&self, plain: PlainCall<'a>, out: &mut Vec<u8>) -> Result<(), PlainCall<'a>> {
        let Some(client) = self.known_client.get() else { return Err(plain) };
        let tool = &plain.params.name;
        let is_quick = self.hub.tool(tool).is_some() && matches!(self.place(tool), CallThread::Here);
        if !is_quick || self.hub.follow_root().is_err() {
            return Err(plain);
        }
        let seat = self.hub.seat(&self.caller_over_stdio(&client.name));
        let Ok(mut session) = seat.try_lock() else { return Err(plain) };
        let PlainCall { id, params: PlainParams { name, arguments, .. }, .. } = plain;
        let tool_call = ToolCall {
            tool: name,
            arguments: Value::Object(arguments.unwrap_or_default()),
            names: client.names.clone(),
            wants_object: false,
            instructions: client.instructions,
        };
        let start = out.len();
        call(&mut session, &CallProgress::default(), tool_call, |outcome, call| {
            // If it did not get to the end of the last one.
            out.truncate(start);
            self.notify(&outcome, out);
            put_answer(&id, &outcome, &call.names, &self.take_notes(), out);
        });
        Ok(())
    }

    fn notify(&self, outcome: &Outcome, out: &mut Vec<u8>) {
        let level = *lock(&self.level);
        for warning in &outcome.notes.warnings {
            client_log::warning(&render::notice::notice(warning), level).into_iter().for_each(|warning| put_line(warning, out));
        }
        for uri in touched(outcome).addresses() {
            self.hub.resources.tell(ResourceChange { uri, by: self.number });
            if self.subscriptions.has(uri) {
                let updated = ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(*uri));
                put_line(ServerNotification::ResourceUpdatedNotification(updated), out);
            }
        }
    }
}

fn put_line(notification: ServerNotification, out: &mut Vec<u8>) {
    let message: TxJsonRpcMessage<RoleServer> = JsonRpcMessage::notification(notification);
    put(&message, out);
    out.push(b'\n');
}

fn put(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("neither a vector nor our messages can fail");
}

/// The answer as the SDK would send it.
fn put_answer(id: &RequestId, outcome: &Outcome, names: &ToolNames, notes: &str, out: &mut Vec<u8>) {
    put(&AnswerHead { jsonrpc: "2.0", id }, out);
    // In the place of the brace at its end.
    out.pop();
    out.extend_from_slice(br#","result":{"content":[{"type":"text","text":""#);
    render::text_in_json(outcome, names, out);
    if !notes.is_empty() {
        // Goes on in the same string.
        let start = out.len();
        put(&notes, out);
        out.remove(start);
        out.pop();
    }
    out.extend_from_slice(br#""}],"isError":"#);
    put(&outcome.is_refused(), out);
    out.extend_from_slice(b"}}\n");
}
