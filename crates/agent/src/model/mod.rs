//! Models, in our words: a prompt goes in, text and calls come out. What a provider's protocol looks like stays in the module of
//! that protocol.

mod anthropic;
mod api_key;
mod connection;
mod http_client;
mod http_model;
mod openai;
mod request_error;
mod retry;
pub mod scripted;
mod sse;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::{
    api_key::{ApiKey, KEY_VARIABLES, KeyStore},
    connection::{ModelConnection, ModelProtocol, TokenPrices, connect},
    retry::RetryPolicy,
};
use crate::cancel::CancelToken;

/// Somebody who answers prompts.
pub trait ChatModel {
    /// Its name, as the user gave it.
    fn name(&self) -> &str;

    /// The key that it is asked with, if it needs one.
    fn key(&self) -> Option<&ApiKey> {
        None
    }

    /// Asks it. `hear` is told what comes while it comes; nothing that was heard counts before the answer is there. Failures that
    /// may pass are tried again, with pauses, before this gives up.
    fn ask(
        &mut self,
        prompt: &Prompt,
        cancel: &CancelToken,
        hear: &mut dyn FnMut(StreamEvent<'_>),
    ) -> Result<ModelAnswer, ModelError>;
}

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// What stays the same from turn to turn.
    pub system: String,
    /// The conversation: begins with the user, ends with the user or with results.
    pub messages: Vec<ChatMessage>,
    /// The tools that it may call.
    pub tools: Vec<ToolSpec>,
}

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatMessage {
    /// From us.
    User(String),
    /// From the model.
    Assistant {
        /// What it said.
        text: String,
        /// What it called.
        calls: Vec<ModelCall>,
    },
    /// What came of the calls of the message before, one for each.
    Results(Vec<CallResult>),
}

/// A tool as a model is told about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Map<String, Value>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    /// What the provider calls it. Never empty: where the provider gives no name, the protocol makes one up.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if it wrote well. Where it wrote nothing, `{}`.
    pub arguments: String,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// Of which call.
    pub id: String,
    /// For the model.
    pub text: String,
    /// Whether it was refused.
    pub is_error: bool,
}

/// What comes while an answer is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StreamEvent<'a> {
    /// The next piece of its text.
    Text(&'a str),
    /// The next piece of what it thinks, where the provider shows that.
    Thought(&'a str),
    /// It begins to call this tool.
    Calling(&'a str),
    /// What was heard is void: the request failed and is made again after so long.
    Retry {
        /// How it failed.
        why: &'a str,
        /// Until the next attempt.
        seconds: f64,
    },
}

/// What a model has answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// What it said.
    pub text: String,
    /// What it calls, in order.
    pub calls: Vec<ModelCall>,
    /// What that took.
    pub usage: TokenUsage,
    /// Whether it was cut off because the answer was too long; the last call may be incomplete then.
    pub is_cut: bool,
}

/// What an answer took, as the provider counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens of the prompt, with those that were cached.
    pub input: u64,
    /// Tokens of the prompt that came from the provider's cache.
    pub cached: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// In dollars, if it is known.
    pub cost: Option<f64>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// Somebody wanted to stop.
    #[error("stopped while waiting for the model")]
    Cancelled,
    /// The provider will not answer this, however often it is asked.
    #[error("{model} said no ({status}): {why}")]
    Refused {
        /// Who was asked.
        model: String,
        /// The HTTP status.
        status: u16,
        /// The provider's words and, where we know it, what to do.
        why: String,
    },
    /// It could not be reached, or broke off, each time.
    #[error("{model} could not be reached in {attempts} attempts: {why}")]
    Unavailable {
        /// Who was asked.
        model: String,
        /// How often.
        attempts: u32,
        /// What happened the last time, and what to do.
        why: String,
    },
    /// Something is missing or makes no sense before anybody is asked: a key, an address, a script.
    #[error("{0}")]
    Setup(String),
}
