//! A model that plays a script, for tests and for trying Surehand without a key. A script has one JSON line for each
//! turn:
//!
//! ```text
//! {"text": "Looking.", "calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]}
//! {"calls": [{"tool": "done", "arguments": {"summary": "nothing to do"}}]}
//! ```

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ChatModel, ModelAnswer, ModelCall, ModelError, Prompt, StreamEvent, StreamListener, TokenUsage};
use crate::cancel::CancelToken;

/// A model that plays a script.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    turns: VecDeque<ScriptedTurn>,
    asked: u64,
}

/// One answer of the model.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedTurn {
    /// The text of the answer; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The calls of the answer, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptedCall>,
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

impl ScriptedModel {
    /// A model that plays these turns.
    pub fn new(turns: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        Self { name: "scripted".to_owned(), turns: turns.into_iter().collect(), asked: 0 }
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
        let Some(turn) = self.turns.pop_front() else {
            return Err(ModelError::Setup("the script ended before the model called done".to_owned()));
        };
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
        Ok(ModelAnswer { text: turn.text, calls, usage, is_cut: false, reasoning: None })
    }
}
