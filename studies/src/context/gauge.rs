//! The size of a prompt by a real tokenizer, and how many of its tokens, from the beginning on, equal those of the
//! previous prompt: a provider can take that part from its cache.

use bpe_openai::o200k_base;
use serde_json::{Value, json};
use surehand_agent::model::{ChatMessage, Prompt};

/// The measurements of one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// All of it: tools, system, messages.
    pub tokens: usize,
    /// The tokens before the first difference from the previous prompt.
    pub stable: usize,
}

impl Sample {
    /// The stable part of the whole, in percent.
    pub(super) fn share(&self) -> f64 {
        self.stable as f64 / self.tokens as f64 * 100.0
    }
}

/// Weighs prompts, one after the other.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    /// The parts of the last prompt, each with its tokens.
    parts: Vec<(String, usize)>,
    /// The prompts so far.
    pub samples: Vec<Sample>,
}

impl Gauge {
    /// Measures the next prompt. Returns its tokens.
    pub(super) fn take(&mut self, prompt: &Prompt) -> usize {
        let texts = parts(prompt);
        let same = texts.iter().zip(&self.parts).take_while(|(text, (last, _))| *text == last).count();
        let mut stable: usize = self.parts[..same].iter().map(|(_, tokens)| tokens).sum();
        if let (Some(text), Some((last, _))) = (texts.get(same), self.parts.get(same)) {
            stable += o200k_base().count(common(text, last));
        }
        // A conversation is long, and nearly all of it was weighed before.
        self.parts.truncate(same);
        self.parts.extend(texts.into_iter().skip(same).map(|text| {
            let tokens = o200k_base().count(text.as_str());
            (text, tokens)
        }));
        let tokens = self.parts.iter().map(|(_, tokens)| tokens).sum();
        self.samples.push(Sample { tokens, stable: stable.min(tokens) });
        tokens
    }
}

/// The common beginning of two texts.
fn common<'a>(text: &'a str, other: &str) -> &'a str {
    let end = text.char_indices().zip(other.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
    &text[..end.unwrap_or(text.len().min(other.len()))]
}

/// A prompt in the order in which providers present it to a model: the tools, the system text, the conversation.
fn parts(prompt: &Prompt) -> Vec<String> {
    let tools: Vec<Value> = prompt
        .tools
        .iter()
        .map(|tool| json!({ "type": "function", "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema } }))
        .collect();
    let head = [Value::Array(tools).to_string(), format!("system\n{}\n", prompt.system)];
    head.into_iter().chain(prompt.messages.iter().map(part)).collect()
}

fn part(message: &ChatMessage) -> String {
    match message {
        ChatMessage::User(text) => format!("user\n{text}\n"),
        ChatMessage::Assistant { text, calls, .. } => {
            let calls: String = calls.iter().map(|call| format!("{} {} {}\n", call.id, call.name, call.arguments)).collect();
            format!("assistant\n{text}\n{calls}")
        }
        ChatMessage::Results(results) => results.iter().map(|result| format!("tool {}\n{}\n", result.id, result.text)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(system: &str, messages: &[&str]) -> Prompt {
        let messages = messages.iter().map(|text| ChatMessage::User((*text).to_owned())).collect();
        Prompt { system: system.to_owned(), messages, ..Prompt::default() }
    }

    #[track_caller]
    fn check(first: &Prompt, second: &Prompt, stable: &str) {
        let mut gauge = Gauge::default();
        gauge.take(first);
        gauge.take(second);
        let all: usize = parts(second).iter().map(|part| o200k_base().count(part.as_str())).sum();
        assert_eq!(gauge.samples[0].stable, 0);
        assert_eq!(gauge.samples[1], Sample { tokens: all, stable: o200k_base().count("[]") + o200k_base().count(stable) });
    }

    #[test]
    fn what_comes_before_the_first_difference_is_stable() {
        check(&prompt("be good", &["one two"]), &prompt("be good", &["one three"]), "system\nbe good\nuser\none t");
        check(&prompt("be good", &["one"]), &prompt("be bad", &["one"]), "system\nbe ");
        check(&prompt("be good", &["one"]), &prompt("be good", &["one", "two"]), "system\nbe good\nuser\none\n");
        check(&prompt("be good", &["one", "two"]), &prompt("be good", &["one"]), "system\nbe good\nuser\none\n");
    }
}
