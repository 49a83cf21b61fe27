//! The Anthropic Messages protocol. Written by hand because it is small, and a client library would bring an
//! async runtime.

use serde_json::{Map, Value, json};

use super::{
    CallResult, ChatMessage, ModelCall, Prompt, StreamEvent, StreamListener, TokenUsage, ToolSpec,
    generation::ThinkingStyle,
    http_model::{AnswerProgress, AnswerReader, CompleteAnswer},
    partial_calls::PartialCall,
    reasoning::{AnswerPart, ReasoningItem, in_order},
    request_error::{RequestError, error_in},
    request_options::RequestOptions,
    sse,
    usage_count::token_count,
};

/// The protocol requires a limit for the answer. Every model of the provider accepts this one.
const LEAST_LIMIT: u32 = 4096;

pub(super) fn request_body(options: &RequestOptions, prompt: &Prompt) -> Value {
    let limit = options.max_output_tokens.unwrap_or(LEAST_LIMIT);
    let mut messages = messages(options, prompt);
    if prompt.is_conversation {
        mark_conversation(&mut messages);
    }
    let can_think = options.thinking == ThinkingStyle::Effort || has_thought(&messages);
    let mut body = json!({ "model": options.model, "max_tokens": limit, "stream": true, "messages": messages });
    let mut tools: Vec<Value> = prompt.tools.iter().map(tool).collect();
    // The provider caches everything before a mark, in the order tools, system, messages. It accepts four marks.
    if !prompt.system.is_empty() {
        body["system"] = json!([{ "type": "text", "text": prompt.system }]);
        mark(&mut body["system"][0]);
    } else if let Some(last) = tools.last_mut() {
        mark(last);
    }
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    options.generation.add_sampling(&mut body);
    if can_think {
        options.generation.add_thinking(&mut body, options.thinking, limit);
    }
    body
}

/// Has the provider cache the prompt up to this block.
fn mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// Has a conversation cached to its end for the next turn, and finds the part that the last turn cached: the provider
/// searches only some blocks back from a mark, and a turn may have more. Outside of a conversation the messages are new
/// in every turn, and marks would only cost.
fn mark_conversation(messages: &mut [Value]) {
    let last = messages.len().saturating_sub(1);
    for at in [last.checked_sub(2), Some(last)].into_iter().flatten() {
        let message = messages.get_mut(at).filter(|message| message["role"] == "user");
        let blocks = message.and_then(|message| message["content"].as_array_mut());
        if let Some(block) = blocks.and_then(|blocks| blocks.last_mut()) {
            mark(block);
        }
    }
}

/// Whether thinking by tokens can be requested. Then an answer with calls whose results follow must begin with a
/// thought. If another model gave the answer, that thought is missing.
fn has_thought(messages: &[Value]) -> bool {
    let Some(last) = messages.iter().rfind(|message| message["role"] == "assistant") else { return true };
    let kinds: Vec<&str> = last["content"].as_array().into_iter().flatten().filter_map(|block| block["type"].as_str()).collect();
    !kinds.contains(&"tool_use") || matches!(kinds.first(), Some(&("thinking" | "redacted_thinking")))
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema })
}

/// Neighbouring messages of one role are merged: results and the text after them both belong to the user.
fn messages(options: &RequestOptions, prompt: &Prompt) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &prompt.messages {
        let (role, blocks) = blocks_of(options, message);
        match turns.last_mut() {
            Some((last, known)) if *last == role => known.extend(blocks),
            // An empty message is refused. Only an empty answer leads to one.
            _ if blocks.is_empty() => {}
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, blocks)| json!({ "role": role, "content": blocks })).collect()
}

