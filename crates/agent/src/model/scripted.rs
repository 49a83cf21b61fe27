//! A model that follows a script, for tests and for trying things without a key. A script has one JSON line for
//! each turn. A turn may have several versions; the first one whose condition matches the prompt is played.
//!
//! ```text
//! {"text": "Looking.", "calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]}
//! {"if": {"lacks": "src/main.rs"}, "calls": [{"tool": "write_file", "arguments": {"path": "src/main.rs", "content": "…"}}]}
//! {"else": true, "calls": [{"tool": "done", "arguments": {"summary": "nothing to do"}}]}
//! ```

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ChatMessage, ChatModel, ModelAnswer, ModelCall, ModelError, Prompt, StreamEvent, StreamListener, TokenUsage};
use crate::cancel::CancelToken;

/// A model that plays a script.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    turns: VecDeque<Vec<ScriptedTurn>>,
    asked: u64,
}

/// What the model does in one turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedTurn {
    /// When this version is played; `None` means always.
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<PromptCondition>,
    /// Whether this is another version of the previous turn.
    #[serde(rename = "else", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_else: bool,
    /// The text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptedCall>,
}

/// A condition on the prompt.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptCondition {
    /// The prompt contains this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<String>,
    /// The prompt does not contain this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
}

/// A call in a script.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The name of the tool.
    pub tool: String,
    /// The arguments; a string is sent as it is, valid JSON or not.
    #[serde(default)]
    pub arguments: Value,
}

impl PromptCondition {
    fn fits(&self, prompt: &str) -> bool {
        self.has.as_ref().is_none_or(|text| prompt.contains(text))
            && self.lacks.as_ref().is_none_or(|text| !prompt.contains(text))
    }
}

impl ScriptedModel {
    /// A model that plays these turns.
    pub fn new(turns: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        let mut grouped: VecDeque<Vec<ScriptedTurn>> = VecDeque::new();
        for turn in turns {
            match grouped.back_mut() {
                Some(versions) if turn.is_else => versions.push(turn),
                _ => grouped.push_back(vec![turn]),
            }
        }
        Self { name: "scripted".to_owned(), turns: grouped, asked: 0 }
    }

    /// Parses a script in JSON lines. Empty lines and lines that begin with `#` are ignored.
    pub fn parse(script: &str) -> Result<Self, ModelError> {
        let lines = script.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
        let turn = |(line, number): (&str, usize)| {
            serde_json::from_str(line).map_err(|error| ModelError::Setup(format!("line {number} of the script: {error}")))
        };
        Ok(Self::new(lines.map(turn).collect::<Result<Vec<ScriptedTurn>, _>>()?))
    }

    /// Skips turns that were played before a run was interrupted.
    pub fn skip_turns(mut self, turns: u32) -> Self {
        let played = (turns as usize).min(self.turns.len());
        self.turns.drain(..played);
        // Ids of calls must stay unique in the resumed conversation.
        self.asked = u64::from(turns);
        self
    }
}

impl ChatModel for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&mut self, prompt: &Prompt, cancel: &CancelToken, hear: StreamListener<'_>) -> Result<ModelAnswer, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let Some(versions) = self.turns.pop_front() else {
            return Err(ModelError::Setup("the script ended before the model called done".to_owned()));
        };
        let text = prompt_text(prompt);
        let turn = versions.into_iter().find(|turn| turn.condition.as_ref().is_none_or(|condition| condition.fits(&text)));
        let turn = turn.unwrap_or_default();
        self.asked += 1;
        let calls = turn.calls.into_iter().zip(1..).map(|(call, number)| ModelCall {
            id: format!("call_{}_{number}", self.asked),
            name: call.tool,
            arguments: match call.arguments {
                Value::Null => "{}".to_owned(),
                Value::String(raw) => raw,
                arguments => arguments.to_string(),
            },
        });
        let calls: Vec<ModelCall> = calls.collect();
        if !turn.text.is_empty() {
            hear(StreamEvent::Text(&turn.text));
        }
        calls.iter().for_each(|call| hear(StreamEvent::Calling(&call.name)));
        let output = calls.iter().map(|call| call.arguments.len()).sum::<usize>() + turn.text.len();
        let usage = TokenUsage { input: prompt.tokens() as u64, output: output as u64 / 4, ..TokenUsage::default() };
        Ok(ModelAnswer { text: turn.text, calls, usage, is_cut: false })
    }
}

/// Everything that a model reads, as one text.
pub fn prompt_text(prompt: &Prompt) -> String {
    let mut text = prompt.system.clone();
    for message in &prompt.messages {
        match message {
            ChatMessage::User(said) => text.push_str(said),
            ChatMessage::Assistant { text: said, calls } => {
                text.push_str(said);
                calls.iter().for_each(|call| text.push_str(&format!("{} {}\n", call.name, call.arguments)));
            }
            ChatMessage::Results(results) => results.iter().for_each(|result| text.push_str(&result.text)),
        }
    }
    text
}
