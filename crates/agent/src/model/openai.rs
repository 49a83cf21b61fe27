//! The OpenAI chat completions protocol, with the deviations of the many servers that imitate it. Written by hand
//! because client libraries reject those deviations.

use serde_json::{Value, json};

use super::{
    ChatMessage, ModelCall, Prompt, StreamEvent, StreamListener, TokenUsage, ToolSpec,
    http_model::{AnswerProgress, AnswerReader, CompleteAnswer},
    partial_calls::PartialCall,
    reasoning::ReasoningItem,
    request_error::{RequestError, TransientKind},
    request_options::RequestOptions,
    sse,
    usage_count::{dollars, token_count},
};

pub(super) fn request_body(options: &RequestOptions, prompt: &Prompt) -> Value {
    let mut body = json!({ "model": options.model, "messages": messages(options, prompt), "stream": true });
    if let Some(limit) = options.max_output_tokens {
        body[options.chat_limit_field()] = limit.into();
    }
    if options.wants_usage {
        body["stream_options"] = json!({ "include_usage": true });
    }
    // Some servers reject an empty list.
    if !prompt.tools.is_empty() {
        body["tools"] = prompt.tools.iter().map(tool).collect();
    }
    if let Some(effort) = options.generation.effort {
        body["reasoning_effort"] = effort.word().into();
    }
    options.generation.add_sampling(&mut body);
    body
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "type": "function", "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema } })
}

fn messages(options: &RequestOptions, prompt: &Prompt) -> Vec<Value> {
    let system = (!prompt.system.is_empty()).then(|| json!({ "role": "system", "content": prompt.system }));
    system.into_iter().chain(prompt.messages.iter().flat_map(|known| message(options, known))).collect()
}

fn message(options: &RequestOptions, message: &ChatMessage) -> Vec<Value> {
    match message {
        ChatMessage::User(text) => vec![json!({ "role": "user", "content": text })],
        ChatMessage::Assistant { text, calls, reasoning } => {
            vec![assistant(options, text, calls, options.returned(reasoning.as_ref()))]
        }
        ChatMessage::Results(results) => {
            results.iter().map(|result| json!({ "role": "tool", "tool_call_id": result.id, "content": result.text })).collect()
        }
    }
}

/// The field in which servers send plain reasoning. They do not want it back unless they say so.
const THOUGHTS: &str = "reasoning_content";
/// The field in which routers send reasoning that a provider wants back.
const DETAILS: &str = "reasoning_details";
/// The field of a call in which Gemini sends a signature that it wants back.
const SIGNATURE: &str = "extra_content";

fn assistant(options: &RequestOptions, text: &str, calls: &[ModelCall], reasoning: &[ReasoningItem]) -> Value {
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        if text.is_empty() {
            message["content"] = Value::Null;
        }
        message["tool_calls"] = calls.iter().map(call).collect();
        if options.fills_signatures {
            // Google documents this value for calls that another model has made.
            message["tool_calls"][0][SIGNATURE] =
                json!({ "google": { "thought_signature": "skip_thought_signature_validator" } });
        }
    }
    for item in reasoning {
        let data = &item.data;
        if let Some(signature) = data.get(SIGNATURE).filter(|_| item.calls_before < calls.len()) {
            message["tool_calls"][item.calls_before][SIGNATURE] = signature.clone();
        }
        if let Some(details) = data.get(DETAILS) {
            message[DETAILS] = details.clone();
        }
        if let Some(thoughts) = data.get(THOUGHTS).filter(|_| options.returns_thoughts == Some(true)) {
            message[THOUGHTS] = thoughts.clone();
        }
    }
    message
}

fn call(call: &ModelCall) -> Value {
    json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": call.object_arguments() } })
}

/// Whether this is plain reasoning, which is sent back only to a server that asks for it.
pub(super) fn is_thought(item: &ReasoningItem) -> bool {
    item.data.get(THOUGHTS).is_some()
}

#[derive(Default)]
pub(super) struct OpenAiReader {
    text: String,
    calls: Vec<NumberedCall>,
    thoughts: String,
    details: Vec<Value>,
    usage: TokenUsage,
    /// Empty until the answer ends.
    finish_reason: String,
    content_bytes: usize,
    has_choice: bool,
    is_ended: bool,
}

