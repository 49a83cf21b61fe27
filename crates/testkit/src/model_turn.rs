//! The answers of a test model, and their form on the wire in each protocol.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::model_server::Request;

/// A protocol that the test model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// OpenAI's chat completions.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's responses.
    Responses,
}

/// The answer to one request.
#[derive(Debug, Clone)]
pub struct Turn {
    play: Play,
    headers: Vec<(String, String)>,
    shape: Shape,
    fate: Fate,
    keep_alive: Option<Vec<u8>>,
    delivery: Delivery,
    rewrite: Option<Rewrite>,
}

/// Changes the events of an answer before they are sent.
#[derive(Clone)]
struct Rewrite(Arc<dyn Fn(WireEvents) -> WireEvents + Send + Sync>);

/// The events of an answer as they are sent, one by one.
type WireEvents = Vec<Vec<u8>>;

impl fmt::Debug for Rewrite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Rewrite")
    }
}

/// How a body is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub framing: Framing,
    /// A pause between two pieces.
    pub pause: Duration,
}

/// What surrounds a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Framing {
    #[default]
    Chunked,
    /// HTTP/1.0: the body ends with the connection.
    Close,
    /// The body is the whole response, with its head.
    None,
}

#[derive(Clone)]
enum Play {
    Answer(Script),
    Status { status: u16, body: Option<String> },
    Body(Vec<u8>),
    Nothing,
    Made(Arc<dyn Fn(&Request) -> Turn + Send + Sync>),
}

impl fmt::Debug for Play {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(script) => write!(formatter, "{script:?}"),
            Self::Status { status, .. } => write!(formatter, "{status}"),
            Self::Body(body) => write!(formatter, "{} bytes", body.len()),
            Self::Nothing => formatter.write_str("nothing"),
            Self::Made(_) => formatter.write_str("made when asked"),
        }
    }
}

/// The content of an answer.
#[derive(Debug, Clone, Default)]
struct Script {
    thought: String,
    text: String,
    /// Names, and arguments as text.
    calls: Vec<(String, String)>,
    is_cut: bool,
}

/// How an answer is split into events and writes.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    is_plain: bool,
    /// Whether each call is sent in one event, as local servers do it.
    has_whole_calls: bool,
    has_no_ids: bool,
    usage: Option<(u64, u64, u64)>,
    has_no_usage: bool,
    /// The number of bytes per write; `None` writes one event at a time.
    bytes: Option<usize>,
}

/// What happens to an answer in transit.
#[derive(Debug, Clone, Default)]
enum Fate {
    /// The whole answer arrives.
    #[default]
    Whole,
    /// Half of it arrives, then this follows.
    Half(Ending),
    /// Half of it arrives, then an error of this kind with this message.
    Error(String, String),
    /// This many bytes arrive, and then the connection closes.
    Bytes(usize),
}

/// How the server ends an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By the rules of HTTP.
    Proper,
    /// By closing the connection.
    Closed,
    /// The answer never arrives.
    Hangs,
}

/// The data on the wire.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The HTTP status; `None` if there is no answer.
    pub status: Option<u16>,
    pub headers: Vec<(String, String)>,
    /// The body in the pieces in which it is sent.
    pub pieces: Vec<Vec<u8>>,
    pub ending: Ending,
    /// Bytes that are sent repeatedly while the server hangs.
    pub keep_alive: Option<Vec<u8>>,
    pub delivery: Delivery,
}

impl Turn {
    fn of(play: Play) -> Self {
        Self {
            play,
            headers: Vec::new(),
            shape: Shape::default(),
            fate: Fate::Whole,
            keep_alive: None,
            delivery: Delivery::default(),
            rewrite: None,
        }
    }

    /// An answer with this text.
    pub fn text(text: &str) -> Self {
        Self::of(Play::Answer(Script { text: text.to_owned(), ..Script::default() }))
    }

