//! A server of the page in this process, and requests to it byte by byte.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::Arc,
    thread::JoinHandle,
};

use serde_json::Value;
use surehand_engine::{Call, Config, Edit, ReadCall, Session, SessionId, Workspace};
use surehand_ui::{BoardAccess, PageServer, Stopper, serve};

pub(crate) struct Server {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) address: String,
    pub(crate) token: String,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(surehand_testkit::repository(), None)
    }

    /// Serves the page of this directory, with this board.
    pub(crate) fn start_with(dir: tempfile::TempDir, board: Option<Box<dyn BoardAccess>>) -> Self {
        let workspace = Workspace::open(dir.path(), Config::default()).unwrap();
        let server = PageServer::bind(0).unwrap();
        let token = server.url().split_once("token=").unwrap().1.to_owned();
        let (address, stopper) = (server.address().to_string(), server.stopper());
        let thread = std::thread::spawn(move || serve(workspace, server, board).unwrap());
        Self { dir, address, token, stopper, thread: Some(thread) }
    }

    /// The workspace, opened as by another process.
    pub(crate) fn workspace(&self) -> Arc<Workspace> {
        Workspace::open(self.dir.path(), Config::default()).unwrap()
    }

    /// Writes a file, and lets a session read it.
    #[expect(clippy::disallowed_methods, reason = "a test lays out files")]
    pub(crate) fn session_that_read(&self, name: &str, path: &str, text: &str) -> Session {
        let place = self.dir.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
        let mut session = Session::continued(self.workspace(), SessionId(name.to_owned()));
        session.run(&Call::Read(ReadCall::whole(path))).result.unwrap();
        session.workspace().flush();
        session
    }

    /// Sends these bytes and returns the whole answer.
    pub(crate) fn exchange(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // The server may answer and hang up before it has read everything.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Answer::of(&String::from_utf8_lossy(&answer))
    }

    pub(crate) fn request(&self, line: &str, headers: &str, body: &str) -> Answer {
        let (host, length) = (&self.address, body.len());
        self.exchange(&format!(
            "{line} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
    }

    pub(crate) fn authorization(&self) -> String {
        format!("authorization: Bearer {}\r\n", self.token)
    }

    pub(crate) fn get(&self, question: &str) -> Answer {
        self.request(&format!("GET /api/{question}"), &self.authorization(), "")
    }

    pub(crate) fn post(&self, question: &str, request: &Value) -> Answer {
        let headers = self.authorization() + "content-type: application/json\r\n";
        self.request(&format!("POST /api/{question}"), &headers, &request.to_string())
    }

    /// The messages of the feed, in order.
    pub(crate) fn feed(&self) -> impl Iterator<Item = Value> + use<> {
        self.feed_from().1
    }

    /// The revision that the feed begins with, and its messages.
    pub(crate) fn feed_from(&self) -> (Value, impl Iterator<Item = Value> + use<>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("GET /api/feed HTTP/1.1\r\nhost: {}\r\n{}\r\n", self.address, self.authorization());
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        // From this line on the server listens for this page.
        lines.by_ref().find(|line| line == "event: from").unwrap();
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        (messages.next().unwrap()["revision"].take(), messages)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Makes an edit that passes.
#[track_caller]
pub(crate) fn edit(session: &mut Session, path: &str, old: &str, new: &str) -> String {
    let outcome = session.edit(&Edit::replace(path, old, new));
    let said = surehand_engine::render::json(&outcome, &surehand_engine::ToolNames::default());
    assert_eq!(said["success"], true, "{said:#}");
    session.workspace().flush();
    said["change"].as_str().unwrap().to_owned()
}