fn blocks_of(options: &RequestOptions, message: &ChatMessage) -> (&'static str, Vec<Value>) {
    match message {
        // Blank text is refused.
        ChatMessage::User(text) if text.trim().is_empty() => ("user", Vec::new()),
        ChatMessage::User(text) => ("user", vec![text_block(text)]),
        ChatMessage::Assistant { text, calls, reasoning } => {
            let block = |part: AnswerPart<'_>| match part {
                AnswerPart::Reasoning(data) => data.clone(),
                AnswerPart::Text(text) => text_block(text),
                AnswerPart::Call(call) => tool_use(call),
            };
            ("assistant", in_order(text, calls, options.returned(reasoning.as_ref())).into_iter().map(block).collect())
        }
        ChatMessage::Results(results) => ("user", results.iter().map(tool_result).collect()),
    }
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn tool_use(call: &ModelCall) -> Value {
    // Anything but an object is refused. The result of the call says that the model's arguments were invalid.
    let input: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
}

fn tool_result(result: &CallResult) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": result.id, "content": result.text });
    if result.is_error {
        block["is_error"] = true.into();
    }
    block
}

#[derive(Default)]
pub(super) struct AnthropicReader {
    text: String,
    blocks: Vec<(u64, ContentBlock)>,
    content_bytes: usize,
    tokens: AnthropicUsage,
    stop_reason: String,
    is_ended: bool,
}

enum ContentBlock {
    ToolUse {
        /// With the arguments that arrived in pieces.
        call: PartialCall,
        /// Arguments from the start of the block, used if no piece follows.
        given: Value,
    },
    /// Thinking, signed or encrypted.
    Thinking { text_before: usize, block: Value },
}

/// Token counts of this provider, in which `input` excludes tokens read from or written to the cache.
#[derive(Default)]
struct AnthropicUsage {
    input: u64,
    cache_read: u64,
    cache_written: u64,
    output: u64,
}

impl AnswerReader for AnthropicReader {
    fn read_event(&mut self, event: &sse::SseEvent, hear: StreamListener<'_>) -> Result<AnswerProgress, RequestError> {
        let data: Value =
            serde_json::from_str(&event.data).map_err(|_| RequestError::malformed(format!("not JSON: {}", event.data)))?;
        let index = data["index"].as_u64().unwrap_or_default();
        match data["type"].as_str().unwrap_or(&event.name) {
            "message_start" => self.tokens.update(&data["message"]["usage"]),
            "content_block_start" => self.begin_block(index, &data["content_block"], hear),
            "content_block_delta" => self.apply_delta(index, &data["delta"], hear)?,
            "message_delta" => {
                self.tokens.update(&data["usage"]);
                self.set_stop_reason(&data["delta"]);
            }
            "message_stop" => {
                self.is_ended = true;
                return Ok(AnswerProgress::Ended);
            }
            "error" => return Err(RequestError::from_stream_error(error_in(&data))),
            // Pings, ends of blocks and future events.
            _ => {}
        }
        // Some gateways end without a stop.
        Ok(if self.stop_reason.is_empty() { AnswerProgress::Open } else { AnswerProgress::Whole })
    }

    fn read_whole(&mut self, body: &Value, hear: StreamListener<'_>) -> Result<(), RequestError> {
        if !body["error"].is_null() {
            return Err(RequestError::from_stream_error(&body["error"]));
        }
        let Some(blocks) = body["content"].as_array() else { return Err(RequestError::malformed("it contains no answer")) };
        for (index, block) in (0..).zip(blocks) {
            self.begin_block(index, block, hear);
        }
        self.tokens.update(&body["usage"]);
        self.set_stop_reason(body);
        self.is_ended = true;
        Ok(())
    }

    fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    fn cut(&mut self) {
        "max_tokens".clone_into(&mut self.stop_reason);
        self.is_ended = true;
    }