/// A call with the number that some servers give it.
#[derive(Default)]
struct NumberedCall {
    index: Option<u64>,
    call: PartialCall,
    signature: Value,
}

impl AnswerReader for OpenAiReader {
    fn read_event(&mut self, event: &sse::SseEvent, hear: StreamListener<'_>) -> Result<AnswerProgress, RequestError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.is_ended = true;
            return Ok(AnswerProgress::Ended);
        }
        if !data.is_empty() {
            let chunk: Value = serde_json::from_str(data).map_err(|_| RequestError::malformed(format!("not JSON: {data}")))?;
            if event.name == "error" && chunk["error"].is_null() {
                return Err(RequestError::from_stream_error(&chunk));
            }
            self.read_chunk(&chunk, hear)?;
        }
        Ok(if self.finish_reason.is_empty() { AnswerProgress::Open } else { AnswerProgress::Whole })
    }

    fn read_whole(&mut self, body: &Value, hear: StreamListener<'_>) -> Result<(), RequestError> {
        self.is_ended = true;
        self.read_chunk(body, hear)
    }

    fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    fn cut(&mut self) {
        "length".clone_into(&mut self.finish_reason);
    }

    fn finish(self: Box<Self>) -> Result<CompleteAnswer, RequestError> {
        if !self.has_choice {
            return Err(RequestError::malformed("it contains no answer"));
        }
        match self.finish_reason.as_str() {
            "" if !self.is_ended => return Err(RequestError::malformed("the answer broke off")),
            "error" => {
                return Err(RequestError::transient(TransientKind::Busy, "the provider failed in the middle of the answer"));
            }
            "content_filter" => {
                return Err(RequestError::withheld("the provider's content filter withholds the answer"));
            }
            _ => {}
        }
        let is_cut = matches!(self.finish_reason.as_str(), "length" | "max_tokens" | "MAX_TOKENS" | "model_length");
        let reasoning = self.reasoning();
        let calls = self.calls.into_iter().map(|numbered| numbered.call).collect();
        CompleteAnswer::new(self.text, calls, reasoning, self.usage, is_cut)
    }
}

