//! Language models: a prompt goes in, text and tool calls come out. Details of a provider's protocol stay in the
//! module of that protocol.

mod anthropic;
mod api_key;
mod connection;
mod custom_headers;
mod generation;
mod http_client;
mod http_model;
mod openai;
mod partial_calls;
mod reasoning;
mod request_error;
mod request_options;
mod responses;
mod retry;
pub mod scripted;
mod sse;
mod surrogates;
mod usage_count;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use surehand_engine::render::count;

pub use self::{
    api_key::{ApiKey, KEY_VARIABLES, KeyStore},
    connection::{ModelConnection, ModelProtocol, TokenPrices, connect},
    generation::{GenerationSettings, ReasoningEffort},
    reasoning::{KeptReasoning, ReasoningItem},
    retry::RetryPolicy,
};
use crate::cancel::CancelToken;

/// A language model that answers one prompt at a time.
pub trait ChatModel {
    /// The name, as the user gave it.
    fn name(&self) -> &str;

    /// The API key in use, and the headers and query parameters that look like credentials. All of them must be
    /// redacted.
    fn secrets(&self) -> &[ApiKey] {
        &[]
    }

    /// Asks the model. `hear` receives pieces of the answer as they arrive, which are preliminary until this function
    /// returns. Transient errors are retried, with pauses.
    fn ask(&mut self, prompt: &Prompt, cancel: &CancelToken, hear: StreamListener<'_>) -> Result<ModelAnswer, ModelError>;
}

/// A prompt, independent of the provider's protocol.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// The system text, which rarely changes.
    pub system: String,
    /// The conversation. It begins with the user and ends with the user or with results of calls.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether the next prompt will begin with this one. Then the provider should cache it and gets the model's
    /// reasoning back.
    #[serde(default)]
    pub is_conversation: bool,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatMessage {
    /// Text of the user, or of the run in the user's place.
    User(String),
    /// An earlier answer of the model.
    Assistant {
        /// The text of the answer; may be empty.
        text: String,
        /// The calls, in the order in which the model wrote them.
        calls: Vec<ModelCall>,
        /// The reasoning before and between them, if the provider wants it back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<KeptReasoning>,
    },
    /// The results of the calls in the previous message, one for each.
    Results(Vec<CallResult>),
}

/// The description of a tool for a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name by which the model calls the tool.
    pub name: String,
    /// Its use and effect, for the model.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Map<String, Value>,
}

impl ToolSpec {
    /// A tool with a schema that is a JSON object.
    pub(crate) fn new(name: &str, description: &str, schema: Value) -> Self {
        let Value::Object(schema) = schema else { unreachable!("the schema of a tool is an object") };
        Self { name: name.to_owned(), description: description.to_owned(), schema }
    }
}

/// A call of a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The id of the call. Never empty: if the provider gives none, the protocol makes one up.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, not necessarily valid JSON: `{}` if the model wrote none, and empty if they were cut off.
    pub arguments: String,
}

impl ModelCall {
    /// The arguments if they are a JSON object. Some servers parse earlier arguments and would fail on anything else,
    /// and the run with them.
    fn object_arguments(&self) -> &str {
        if serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok() { &self.arguments } else { "{}" }
    }

    /// Reverts the default of `{}` for the last call of an answer that was cut off: its arguments are missing, not
    /// empty. Some tools need none.
    fn doubt_arguments(&mut self) {
        if self.arguments == "{}" {
            self.arguments.clear();
        }
    }
}

/// The result of a call, for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The id of the call.
    pub id: String,
    /// The reply, as the model reads it.
    pub text: String,
    /// Whether the call was refused.
    pub is_error: bool,
}

/// Receives the events while a model answers.
pub type StreamListener<'a> = &'a mut dyn FnMut(StreamEvent<'_>);

/// An event while a model answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StreamEvent<'a> {
    /// A piece of the text.
    Text(&'a str),
    /// The model has begun to write a call of this tool.
    Calling(&'a str),
    /// The request failed and will be repeated. Discard the pieces so far.
    Retry {
        /// The error of the last attempt.
        why: &'a str,
        /// Seconds until the next attempt.
        seconds: f64,
    },
}

/// The answer of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text without calls; may be empty.
    pub text: String,
    /// The calls, in order.
    pub calls: Vec<ModelCall>,
    /// Tokens and cost of the request and the answer.
    pub usage: TokenUsage,
    /// Whether the answer was cut off at its length limit, by the provider or by us. Then the last call may be
    /// incomplete.
    pub is_cut: bool,
    /// The reasoning, if the provider wants it back. Only for a prompt that is a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<KeptReasoning>,
}

/// Tokens and cost, as counted by the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Input tokens read from the provider's cache.
    pub cached: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Cost in dollars, if known.
    pub cost: Option<f64>,
}

impl TokenUsage {
    /// The sum; the cost is unknown only if it is unknown on both sides.
    pub(crate) fn plus(self, other: Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
        };
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
            cost,
        }
    }
}

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The run was cancelled.
    #[error("stopped while waiting for the model")]
    Cancelled,
    /// The provider refuses the request. A retry would not help.
    #[error("{model} refused the request ({status}): {why}")]
    Refused {
        /// The name of the model.
        model: String,
        /// The HTTP status, or the one that matches an error in a stream.
        status: u16,
        /// The provider's message and, if known, a remedy.
        why: String,
    },
    /// All attempts failed.
    #[error("{model} {problem} ({}): {why}", count(*attempts as usize, "attempt"))]
    Unavailable {
        /// The name of the model.
        model: String,
        /// The predicate of the message, such as `could not be reached`.
        problem: &'static str,
        /// Number of attempts that were made.
        attempts: u32,
        /// The last error and a remedy.
        why: String,
    },
    /// A key, an address or a script is missing or invalid. Nothing was sent.
    #[error("{0}")]
    Setup(String),
}
