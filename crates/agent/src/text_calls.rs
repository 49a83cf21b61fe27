//! Calls that a model writes into its text, as small models do: fenced JSON, `<tool_call>`, `<invoke>` and
//! `<function=…>`. An example in an explanation must not be carried out, so a call counts only if it is complete,
//! stands at the very end of an answer without real calls, and does not quote the prompt.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::model::{ChatMessage, Prompt, ToolSpec};

/// The calls in the text of an answer without real calls.
#[derive(Debug, PartialEq)]
pub(crate) enum TextCalls {
    /// Nothing in it looks like a call.
    None,
    /// It ends in calls.
    Found {
        /// The text before the calls.
        text: String,
        calls: Vec<TextCall>,
    },
    /// A part of it looks like a call, but is not carried out, for this reason.
    Unclear(String),
}

/// A call of a tool that is offered.
#[derive(Debug, PartialEq)]
pub(crate) struct TextCall {
    pub name: String,
    pub arguments: Map<String, Value>,
}

/// Finds the calls in the text of an answer to a prompt. `said_before` is the text of the answer before it.
pub(crate) fn find_calls(text: &str, prompt: &Prompt, said_before: &str) -> TextCalls {
    let text = text.trim_end();
    let Some((start, calls)) = trailing_calls(text, &prompt.tools) else {
        return if looks_like_call(text) {
            TextCalls::Unclear("it is not complete, or not at the very end of the answer".to_owned())
        } else {
            TextCalls::None
        };
    };
    let (before, block) = text.split_at(start);
    if is_introduced_as_example(before) {
        return TextCalls::Unclear("it reads like an example".to_owned());
    }
    if !said_before.contains(block.trim()) && is_quote(block.trim(), prompt) {
        return TextCalls::Unclear("it is a quote of what you were shown".to_owned());
    }
    match calls.into_iter().map(|call| call.checked(&prompt.tools)).collect() {
        Ok(calls) => TextCalls::Found { text: before.trim_end().to_owned(), calls },
        Err(why) => TextCalls::Unclear(why),
    }
}

/// A call as the model wrote it, not checked yet.
#[derive(Debug)]
struct WrittenCall {
    name: String,
    arguments: Value,
}

impl WrittenCall {
    fn checked(self, tools: &[ToolSpec]) -> Result<TextCall, String> {
        let Self { name, arguments } = self;
        if !tools.iter().any(|tool| tool.name == name) {
            return Err(format!("there is no tool {name:?}"));
        }
        match arguments {
            Value::Object(arguments) => Ok(TextCall { name, arguments }),
            _ => Err(format!("the arguments of {name} are not a JSON object")),
        }
    }
}

/// Calls, and the text after them.
type Parsed<'a> = Option<(Vec<WrittenCall>, &'a str)>;

/// Texts with which a call may start. JSON may also stand alone.
const MARKS: [&str; 8] =
    ["```", "<tool_call>", "<tool_calls>", "<function_calls>", "<invoke ", "<function=", "[TOOL_CALLS]", "<|python_tag|>"];

/// Tags around calls, and tags that are calls.
const WRAPPERS: [(&str, &str); 3] =
    [("<tool_call>", "</tool_call>"), ("<tool_calls>", "</tool_calls>"), ("<function_calls>", "</function_calls>")];
const ELEMENTS: [(&str, &str); 2] = [("<invoke ", "</invoke>"), ("<function=", "</function>")];

/// The calls at the end of a text, and the position where they begin.
fn trailing_calls(text: &str, tools: &[ToolSpec]) -> Option<(usize, Vec<WrittenCall>)> {
    // In a text with many marks, only the last ones can begin its end.
    const MOST_STARTS: usize = 50;
    let mut starts = Vec::new();
    let (mut at, mut is_in_fence) = (0, false);
    for line in text.split_inclusive('\n') {
        let words = line.trim_start_matches(' ');
        // A line with more indentation is a quote.
        let is_start =
            line.len() - words.len() <= 3 && (words.starts_with(['{', '[']) || MARKS.iter().any(|mark| words.starts_with(mark)));
        if is_start && !is_in_fence {
            starts.push(at);
        }
        is_in_fence ^= words.starts_with("```");
        at += line.len();
    }
    let last = &starts[starts.len().saturating_sub(MOST_STARTS)..];
    last.iter().filter(|start| !is_in_element(&text[..**start])).find_map(|start| {
        let calls = calls_to_the_end(&text[*start..], tools)?;
        Some((*start, calls))
    })
}

