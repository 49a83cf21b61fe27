//! Answers plain calls over standard input where they arrive. For each call the SDK starts a task, makes two
//! cancellation tokens and passes two queues, which together take longer than a read. A plain call needs none of them:
//! it is complete before the next line is parsed, so it can be neither cancelled nor observed.

use std::{ops::Range, sync::Arc};

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
use surehand_engine::{CallProgress, ClientInstructions, Done, Outcome, ReplyGroup, ToolNames, Workspace, render};

use super::{
    CallThread, ClientLink, Server, client_log, client_name, instructions_loaded_by,
    resources::changed_by,
    sessions::{ToolCall, call, lock},
};

/// A call without fields that need the SDK.
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

/// Metadata that makes no difference to a call that is answered at once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IdleMeta {
    #[serde(rename = "progressToken")]
    _progress_token: Option<IgnoredAny>,
    #[serde(rename = "claudecode/toolUseId")]
    _tool_use_id: Option<IgnoredAny>,
}

impl PlainCall<'_> {
    /// The call as the SDK parses it; `None` if it had metadata, which is not kept here.
    pub(super) fn into_message(self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let PlainParams { name, arguments, meta: None } = self.params else { return None };
        let mut call = CallToolRequestParams::new(name);
        call.arguments = arguments;
        Some(RxJsonRpcMessage::<RoleServer>::request(ClientRequest::CallToolRequest(Request::new(call)), self.id))
    }
}

/// A client whose first call has passed through the SDK.
pub(super) struct KnownClient {
    name: String,
    names: Arc<ToolNames>,
    instructions: &'static ClientInstructions,
}

/// An answer that says that files were changed, and must not be sent before [`Workspace::complete_replies`].
pub(super) struct IncompleteAnswer {
    pub workspace: Arc<Workspace>,
    pub id: RequestId,
    /// Its line in the output.
    pub line: Range<usize>,
}

impl IncompleteAnswer {
    /// The line to send instead, if the change could not be completed.
    pub(super) fn failed(&self, error: &std::io::Error) -> Vec<u8> {
        let why = format!(
            "The change was made, but the disk did not confirm it ({error}); after a power cut it may be lost. Read the file \
             again before you edit it."
        );
        let mut line = Vec::new();
        put_head(&self.id, &mut line);
        put(&why, &mut line);
        line.extend_from_slice(b"}],\"isError\":true}}\n");
        line
    }
}

impl Server {
    /// Remembers a client after its handshake: its next plain calls need not go through the SDK. By the newest revision
    /// every call names its client, so there is nothing to remember.
    pub(super) fn remember_client(&self, context: &RequestContext<RoleServer>) {
        let is_old = context.meta.protocol_version().is_none() && context.peer.peer_info().is_some();
        if is_old && matches!(self.link, ClientLink::Stdio { .. }) {
            self.known_client.get_or_init(|| {
                let name = client_name(context);
                let instructions = instructions_loaded_by(&name);
                KnownClient { name, names: self.names_for(context), instructions }
            });
        }
    }

    /// Answers a call at once and appends the answer to `out`, after its notifications. Returns the answer if it must
    /// be completed together with others. Returns the call if it may take long, or if the client has not made a call
    /// through the SDK yet.
    pub(super) fn answer<'a>(
        &self,
        plain: PlainCall<'a>,
        replies: ReplyGroup,
        out: &mut Vec<u8>,
    ) -> Result<Option<IncompleteAnswer>, PlainCall<'a>> {
        let Some(client) = self.known_client.get() else { return Err(plain) };
        let tool = &plain.params.name;
        let is_quick = self.pool.tool(tool).is_some() && matches!(self.place(tool), CallThread::Here);
        if !is_quick || self.pool.follow_root().is_err() {
            return Err(plain);
        }
        let shared = self.pool.session_of(&self.caller_over_stdio(&client.name));
        let Ok(mut session) = shared.try_lock() else { return Err(plain) };
        let PlainCall { id, params: PlainParams { name, arguments, .. }, .. } = plain;
        let tool_call = ToolCall {
            tool: name,
            arguments: Value::Object(arguments.unwrap_or_default()),
            names: client.names.clone(),
            wants_object: false,
            instructions: client.instructions,
        };
        let start = out.len();
        session.set_reply_group(replies);
        let change = call(&mut session, &CallProgress::default(), tool_call, |outcome, call| {
            // If an earlier attempt panicked, its output is incomplete.
            out.truncate(start);
            self.notify(&outcome, out);
            let line = out.len();
            put_answer(&id, &outcome, &call.names, &self.take_notes(), out);
            matches!(outcome.result, Ok(Done::Changed(_))).then(|| line..out.len())
        });
        session.set_reply_group(ReplyGroup::Alone);
        let line = change.filter(|_| replies == ReplyGroup::WithOthers);
        Ok(line.map(|line| IncompleteAnswer { workspace: session.workspace().clone(), id, line }))
    }

    fn notify(&self, outcome: &Outcome, out: &mut Vec<u8>) {
        let level = *lock(&self.level);
        for warning in &outcome.notes.warnings {
            client_log::warning(&render::notice::notice(warning), level).into_iter().for_each(|warning| put_line(warning, out));
        }
        for uri in changed_by(outcome) {
            self.pool.resources.announce(uri, self.number);
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

/// The start of an answer, up to the text of its content.
fn put_head(id: &RequestId, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    put(id, out);
    out.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
}

/// The answer as the SDK would send it. Its text is rendered in place.
fn put_answer(id: &RequestId, outcome: &Outcome, names: &ToolNames, notes: &str, out: &mut Vec<u8>) {
    put_head(id, out);
    out.push(b'"');
    render::text_in_json(outcome, names, out);
    if !notes.is_empty() {
        // Continues the same string.
        let start = out.len();
        put(&notes, out);
        out.remove(start);
        out.pop();
    }
    out.extend_from_slice(br#""}],"isError":"#);
    put(&outcome.is_refused(), out);
    out.extend_from_slice(b"}}\n");
}

#[cfg(test)]
mod tests {
    use std::io;

    use surehand_engine::Config;

    use super::*;

    #[test]
    fn a_change_that_the_disk_does_not_confirm_is_an_error() {
        let dir = surehand_testkit::repository();
        let workspace = Workspace::open(dir.path(), Config::default()).unwrap();
        let answer = IncompleteAnswer { workspace, id: RequestId::Number(7), line: 0..0 };
        let line = answer.failed(&io::Error::other("no \"disk\""));
        let answer: Value = serde_json::from_slice(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&Value::from(7), &Value::from(true)));
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("(no \"disk\")"));
    }
}
