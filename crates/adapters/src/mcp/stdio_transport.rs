//! Standard input and output as a transport of the SDK, one JSON message per line.
//!
//! The SDK's own reader silently drops lines that it cannot parse, and a client that waits for an answer then waits
//! forever. This one answers each line: with the result, or with an error and the id if there is one. Pipes and sockets
//! are read asynchronously; only other files need the thread pool that the runtime uses for standard input.

use std::{
    io,
    ops::Range,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use surehand_engine::ReplyGroup;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{UnixStream, unix::pipe},
    sync::Mutex,
};

use super::{
    Server,
    fast_path::{IncompleteAnswer, PlainCall},
};

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The longest accepted message: a file at the size limit with every byte escaped.
const MAX_LINE: usize = 400 << 20;
const CHUNK: usize = 64 << 10;

/// If the next calls have already arrived, answers are collected up to this size and this time, so that one system call
/// sends them all.
const ENOUGH_BYTES: usize = 64 << 10;
const ENOUGH_TIME: Duration = Duration::from_micros(200);

/// Changes that arrive together share the disk sync before their answers, so they wait for each other longer.
const MOST_CHANGES: usize = 16;
const ENOUGH_TIME_FOR_CHANGES: Duration = Duration::from_millis(5);

pub(super) struct StdioTransport {
    server: Arc<Server>,
    reader: Reader,
    /// Bytes that were read but not processed.
    buffer: Vec<u8>,
    start: usize,
    /// How far the buffer was searched for the end of a line.
    searched: usize,
    /// Whether the rest of an oversized line is being skipped.
    skipping: bool,
    opened: bool,
    output: Arc<Mutex<AnswerQueue>>,
    /// Answers that are not in the output queue yet.
    answers: Vec<u8>,
    /// The arrival of the first call whose answer was not sent.
    waiting_since: Option<Instant>,
    /// The answers among them that must be completed before they are sent.
    incomplete: Vec<IncompleteAnswer>,
}

impl StdioTransport {
    /// Plain calls go to the server's fast path, all other messages to the SDK.
    pub(super) fn open(server: Arc<Server>) -> io::Result<Self> {
        let output = Arc::new(Mutex::new(AnswerQueue { writer: Some(output()?), unsent: Vec::new(), sent: 0 }));
        Ok(Self {
            server,
            reader: input()?,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            skipping: false,
            opened: false,
            output,
            answers: Vec::new(),
            waiting_since: None,
            incomplete: Vec::new(),
        })
    }

    /// Answers a plain call or a malformed line at once, and returns any other message.
    fn take_in(&mut self, line: &[u8], replies: ReplyGroup) -> Option<RxJsonRpcMessage<RoleServer>> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        // The SDK tries one kind of message after the other on a copy, which takes longer than many calls. So the most
        // frequent form is tried first.
        if let Ok(call @ PlainCall { jsonrpc: "2.0", method: "tools/call", .. }) = serde_json::from_slice(line) {
            let began = Instant::now();
            match self.server.answer(call, replies, &mut self.answers) {
                Ok(incomplete) => {
                    self.waiting_since.get_or_insert(began);
                    self.incomplete.extend(incomplete);
                    return None;
                }
                Err(call) => {
                    if let Some(message) = call.into_message() {
                        return Some(message);
                    }
                }
            }
        }
        let parsed = serde_json::from_slice(line);
        parsed.map_err(|error| ErrorAnswer::find(line, &error).iter().for_each(|mistake| self.answer_mistake(mistake))).ok()
    }

    fn answer_mistake(&mut self, mistake: &ErrorAnswer) {
        if let Ok(line) = serde_json::to_vec(mistake) {
            self.answers.extend(line);
            self.answers.push(b'\n');
            self.waiting_since.get_or_insert_with(Instant::now);
        }
    }

    /// Whether the answer to the next call is sent together with other answers.
    fn reply_group(&self) -> ReplyGroup {
        let has_more = !self.incomplete.is_empty() || memchr::memchr(b'\n', &self.buffer[self.start..]).is_some();
        if has_more { ReplyGroup::WithOthers } else { ReplyGroup::Alone }
    }

    /// Completes the collected answers that report changed files. If that fails, they report the failure instead.
    fn complete_answers(&mut self) {
        let incomplete = std::mem::take(&mut self.incomplete);
        // Nearly always all of them have one workspace, and only the first has something to do.
        let completed: Vec<_> = incomplete.iter().map(|answer| answer.workspace.complete_replies()).collect();
        if let Some(error) = completed.into_iter().find_map(Result::err) {
            for answer in incomplete.into_iter().rev() {
                self.answers.splice(answer.line.clone(), answer.failed(&error));
            }
        }
    }

    /// Sends the collected answers. Cancel-safe.
    async fn send_answers(&mut self) -> io::Result<()> {
        if self.waiting_since.is_some() {
            self.complete_answers();
            let mut output = self.output.lock().await;
            output.take(&mut self.answers);
            output.send().await?;
            self.waiting_since = None;
        }
        Ok(())
    }

    fn have_waited_enough(&self) -> bool {
        let (enough_time, changes) = match self.incomplete.len() {
            0 => (ENOUGH_TIME, 0),
            changes => (ENOUGH_TIME_FOR_CHANGES, changes),
        };
        let is_time = self.waiting_since.is_some_and(|since| since.elapsed() > enough_time);
        is_time || self.answers.len() > ENOUGH_BYTES || changes >= MOST_CHANGES
    }

    /// The next line without its ending; `None` at the end of the input. Cancel-safe.
    async fn line(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            if self.have_waited_enough() {
                self.send_answers().await?;
                // Other tasks of the server must be able to run, however many calls arrive.
                tokio::task::yield_now().await;
            }
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + at;
                let line = self.start..end;
                self.start = end + 1;
                self.searched = self.start;
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                return Ok(Some(InputLine::Whole(line)));
            }
            self.send_answers().await?;
            self.buffer.drain(..self.start);
            if self.buffer.is_empty() {
                self.buffer.shrink_to(MAX_KEPT);
            }
            self.start = 0;
            self.searched = self.buffer.len();
            if self.buffer.len() > MAX_LINE {
                self.buffer.clear();
                self.searched = 0;
                if !std::mem::replace(&mut self.skipping, true) {
                    return Ok(Some(InputLine::TooLong));
                }
            }
            self.buffer.reserve(CHUNK);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