impl OpenAiReader {
    fn read_chunk(&mut self, chunk: &Value, hear: StreamListener<'_>) -> Result<(), RequestError> {
        let choice = &chunk["choices"][0];
        for error in [&chunk["error"], &choice["error"]] {
            if !error.is_null() {
                return Err(RequestError::from_stream_error(error));
            }
        }
        // Groq reports usage in a place of its own.
        for usage in [&chunk["usage"], &chunk["x_groq"]["usage"]] {
            if usage.is_object() {
                self.usage = usage_of(usage);
            }
        }
        if !choice.is_object() {
            return Ok(());
        }
        self.has_choice = true;
        // An answer that was not streamed has a `message` instead of a `delta`.
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        self.read_delta(delta, hear);
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            reason.clone_into(&mut self.finish_reason);
            self.calls.iter_mut().for_each(|numbered| numbered.call.announce(hear));
        }
        Ok(())
    }

    fn reasoning(&self) -> Vec<ReasoningItem> {
        let item = |calls_before: usize, name: &str, data: Value| ReasoningItem {
            text_before: 0,
            calls_before,
            data: json!({ (name): data }),
        };
        let thoughts = (!self.thoughts.is_empty()).then(|| item(0, THOUGHTS, self.thoughts.as_str().into()));
        let details = (!self.details.is_empty()).then(|| item(0, DETAILS, self.details.clone().into()));
        let signed = self.calls.iter().enumerate().filter(|(_, call)| !call.signature.is_null());
        let signatures = signed.map(|(at, call)| item(at, SIGNATURE, call.signature.clone()));
        thoughts.into_iter().chain(details).chain(signatures).collect()
    }

    fn read_delta(&mut self, delta: &Value, hear: StreamListener<'_>) {
        for part in [&delta["content"], &delta["refusal"]] {
            let text = text_of(part);
            if !text.is_empty() {
                hear(StreamEvent::Text(&text));
                self.content_bytes += text.len();
                self.text.push_str(&text);
            }
        }
        // Servers send the same reasoning in two or three fields.
        let (thoughts, reasoning) = (text_of(&delta[THOUGHTS]), text_of(&delta["reasoning"]));
        let details = delta[DETAILS].as_array().into_iter().flatten();
        let detailed = details.map(|detail| self.add_detail(detail)).sum();
        self.content_bytes += thoughts.len().max(reasoning.len()).max(detailed);
        self.thoughts.push_str(&thoughts);
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.read_call(call, hear);
        }
    }

    fn read_call(&mut self, delta: &Value, hear: StreamListener<'_>) {
        let (index, id) = (delta["index"].as_u64(), delta["id"].as_str().unwrap_or_default());
        let name = delta["function"]["name"].as_str().unwrap_or_default();
        let at = self.find_call(index, id, name).unwrap_or_else(|| {
            self.calls.push(NumberedCall { index, ..NumberedCall::default() });
            self.calls.len() - 1
        });
        let NumberedCall { call: partial, signature, .. } = &mut self.calls[at];
        if partial.id.is_empty() {
            id.clone_into(&mut partial.id);
        }
        if partial.arguments.is_empty() {
            add_name(&mut partial.name, name);
        }
        if delta[SIGNATURE].is_object() {
            signature.clone_from(&delta[SIGNATURE]);
        }
        let known = partial.arguments.len();
        match &delta["function"]["arguments"] {
            Value::Null => {}
            Value::String(piece) => partial.arguments.push_str(piece),
            // Some servers send the arguments as an object.
            whole => partial.arguments.push_str(&whole.to_string()),
        }
        self.content_bytes += name.len() + partial.arguments.len() - known;
        if !partial.arguments.is_empty() {
            partial.announce(hear);
        }
    }

    /// Adds a detail or the next piece of one. Returns the length of its text in bytes.
    fn add_detail(&mut self, detail: &Value) -> usize {
        const PIECES: [&str; 4] = ["text", "summary", "data", "signature"];
        let length = PIECES.iter().filter_map(|name| detail[*name].as_str()).map(str::len).sum();
        let is_same =
            |known: &&mut Value| detail["index"].is_u64() && known["index"] == detail["index"] && known["type"] == detail["type"];
        let (Some(known), Some(fields)) = (self.details.last_mut().filter(is_same), detail.as_object()) else {
            self.details.push(detail.clone());
            return length;
        };
        for (name, value) in fields {
            match (&mut known[name.as_str()], value) {
                (Value::String(text), Value::String(piece)) if PIECES.contains(&name.as_str()) => text.push_str(piece),
                (_, Value::Null) => {}
                (known, value) => known.clone_from(value),
            }
        }
        length
    }

    /// The call that a piece belongs to; `None` if it begins a new one.
    fn find_call(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let at = match index {
            Some(_) => self.calls.iter().rposition(|known| known.index == index)?,
            None if !id.is_empty() => self.calls.iter().rposition(|known| known.call.id == id)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[at].call;
        // Calls that share an index differ in their ids, or a name arrives after the arguments of the previous call.
        let is_another = match (call.id.as_str(), id) {
            (known, new) if !known.is_empty() && !new.is_empty() => known != new,
            _ => !name.is_empty() && !call.name.is_empty() && (index.is_none() || !call.arguments.is_empty()),
        };
        (!is_another).then_some(at)
    }
}

/// Adds to the name of a call. Some servers send it in pieces. Others repeat all of it, or all of it so far, with each
/// piece of the arguments.
fn add_name(name: &mut String, piece: &str) {
    if piece.starts_with(name.as_str()) {
        piece.clone_into(name);
    } else {
        name.push_str(piece);
    }
}