    fn finish(self: Box<Self>) -> Result<CompleteAnswer, RequestError> {
        if !self.is_ended && self.stop_reason.is_empty() {
            return Err(RequestError::malformed("the answer broke off"));
        }
        if self.stop_reason == "refusal" {
            return Err(RequestError::withheld("the model declines to answer this"));
        }
        let is_cut = matches!(self.stop_reason.as_str(), "max_tokens" | "model_context_window_exceeded");
        let (mut partials, mut items) = (Vec::new(), Vec::new());
        for (_, block) in self.blocks {
            match block {
                ContentBlock::ToolUse { mut call, given } => {
                    if call.arguments.trim().is_empty() && given.is_object() {
                        call.arguments = given.to_string();
                    }
                    partials.push(call);
                }
                ContentBlock::Thinking { text_before, block: data } if is_returnable(&data) => {
                    items.push(ReasoningItem { text_before, calls_before: partials.len(), data });
                }
                ContentBlock::Thinking { .. } => {}
            }
        }
        let complete = CompleteAnswer::new(self.text, partials, items, self.tokens.usage(), is_cut)?;
        Ok(CompleteAnswer { cache_written: self.tokens.cache_written, ..complete })
    }
}

/// Thinking without a signature is refused.
fn is_returnable(thinking: &Value) -> bool {
    ["signature", "data"].iter().any(|name| thinking[*name].as_str().is_some_and(|text| !text.is_empty()))
}

impl AnthropicReader {
    fn begin_block(&mut self, index: u64, block: &Value, hear: StreamListener<'_>) {
        let field = |name: &str| block[name].as_str().unwrap_or_default();
        match field("type") {
            "text" => self.add_text(field("text"), hear),
            "tool_use" => {
                let (id, name) = (field("id").to_owned(), field("name").to_owned());
                self.content_bytes += name.len();
                hear(StreamEvent::Calling(&name));
                let (call, given) = (PartialCall::new(id, name), block["input"].clone());
                self.blocks.push((index, ContentBlock::ToolUse { call, given }));
            }
            "thinking" | "redacted_thinking" => {
                self.content_bytes += field("thinking").len() + field("data").len();
                let (text_before, block) = (self.text.len(), block.clone());
                self.blocks.push((index, ContentBlock::Thinking { text_before, block }));
            }
            _ => {}
        }
    }

    /// The latest block with this number.
    fn block(&mut self, index: u64) -> Option<&mut ContentBlock> {
        self.blocks.iter_mut().rfind(|(known, _)| *known == index).map(|(_, block)| block)
    }

    fn apply_delta(&mut self, index: u64, delta: &Value, hear: StreamListener<'_>) -> Result<(), RequestError> {
        let field = |name: &str| delta[name].as_str().unwrap_or_default();
        match field("type") {
            "text_delta" => self.add_text(field("text"), hear),
            "input_json_delta" => {
                let Some(ContentBlock::ToolUse { call, .. }) = self.block(index) else {
                    return Err(RequestError::malformed("arguments of a call that has not begun"));
                };
                call.arguments.push_str(field("partial_json"));
                self.content_bytes += field("partial_json").len();
            }
            "thinking_delta" => self.add_thinking(index, "thinking", field("thinking")),
            "signature_delta" => self.add_thinking(index, "signature", field("signature")),
            _ => {}
        }
        Ok(())
    }

    fn add_text(&mut self, piece: &str, hear: StreamListener<'_>) {
        if !piece.is_empty() {
            hear(StreamEvent::Text(piece));
            self.content_bytes += piece.len();
            self.text.push_str(piece);
        }
    }

    fn add_thinking(&mut self, index: u64, name: &str, piece: &str) {
        self.content_bytes += piece.len();
        if let Some(ContentBlock::Thinking { block, .. }) = self.block(index) {
            match &mut block[name] {
                Value::String(text) => text.push_str(piece),
                missing => *missing = piece.into(),
            }
        }
    }

    fn set_stop_reason(&mut self, from: &Value) {
        if let Some(reason) = from["stop_reason"].as_str() {
            reason.clone_into(&mut self.stop_reason);
        }
    }
}

