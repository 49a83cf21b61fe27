//! OpenAI's Responses protocol, without the server's memory: each request has the whole prompt, and reasoning comes and
//! goes encrypted.

use serde_json::{Value, json};

use super::{
    ChatMessage, Prompt, StreamEvent, StreamListener, TokenUsage, ToolSpec,
    http_model::{AnswerProgress, AnswerReader, CompleteAnswer},
    partial_calls::PartialCall,
    reasoning::{AnswerPart, ReasoningItem, in_order},
    request_error::{RequestError, TransientKind, error_in},
    request_options::RequestOptions,
    sse,
    usage_count::token_count,
};

pub(super) fn request_body(options: &RequestOptions, prompt: &Prompt) -> Value {
    let input: Vec<Value> = prompt.messages.iter().flat_map(|message| items(options, message)).collect();
    // Otherwise the provider keeps the conversation.
    let mut body = json!({ "model": options.model, "input": input, "stream": true, "store": false });
    if !prompt.system.is_empty() {
        body["instructions"] = prompt.system.as_str().into();
    }
    if let Some(limit) = options.max_output_tokens {
        body["max_output_tokens"] = limit.into();
    }
    if !prompt.tools.is_empty() {
        body["tools"] = prompt.tools.iter().map(tool).collect();
    }
    if let Some(effort) = options.generation.effort {
        body["reasoning"] = json!({ "effort": effort.word() });
    }
    if prompt.is_conversation && options.keeps_reasoning {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    options.generation.add_sampling(&mut body);
    body
}

/// Our schemas are not strict: strict ones have no optional arguments.
fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema, "strict": false,
    })
}

fn items(options: &RequestOptions, message: &ChatMessage) -> Vec<Value> {
    let said = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    match message {
        ChatMessage::User(text) => vec![said("user", "input_text", text)],
        ChatMessage::Assistant { text, calls, reasoning } => {
            let item = |part: AnswerPart<'_>| match part {
                AnswerPart::Reasoning(data) => data.clone(),
                AnswerPart::Text(text) => said("assistant", "output_text", text),
                AnswerPart::Call(call) => json!({
                    "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.object_arguments(),
                }),
            };
            in_order(text, calls, options.returned(reasoning.as_ref())).into_iter().map(item).collect()
        }
        ChatMessage::Results(results) => results
            .iter()
            .map(|result| json!({ "type": "function_call_output", "call_id": result.id, "output": result.text }))
            .collect(),
    }
}

#[derive(Default)]
pub(super) struct ResponsesReader {
    items: Vec<OutputItem>,
    usage: TokenUsage,
    content_bytes: usize,
    ending: Option<AnswerEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerEnd {
    Whole,
    /// At the longest length of an answer.
    Cut,
    Filtered,
}

struct OutputItem {
    index: Option<u64>,
    id: String,
    content: ItemContent,
}

enum ItemContent {
    Text(String),
    Call(PartialCall),
    /// As the provider wants it back; null until it is complete.
    Reasoning(Value),
    /// A kind that we did not ask for.
    Unknown,
}

impl AnswerReader for ResponsesReader {
    fn read_event(&mut self, event: &sse::SseEvent, hear: StreamListener<'_>) -> Result<AnswerProgress, RequestError> {
        let data: Value =
            serde_json::from_str(&event.data).map_err(|_| RequestError::malformed(format!("not JSON: {}", event.data)))?;
        match data["type"].as_str().unwrap_or(&event.name) {
            "response.output_item.added" => {
                let at = self.add(&data, &data["item"]);
                if let ItemContent::Call(call) = &mut self.items[at].content {
                    call.announce(hear);
                }
            }
            "response.output_item.done" => self.complete_item(&data, hear),
            "response.output_text.delta" | "response.refusal.delta" => self.add_text(&data, hear),
            "response.function_call_arguments.delta" => self.add_arguments(&data)?,
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.content_bytes += data["delta"].as_str().map_or(0, str::len);
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                self.end(&data["response"], hear)?;
                return Ok(AnswerProgress::Ended);
            }
            "response.failed" | "response.cancelled" => return Err(failure(&data["response"]["error"])),
            "error" => return Err(RequestError::from_stream_error(error_in(&data))),
            // Beginnings and ends of parts, and future events. What has an error is one, whatever it is called.
            _ if !data["error"].is_null() => return Err(RequestError::from_stream_error(&data["error"])),
            _ => {}
        }
        Ok(AnswerProgress::Open)
    }

