//! What a model of the tests answers, and how that looks on the wire in each protocol.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};

use crate::model_server::Request;

/// A protocol of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
}

/// What is answered to one request.
#[derive(Debug, Clone)]
pub struct Turn {
    play: Play,
    headers: Vec<(String, String)>,
    shape: Shape,
    fate: Fate,
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

/// An answer of a model.
#[derive(Debug, Clone, Default)]
struct Script {
    thought: String,
    text: String,
    /// Names, and arguments as they are written.
    calls: Vec<(String, String)>,
    is_cut: bool,
}

/// How an answer is cut into events and bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    is_plain: bool,
    /// Each call in one event, as local servers send them.
    has_whole_calls: bool,
    has_no_ids: bool,
    usage: Option<(u64, u64, u64)>,
    has_no_usage: bool,
    /// How many bytes are sent at a time; else an event.
    bytes: Option<usize>,
}

/// What becomes of an answer on its way.
#[derive(Debug, Clone, Default)]
enum Fate {
    /// It arrives.
    #[default]
    Whole,
    /// Half of it comes, then this.
    Half(Ending),
    /// Half of it comes, then an error of this kind, with these words.
    Error(String, String),
}

/// How the server ends an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As HTTP wants it.
    Proper,
    /// With the connection.
    Closed,
    /// Not at all.
    Hangs,
}

/// What goes over the wire.
#[derive(Debug)]
pub(crate) struct Reply {
    /// None if there is no answer.
    pub status: Option<u16>,
    pub headers: Vec<(String, String)>,
    /// The body as it is sent, piece by piece.
    pub pieces: Vec<Vec<u8>>,
    pub ending: Ending,
}

impl Turn {
    fn of(play: Play) -> Self {
        Self { play, headers: Vec::new(), shape: Shape::default(), fate: Fate::Whole }
    }

    /// The model says this.
    pub fn text(text: &str) -> Self {
        Self::of(Play::Answer(Script { text: text.to_owned(), ..Script::default() }))
    }

    /// It calls these tools, all at once.
    pub fn calls(calls: &[(&str, Value)]) -> Self {
        let calls = calls.iter().map(|(name, arguments)| ((*name).to_owned(), arguments.to_string())).collect();
        Self::of(Play::Answer(Script { calls, ..Script::default() }))
    }

    /// It calls a tool.
    pub fn call(name: &str, arguments: Value) -> Self {
        Self::calls(&[(name, arguments)])
    }

    /// It calls a tool with arguments as they are written here, JSON or not.
    pub fn raw_call(name: &str, arguments: &str) -> Self {
        Self::of(Play::Answer(Script { calls: vec![(name.to_owned(), arguments.to_owned())], ..Script::default() }))
    }

    /// The server answers with this status.
    pub fn status(status: u16) -> Self {
        Self::of(Play::Status { status, body: None })
    }

    /// Status 200 and these bytes, whatever they are.
    pub fn body(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(Play::Body(bytes.into()))
    }

    /// Nothing comes, and the connection stays.
    pub fn hang() -> Self {
        Self { fate: Fate::Half(Ending::Hangs), ..Self::of(Play::Nothing) }
    }

    /// Nothing comes, and the connection ends.
    pub fn close() -> Self {
        Self { fate: Fate::Half(Ending::Closed), ..Self::of(Play::Nothing) }
    }

    /// The turn is made when the request is there: for arguments that depend on what the model was told.
    pub fn made(make: impl Fn(&Request) -> Turn + Send + Sync + 'static) -> Self {
        Self::of(Play::Made(Arc::new(make)))
    }

    /// It says this before its calls.
    pub fn with_text(mut self, text: &str) -> Self {
        self.script().text = text.to_owned();
        self
    }

    /// It thinks this before it says anything.
    pub fn with_thought(mut self, thought: &str) -> Self {
        self.script().thought = thought.to_owned();
        self
    }

    /// The answer took so many tokens: of the prompt, of those from the cache, of the answer. Else 100, 0 and 10.
    pub fn with_usage(mut self, input: u64, cached: u64, output: u64) -> Self {
        self.shape.usage = Some((input, cached, output));
        self
    }

    /// What it took is not told.
    pub fn without_usage(mut self) -> Self {
        self.shape.has_no_usage = true;
        self
    }

