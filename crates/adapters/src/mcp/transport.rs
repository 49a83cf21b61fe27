//! Standard input and output as a transport of the SDK, one JSON message per line.
//!
//! The SDK's own reader drops what it cannot parse without a word, and a client that waits for an answer then waits for ever.
//! This one answers every line with something: the message, or an error that says what is wrong, with the id where there is one.
//! Pipes and sockets are read as such; only other files need the thread pool that the runtime uses for standard input.

use std::{io, os::fd::OwnedFd, sync::Arc};

use rmcp::{
    RoleServer,
    model::{CallToolRequestParams, ClientRequest, JsonObject, Request, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{UnixStream, unix::pipe},
    sync::Mutex,
};

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The longest message that is taken: a file at its limit, every byte escaped.
const MAX_LINE: usize = 400 << 20;
const CHUNK: usize = 64 << 10;

pub(super) struct StdioTransport {
    reader: Reader,
    /// What has been read and not yet given out.
    buffer: Vec<u8>,
    /// Where in the buffer to go on.
    start: usize,
    /// How far the buffer has been searched for the end of a line.
    searched: usize,
    /// Whether the rest of a line that was too long is still to come.
    skipping: bool,
    /// Whether a request has come.
    opened: bool,
    output: Arc<Mutex<Output>>,
}

impl StdioTransport {
    pub(super) fn open() -> io::Result<Self> {
        let output = Arc::new(Mutex::new(Output { writer: Some(output()?), line: Vec::new() }));
        Ok(Self { reader: input()?, buffer: Vec::new(), start: 0, searched: 0, skipping: false, opened: false, output })
    }

    /// The next line, without its end; `None` when there are no more. Can be dropped half-way without losing anything.
    async fn line(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let end = self.searched + at;
                let line = self.buffer[self.start..end].to_vec();
                self.start = end + 1;
                self.searched = self.start;
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                return Ok(Some(Line::Whole(line)));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            self.searched = self.buffer.len();
            if self.buffer.len() > MAX_LINE {
                self.buffer.clear();
                self.searched = 0;
                if !std::mem::replace(&mut self.skipping, true) {
                    return Ok(Some(Line::TooLong));
                }
            }
            self.buffer.reserve(CHUNK);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move { output.lock().await.write(&message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let mistake = match self.line().await.ok()?? {
                Line::TooLong => {
                    Mistake::new(INVALID_REQUEST, format!("the message is longer than {MAX_LINE} bytes"), Value::Null)
                }
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Line::Whole(line) => match parse(&line) {
                    Ok(message) => {
                        // Before the first request there is nothing that a notification or a response could be about.
                        self.opened |= matches!(message, RxJsonRpcMessage::<RoleServer>::Request(_));
                        if self.opened {
                            return Some(message);
                        }
                        continue;
                    }
                    Err(error) => match Mistake::find(&line, &error) {
                        Some(mistake) => mistake,
                        None => continue,
                    },
                },
            };
            self.output.lock().await.write(&mistake).await.ok()?;
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.output.lock().await.writer.take());
        Ok(())
    }
}

/// A message. The SDK tries one kind after the other and keeps a copy meanwhile, which takes longer than many a call; so the plain
/// form of the call that comes all the time is recognised first.
fn parse(line: &[u8]) -> serde_json::Result<RxJsonRpcMessage<RoleServer>> {
    if let Ok(PlainCall { jsonrpc: "2.0", id, method: "tools/call", params }) = serde_json::from_slice(line) {
        let mut call = CallToolRequestParams::new(params.name);
        call.arguments = params.arguments;
        let request = ClientRequest::CallToolRequest(Request::new(call));
        return Ok(RxJsonRpcMessage::<RoleServer>::request(request, id));
    }
    serde_json::from_slice(line)
}

/// A call without anything else, such as `_meta`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainCall<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    params: PlainParams,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainParams {
    name: String,
    arguments: Option<JsonObject>,
}

/// A line that is no message, as the error to answer it with.
#[derive(Serialize)]
struct Mistake {
    jsonrpc: &'static str,
    /// Null where it could not be made out.
    id: Value,
    error: MistakeBody,
}

#[derive(Serialize)]
struct MistakeBody {
    code: i32,
    message: String,
}

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// What can be made out even where the rest is broken: everything else is skipped, not understood.
#[derive(Deserialize)]
struct Head {
    id: Option<Value>,
    method: Option<Value>,
    jsonrpc: Option<Value>,
}

impl Mistake {
    fn new(code: i32, message: impl Into<String>, id: Value) -> Self {
        Self { jsonrpc: "2.0", id, error: MistakeBody { code, message: message.into() } }
    }

    /// What is wrong with a line. `None` for notifications that we do not know: nobody waits for an answer.
    fn find(line: &[u8], error: &serde_json::Error) -> Option<Self> {
        let head: Head = match serde_json::from_slice(line) {
            Ok(head) => head,
            Err(_) if line.trim_ascii_start().starts_with(b"[") => {
                return Some(Self::new(INVALID_REQUEST, "batches are not taken: send one message a line", Value::Null));
            }
            Err(error) if error.is_data() => {
                return Some(Self::new(INVALID_REQUEST, "not a JSON-RPC message: not an object", Value::Null));
            }
            Err(syntax) => return Some(Self::new(PARSE_ERROR, format!("not valid JSON: {syntax}"), Value::Null)),
        };
        if head.id.is_none() && head.method.is_some() {
            return None;
        }
        let id = head.id.unwrap_or_default();
        let mistake = |why: &str| Some(Self::new(INVALID_REQUEST, why, Value::Null));
        if !(id.is_null() || id.is_string() || id.is_i64() || id.is_u64()) {
            return mistake("the id must be a string or a whole number");
        }
        if error.is_syntax() || error.is_eof() {
            // The head was read all the same, so it is a string or the nesting that is broken.
            return Some(Self::new(PARSE_ERROR, format!("not valid JSON: {error}"), id));
        }
        let why = if head.jsonrpc != Some(Value::from("2.0")) {
            "not a JSON-RPC message: \"jsonrpc\" must be \"2.0\"".to_owned()
        } else if !head.method.is_some_and(|method| method.is_string()) {
            "not a JSON-RPC request: no method".to_owned()
        } else {
            format!("not a valid request: {error}")
        };
        Some(Self::new(INVALID_REQUEST, why, id))
    }
}

/// Where answers go.
struct Output {
    /// Gone once the transport is closed.
    writer: Option<Writer>,
    /// The line being written. Kept, because making room for a large answer takes as long as writing it.
    line: Vec<u8>,
}

/// More room than this is not kept.
const MAX_KEPT: usize = 4 << 20;

impl Output {
    async fn write(&mut self, message: &impl Serialize) -> io::Result<()> {
        let writer = self.writer.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        self.line.clear();
        serde_json::to_writer(&mut self.line, message).map_err(io::Error::other)?;
        self.line.push(b'\n');
        writer.write_all(&self.line).await?;
        self.line.shrink_to(MAX_KEPT);
        writer.flush().await
    }
}

fn input() -> io::Result<Reader> {
    let fd = rustix::io::dup(io::stdin())?;
    Ok(match kind(&fd)? {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        FileType::Socket => Box::new(socket(fd)?),
        _ => Box::new(tokio::io::stdin()),
    })
}

fn output() -> io::Result<Writer> {
    let fd = rustix::io::dup(io::stdout())?;
    Ok(match kind(&fd)? {
        FileType::Fifo => {
            // A large answer goes out in fewer pieces. Where that is not allowed, it goes out in more.
            #[cfg(target_os = "linux")]
            let _ = rustix::pipe::fcntl_setpipe_size(&fd, 1 << 20);
            Box::new(pipe::Sender::from_owned_fd(fd)?)
        }
        FileType::Socket => Box::new(socket(fd)?),
        _ => Box::new(tokio::io::stdout()),
    })
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