    fn read_whole(&mut self, body: &Value, hear: StreamListener<'_>) -> Result<(), RequestError> {
        if body["status"] == "failed" || !body["error"].is_null() {
            return Err(failure(&body["error"]));
        }
        if !body["output"].is_array() {
            return Err(RequestError::malformed("it contains no answer"));
        }
        self.end(body, hear)
    }

    fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    fn cut(&mut self) {
        self.ending = Some(AnswerEnd::Cut);
    }

    fn finish(self: Box<Self>) -> Result<CompleteAnswer, RequestError> {
        let is_cut = match self.ending {
            None => return Err(RequestError::malformed("the answer broke off")),
            Some(AnswerEnd::Filtered) => {
                return Err(RequestError::withheld("the provider's content filter withholds the answer"));
            }
            Some(ending) => ending == AnswerEnd::Cut,
        };
        let (mut text, mut partials, mut items) = (String::new(), Vec::new(), Vec::new());
        for item in self.items {
            match item.content {
                ItemContent::Text(part) => text.push_str(&part),
                ItemContent::Call(call) => partials.push(call),
                ItemContent::Reasoning(data) if is_returnable(&data) => {
                    items.push(ReasoningItem { text_before: text.len(), calls_before: partials.len(), data });
                }
                ItemContent::Reasoning(_) | ItemContent::Unknown => {}
            }
        }
        CompleteAnswer::new(text, partials, items, self.usage, is_cut)
    }
}

/// Without its content, the provider would look for an item that it has not kept.
fn is_returnable(reasoning: &Value) -> bool {
    let has_content = |name: &str| reasoning[name].as_array().is_some_and(|parts| !parts.is_empty());
    reasoning["encrypted_content"].as_str().is_some_and(|content| !content.is_empty()) || has_content("content")
}

fn failure(error: &Value) -> RequestError {
    if error.is_null() {
        return RequestError::transient(TransientKind::Busy, "the provider failed in the middle of the answer");
    }
    RequestError::from_stream_error(error)
}

impl ResponsesReader {
    /// The item that an event is about: by its number, else by its id, else the last one.
    fn find(&self, event: &Value) -> Option<usize> {
        let (index, id) = (event["output_index"].as_u64(), event["item_id"].as_str().or_else(|| event["item"]["id"].as_str()));
        if index.is_some() {
            return self.items.iter().rposition(|item| item.index == index);
        }
        match id.filter(|id| !id.is_empty()) {
            Some(id) => self.items.iter().rposition(|item| item.id == id),
            None => self.items.len().checked_sub(1),
        }
    }

    fn find_or_add(&mut self, event: &Value, item: &Value) -> usize {
        let is_kind = |content: &ItemContent| match item["type"].as_str() {
            Some("message") => matches!(content, ItemContent::Text(_)),
            Some("function_call") => matches!(content, ItemContent::Call(_)),
            Some("reasoning") => matches!(content, ItemContent::Reasoning(_)),
            _ => true,
        };
        // Of a server that counts wrongly, items of different kinds are different items.
        self.find(event).filter(|at| is_kind(&self.items[*at].content)).unwrap_or_else(|| self.add(event, item))
    }