    /// Its calls have no ids (chat completions only).
    pub fn without_ids(mut self) -> Self {
        self.shape.has_no_ids = true;
        self
    }

    /// The answer was cut because it got too long.
    pub fn cut(mut self) -> Self {
        self.script().is_cut = true;
        self
    }

    /// Each call comes in one event.
    pub fn with_whole_calls(mut self) -> Self {
        self.shape.has_whole_calls = true;
        self
    }

    /// As one JSON object, not as a stream.
    pub fn plain(mut self) -> Self {
        self.shape.is_plain = true;
        self
    }

    /// So many bytes are sent at a time, wherever that cuts.
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.shape.bytes = Some(bytes.max(1));
        self
    }

    /// The connection ends in the middle.
    pub fn broken(mut self) -> Self {
        self.fate = Fate::Half(Ending::Closed);
        self
    }

    /// It ends in the middle as if that were the end.
    pub fn unfinished(mut self) -> Self {
        self.fate = Fate::Half(Ending::Proper);
        self
    }

    /// Nothing more comes in the middle.
    pub fn stalled(mut self) -> Self {
        self.fate = Fate::Half(Ending::Hangs);
        self
    }

    /// In the middle the server says that it failed, as in `overloaded_error`.
    pub fn failing(mut self, kind: &str, words: &str) -> Self {
        self.fate = Fate::Error(kind.to_owned(), words.to_owned());
        self
    }

    /// With this header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With these words, for a status.
    pub fn saying(self, words: &str) -> Self {
        let body = json!({ "type": "error", "error": { "type": "scripted_error", "message": words } }).to_string();
        self.with_body(&body)
    }

    /// With this body, for a status.
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

    /// What is sent for this request, the `number`th.
    pub(crate) fn reply(&self, request: &Request, number: usize) -> Reply {
        match &self.play {
            Play::Made(make) => make(request).reply(request, number),
            Play::Nothing => Reply { status: None, headers: Vec::new(), pieces: Vec::new(), ending: self.ending() },
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
        match &self.fate {
            Fate::Whole => {}
            Fate::Half(_) => events.truncate(events.len() / 2),
            Fate::Error(kind, words) => {
                events.truncate(events.len() / 2);
                events.push(wire.error(kind, words));
            }
        }
        events
    }

    fn wrapped(&self, status: u16, pieces: Vec<Vec<u8>>, kind: &str) -> Reply {
        let headers = self.headers.iter().cloned().chain([("content-type".to_owned(), kind.to_owned())]).collect();
        let pieces = match self.shape.bytes {
            Some(bytes) => pieces.concat().chunks(bytes).map(<[u8]>::to_vec).collect(),
            None => pieces,
        };
        Reply { status: Some(status), headers, pieces, ending: self.ending() }
    }

    fn ending(&self) -> Ending {
        match self.fate {
            Fate::Whole | Fate::Error(..) => Ending::Proper,
            Fate::Half(ending) => ending,
        }
    }
}

/// An answer on its way to the wire.
struct Wire<'a> {
    script: &'a Script,
    shape: &'a Shape,
    speaks: Speaks,
    number: usize,
}

/// How many characters of text or arguments are in an event.
const CHARACTERS: usize = 7;

impl Wire<'_> {
    fn events(&self) -> Vec<Vec<u8>> {
        match self.speaks {
            Speaks::OpenAi => self.chunks().iter().map(|data| event("", data)).chain([b"data: [DONE]\n\n".to_vec()]).collect(),
            Speaks::Anthropic => {
                self.messages().iter().map(|data| event(data["type"].as_str().unwrap_or_default(), data)).collect()
            }
        }
    }

    fn error(&self, kind: &str, words: &str) -> Vec<u8> {
        let error = json!({ "type": kind, "message": words });
        match self.speaks {
            Speaks::OpenAi => event("", &json!({ "error": error })),
            Speaks::Anthropic => event("error", &json!({ "type": "error", "error": error })),
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
                let usage = self.usage();
                json!({ "type": "message", "role": "assistant", "content": blocks, "stop_reason": self.stop_reason(), "usage": usage })
            }
        }
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
            let deltas =
                pieces(&self.script.thought).map(|piece| json!({ "type": "thinking_delta", "thinking": piece })).collect();
            block(json!({ "type": "thinking", "thinking": "" }), deltas);
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
