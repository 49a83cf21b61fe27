//! Standard input and output as a transport of the SDK, one JSON message per line.
//!
//! The SDK's own reader drops what it cannot parse without a word, and a client that waits for an answer then waits for ever.
//! This one answers every line with something: the message, or an error that says what is wrong, with the id where there is one.
//! Pipes and sockets are read as such; only other files need the thread pool that the runtime uses for standard input.

use std::{io, os::fd::OwnedFd, sync::Arc};

use rmcp::{
    ErrorData, RoleServer,
    model::RequestId,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use rustix::fs::FileType;
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

pub struct StdioTransport {
    reader: Reader,
    /// What has been read and not yet given out.
    buffer: Vec<u8>,
    /// Where in the buffer to go on.
    start: usize,
    /// How far the buffer has been searched for the end of a line.
    searched: usize,
    /// Whether the rest of a line that was too long is still to come.
    skipping: bool,
    writer: Arc<Mutex<Option<Writer>>>,
}

impl StdioTransport {
    pub fn open() -> io::Result<Self> {
        let writer = Arc::new(Mutex::new(Some(output()?)));
        Ok(Self { reader: input()?, buffer: Vec::new(), start: 0, searched: 0, skipping: false, writer })
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
        let writer = self.writer.clone();
        async move { write(&writer, &message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let (error, id) = match self.line().await.ok()?? {
                Line::TooLong => (ErrorData::invalid_request(format!("the message is longer than {MAX_LINE} bytes"), None), None),
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Line::Whole(line) => match serde_json::from_slice(&line) {
                    Ok(message) => return Some(message),
                    Err(error) => match blame(&line, &error) {
                        Some(blame) => blame,
                        None => continue,
                    },
                },
            };
            write(&self.writer, &TxJsonRpcMessage::<RoleServer>::error(error, id)).await.ok()?;
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.writer.lock().await.take());
        Ok(())
    }
}

/// What is wrong with a line, and whose request it was. `None` for notifications that we do not know: nobody waits for an answer.
fn blame(line: &[u8], error: &serde_json::Error) -> Option<(ErrorData, Option<RequestId>)> {
    let text = String::from_utf8_lossy(line);
    let message: Value = match serde_json::from_str(&text) {
        Ok(message) => message,
        Err(syntax) => return Some((ErrorData::parse_error(format!("not valid JSON: {syntax}"), None), None)),
    };
    let id = message.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    if std::str::from_utf8(line).is_err() {
        return Some((ErrorData::parse_error("the message is not valid UTF-8", None), id));
    }
    let method = message.get("method").and_then(Value::as_str);
    match (method, &id) {
        (Some(_), None) if message.get("id").is_none() => None,
        (Some("tools/call"), _) => {
            let why =
                format!("tools/call takes params {{\"name\": string, \"arguments\": object}}: {}", call_mistake(&message, error));
            Some((ErrorData::invalid_params(why, None), id))
        }
        (Some(method), _) => {
            let method: String = method.chars().take(60).collect();
            Some((ErrorData::invalid_request(format!("not a valid request {method:?} of this protocol: {error}"), None), id))
        }
        (None, _) => Some((ErrorData::invalid_request("not a JSON-RPC 2.0 message: no method", None), id)),
    }
}

fn call_mistake(message: &Value, error: &serde_json::Error) -> String {
    let params = &message["params"];
    if !params["name"].is_string() {
        "name is not a string".to_owned()
    } else if params.get("arguments").is_some_and(|arguments| !arguments.is_object()) {
        "arguments is not an object".to_owned()
    } else {
        error.to_string()
    }
}

async fn write(writer: &Mutex<Option<Writer>>, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
    let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
    line.push(b'\n');
    let mut writer = writer.lock().await;
    let writer = writer.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
    writer.write_all(&line).await?;
    writer.flush().await
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
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(fd)?),
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
