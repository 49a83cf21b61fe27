//! Finds the session of a call. A connection is a session, unless the client names its conversation. Its hooks then use
//! that name as well, and both share one session. The newest revision of the protocol has no connections, only calls.

use surehand_engine::SessionId;

use crate::hooks::HookClient;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Caller {
    /// A session that only this server uses.
    Own(SessionId),
    /// A session that other processes may use as well.
    Shared(SessionId),
}

impl Caller {
    pub(super) fn id(&self) -> &SessionId {
        match self {
            Caller::Own(id) | Caller::Shared(id) => id,
        }
    }
}

/// A conversation that the client names in the environment of the server it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedConversation {
    /// The client's name in hooks. Its MCP name begins with it.
    client: &'static str,
    conversation: String,
}

/// Longer names are ignored.
const MOST_CHARACTERS: usize = 200;

impl NamedConversation {
    /// The conversations that an environment names. If one agent runs in another's shell, there are several.
    pub fn in_environment(variable: impl Fn(&str) -> Option<String>) -> Vec<Self> {
        let named = |client: &HookClient| {
            let conversation = variable(client.conversation_variable()?).filter(|name| is_name(name))?;
            Some(Self { client: client.name(), conversation })
        };
        HookClient::ALL.iter().filter_map(named).collect()
    }
}

/// The session of this client: the one that its hooks noted last, or else the one in the environment. Variables of
/// other clients were inherited and do not count.
pub(super) fn by_environment(
    named: &[NamedConversation],
    client: &str,
    present: impl FnOnce() -> Option<SessionId>,
) -> Option<SessionId> {
    let named = named.iter().find(|named| client.starts_with(named.client))?;
    let is_this_client = |id: &SessionId| id.0.strip_prefix(named.client).is_some_and(|rest| rest.starts_with('-'));
    let first = || SessionId(format!("{}-{}", named.client, named.conversation));
    Some(present().filter(is_this_client).unwrap_or_else(first))
}

/// The session that a call names in its metadata.
pub(super) fn by_call<'a>(client: &str, meta: impl Fn(&str) -> Option<&'a str>) -> Option<SessionId> {
    let name = |key: &str| meta(key).filter(|name| is_name(name));
    if let Some(conversation) = name("agent-session-id") {
        return Some(SessionId(format!("goose-{conversation}")));
    }
    if !client.starts_with("codex") {
        return None;
    }
    let conversation = name("sessionId")?;
    // Every thread but the first has its own context.
    let thread = name("threadId").filter(|thread| *thread != conversation).map(|thread| format!("-{thread}"));
    Some(SessionId(format!("codex-{conversation}{}", thread.unwrap_or_default())))
}

/// The session that a header names, as set in the client's configuration.
pub(super) fn by_header(header: &str) -> Option<SessionId> {
    is_name(header).then(|| SessionId(header.to_owned()))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MOST_CHARACTERS && name.chars().all(|letter| letter.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_environment(variables: &[(&str, &str)], client: &str, expected: Option<&str>) {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let found = by_environment(&NamedConversation::in_environment(find), client, || None);
        assert_eq!(found.map(|id| id.0), expected.map(str::to_owned));
    }

    #[test]
    fn the_environment_names_the_conversation_as_hooks_do() {
        let claude = ("CLAUDE_CODE_SESSION_ID", "c1");
        check_environment(&[claude], "claude-code", Some("claude-c1"));
        check_environment(&[("QWEN_CODE_SESSION_ID", "q")], "qwen-cli-mcp-client-fs", Some("qwen-q"));
        check_environment(&[("AGENT_SESSION_ID", "20261115_1")], "goose-cli", Some("goose-20261115_1"));
        check_environment(&[("COPILOT_AGENT_SESSION_ID", "p")], "copilot-cli", Some("copilot-p"));
        check_environment(&[], "claude-code", None);
    }

    #[test]
    fn a_name_that_was_inherited_from_another_agent_does_not_count() {
        let claude = ("CLAUDE_CODE_SESSION_ID", "c1");
        check_environment(&[claude], "codex-mcp-client", None);
        check_environment(&[claude, ("QWEN_CODE_SESSION_ID", "q")], "qwen-cli-mcp-client-fs", Some("qwen-q"));
    }

    #[test]
    fn a_client_may_be_in_another_conversation_by_now() {
        let named = NamedConversation::in_environment(|name| (name == "CLAUDE_CODE_SESSION_ID").then(|| "c1".to_owned()));
        let session = |client: &str, present: &str| by_environment(&named, client, || Some(SessionId(present.to_owned())));
        assert_eq!(session("claude-code", "claude-c2"), Some(SessionId("claude-c2".to_owned())));
        assert_eq!(session("claude-code", "codex-c2"), Some(SessionId("claude-c1".to_owned())), "the note of another client");
        assert_eq!(session("codex-mcp-client", "claude-c2"), None);
    }

    #[test]
    fn what_is_no_name_is_none() {
        for bad in ["", "a b", "a\n", "é", &"x".repeat(201)] {
            check_environment(&[("CLAUDE_CODE_SESSION_ID", bad)], "claude-code", None);
            assert_eq!(by_header(bad), None);
        }
    }

    #[track_caller]
    fn check_call(client: &str, meta: &[(&str, &str)], expected: Option<&str>) {
        let found = by_call(client, |name| meta.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
        assert_eq!(found.map(|id| id.0), expected.map(str::to_owned));
    }

    #[test]
    fn a_call_names_the_conversation_as_hooks_do() {
        check_call("codex-mcp-client", &[("sessionId", "s"), ("threadId", "s")], Some("codex-s"));
        check_call("codex-mcp-client", &[("sessionId", "s"), ("threadId", "t")], Some("codex-s-t"));
        check_call("goose-cli", &[("agent-session-id", "20261115_1")], Some("goose-20261115_1"));
        check_call("somebody", &[("sessionId", "s")], None);
        check_call("claude-code", &[("claudecode/toolUseId", "toolu_1")], None);
    }
}