impl AnthropicUsage {
    /// Merges new counts. They are totals; missing ones stay.
    fn update(&mut self, usage: &Value) {
        let fields = [
            ("input_tokens", &mut self.input),
            ("cache_read_input_tokens", &mut self.cache_read),
            ("cache_creation_input_tokens", &mut self.cache_written),
            ("output_tokens", &mut self.output),
        ];
        for (name, count) in fields {
            // Never lower a count: some gateways report the prompt at the start and zero at the end.
            *count = token_count(&usage[name]).max(*count);
        }
    }

    fn usage(&self) -> TokenUsage {
        let input = self.input.saturating_add(self.cache_read).saturating_add(self.cache_written);
        TokenUsage { input, cached: self.cache_read, output: self.output, cost: None }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::request_error::TransientKind, *};

    fn read(events: &[Value]) -> (Result<CompleteAnswer, RequestError>, Vec<String>) {
        let (mut reader, mut heard) = (Box::<AnthropicReader>::default(), Vec::new());
        let mut hear = |piece: StreamEvent<'_>| heard.push(format!("{piece:?}"));
        for event in events {
            let event = sse::SseEvent { name: String::new(), data: event.to_string() };
            if let Err(error) = reader.read_event(&event, &mut hear) {
                return (Err(error), heard);
            }
        }
        (reader.finish(), heard)
    }

    fn delta(index: u64, delta: &Value) -> Value {
        json!({ "type": "content_block_delta", "index": index, "delta": delta })
    }

    fn begin(index: u64, block: &Value) -> Value {
        json!({ "type": "content_block_start", "index": index, "content_block": block })
    }