    fn add(&mut self, event: &Value, item: &Value) -> usize {
        let field = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let content = match item["type"].as_str().unwrap_or_default() {
            "message" => ItemContent::Text(String::new()),
            "reasoning" => ItemContent::Reasoning(Value::Null),
            "function_call" => {
                let id = Some(field("call_id")).filter(|id| !id.is_empty()).unwrap_or_else(|| field("id"));
                self.content_bytes += field("name").len();
                ItemContent::Call(PartialCall::new(id, field("name")))
            }
            _ => ItemContent::Unknown,
        };
        let id = event["item_id"].as_str().map_or_else(|| field("id"), str::to_owned);
        self.items.push(OutputItem { index: event["output_index"].as_u64(), id, content });
        self.items.len() - 1
    }

    fn add_text(&mut self, event: &Value, hear: StreamListener<'_>) {
        let at = self.find_or_add(event, &json!({ "type": "message" }));
        let piece = event["delta"].as_str().unwrap_or_default();
        if let (ItemContent::Text(text), false) = (&mut self.items[at].content, piece.is_empty()) {
            self.content_bytes += piece.len();
            text.push_str(piece);
            hear(StreamEvent::Text(piece));
        }
    }

    fn add_arguments(&mut self, event: &Value) -> Result<(), RequestError> {
        let piece = event["delta"].as_str().unwrap_or_default();
        let item = self.find(event).map(|at| &mut self.items[at].content);
        let Some(ItemContent::Call(call)) = item else {
            return Err(RequestError::malformed("arguments of a call that has not begun"));
        };
        call.arguments.push_str(piece);
        self.content_bytes += piece.len();
        Ok(())
    }

    /// Takes what the whole item has beyond its pieces. Some servers send no pieces.
    fn complete_item(&mut self, event: &Value, hear: StreamListener<'_>) {
        let item = &event["item"];
        let at = self.find_or_add(event, item);
        match &mut self.items[at].content {
            ItemContent::Text(text) => {
                let complete = text_of(item);
                if let Some(rest) = complete.strip_prefix(text.as_str()).filter(|rest| !rest.is_empty()) {
                    self.content_bytes += rest.len();
                    hear(StreamEvent::Text(rest));
                    text.push_str(rest);
                }
            }
            ItemContent::Call(call) => {
                let known = call.name.len() + call.arguments.len();
                for (name, field) in [("name", &mut call.name), ("arguments", &mut call.arguments)] {
                    match &item[name] {
                        Value::String(whole) if !whole.is_empty() => whole.clone_into(field),
                        Value::Object(whole) if field.is_empty() => *field = Value::Object(whole.clone()).to_string(),
                        _ => {}
                    }
                }
                self.content_bytes += (call.name.len() + call.arguments.len()).saturating_sub(known);
                call.announce(hear);
            }
            ItemContent::Reasoning(data) => {
                *data = item.clone();
                // It says how far the item has come, and is refused in a request.
                data.as_object_mut().map(|fields| fields.remove("status"));
            }
            ItemContent::Unknown => {}
        }
    }

    fn end(&mut self, response: &Value, hear: StreamListener<'_>) -> Result<(), RequestError> {
        if response["status"] == "failed" {
            return Err(failure(&response["error"]));
        }
        if self.items.is_empty() {
            for (index, item) in (0_u64..).zip(response["output"].as_array().into_iter().flatten()) {
                self.complete_item(&json!({ "output_index": index, "item": item }), hear);
            }
        }
        let usage = &response["usage"];
        self.usage = TokenUsage {
            input: token_count(&usage["input_tokens"]),
            cached: token_count(&usage["input_tokens_details"]["cached_tokens"]),
            output: token_count(&usage["output_tokens"]),
            cost: None,
        };
        self.ending = Some(match response["incomplete_details"]["reason"].as_str() {
            Some("content_filter") => AnswerEnd::Filtered,
            Some(_) => AnswerEnd::Cut,
            None if response["status"] == "incomplete" => AnswerEnd::Cut,
            None => AnswerEnd::Whole,
        });
        Ok(())
    }
}

