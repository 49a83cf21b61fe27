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

/// A language model.
pub trait ChatModel {
    /// The name, as the user gave it.
    fn name(&self) -> &str;

    /// The API key in use, and headers and parameters that look like one.
    fn secrets(&self) -> &[ApiKey] {
        &[]
    }

    /// Asks the model. `hear` receives pieces of the answer as they arrive; they are preliminary until this returns.
    /// Transient errors are retried, with pauses.
    fn ask(&mut self, prompt: &Prompt, cancel: &CancelToken, hear: StreamListener<'_>) -> Result<ModelAnswer, ModelError>;
}

/// A prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// The system text, which rarely changes.
    pub system: String,
    /// The conversation: begins with the user, ends with the user or with results of calls.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether the next prompt will begin with this one, so that the provider should cache it, and get the model's
    /// reasoning back.
    #[serde(default)]
    pub is_conversation: bool,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatMessage {
    /// From the user.
    User(String),
    /// From the model.
    Assistant {
        /// The text.
        text: String,
        /// The calls.
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
    /// The name.
    pub name: String,
    /// What the tool does.
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
    /// The arguments, not necessarily valid JSON. `{}` if the model wrote none, and nothing if they were cut off.
    pub arguments: String,
}

impl ModelCall {
    /// The arguments if they are a JSON object. Some servers parse earlier arguments and would fail on anything else,
    /// and the run with them.
    fn object_arguments(&self) -> &str {
        if serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok() { &self.arguments } else { "{}" }
    }

    /// Takes back that no arguments stand for an empty object: in the last call of an answer that was cut off, they are
    /// missing. Some tools need none.
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
    /// The reply.
    pub text: String,
    /// Whether the call was refused.
    pub is_error: bool,
}

/// Receives what arrives while a model answers.
pub type StreamListener<'a> = &'a mut dyn FnMut(StreamEvent<'_>);

/// What arrives while a model answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StreamEvent<'a> {
    /// A piece of the text.
    Text(&'a str),
    /// The model has begun to write a call of this tool.
    Calling(&'a str),
    /// The request failed and will be repeated. Discard what was streamed so far.
    Retry {
        /// The error.
        why: &'a str,
        /// Seconds until the next attempt.
        seconds: f64,
    },
}

/// The answer of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text.
    pub text: String,
    /// The calls, in order.
    pub calls: Vec<ModelCall>,
    /// Tokens and cost.
    pub usage: TokenUsage,
    /// Whether the answer was cut off at its longest length, by the provider or by us. Then the last call may be
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
    /// Output tokens.
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
        /// The HTTP status.
        status: u16,
        /// The provider's message and, if known, a remedy.
        why: String,
    },
    /// Every attempt failed.
    #[error("{model} {problem} ({}): {why}", count(*attempts as usize, "attempt"))]
    Unavailable {
        /// The name of the model.
        model: String,
        /// What went wrong, in words.
        problem: &'static str,
        /// Number of attempts.
        attempts: u32,
        /// The last error, and what to do.
        why: String,
    },
    /// A key, an address or a script is missing or invalid. Nothing was sent.
    #[error("{0}")]
    Setup(String),
}