    /// An answer with these parallel calls.
    pub fn calls(calls: &[(&str, Value)]) -> Self {
        let calls = calls.iter().map(|(name, arguments)| ((*name).to_owned(), arguments.to_string())).collect();
        Self::of(Play::Answer(Script { calls, ..Script::default() }))
    }

    /// An answer with one call.
    pub fn call(name: &str, arguments: Value) -> Self {
        Self::calls(&[(name, arguments)])
    }

    /// An answer with a call whose arguments are this text, which need not be JSON.
    pub fn raw_call(name: &str, arguments: &str) -> Self {
        Self::of(Play::Answer(Script { calls: vec![(name.to_owned(), arguments.to_owned())], ..Script::default() }))
    }

    /// A response with this status.
    pub fn status(status: u16) -> Self {
        Self::of(Play::Status { status, body: None })
    }

    /// A response with status 200 and these bytes.
    pub fn body(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(Play::Body(bytes.into()))
    }

    /// These bytes instead of a response, head included.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        let mut turn = Self { fate: Fate::Half(Ending::Closed), ..Self::body(bytes) };
        turn.delivery.framing = Framing::None;
        turn
    }

    /// No response; the connection stays open.
    pub fn hang() -> Self {
        Self { fate: Fate::Half(Ending::Hangs), ..Self::of(Play::Nothing) }
    }

    /// No response; the connection closes.
    pub fn close() -> Self {
        Self { fate: Fate::Half(Ending::Closed), ..Self::of(Play::Nothing) }
    }

    /// A turn that is created when the request arrives, for arguments that depend on it.
    pub fn made(make: impl Fn(&Request) -> Turn + Send + Sync + 'static) -> Self {
        Self::of(Play::Made(Arc::new(make)))
    }

    /// Adds a text before the calls.
    pub fn with_text(mut self, text: &str) -> Self {
        self.script().text = text.to_owned();
        self
    }

    /// Adds reasoning before the text.
    pub fn with_thought(mut self, thought: &str) -> Self {
        self.script().thought = thought.to_owned();
        self
    }

    /// Sets the reported tokens of the prompt, the cache and the answer. The defaults are 100, 0 and 10.
    pub fn with_usage(mut self, input: u64, cached: u64, output: u64) -> Self {
        self.shape.usage = Some((input, cached, output));
        self
    }

    /// Leaves out the token counts.
    pub fn without_usage(mut self) -> Self {
        self.shape.has_no_usage = true;
        self
    }

    /// Omits the ids of the calls (chat completions only).
    pub fn without_ids(mut self) -> Self {
        self.shape.has_no_ids = true;
        self
    }

    /// Marks the answer as truncated by its length.
    pub fn cut(mut self) -> Self {
        self.script().is_cut = true;
        self
    }

    /// Sends each call in one event.
    pub fn with_whole_calls(mut self) -> Self {
        self.shape.has_whole_calls = true;
        self
    }

    /// Sends one JSON object instead of a stream.
    pub fn plain(mut self) -> Self {
        self.shape.is_plain = true;
        self
    }

    /// Sends this many bytes at a time, regardless of event boundaries.
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.shape.bytes = Some(bytes.max(1));
        self
    }

    /// Breaks the connection halfway.
    pub fn broken(mut self) -> Self {
        self.fate = Fate::Half(Ending::Closed);
        self
    }

    /// Ends the stream halfway as if it were complete.
    pub fn unfinished(mut self) -> Self {
        self.fate = Fate::Half(Ending::Proper);
        self
    }

    /// Breaks the connection after this many bytes of the body.
    pub fn broken_at(mut self, bytes: usize) -> Self {
        self.fate = Fate::Bytes(bytes);
        self
    }

    /// Sends the answer over HTTP/1.0, without a length.
    pub fn over_http_1_0(mut self) -> Self {
        self.delivery.framing = Framing::Close;
        self
    }

    /// Waits between two pieces.
    pub fn dripping(mut self, pause: Duration) -> Self {
        self.delivery.pause = pause;
        self
    }

    /// Changes the events of the answer before they are sent.
    pub fn rewritten(mut self, rewrite: impl Fn(Vec<Vec<u8>>) -> Vec<Vec<u8>> + Send + Sync + 'static) -> Self {
        self.rewrite = Some(Rewrite(Arc::new(rewrite)));
        self
    }

    /// Sends nothing more after half of the answer.
    pub fn stalled(mut self) -> Self {
        self.fate = Fate::Half(Ending::Hangs);
        self
    }

    /// Sends only this, repeatedly, after half of the answer.
    pub fn kept_alive(mut self, with: impl Into<Vec<u8>>) -> Self {
        self.keep_alive = Some(with.into());
        self.stalled()
    }

    /// Sends an error event halfway, such as `overloaded_error`.
    pub fn failing(mut self, kind: &str, words: &str) -> Self {
        self.fate = Fate::Error(kind.to_owned(), words.to_owned());
        self
    }

    /// Adds a header to the answer.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the error message of a status.
    pub fn saying(self, words: &str) -> Self {
        let body = json!({ "type": "error", "error": { "type": "scripted_error", "message": words } }).to_string();
        self.with_body(&body)
    }

    /// Sets the body of a status.
    pub fn with_body(mut self, text: &str) -> Self {
        match &mut self.play {
            Play::Status { body, .. } => *body = Some(text.to_owned()),
            play => panic!("{play:?} is no status"),
        }
        self
    }

    #[track_caller]
    fn script(&mut self) -> &mut Script {
        match &mut self.play {
            Play::Answer(script) => script,
            play => panic!("{play:?} is no answer"),
        }
    }

    /// The response to this request, which is the `number`th.
    pub(crate) fn reply(&self, request: &Request, number: usize) -> Reply {
        match &self.play {
            Play::Made(make) => make(request).reply(request, number),
            Play::Nothing => Reply { status: None, ..self.wrapped(0, Vec::new(), "") },
            Play::Body(body) => self.wrapped(200, vec![body.clone()], "text/event-stream"),
            Play::Status { status, body } => {
                let body =
                    body.clone().unwrap_or_else(|| json!({ "error": { "message": format!("scripted {status}") } }).to_string());
                self.wrapped(*status, vec![body.into_bytes()], "application/json")
            }
            Play::Answer(script) => {
                let wire = Wire { script, shape: &self.shape, speaks: request.speaks(), number };
                if self.shape.is_plain {
                    return self.wrapped(200, vec![wire.plain().to_string().into_bytes()], "application/json");
                }
                self.wrapped(200, self.stream(&wire), "text/event-stream")
            }
        }
    }

    fn stream(&self, wire: &Wire<'_>) -> Vec<Vec<u8>> {
        let mut events = wire.events();
        if let Some(Rewrite(rewrite)) = &self.rewrite {
            events = rewrite(events);
        }
        match &self.fate {
            Fate::Whole | Fate::Bytes(_) => {}
            Fate::Half(_) => events.truncate(events.len() / 2),
            Fate::Error(kind, words) => {
                events.truncate(events.len() / 2);
                events.push(wire.error(kind, words));
            }
        }
        events
    }

    fn wrapped(&self, status: u16, pieces: Vec<Vec<u8>>, kind: &str) -> Reply {
        let mut headers = self.headers.clone();
        if !headers.iter().any(|(name, _)| name == "content-type") {
            headers.push(("content-type".to_owned(), kind.to_owned()));
        }
        let pieces = match (self.shape.bytes, &self.fate) {
            (Some(bytes), _) => pieces.concat().chunks(bytes).map(<[u8]>::to_vec).collect(),
            (None, Fate::Bytes(bytes)) => vec![pieces.concat().into_iter().take(*bytes).collect()],
            (None, _) => pieces,
        };
        let (keep_alive, delivery) = (self.keep_alive.clone(), self.delivery.clone());
        Reply { status: Some(status), headers, pieces, ending: self.ending(), keep_alive, delivery }
    }

    fn ending(&self) -> Ending {
        match self.fate {
            Fate::Whole | Fate::Error(..) => Ending::Proper,
            Fate::Half(ending) => ending,
            Fate::Bytes(_) => Ending::Closed,
        }
    }
}

