//! A model for tests, behind real HTTP on this machine: it gives scripted answers, turn by turn, in the
//! protocol that it is asked in, and remembers what it was asked. How a turn looks on the wire is in `model_turn`.
//!
//! ```
//! use surehand_testkit::model_server::{ModelServer, Turn};
//!
//! let server = ModelServer::start(vec![Turn::status(429), Turn::text("hello")]);
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert_eq!(server.requests().len(), 0);
//! ```

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::Value;

use crate::model_turn::{Ending, Framing, Reply};
pub use crate::model_turn::{Speaks, Turn};

/// A request that the server received.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The path, such as `/v1/messages`.
    pub path: String,
    /// Names in lower case, with values.
    pub headers: Vec<(String, String)>,
    /// Parsed as JSON.
    pub body: Value,
}

impl Request {
    /// The value of a header; `None` if the request has no such header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The protocol, derived from the path and the body.
    pub fn speaks(&self) -> Speaks {
        let path = self.path.split('?').next().unwrap_or_default();
        if path.ends_with("/responses") {
            return Speaks::Responses;
        }
        if path.ends_with("/messages") { Speaks::Anthropic } else { Speaks::OpenAi }
    }

    /// All text for the model, including results of calls but not tools, for tests that look for a word in it.
    pub fn prompt(&self) -> String {
        let mut texts = Vec::new();
        for part in ["system", "instructions", "messages", "input"].map(|name| &self.body[name]) {
            gather(part, &mut texts);
        }
        texts.join("\n")
    }
}

/// Collects strings without their JSON escapes.
fn gather(part: &Value, texts: &mut Vec<String>) {
    match part {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| gather(part, texts)),
        Value::Object(fields) => {
            ["text", "content", "output"].iter().filter_map(|name| fields.get(*name)).for_each(|part| gather(part, texts))
        }
        _ => {}
    }
}

/// A server on this machine that plays a model. Dropping it ends it immediately.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    has_request: Condvar,
}

#[derive(Default)]
struct State {
    turns: VecDeque<Turn>,
    requests: Vec<Request>,
    connections: Vec<TcpStream>,
    is_stopped: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while holding the lock")
    }
}

impl ModelServer {
    /// Starts a server that plays one of these turns per request. When none is left, it answers with status 400.
    pub fn start(turns: Vec<Turn>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("this machine has a loopback");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        shared.state().turns = turns.into();
        let for_thread = Arc::clone(&shared);
        let listener = thread::spawn(move || accept(&listener, &for_thread));
        Self { address, shared, listener: Some(listener) }
    }

    /// Its address, for either protocol.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// The number of turns that have not been played.
    pub fn turns_left(&self) -> usize {
        self.shared.state().turns.len()
    }

    /// Waits for this number of requests.
    pub fn wait_for_requests(&self, count: usize) {
        let waited = self.shared.has_request.wait_while(self.shared.state(), |state| state.requests.len() < count);
        drop(waited.expect("no thread panics while holding the lock"));
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.is_stopped = true;
            for connection in state.connections.drain(..) {
                // The other side may have closed it.
                let _ = connection.shutdown(Shutdown::Both);
            }
        }
        // A connection wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming().flatten() {
        let mut state = shared.state();
        if state.is_stopped {
            return;
        }
        let Ok(copy) = connection.try_clone() else { continue };
        state.connections.push(copy);
        drop(state);
        let shared = Arc::clone(shared);
        // The thread ends with its connection, which the server closes when it is dropped.
        thread::spawn(move || drop(converse(connection, &shared)));
    }
}

/// Answers the requests of a connection until it ends.
fn converse(mut connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    while let Some(request) = receive(&mut reader)? {
        let (turn, number) = next_turn(shared, request.clone());
        let reply = turn.reply(&request, number);
        send(&mut connection, &reply)?;
        match reply.ending {
            Ending::Proper if reply.delivery.framing == Framing::Chunked => {}
            Ending::Proper | Ending::Closed => return connection.shutdown(Shutdown::Both),
            Ending::Hangs if reply.keep_alive.is_some() => {
                let with = reply.keep_alive.unwrap_or_default();
                return keep_alive(&mut connection, &framed(&with, reply.delivery.framing));
            }
            // Until the client closes the connection or the server is dropped.
            Ending::Hangs => return io::copy(&mut reader, &mut io::sink()).map(drop),
        }
    }
    Ok(())
}

fn next_turn(shared: &Shared, request: Request) -> (Turn, usize) {
    let mut state = shared.state();
    state.requests.push(request);
    shared.has_request.notify_all();
    let number = state.requests.len();
    (state.turns.pop_front().unwrap_or_else(|| Turn::status(400).saying("the script has no more turns")), number)
}

fn receive(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
    Ok(Some(Request { path, headers, body }))
}

fn framed(piece: &[u8], framing: Framing) -> Vec<u8> {
    match framing {
        Framing::Chunked => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
        Framing::Close | Framing::None => piece.to_vec(),
    }
}

/// Sends `with` until the client closes the connection or the server is dropped.
fn keep_alive(connection: &mut TcpStream, with: &[u8]) -> io::Result<()> {
    loop {
        connection.write_all(with)?;
        thread::sleep(Duration::from_millis(2));
    }
}

fn send(connection: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let Some(status) = reply.status else { return Ok(()) };
    let framing = reply.delivery.framing;
    let mut head = match framing {
        Framing::Chunked => format!("HTTP/1.1 {status} Scripted\r\ntransfer-encoding: chunked\r\n"),
        Framing::Close => format!("HTTP/1.0 {status} Scripted\r\n"),
        Framing::None => String::new(),
    };
    if framing != Framing::None {
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
    }
    connection.write_all(head.as_bytes())?;
    for piece in reply.pieces.iter().filter(|piece| !piece.is_empty()) {
        connection.write_all(&framed(piece, framing))?;
        thread::sleep(reply.delivery.pause);
    }
    if reply.ending == Ending::Proper && framing == Framing::Chunked {
        connection.write_all(b"0\r\n\r\n")?;
    }
    connection.flush()
}