/// The text of a message, refusals included.
fn text_of(message: &Value) -> String {
    let parts = message["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::ModelAnswer, *};

    fn read(events: &[Value]) -> (Result<ModelAnswer, RequestError>, Vec<String>) {
        let (mut reader, mut heard) = (Box::<ResponsesReader>::default(), Vec::new());
        let mut hear = |piece: StreamEvent<'_>| heard.push(format!("{piece:?}"));
        for event in events {
            let event = sse::SseEvent { name: String::new(), data: event.to_string() };
            if let Err(error) = reader.read_event(&event, &mut hear) {
                return (Err(error), heard);
            }
        }
        (reader.finish().map(|complete| complete.answer), heard)
    }

    fn event(kind: &str, index: u64, fields: &Value) -> Value {
        let mut event = json!({ "type": format!("response.{kind}"), "output_index": index });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        event
    }

    fn completed() -> Value {
        json!({ "type": "response.completed", "response": { "status": "completed", "usage": {
            "input_tokens": 135, "input_tokens_details": { "cached_tokens": 100 }, "output_tokens": 20,
        } } })
    }

    fn found(answer: &ModelAnswer) -> Vec<(&str, &str, &str)> {
        answer.calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect()
    }

    #[test]
    fn text_calls_and_reasoning_come_in_items() {
        let reasoning =
            json!({ "type": "reasoning", "id": "rs_1", "status": "completed", "summary": [], "encrypted_content": "xyz" });
        let call = |arguments: &str| json!({ "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": arguments });
        let events = [
            json!({ "type": "response.created", "response": { "status": "in_progress", "output": [] } }),
            event("output_item.added", 0, &json!({ "item": { "type": "reasoning", "id": "rs_1", "summary": [] } })),
            event("output_item.done", 0, &json!({ "item": reasoning })),
            event("output_item.added", 1, &json!({ "item": { "type": "message", "id": "msg_1", "content": [] } })),
            event("output_text.delta", 1, &json!({ "delta": "I " })),
            event("output_text.delta", 1, &json!({ "delta": "read" })),
            event(
                "output_item.done",
                1,
                &json!({ "item": { "type": "message", "content": [{ "type": "output_text", "text": "I read" }] } }),
            ),
            event("output_item.added", 2, &json!({ "item": call("") })),
            event("function_call_arguments.delta", 2, &json!({ "delta": "{\"path\": " })),
            event("function_call_arguments.delta", 2, &json!({ "delta": "\"x\"}" })),
            event("function_call_arguments.done", 2, &json!({ "arguments": "{\"path\": \"x\"}" })),
            event("output_item.done", 2, &json!({ "item": call("{\"path\": \"x\"}") })),
            completed(),
        ];
        let (answer, heard) = read(&events);
        let answer = answer.unwrap();
        assert_eq!((answer.text.as_str(), answer.is_cut), ("I read", false));
        assert_eq!(found(&answer), [("c1", "read", "{\"path\": \"x\"}")]);
        assert_eq!(answer.usage, TokenUsage { input: 135, cached: 100, output: 20, cost: None });
        assert_eq!(heard, ["Text(\"I \")", "Text(\"read\")", "Calling(\"read\")"]);
        let data = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz" });
        assert_eq!(answer.reasoning.unwrap().items, [ReasoningItem { text_before: 0, calls_before: 0, data }]);
    }

    #[test]
    fn an_answer_may_come_without_its_pieces() {
        let message = json!({ "type": "message", "content": [{ "type": "output_text", "text": "hi" }] });
        let call = json!({ "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}" });
        let items = [
            event("output_item.done", 0, &json!({ "item": message })),
            event("output_item.done", 1, &json!({ "item": call })),
            completed(),
        ];
        let last = json!({ "type": "response.completed", "response": { "output": [message, call] } });
        for events in [&items[..], &[last]] {
            let (answer, heard) = read(events);
            let answer = answer.unwrap();
            assert_eq!((answer.text.as_str(), found(&answer)), ("hi", vec![("c1", "read", "{}")]));
            assert_eq!(heard, ["Text(\"hi\")", "Calling(\"read\")"]);
        }
    }

    #[test]
    fn an_answer_may_come_without_numbers() {
        let events = [
            json!({ "type": "response.output_item.added", "item": { "type": "function_call", "id": "f1", "call_id": "a", "name": "read" } }),
            json!({ "type": "response.output_item.added", "item": { "type": "function_call", "id": "f2", "call_id": "a", "name": "edit" } }),
            json!({ "type": "response.function_call_arguments.delta", "item_id": "f1", "delta": "{\"x\":1}" }),
            json!({ "type": "response.function_call_arguments.delta", "item_id": "f2", "delta": "{\"y\":1}" }),
            json!({ "type": "response.output_text.delta", "item_id": "m1", "delta": "hi" }),
            completed(),
        ];
        let answer = read(&events).0.unwrap();
        let calls: Vec<_> = answer.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!((answer.text.as_str(), &calls[..]), ("hi", &[("read", "{\"x\":1}"), ("edit", "{\"y\":1}")][..]));
        assert_ne!(answer.calls[0].id, answer.calls[1].id, "equal ids are made different");
    }

    #[track_caller]
    fn ends(end: Value, expected: Result<bool, RequestError>) {
        let text = event("output_text.delta", 0, &json!({ "delta": "a" }));
        assert_eq!(read(&[text, end]).0.map(|answer| answer.is_cut), expected);
    }

    #[test]
    fn only_the_end_of_the_response_is_an_end() {
        ends(completed(), Ok(false));
        ends(json!({ "type": "response.completed" }), Ok(false));
        let incomplete = |reason: Value| json!({ "type": "response.incomplete", "response": { "status": "incomplete", "incomplete_details": reason } });
        ends(incomplete(json!({ "reason": "max_output_tokens" })), Ok(true));
        ends(incomplete(json!({ "reason": "something new" })), Ok(true));
        ends(incomplete(Value::Null), Ok(true));
        let why = "the provider's content filter withholds the answer".to_owned();
        ends(incomplete(json!({ "reason": "content_filter" })), Err(RequestError::Refused { status: 200, why }));
        ends(event("output_text.done", 0, &json!({ "text": "a" })), Err(RequestError::malformed("the answer broke off")));
        ends(json!({ "type": "response.invented", "delta": 7 }), Err(RequestError::malformed("the answer broke off")));
    }

    #[test]
    fn a_failure_passes_unless_it_is_about_the_request() {
        let failed = |error: Value| json!({ "type": "response.failed", "response": { "status": "failed", "error": error } });
        let busy = |why: &str| Err(RequestError::transient(TransientKind::Busy, why));
        ends(failed(json!({ "code": "server_error", "message": "oops" })), busy("oops"));
        ends(failed(json!({ "code": "rate_limit_exceeded", "message": "slow" })), busy("429: slow"));
        ends(failed(Value::Null), busy("the provider failed in the middle of the answer"));
        ends(json!({ "type": "error", "code": "server_error", "message": "oops", "param": null }), busy("oops"));
        let refused = |why: &str| Err(RequestError::Refused { status: 400, why: why.into() });
        ends(failed(json!({ "code": "context_length_exceeded", "message": "long" })), refused("long"));
        ends(failed(json!({ "code": "invalid_prompt", "message": "no" })), refused("no"));
        ends(json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no" } }), refused("no"));
    }

    #[test]
    fn arguments_without_a_call_are_broken() {
        let stray = event("function_call_arguments.delta", 7, &json!({ "delta": "{" }));
        ends(stray, Err(RequestError::malformed("arguments of a call that has not begun")));
    }

    #[test]
    fn reasoning_that_the_provider_could_not_find_again_is_dropped() {
        for reasoning in
            [json!({ "type": "reasoning", "id": "rs_1", "summary": [] }), json!({ "type": "reasoning", "encrypted_content": "" })]
        {
            let (answer, _) = read(&[event("output_item.done", 0, &json!({ "item": reasoning })), completed()]);
            assert_eq!(answer.unwrap().reasoning, None);
        }
    }
}
