//! The agents that run hooks. The module of each one translates its input into a [`HookInput`] and a verdict into its
//! answer format.

mod claude;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod generic;
mod goose;
mod goose_database;
mod opencode;
mod qwen;
mod reasonix;

use std::path::PathBuf;

use serde_json::{Value, json};
use surehand_engine::{ClientInstructions, SessionId, ToolNames};

pub(super) use self::goose_database::{GooseResult, read_new_results};
pub use self::{goose::with_environment as with_goose_environment, opencode::plugin as opencode_plugin};
use super::{
    event::{HookEvent, HookInput, SessionStart, ToolOutcome, ToolUse},
    handle::HookVerdict,
};
use crate::client_instructions;

/// Defines the clients from one list, so that none is left out.
macro_rules! hook_clients {
    ($($(#[$title:meta])* $client:ident: $module:ident,)*) => {
        /// A client with hooks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum HookClient {
            $($(#[$title])* $client,)*
        }

        impl HookClient {
            /// Every client, for listings and lookups by name.
            pub const ALL: &[HookClient] = &[$(HookClient::$client),*];

            pub(super) fn adapter(self) -> &'static ClientAdapter {
                match self {
                    $(HookClient::$client => &$module::ADAPTER,)*
                }
            }
        }
    };
}

hook_clients! {
    /// Claude Code.
    Claude: claude,
    /// Codex CLI.
    Codex: codex,
    /// Gemini CLI.
    Gemini: gemini,
    /// Cursor.
    Cursor: cursor,
    /// opencode, through the Surehand plugin.
    Opencode: opencode,
    /// Qwen Code.
    Qwen: qwen,
    /// GitHub Copilot CLI.
    Copilot: copilot,
    /// goose.
    Goose: goose,
    /// Cline.
    Cline: cline,
    /// Reasonix.
    Reasonix: reasonix,
    /// Any agent that speaks the neutral protocol (`docs/hook-protocol.md`).
    Generic: generic,
}

/// The output of a hook and its exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookAnswer {
    /// The output for the client. An empty output lets the call pass.
    pub stdout: String,
    /// The reason of a denial, for clients that read it here.
    pub stderr: String,
    /// Zero, unless the client expects another code for a denial.
    pub exit_code: u8,
    /// The failure inside Surehand, for the log; `None` if there was none.
    pub failed: Option<String>,
    /// The session of the call; `None` if it could not be found.
    pub session: Option<HookSession>,
}

/// The session behind a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSession {
    /// The id of the session, with the client's name in front.
    pub session: SessionId,
    /// The root of its home.
    pub home: PathBuf,
}

/// How one client talks to its hooks.
pub(super) struct ClientAdapter {
    /// Its name on the command line.
    name: &'static str,
    /// The beginning of its name in MCP, in lower case; empty if it has none.
    mcp_name: &'static str,
    /// The variable that names the project of the session to its hooks, if it sets one.
    project_variable: Option<&'static str>,
    /// The variable that names the conversation to the MCP servers that it starts, if it sets one. Hooks and server
    /// then share a session.
    conversation_variable: Option<&'static str>,
    pub names: fn() -> ToolNames,
    /// How many bytes of context it takes at once.
    pub max_context: usize,
    /// The events at which an answer can add to the model's context.
    pub context_events: &'static [&'static str],
    /// The field with the name of the event.
    pub event_field: &'static str,
    fields: InputFields,
    denial: DenialChannel,
    /// A note added to each denial, about checks that the client makes itself.
    pub denial_note: &'static str,
    /// Translates an event; `None` if Surehand has nothing to do with it.
    parse: fn(event: &str, &Value) -> Option<HookEvent>,
    /// Writes the answer that denies the call in the input, for this reason.
    deny: fn(input: &Value, why: &str) -> Value,
    /// Writes the answer that adds a text to the model's context; null if the client takes none.
    add_context: fn(event: &Value, text: &str) -> Value,
    /// The field of an answer that is shown to the person.
    person_field: Option<&'static str>,
    /// The instruction files that it loads itself.
    pub instructions: &'static ClientInstructions,
    pub transcript: TranscriptUse,
}

/// The places of the fields that every event needs, as JSON pointers.
struct InputFields {
    /// The session: the first of these that is present.
    session: &'static [&'static str],
    /// The subagent: the last of these, if all are present.
    agent: &'static [&'static str],
    /// The working directory: the first of these that is present.
    directory: &'static [&'static str],
    transcript: &'static str,
    /// Instruction files that the client has just given to the model.
    given: &'static str,
}

const EVENT: &str = "hook_event_name";

/// The fields as Claude Code has them, which several clients follow.
const FIELDS: InputFields =
    InputFields { session: &["/session_id"], agent: &["/agent_id"], directory: &["/cwd"], transcript: "", given: "" };

const CAMEL_CASE_FIELDS: InputFields = InputFields { session: &["/sessionId"], agent: &["/agentId"], ..FIELDS };

/// The values that most clients share.
const DEFAULTS: ClientAdapter = ClientAdapter {
    name: "",
    mcp_name: "",
    project_variable: None,
    conversation_variable: None,
    names: ToolNames::default,
    max_context: 16_000,
    context_events: &[],
    event_field: EVENT,
    fields: FIELDS,
    denial: DenialChannel::Answer,
    denial_note: "",
    parse: |_, _| None,
    // Some of the clients that follow Claude Code reject an answer with any other field.
    deny: |input, why| {
        json!({ "hookSpecificOutput": {
            "hookEventName": input[EVENT], "permissionDecision": "deny", "permissionDecisionReason": why,
        } })
    },
    add_context: |event, text| json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } }),
    person_field: None,
    instructions: &client_instructions::NOTHING,
    transcript: TranscriptUse::Unread,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DenialChannel {
    Answer,
    /// Exit code 2, with the reason on standard error.
    ExitCode,
}

