//! A model that follows a script: for tests, and to try things without a key. A script is a file of JSON lines, one for
//! each turn; a turn may have several versions, of which the first whose conditions fit the prompt is played.
//!
//! ```text
//! {"text": "Looking.", "calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]}
//! {"if": {"lacks": "src/main.rs"}, "calls": [{"tool": "write_file", "arguments": {"path": "src/main.rs", "content": "…"}}]}
//! {"else": true, "calls": [{"tool": "done", "arguments": {"summary": "nothing to do"}}]}
//! ```

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ChatMessage, ChatModel, ModelAnswer, ModelCall, ModelError, Prompt, StreamEvent, TokenUsage};
use crate::cancel::CancelToken;

/// A model that follows a script.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    turns: VecDeque<Vec<ScriptedTurn>>,
    asked: u64,
}

/// What the model does in a turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedTurn {
    /// When this is played; always, if there is nothing.
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<PromptCondition>,
    /// Whether it is another version of the turn before.
    #[serde(rename = "else", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_else: bool,
    /// What it says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptedCall>,
}

/// What the prompt must be like.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptCondition {
    /// It has this in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<String>,
    /// It does not have this in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
}

/// A call in a script.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments; a string is taken as the model wrote it, well or not.
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

    /// The model of a script in JSON lines; empty lines and lines that begin with `#` are passed over.
    pub fn parse(script: &str) -> Result<Self, ModelError> {
        let lines = script.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
        let turn = |(line, number): (&str, usize)| {
            serde_json::from_str(line).map_err(|error| ModelError::Setup(format!("line {number} of the script: {error}")))
        };
        Ok(Self::new(lines.map(turn).collect::<Result<Vec<ScriptedTurn>, _>>()?))
    }

    /// Passes over turns that were played before a run was interrupted.
    pub fn skip_turns(mut self, turns: u32) -> Self {
        let played = (turns as usize).min(self.turns.len());
        self.turns.drain(..played);
        // A call of a conversation that goes on has a name that no other has.
        self.asked = u64::from(turns);
        self
    }
}

impl ChatModel for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(
        &mut self,
        prompt: &Prompt,
        cancel: &CancelToken,
        hear: &mut dyn FnMut(StreamEvent<'_>),
    ) -> Result<ModelAnswer, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let Some(versions) = self.turns.pop_front() else {
            return Err(ModelError::Setup("the script is at its end, and the model has not called done".to_owned()));
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

/// All that a model reads.
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