enum InputLine {
    /// Its range in the buffer, valid until the next line is requested.
    Whole(Range<usize>),
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
            let line = match self.line().await.ok()?? {
                InputLine::Whole(line) => line,
                InputLine::TooLong => {
                    let why = format!("the message is longer than {MAX_LINE} bytes");
                    self.answer_mistake(&ErrorAnswer::new(INVALID_REQUEST, why, Value::Null));
                    continue;
                }
            };
            // The buffer is moved out for this call, so that a large line is not copied.
            let replies = self.reply_group();
            let buffer = std::mem::take(&mut self.buffer);
            let message = self.take_in(&buffer[line], replies);
            self.buffer = buffer;
            let Some(message) = message else { continue };
            // Notifications and responses before the first request make no sense.
            self.opened |= matches!(message, RxJsonRpcMessage::<RoleServer>::Request(_));
            if self.opened {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.output.lock().await.writer.take());
        Ok(())
    }
}

/// The error that answers a malformed line.
#[derive(Serialize)]
struct ErrorAnswer {
    jsonrpc: &'static str,
    /// Null if it is not known.
    id: Value,
    error: ErrorBody,
}

#[derive(Serialize)]
struct ErrorBody {
    code: i32,
    message: String,
}

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// The fields that can be read even if the rest is malformed.
#[derive(Deserialize)]
struct MessageHead {
    id: Option<Value>,
    method: Option<Value>,
    jsonrpc: Option<Value>,
}

impl ErrorAnswer {
    fn new(code: i32, message: impl Into<String>, id: Value) -> Self {
        Self { jsonrpc: "2.0", id, error: ErrorBody { code, message: message.into() } }
    }

    /// Finds the error in a line. `None` for unknown notifications, which expect no answer.
    fn find(line: &[u8], error: &serde_json::Error) -> Option<Self> {
        let head: MessageHead = match serde_json::from_slice(line) {
            Ok(head) => head,
            Err(_) if line.trim_ascii_start().starts_with(b"[") => {
                return Some(Self::new(INVALID_REQUEST, "batches are not supported: send one message a line", Value::Null));
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
            // The head was readable, so a string or the nesting is broken.
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

struct AnswerQueue {
    /// `None` after the transport was closed.
    writer: Option<Writer>,
    /// Bytes to send. The buffer is kept, because allocating room for a large answer takes as long as writing it.
    unsent: Vec<u8>,
    sent: usize,
}

/// A larger buffer is not kept.
const MAX_KEPT: usize = 4 << 20;

impl AnswerQueue {
    async fn write(&mut self, message: &impl Serialize) -> io::Result<()> {
        let start = self.unsent.len();
        if let Err(error) = serde_json::to_writer(&mut self.unsent, message) {
            self.unsent.truncate(start);
            return Err(io::Error::other(error));
        }
        self.unsent.push(b'\n');
        self.send().await
    }

    /// Takes whole lines to send, and gives back an empty buffer.
    fn take(&mut self, lines: &mut Vec<u8>) {
        if self.unsent.is_empty() {
            std::mem::swap(&mut self.unsent, lines);
        } else {
            self.unsent.append(lines);
        }
    }

    /// Sends all bytes. If it is dropped halfway, the next call continues.
    async fn send(&mut self) -> io::Result<()> {
        let writer = self.writer.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        while self.sent < self.unsent.len() {
            let sent = writer.write(&self.unsent[self.sent..]).await?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.sent += sent;
        }
        self.unsent.clear();
        self.unsent.shrink_to(MAX_KEPT);
        self.sent = 0;
        writer.flush().await
    }
}

fn input() -> io::Result<Reader> {
    let fd = rustix::io::dup(io::stdin())?;
    Ok(match kind(&fd)? {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(widened(fd))?),
        FileType::Socket => Box::new(socket(fd)?),
        _ => Box::new(tokio::io::stdin()),
    })
}

fn output() -> io::Result<Writer> {
    let fd = rustix::io::dup(io::stdout())?;
    Ok(match kind(&fd)? {
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(widened(fd))?),
        FileType::Socket => Box::new(socket(fd)?),
        _ => Box::new(tokio::io::stdout()),
    })
}

/// Enlarges a pipe, so that a large message takes fewer system calls. It may fail.
fn widened(pipe: OwnedFd) -> OwnedFd {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, 1 << 20);
    pipe
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