/// Whether a call is still open at the end of a text.
fn is_in_element(text: &str) -> bool {
    let is_open = |(open, close): &(&str, &str)| text.matches(open).count() > text.matches(close).count();
    WRAPPERS.iter().chain(&ELEMENTS).any(is_open)
}

fn calls_to_the_end(mut rest: &str, tools: &[ToolSpec]) -> Option<Vec<WrittenCall>> {
    let mut calls = Vec::new();
    while !rest.trim_start().is_empty() {
        let (found, after) = fenced_block(rest.trim_start(), tools).or_else(|| block(rest.trim_start(), tools))?;
        calls.extend(found);
        rest = after;
    }
    (!calls.is_empty()).then_some(calls)
}

/// A code block that holds nothing but calls.
fn fenced_block<'a>(text: &'a str, tools: &[ToolSpec]) -> Parsed<'a> {
    const LANGUAGES: [&str; 8] = ["", "json", "xml", "text", "tool_call", "tool_calls", "tool_code", "function"];
    let (language, body) = text.strip_prefix("```")?.split_once('\n')?;
    if !LANGUAGES.contains(&language.trim()) {
        return None;
    }
    // The closing fence is not searched for, because an argument may contain a fence.
    let (calls, rest) = blocks_until("```", body, tools)?;
    let (end, after) = rest.split_once('\n').unwrap_or((rest, ""));
    end.trim_end().is_empty().then_some((calls, after))
}

/// The blocks before a closing mark, and the text after it.
fn blocks_until<'a>(close: &str, text: &'a str, tools: &[ToolSpec]) -> Parsed<'a> {
    let mut rest = text.trim_start();
    let mut calls = Vec::new();
    while !rest.starts_with(close) {
        let (found, after) = block(rest, tools)?;
        calls.extend(found);
        rest = after.trim_start();
    }
    (!calls.is_empty()).then_some((calls, &rest[close.len()..]))
}

fn block<'a>(text: &'a str, tools: &[ToolSpec]) -> Parsed<'a> {
    for mark in ["[TOOL_CALLS]", "<|python_tag|>"] {
        if let Some(rest) = text.strip_prefix(mark) {
            return json_calls(rest.trim_start());
        }
    }
    for (open, close) in WRAPPERS {
        if let Some(rest) = text.strip_prefix(open) {
            return blocks_until(close, rest, tools);
        }
    }
    if ELEMENTS.iter().any(|(open, _)| text.starts_with(open)) { element_call(text, tools) } else { json_calls(text) }
}

/// `<invoke name="TOOL"><parameter name="KEY">VALUE</parameter>…</invoke>`, and `<function=TOOL>` with
/// `<parameter=KEY>VALUE</parameter>…` or with a JSON object in it.
fn element_call<'a>(text: &'a str, tools: &[ToolSpec]) -> Parsed<'a> {
    let (name, inner, close) = match attribute(text, "<invoke name=") {
        Some((name, inner)) => (name, inner, "</invoke>"),
        None => {
            let (name, inner) = text.strip_prefix("<function=")?.split_once('>')?;
            (name, inner, "</function>")
        }
    };
    let mut rest = inner.trim_start();
    let mut arguments = Map::new();
    if rest.starts_with('{') {
        let (value, after) = json_prefix(rest)?;
        arguments = value.as_object()?.clone();
        rest = after.trim_start();
    }
    while !rest.starts_with(close) {
        let (key, (value, after)) = match attribute(rest, "<parameter name=") {
            Some((key, inner)) => (key, inner.split_once("</parameter>")?),
            None => {
                let (key, inner) = rest.strip_prefix("<parameter=")?.split_once('>')?;
                let (value, after) = inner.split_once("</parameter>")?;
                // This form puts the value on lines of its own.
                let value = value.strip_prefix('\n').unwrap_or(value);
                (key, (value.strip_suffix('\n').unwrap_or(value), after))
            }
        };
        let value = parameter_value(value, key, tools.iter().find(|tool| tool.name == name));
        // If a key occurs twice, its value is ambiguous.
        if arguments.insert(key.to_owned(), value).is_some() {
            return None;
        }
        rest = after.trim_start();
    }
    Some((vec![WrittenCall { name: name.to_owned(), arguments: arguments.into() }], &rest[close.len()..]))
}

/// The quoted value of an attribute at the end of a tag, and the text after the tag.
fn attribute<'a>(text: &'a str, start: &str) -> Option<(&'a str, &'a str)> {
    let (value, after) = text.strip_prefix(start)?.strip_prefix('"')?.split_once('"')?;
    Some((value, after.strip_prefix('>')?))
}