/// The text of a string or of a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn usage_of(usage: &Value) -> TokenUsage {
    let cached = [&usage["prompt_tokens_details"]["cached_tokens"], &usage["prompt_cache_hit_tokens"]];
    TokenUsage {
        input: token_count(&usage["prompt_tokens"]),
        cached: cached.into_iter().map(token_count).max().unwrap_or_default(),
        output: token_count(&usage["completion_tokens"]),
        cost: dollars(&usage["cost"]),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::ModelAnswer, *};

    /// The answer to a stream of these chunks, and the events that were heard.
    fn read(chunks: &[Value]) -> (Result<ModelAnswer, RequestError>, Vec<String>) {
        let (mut reader, mut heard) = (Box::<OpenAiReader>::default(), Vec::new());
        let mut hear = |piece: StreamEvent<'_>| heard.push(format!("{piece:?}"));
        for chunk in chunks {
            let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
            if let Err(error) = reader.read_event(&sse::SseEvent { name: String::new(), data }, &mut hear) {
                return (Err(error), heard);
            }
        }
        (reader.finish().map(|complete| complete.answer), heard)
    }

    fn calls(pieces: &[Value]) -> Value {
        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": pieces } }] })
    }

    fn end(reason: &str) -> Value {
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
    }

    #[track_caller]
    fn check(chunks: &[Value], expected: &[(&str, &str, &str)]) {
        let chunks: Vec<Value> = chunks.iter().cloned().chain([end("tool_calls"), "[DONE]".into()]).collect();
        let answer = read(&chunks).0.unwrap();
        let found: Vec<_> =
            answer.calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect();
        let masked: Vec<_> =
            found.iter().map(|(id, name, arguments)| (if id.len() == 21 { "?" } else { id }, *name, *arguments)).collect();
        assert_eq!(masked, expected);
    }

    #[test]
    fn pieces_of_parallel_calls_are_separated_by_index() {
        check(
            &[
                calls(&[json!({ "index": 0, "id": "a", "type": "function", "function": { "name": "read", "arguments": "" } })]),
                calls(&[json!({ "index": 0, "function": { "arguments": "{\"x\"" } })]),
                calls(&[json!({ "index": 1, "id": "b", "type": "function", "function": { "name": "edit", "arguments": "" } })]),
                calls(&[
                    json!({ "index": 1, "function": { "arguments": "{}" } }),
                    json!({ "index": 0, "function": { "arguments": ":1}" } }),
                ]),
            ],
            &[("a", "read", "{\"x\":1}"), ("b", "edit", "{}")],
        );
    }

    #[test]
    fn whole_calls_need_no_index() {
        check(
            &[calls(&[
                json!({ "id": "a", "function": { "name": "read", "arguments": "{}" } }),
                json!({ "id": "b", "function": { "name": "read", "arguments": "{\"x\":1}" } }),
            ])],
            &[("a", "read", "{}"), ("b", "read", "{\"x\":1}")],
        );
    }

    #[test]
    fn whole_calls_need_neither_index_nor_id() {
        check(
            &[
                calls(&[json!({ "function": { "name": "read", "arguments": {} } })]),
                calls(&[json!({ "function": { "name": "read", "arguments": { "x": 1 } } })]),
            ],
            &[("?", "read", "{}"), ("?", "read", "{\"x\":1}")],
        );
    }

    #[test]
    fn whole_calls_may_share_an_index() {
        let by_id = [
            calls(&[json!({ "index": 0, "id": "a", "function": { "name": "read", "arguments": "{}" } })]),
            calls(&[json!({ "index": 0, "id": "b", "function": { "name": "read", "arguments": "{}" } })]),
        ];
        check(&by_id, &[("a", "read", "{}"), ("b", "read", "{}")]);
        let by_name = [
            calls(&[json!({ "index": 0, "id": "", "function": { "name": "read", "arguments": "{}" } })]),
            calls(&[json!({ "index": 0, "id": "", "function": { "name": "edit", "arguments": "{}" } })]),
        ];
        check(&by_name, &[("?", "read", "{}"), ("?", "edit", "{}")]);
    }

    #[test]
    fn an_id_and_a_name_may_be_repeated_with_each_piece() {
        let piece =
            |arguments: &str| calls(&[json!({ "index": 0, "id": "a", "function": { "name": "read", "arguments": arguments } })]);
        check(&[piece("{\"x\""), piece(":1}")], &[("a", "read", "{\"x\":1}")]);
    }

    #[test]
    fn pieces_without_an_index_go_on_with_the_last_call() {
        let begin = calls(&[json!({ "id": "a", "function": { "name": "read" } })]);
        let piece = |arguments: &str| calls(&[json!({ "function": { "arguments": arguments } })]);
        check(&[begin, piece("{\"x\""), piece(":1}")], &[("a", "read", "{\"x\":1}")]);
    }

    #[test]
    fn equal_ids_are_made_different_and_no_arguments_are_an_empty_object() {
        let piece = |index: u64| json!({ "index": index, "id": "a", "function": { "name": "read" } });
        check(&[calls(&[piece(0), piece(1)])], &[("a", "read", "{}"), ("?", "read", "{}")]);
    }

    #[test]
    fn a_call_without_a_name_is_broken() {
        let (answer, _) = read(&[calls(&[json!({ "index": 0, "id": "a", "function": { "arguments": "{}" } })]), end("stop")]);
        assert_eq!(answer, Err(RequestError::malformed("a call has no name")));
    }

    fn says(text: &str) -> Value {
        json!({ "choices": [{ "delta": { "content": text }, "finish_reason": null }] })
    }

    #[track_caller]
    fn ends(chunks: &[Value], expected: Result<(&str, bool), RequestError>) {
        let answer = read(chunks).0.map(|answer| (answer.text, answer.is_cut));
        assert_eq!(answer, expected.map(|(text, is_cut)| (text.to_owned(), is_cut)));
    }

    #[test]
    fn an_answer_ends_with_a_reason_or_with_done() {
        ends(&[says("a"), end("stop"), "[DONE]".into()], Ok(("a", false)));
        ends(&[says("a"), end("stop")], Ok(("a", false)));
        ends(&[says("a"), "[DONE]".into()], Ok(("a", false)));
        ends(&[says("a"), end("length")], Ok(("a", true)));
        ends(&[says("a"), end("")], Err(RequestError::malformed("the answer broke off")));
        ends(&[says("a")], Err(RequestError::malformed("the answer broke off")));
        ends(&["[DONE]".into()], Err(RequestError::malformed("it contains no answer")));
        ends(
            &[says("a"), end("error")],
            Err(RequestError::transient(TransientKind::Busy, "the provider failed in the middle of the answer")),
        );
    }

    #[test]
    fn a_filtered_answer_is_a_refusal() {
        assert!(matches!(read(&[says("a"), end("content_filter")]).0, Err(RequestError::Refused { status: 200, .. })));
    }

    #[test]
    fn reasoning_is_not_part_of_the_answer() {
        let thought = |name: &str| json!({ "choices": [{ "delta": { "content": null, name: "hm" } }] });
        let (answer, heard) = read(&[thought("reasoning"), thought("reasoning_content"), says("yes"), end("stop")]);
        assert_eq!(answer.unwrap().text, "yes");
        assert_eq!(heard, ["Text(\"yes\")"]);
    }

    #[test]
    fn usage_is_taken_from_wherever_it_is() {
        let usage = |usage: Value| read(&[says("a"), end("stop"), json!({ "choices": [], "usage": usage })]).0.unwrap().usage;
        assert_eq!(usage(Value::Null), TokenUsage::default());
        assert_eq!(
            usage(
                json!({ "prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": { "cached_tokens": 4 }, "cost": 0.5 })
            ),
            TokenUsage { input: 9, cached: 4, output: 2, cost: Some(0.5) }
        );
        assert_eq!(
            usage(json!({ "prompt_tokens": 9, "prompt_tokens_details": null })),
            TokenUsage { input: 9, ..TokenUsage::default() }
        );
    }

    #[test]
    fn an_error_in_the_stream_is_a_fault() {
        let busy = json!({ "error": { "message": "down", "code": 502 }, "choices": [{ "delta": {}, "finish_reason": "error" }] });
        assert_eq!(read(&[says("a"), busy]).0, Err(RequestError::transient(TransientKind::Busy, "502: down")));
        assert_eq!(read(&[json!({ "error": null }), says("a"), end("stop")]).0.unwrap().text, "a");
    }
}