/// Writes an answer for the wire.
struct Wire<'a> {
    script: &'a Script,
    shape: &'a Shape,
    speaks: Speaks,
    number: usize,
}

/// The number of characters of text or arguments in an event.
const CHARACTERS: usize = 7;

impl Wire<'_> {
    fn events(&self) -> Vec<Vec<u8>> {
        match self.speaks {
            Speaks::OpenAi => self.chunks().iter().map(|data| event("", data)).chain([b"data: [DONE]\n\n".to_vec()]).collect(),
            Speaks::Anthropic | Speaks::Responses => {
                let events = if self.speaks == Speaks::Anthropic { self.messages() } else { self.responses() };
                events.iter().map(|data| event(data["type"].as_str().unwrap_or_default(), data)).collect()
            }
        }
    }

    fn error(&self, kind: &str, words: &str) -> Vec<u8> {
        let error = json!({ "type": kind, "message": words });
        match self.speaks {
            Speaks::OpenAi => event("", &json!({ "error": error })),
            Speaks::Anthropic => event("error", &json!({ "type": "error", "error": error })),
            Speaks::Responses => {
                let error = json!({ "code": kind, "message": words });
                event(
                    "response.failed",
                    &json!({ "type": "response.failed", "response": { "status": "failed", "error": error } }),
                )
            }
        }
    }

    fn plain(&self) -> Value {
        match self.speaks {
            Speaks::OpenAi => {
                let calls: Vec<Value> = (0..self.script.calls.len()).map(|at| self.tool_call(at)).collect();
                let mut message = json!({ "role": "assistant", "content": self.script.text });
                if !self.script.thought.is_empty() {
                    message["reasoning_content"] = self.script.thought.as_str().into();
                }
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                let choice = json!({ "index": 0, "message": message, "finish_reason": self.stop_reason() });
                json!({ "id": "scripted", "object": "chat.completion", "choices": [choice], "usage": self.usage() })
            }
            Speaks::Anthropic => {
                let mut blocks = Vec::new();
                if !self.script.text.is_empty() {
                    blocks.push(json!({ "type": "text", "text": self.script.text }));
                }
                blocks.extend((0..self.script.calls.len()).map(|at| self.tool_use(at, &self.script.calls[at].1)));
                if !self.script.thought.is_empty() {
                    let thinking = json!({ "type": "thinking", "thinking": self.script.thought, "signature": self.seal() });
                    blocks.insert(0, thinking);
                }
                let usage = self.usage();
                json!({ "type": "message", "role": "assistant", "content": blocks, "stop_reason": self.stop_reason(), "usage": usage })
            }
            Speaks::Responses => self.response(),
        }
    }

    /// The items of an answer in responses, each with its pieces.
    fn output(&self) -> Vec<(Value, Vec<Value>)> {
        let deltas = |kind: &str, text: &str| -> Vec<Value> {
            pieces(text).map(|piece| json!({ "type": format!("response.{kind}.delta"), "delta": piece })).collect()
        };
        let mut items = Vec::new();
        if !self.script.thought.is_empty() {
            let item = json!({
                "type": "reasoning", "id": format!("rs_{}", self.number), "status": "completed",
                "summary": [{ "type": "summary_text", "text": self.script.thought }],
                "encrypted_content": self.seal(),
            });
            items.push((item, deltas("reasoning_summary_text", &self.script.thought)));
        }
        if !self.script.text.is_empty() {
            let content = json!([{ "type": "output_text", "text": self.script.text }]);
            let item =
                json!({ "type": "message", "id": format!("msg_{}", self.number), "role": "assistant", "content": content });
            items.push((item, deltas("output_text", &self.script.text)));
        }
        for (at, (name, arguments)) in self.script.calls.iter().enumerate() {
            let mut item = json!({ "type": "function_call", "id": format!("fc_{}_{at}", self.number), "name": name, "arguments": arguments });
            if !self.shape.has_no_ids {
                item["call_id"] = self.id(at).into();
            }
            let pieces = if self.shape.has_whole_calls { Vec::new() } else { deltas("function_call_arguments", arguments) };
            items.push((item, pieces));
        }
        items
    }

    fn responses(&self) -> Vec<Value> {
        let mut events = vec![json!({ "type": "response.created", "response": { "status": "in_progress", "output": [] } })];
        for (index, (item, deltas)) in self.output().into_iter().enumerate() {
            let mut begun = item.clone();
            for name in ["arguments", "content", "summary", "encrypted_content"] {
                if let Some(value) = begun.get_mut(name) {
                    *value = if value.is_array() { json!([]) } else { json!("") };
                }
            }
            events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": begun }));
            events.extend(deltas.into_iter().map(|mut delta| {
                delta["output_index"] = index.into();
                delta["item_id"] = item["id"].clone();
                delta
            }));
            events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
        }
        let kind = if self.script.is_cut { "response.incomplete" } else { "response.completed" };
        events.push(json!({ "type": kind, "response": self.response() }));
        events
    }

    fn response(&self) -> Value {
        let output: Vec<Value> = self.output().into_iter().map(|(item, _)| item).collect();
        let details = if self.script.is_cut { json!({ "reason": "max_output_tokens" }) } else { Value::Null };
        json!({
            "object": "response", "status": self.stop_reason(), "incomplete_details": details, "error": null,
            "output": output, "usage": self.usage(),
        })
    }

    /// A stand-in for a signature, or for encrypted reasoning.
    fn seal(&self) -> String {
        format!("sealed-{}-{}", self.number, self.script.thought)
    }

    fn chunks(&self) -> Vec<Value> {
        let delta = |delta: Value| json!({ "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
        let mut chunks = vec![delta(json!({ "role": "assistant", "content": "" }))];
        chunks.extend(pieces(&self.script.thought).map(|piece| delta(json!({ "reasoning_content": piece }))));
        chunks.extend(pieces(&self.script.text).map(|piece| delta(json!({ "content": piece }))));
        for at in 0..self.script.calls.len() {
            let mut call = self.tool_call(at);
            if self.shape.has_whole_calls {
                chunks.push(delta(json!({ "tool_calls": [call] })));
                continue;
            }
            call["index"] = at.into();
            call["function"]["arguments"] = "".into();
            chunks.push(delta(json!({ "tool_calls": [call] })));
            let piece = |piece: String| delta(json!({ "tool_calls": [{ "index": at, "function": { "arguments": piece } }] }));
            chunks.extend(pieces(&self.script.calls[at].1).map(piece));
        }
        chunks.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": self.stop_reason() }] }));
        if !self.shape.has_no_usage {
            chunks.push(json!({ "choices": [], "usage": self.usage() }));
        }
        chunks
    }

    fn messages(&self) -> Vec<Value> {
        let message = json!({ "type": "message", "role": "assistant", "content": [], "usage": self.usage() });
        let mut events = vec![json!({ "type": "message_start", "message": message }), json!({ "type": "ping" })];
        let mut index = 0;
        let mut block = |begin: Value, deltas: Vec<Value>| {
            events.push(json!({ "type": "content_block_start", "index": index, "content_block": begin }));
            events
                .extend(deltas.into_iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })));
            events.push(json!({ "type": "content_block_stop", "index": index }));
            index += 1;
        };
        if !self.script.thought.is_empty() {
            let thinking = pieces(&self.script.thought).map(|piece| json!({ "type": "thinking_delta", "thinking": piece }));
            let signature = json!({ "type": "signature_delta", "signature": self.seal() });
            block(json!({ "type": "thinking", "thinking": "", "signature": "" }), thinking.chain([signature]).collect());
        }
        if !self.script.text.is_empty() {
            let deltas = pieces(&self.script.text).map(|piece| json!({ "type": "text_delta", "text": piece })).collect();
            block(json!({ "type": "text", "text": "" }), deltas);
        }
        for (at, (_, arguments)) in self.script.calls.iter().enumerate() {
            if self.shape.has_whole_calls {
                block(self.tool_use(at, arguments), Vec::new());
                continue;
            }
            let deltas = pieces(arguments).map(|piece| json!({ "type": "input_json_delta", "partial_json": piece })).collect();
            block(self.tool_use(at, "{}"), deltas);
        }
        let output = if self.shape.has_no_usage { Value::Null } else { json!({ "output_tokens": self.counts().2 }) };
        events.push(json!({ "type": "message_delta", "delta": { "stop_reason": self.stop_reason() }, "usage": output }));
        events.push(json!({ "type": "message_stop" }));
        events
    }

    fn tool_call(&self, at: usize) -> Value {
        let (name, arguments) = &self.script.calls[at];
        let mut call = json!({ "type": "function", "function": { "name": name, "arguments": arguments } });
        if !self.shape.has_no_ids {
            call["id"] = self.id(at).into();
        }
        if at == 0 && !self.script.thought.is_empty() {
            call["extra_content"] = json!({ "google": { "thought_signature": self.seal() } });
        }
        call
    }

    fn tool_use(&self, at: usize, arguments: &str) -> Value {
        let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        json!({ "type": "tool_use", "id": self.id(at), "name": self.script.calls[at].0, "input": input })
    }

    fn id(&self, at: usize) -> String {
        format!("call_{}_{at}", self.number)
    }

    fn stop_reason(&self) -> &'static str {
        match (self.speaks, self.script.is_cut, self.script.calls.is_empty()) {
            (Speaks::OpenAi, true, _) => "length",
            (Speaks::OpenAi, false, true) => "stop",
            (Speaks::OpenAi, false, false) => "tool_calls",
            (Speaks::Anthropic, true, _) => "max_tokens",
            (Speaks::Anthropic, false, true) => "end_turn",
            (Speaks::Anthropic, false, false) => "tool_use",
            (Speaks::Responses, true, _) => "incomplete",
            (Speaks::Responses, false, _) => "completed",
        }
    }

    fn counts(&self) -> (u64, u64, u64) {
        self.shape.usage.unwrap_or((100, 0, 10))
    }

    fn usage(&self) -> Value {
        let (input, cached, output) = self.counts();
        match self.speaks {
            _ if self.shape.has_no_usage => Value::Null,
            Speaks::OpenAi => json!({
                "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                "prompt_tokens_details": { "cached_tokens": cached },
            }),
            Speaks::Responses => json!({
                "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
                "input_tokens_details": { "cached_tokens": cached },
            }),
            Speaks::Anthropic => {
                json!({ "input_tokens": input - cached, "cache_read_input_tokens": cached, "output_tokens": output })
            }
        }
    }
}

fn event(name: &str, data: &Value) -> Vec<u8> {
    let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
    format!("{name}data: {data}\n\n").into_bytes()
}

fn pieces(text: &str) -> impl Iterator<Item = String> + '_ {
    let characters: Vec<char> = text.chars().collect();
    let count = characters.len().div_ceil(CHARACTERS);
    (0..count).map(move |at| characters[at * CHARACTERS..characters.len().min((at + 1) * CHARACTERS)].iter().collect())
}