/// A value that was written without quotes. Only the schema distinguishes text from a number.
fn parameter_value(text: &str, key: &str, tool: Option<&ToolSpec>) -> Value {
    let is_text = |kind: &Value| kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&"string".into()));
    match tool.map(|tool| &tool.schema["properties"][key]["type"]) {
        Some(kind) if !kind.is_null() && !is_text(kind) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        _ => text.into(),
    }
}

fn json_calls(text: &str) -> Parsed<'_> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let (value, rest) = json_prefix(text)?;
    Some((calls_in(&value)?, rest))
}

/// The JSON value at the start of a text, and the text after it.
fn json_prefix(text: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

/// Names that models give to the parts of a call.
const NAME_KEYS: [&str; 6] = ["name", "tool", "tool_name", "function", "action", "recipient_name"];
const ARGUMENT_KEYS: [&str; 7] = ["arguments", "args", "parameters", "params", "input", "tool_input", "action_input"];
const OTHER_KEYS: [&str; 9] =
    ["id", "type", "index", "call_id", "tool_call_id", "thought", "thoughts", "reasoning", "explanation"];

/// The calls in a JSON value, if it has nothing else.
fn calls_in(value: &Value) -> Option<Vec<WrittenCall>> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            Some(items.iter().map(calls_in).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
        }
        Value::Object(fields) => {
            if let (1, Some(calls)) = (fields.len(), fields.get("tool_calls")) {
                return calls_in(calls);
            }
            if let Some(function @ Value::Object(_)) = fields.get("function") {
                let others = fields.keys().filter(|key| *key != "function");
                return others.into_iter().all(|key| OTHER_KEYS.contains(&&**key)).then(|| calls_in(function))?;
            }
            Some(vec![written_call(fields)?])
        }
        _ => None,
    }
}

fn written_call(fields: &Map<String, Value>) -> Option<WrittenCall> {
    let mut parts = (None, None);
    for (key, value) in fields {
        let key = key.as_str();
        if NAME_KEYS.contains(&key) && parts.0.is_none() {
            parts.0 = Some(value.as_str()?);
        } else if ARGUMENT_KEYS.contains(&key) && parts.1.is_none() {
            parts.1 = Some(value);
        } else if !OTHER_KEYS.contains(&key) {
            return None;
        }
    }
    let (Some(name), Some(arguments)) = parts else { return None };
    // The description of a tool has the same keys as a call of it.
    if arguments["type"] == "object" && arguments["properties"].is_object() {
        return None;
    }
    let arguments = match arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| arguments.clone()),
        arguments => arguments.clone(),
    };
    let name = name.strip_prefix("functions.").unwrap_or(name).to_owned();
    Some(WrittenCall { name, arguments })
}

/// Whether a text that does not end in calls contains something that was probably meant as one.
fn looks_like_call(text: &str) -> bool {
    let is_marked = MARKS.iter().skip(1).any(|mark| text.contains(mark));
    let has_key = |keys: &[&str]| keys.iter().any(|key| text.contains(&format!("\"{key}\"")));
    is_marked || text.contains('{') && has_key(&NAME_KEYS[..3]) && has_key(&ARGUMENT_KEYS[..3])
}

/// Whether the last line before a call presents it as an example.
fn is_introduced_as_example(before: &str) -> bool {
    let line = before.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_lowercase();
    ["example", "e.g.", "for instance", "hypothetical", "would "].iter().any(|sign| line.contains(sign))
}

/// Whether the prompt contains these lines outside of the model's own answers.
fn is_quote(block: &str, prompt: &Prompt) -> bool {
    let contains_block = |text: &str| without_line_numbers(text).contains(block);
    contains_block(&prompt.system)
        || prompt.messages.iter().any(|message| match message {
            ChatMessage::User(text) => contains_block(text),
            ChatMessage::Assistant { .. } => false,
            ChatMessage::Results(results) => results.iter().any(|result| contains_block(&result.text)),
        })
}

/// A text without the prefixes of numbered lines: `12|` or `12#ab|`.
fn without_line_numbers(text: &str) -> Cow<'_, str> {
    if !text.contains('|') {
        return Cow::Borrowed(text);
    }
    let strip = |line: &'_ str| -> String {
        let number = line.split_once('|').filter(|(number, _)| {
            let number = number.split_once('#').map_or(*number, |(number, _)| number).trim_start();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        number.map_or(line, |(_, line)| line).to_owned()
    };
    Cow::Owned(text.split('\n').map(strip).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests;
