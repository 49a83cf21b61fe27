//! A model for tests, behind real HTTP on this machine: it answers what it was told to answer, turn by turn, in the protocol that it
//! is asked in, and remembers what it was asked. How a turn looks on the wire is in `model_turn`.
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
};

use serde_json::Value;

use crate::model_turn::{Ending, Reply};
pub use crate::model_turn::{Speaks, Turn};

/// A request that came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The path, as in `/v1/messages`.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// What was sent.
    pub body: Value,
}

impl Request {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The protocol that it is in.
    pub fn speaks(&self) -> Speaks {
        if self.path.ends_with("/messages") { Speaks::Anthropic } else { Speaks::OpenAi }
    }

    /// All that the model is told, with results of calls, without the tools: for tests that look for a word in it.
    pub fn told(&self) -> String {
        let mut texts = Vec::new();
        for part in [&self.body["system"], &self.body["messages"]] {
            gather(part, &mut texts);
        }
        texts.join("\n")
    }
}

/// Texts as they are, without what JSON adds to them.
fn gather(part: &Value, texts: &mut Vec<String>) {
    match part {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| gather(part, texts)),
        Value::Object(fields) => {
            ["text", "content"].iter().filter_map(|name| fields.get(*name)).for_each(|part| gather(part, texts))
        }
        _ => {}
    }
}

/// A server on this machine that plays a model. It ends when it is dropped, whatever it is about to do.
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
        self.state.lock().expect("nobody panics with the lock")
    }
}

impl ModelServer {
    /// Starts a server that plays these turns, one for each request. When there are none left it refuses, with 400.
    pub fn start(turns: Vec<Turn>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("this machine has a loopback");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        shared.state().turns = turns.into();
        let for_thread = Arc::clone(&shared);
        let listener = thread::spawn(move || accept(&listener, &for_thread));
        Self { address, shared, listener: Some(listener) }
    }

    /// Where it is: for either protocol.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// How many turns have not been played.
    pub fn turns_left(&self) -> usize {
        self.shared.state().turns.len()
    }

    /// Waits until it has been asked so often.
    pub fn wait_for_requests(&self, count: usize) {
        let waited = self.shared.has_request.wait_while(self.shared.state(), |state| state.requests.len() < count);
        drop(waited.expect("nobody panics with the lock"));
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.is_stopped = true;
            for connection in state.connections.drain(..) {
                // It may have been closed by the other side.
                let _ = connection.shutdown(Shutdown::Both);
            }
        }
        // The listener looks up when somebody comes.
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
        // It ends when its connection does, for which the server sees when it is dropped.
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
            Ending::Proper => {}
            Ending::Closed => return connection.shutdown(Shutdown::Both),
            // Until the other side has had enough, or the server is dropped.
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

fn send(connection: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let Some(status) = reply.status else { return Ok(()) };
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ntransfer-encoding: chunked\r\n");
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    connection.write_all(format!("{head}\r\n").as_bytes())?;
    for piece in reply.pieces.iter().filter(|piece| !piece.is_empty()) {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        connection.write_all(&chunk)?;
    }
    if reply.ending == Ending::Proper {
        connection.write_all(b"0\r\n\r\n")?;
    }
    connection.flush()
}