/// Why a client's record of the conversation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TranscriptUse {
    Unread,
    /// It shows that messages were removed from the context.
    ShowsLoss,
    /// It holds files that the client put into the context without a tool.
    HoldsFiles,
    /// It is goose's session database, the only place with the results of its tools.
    HoldsResults,
}

impl ClientAdapter {
    /// Whether the model reads the answer about a tool before its next call.
    pub(super) fn hears_of_tools(&self) -> bool {
        self.context_events.iter().any(|event| !event.eq_ignore_ascii_case("sessionstart"))
    }

    pub(super) fn parse(&self, input: &Value) -> Option<HookInput> {
        let event = (self.parse)(input[self.event_field].as_str()?, input)?;
        let field = |pointer: &&str| input.pointer(pointer)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let InputFields { session, agent, directory, transcript, given } = &self.fields;
        let given = input.pointer(given).and_then(Value::as_array).into_iter().flatten();
        Some(HookInput {
            session: session.iter().find_map(field)?,
            agent: agent.iter().map(field).collect::<Option<Vec<_>>>().and_then(|mut all| all.pop()),
            directory: directory.iter().find_map(field)?,
            transcript: field(transcript),
            given: given.filter_map(|path| path.as_str().map(str::to_owned)).collect(),
            event,
        })
    }
}

impl HookClient {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.adapter().name
    }

    /// The client with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|client| client.name() == name).copied()
    }

    /// The client with this name in MCP.
    pub(crate) fn with_mcp_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let is_it = |client: &&HookClient| {
            let start = client.adapter().mcp_name;
            !start.is_empty() && name.starts_with(start)
        };
        Self::ALL.iter().find(is_it).copied()
    }

    pub(crate) fn conversation_variable(self) -> Option<&'static str> {
        self.adapter().conversation_variable
    }

    /// The instruction files that it loads itself.
    pub(crate) fn instructions(self) -> &'static ClientInstructions {
        self.adapter().instructions
    }

    /// The variable that names the project of the session to its hooks. Other clients send it in the input, or not at
    /// all.
    pub fn project_variable(self) -> Option<&'static str> {
        self.adapter().project_variable
    }

    /// The answer that lets the call pass.
    pub fn pass(self) -> HookAnswer {
        let stdout = match self {
            // Cursor may take an empty answer for a broken one, and that for a denial.
            HookClient::Cursor => "{}\n".to_owned(),
            HookClient::Generic => "{\"decision\":\"allow\"}\n".to_owned(),
            _ => String::new(),
        };
        HookAnswer { stdout, ..HookAnswer::default() }
    }

    /// Lets the call pass, and logs what failed.
    pub fn fail(self, why: impl Into<String>) -> HookAnswer {
        let why = why.into();
        let stdout = match self {
            HookClient::Generic => format!("{}\n", json!({ "decision": "allow", "error": why })),
            client => client.pass().stdout,
        };
        HookAnswer { stdout, failed: Some(why), ..HookAnswer::default() }
    }

    /// The answer to an input that no adapter understands. It explains the mistake to the author of a generic hook.
    pub(super) fn reject_input(self, input: &Value) -> HookAnswer {
        if self == HookClient::Generic { self.fail(generic::describe_mistake(input)) } else { self.pass() }
    }

    /// A verdict in the client's format, with a text for the person.
    pub(super) fn write_answer(self, input: &Value, verdict: HookVerdict, person: Option<&str>) -> HookAnswer {
        let adapter = self.adapter();
        let mut answer = match (verdict, adapter.denial) {
            (HookVerdict::Pass, _) => return self.pass(),
            (HookVerdict::Deny(stderr), DenialChannel::ExitCode) => {
                return HookAnswer { stderr, exit_code: 2, ..HookAnswer::default() };
            }
            (HookVerdict::Deny(why), DenialChannel::Answer) => (adapter.deny)(input, &why),
            (HookVerdict::Context(text), _) => (adapter.add_context)(&input[adapter.event_field], &text),
        };
        if let (Some(field), Some(text), Some(answer)) = (adapter.person_field, person, answer.as_object_mut()) {
            answer.insert(field.to_owned(), text.trim_end().into());
        }
        match answer {
            Value::Null => self.pass(),
            answer => HookAnswer { stdout: format!("{answer}\n"), ..HookAnswer::default() },
        }
    }
}

/// The events of Claude Code, which several clients follow.
fn parse_like_claude(
    event: &str,
    input: &Value,
    parse_tool_use: fn(&Value) -> Option<ToolUse>,
    parse_outcome: fn(&Value) -> ToolOutcome,
) -> Option<HookEvent> {
    Some(match event {
        "SessionStart" => HookEvent::Starts(session_start(input)),
        "PostCompact" => HookEvent::ContextLost,
        "UserPromptSubmit" => HookEvent::Prompted(Vec::new()),
        "PreToolUse" => HookEvent::Before(parse_tool_use(input)?),
        "PostToolUse" => HookEvent::After(parse_tool_use(input)?, parse_outcome(input)),
        _ => return None,
    })
}

/// How a session starts, by the `source` that most clients send.
fn session_start(input: &Value) -> SessionStart {
    match input["source"].as_str() {
        Some("resume" | "fork") => SessionStart::Resumed,
        Some("clear") => SessionStart::Cleared,
        Some("compact") => SessionStart::Compacted,
        _ => SessionStart::New,
    }
}