    fn end(reason: &str) -> [Value; 2] {
        let usage = json!({ "output_tokens": 20 });
        [
            json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage }),
            json!({ "type": "message_stop" }),
        ]
    }

    #[test]
    fn text_calls_and_reasoning_come_in_blocks() {
        let mut events = vec![
            json!({ "type": "message_start", "message": { "usage": { "input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 30, "output_tokens": 1 } } }),
            begin(0, &json!({ "type": "thinking", "thinking": "", "signature": "" })),
            json!({ "type": "ping" }),
            delta(0, &json!({ "type": "thinking_delta", "thinking": "hm" })),
            delta(0, &json!({ "type": "signature_delta", "signature": "x" })),
            begin(1, &json!({ "type": "text", "text": "" })),
            delta(1, &json!({ "type": "text_delta", "text": "I " })),
            delta(1, &json!({ "type": "text_delta", "text": "read" })),
            json!({ "type": "content_block_stop", "index": 1 }),
            begin(2, &json!({ "type": "tool_use", "id": "a", "name": "read", "input": {} })),
            delta(2, &json!({ "type": "input_json_delta", "partial_json": "" })),
            delta(2, &json!({ "type": "input_json_delta", "partial_json": "{\"path\": " })),
            delta(2, &json!({ "type": "input_json_delta", "partial_json": "\"x\"}" })),
            begin(3, &json!({ "type": "tool_use", "id": "b", "name": "list", "input": {} })),
        ];
        events.extend(end("tool_use"));
        let (complete, heard) = read(&events);
        let CompleteAnswer { answer, cache_written, .. } = complete.unwrap();
        assert_eq!(answer.text, "I read");
        let calls: Vec<_> =
            answer.calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("a", "read", "{\"path\": \"x\"}"), ("b", "list", "{}")]);
        assert_eq!(answer.usage, TokenUsage { input: 135, cached: 100, output: 20, cost: None });
        assert_eq!(cache_written, 30);
        let data = json!({ "type": "thinking", "thinking": "hm", "signature": "x" });
        assert_eq!(answer.reasoning.unwrap().items, [ReasoningItem { text_before: 0, calls_before: 0, data }]);
        assert_eq!(heard, ["Text(\"I \")", "Text(\"read\")", "Calling(\"read\")", "Calling(\"list\")"]);
    }

    #[track_caller]
    fn ends(events: &[Value], expected: Result<bool, RequestError>) {
        let start = [begin(0, &json!({ "type": "text", "text": "a" }))];
        let events: Vec<Value> = start.iter().chain(events).cloned().collect();
        assert_eq!(read(&events).0.map(|complete| complete.answer.is_cut), expected);
    }

    #[test]
    fn only_a_stop_or_the_reason_for_one_is_an_end() {
        ends(&end("end_turn"), Ok(false));
        ends(&end("max_tokens"), Ok(true));
        ends(&end("end_turn")[..1], Ok(false));
        ends(&[], Err(RequestError::malformed("the answer broke off")));
        ends(&end("refusal"), Err(RequestError::Refused { status: 200, why: "the model declines to answer this".into() }));
    }

    #[test]
    fn an_error_event_is_a_fault() {
        let error = |kind: &str| json!({ "type": "error", "error": { "type": kind, "message": "words" } });
        ends(&[error("overloaded_error")], Err(RequestError::transient(TransientKind::Busy, "529: words")));
        ends(&[error("api_error")], Err(RequestError::transient(TransientKind::Busy, "words")));
        ends(&[error("invalid_request_error")], Err(RequestError::Refused { status: 400, why: "words".into() }));
    }

    #[test]
    fn arguments_without_a_call_are_broken() {
        let stray = delta(7, &json!({ "type": "input_json_delta", "partial_json": "{" }));
        ends(&[stray], Err(RequestError::malformed("arguments of a call that has not begun")));
    }

    fn said(messages: Vec<ChatMessage>) -> Value {
        request_body(&RequestOptions::new("m", 8192), &Prompt { messages, ..Prompt::default() })["messages"].clone()
    }

    #[test]
    fn results_and_what_follows_are_one_message() {
        let result = |id: &str, is_error| CallResult { id: id.into(), text: "t".into(), is_error };
        let messages =
            said(vec![ChatMessage::Results(vec![result("a", false), result("b", true)]), ChatMessage::User("go on".into())]);
        assert_eq!(
            messages,
            json!([{ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "t" },
                { "type": "tool_result", "tool_use_id": "b", "content": "t", "is_error": true },
                { "type": "text", "text": "go on" },
            ] }])
        );
    }

    #[test]
    fn arguments_that_are_no_object_are_replayed_as_an_empty_one() {
        for arguments in ["{\"x\": ", "[1]", "null", "\"x\""] {
            let calls = vec![ModelCall { id: "a".into(), name: "read".into(), arguments: arguments.into() }];
            let messages = said(vec![ChatMessage::Assistant { text: String::new(), calls, reasoning: None }]);
            assert_eq!(
                messages[0]["content"],
                json!([{ "type": "tool_use", "id": "a", "name": "read", "input": {} }]),
                "{arguments}"
            );
        }
    }

    #[test]
    fn an_empty_answer_is_not_replayed() {
        let empty = ChatMessage::Assistant { text: " ".into(), calls: vec![], reasoning: None };
        let messages = said(vec![ChatMessage::User("a".into()), empty, ChatMessage::User("b".into())]);
        assert_eq!(
            messages,
            json!([{ "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }])
        );
    }

    #[test]
    fn what_stays_the_same_is_marked_for_the_cache() {
        let tool = super::super::ToolSpec { name: "read".into(), description: "reads".into(), schema: Map::new() };
        let prompt = |system: &str| Prompt { system: system.into(), tools: vec![tool.clone()], ..Prompt::default() };
        let with = request_body(&RequestOptions::new("m", 8192), &prompt("be good"));
        assert_eq!(with["system"], json!([{ "type": "text", "text": "be good", "cache_control": { "type": "ephemeral" } }]));
        assert_eq!(with["tools"][0].get("cache_control"), None);
        let without = request_body(&RequestOptions::new("m", 8192), &prompt(""));
        assert_eq!(without.get("system"), None);
        assert_eq!(without["tools"][0]["cache_control"], json!({ "type": "ephemeral" }));
    }
}
