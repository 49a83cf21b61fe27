//! The server over HTTP, as its own process, with hand-written requests: which callers it accepts, the sessions, and
//! its end.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStderr, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

mod flood;
mod malformed;
mod users;

const PROGRAM: &str = env!("CARGO_BIN_EXE_surehand");
const TOKEN: &str = "s3cret-s3cret";

struct Server {
    dir: TempDir,
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        Self::start_with(options, &[])
    }

    fn start_with(options: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_by(Command::new(PROGRAM), workspace(), options, environment)
    }

    /// Starts the server with this command, to which the arguments are added.
    fn start_by(mut command: Command, dir: TempDir, options: &[&str], environment: &[(&str, &str)]) -> Self {
        command.args(["mcp", "--http", "127.0.0.1:0"]).args(options).arg("--root").arg(dir.path());
        command.env_remove("SUREHAND_MCP_TOKEN").env("SUREHAND_POLICY_DURABILITY", "fast").envs(environment.iter().copied());
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("http://") {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "it did not say where it is: {said}");
        }
        let address = said.split("http://").nth(1).unwrap().split("/mcp").next().unwrap().to_owned();
        Self { dir, child, stderr, address }
    }

    fn content(&self) -> String {
        fs::read_to_string(self.dir.path().join("a.txt")).unwrap()
    }

    /// Sends an HTTP request and returns the answer.
    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        Answer::parse(&self.exchange(&self.request(method, headers, body)))
    }

    /// Sends this text and returns everything that comes back.
    fn exchange(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends an HTTP request without waiting for the answer.
    fn open(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(self.request(method, headers, body).as_bytes()).unwrap();
        stream
    }

    /// The text of an HTTP request.
    fn request(&self, method: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut all: HashMap<String, String> = [
            ("host", self.address.as_str()),
            ("connection", "close"),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ]
        .into_iter()
        .chain(headers.iter().copied())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
        let path = all.remove("path").unwrap_or_else(|| "/mcp".to_owned());
        let headers: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{method} {path} HTTP/1.1\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
    }

    /// Sends a message and checks the status of the answer.
    #[track_caller]
    fn check_status(&self, headers: &[(&str, &str)], expected: u16) {
        let hello = message(1, "initialize", &hello(&json!({})));
        let answer = self.send("POST", headers, &hello);
        assert_eq!(answer.status, expected, "{headers:?}: {answer:?}");
    }

    /// Performs the handshake, and returns the id of the session.
    fn shake_hands(&self) -> String {
        let answer = self.send("POST", &[], &message(1, "initialize", &hello(&json!({}))));
        let id = answer.headers["mcp-session-id"].clone();
        self.send(
            "POST",
            &[("mcp-session-id", &id)],
            &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
        );
        id
    }

    /// Calls a tool in a session.
    fn call(&self, session: &str, tool: &str, arguments: &Value) -> Value {
        let call = message(2, "tools/call", &json!({ "name": tool, "arguments": arguments }));
        self.send("POST", &[("mcp-session-id", session)], &call).result()
    }

    /// The event stream of a session, subscribed to changes.
    fn subscribe(&self, session: &str) -> BufReader<TcpStream> {
        let subscribe = message(3, "resources/subscribe", &json!({ "uri": "surehand://journal" }));
        self.send("POST", &[("mcp-session-id", session)], &subscribe).result();
        let stream = self.open("GET", &[("mcp-session-id", session), ("accept", "text/event-stream")], "");
        let mut stream = BufReader::new(stream);
        wait_for(&mut stream, "text/event-stream");
        stream
    }

    /// Calls a tool as the newest revision of MCP does, with these additional headers and metadata.
    fn call_anew(&self, headers: &[(&str, &str)], meta: &[(&str, &str)], tool: &str, arguments: &Value) -> Value {
        Answer::parse(&self.exchange(&self.request_anew(headers, meta, tool, arguments))).result()
    }

    /// The text of such a call.
    fn request_anew(&self, headers: &[(&str, &str)], meta: &[(&str, &str)], tool: &str, arguments: &Value) -> String {
        let mut all = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "codex-mcp-client", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        meta.iter().for_each(|(name, value)| all[*name] = json!(value));
        let call = message(2, "tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": all }));
        let needed = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
        let headers: Vec<(&str, &str)> = needed.into_iter().chain(headers.iter().copied()).collect();
        self.request("POST", &headers, &call)
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }
}

fn workspace() -> TempDir {
    let dir = surehand_testkit::repository();
    fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    dir
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HashMap<String, String>,
    body: String,
}

impl Answer {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Self { status, headers: lines.filter_map(header).collect(), body: body.to_owned() }
    }

    /// The messages in a stream of events.
    fn messages(&self) -> Vec<Value> {
        self.body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok()).collect()
    }

    #[track_caller]
    fn result(&self) -> Value {
        let messages = self.messages();
        let found = messages.iter().find_map(|message| message.get("result"));
        found.unwrap_or_else(|| panic!("no result: {self:?}")).clone()
    }
}

/// Reads up to the next line of a stream that contains this.
#[track_caller]
fn wait_for(stream: &mut BufReader<TcpStream>, wanted: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended before {wanted}");
        if line.contains(wanted) {
            return line;
        }
    }
}

fn message(id: u32, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn hello(capabilities: &Value) -> Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": { "name": "test", "version": "0" } })
}

fn read() -> Value {
    json!({ "path": "a.txt" })
}

fn edit(old: &str, new: &str) -> Value {
    json!({ "path": "a.txt", "old_string": old, "new_string": new })
}

#[track_caller]
fn check_refused(result: &Value, is_refused: bool) {
    assert_eq!(result["isError"].as_bool().unwrap_or_default(), is_refused, "{result}");
}

#[test]
fn only_names_of_this_machine_lead_in() {
    let server = Server::start(&[]);
    let port = server.address.rsplit(':').next().unwrap();
    for host in ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"] {
        server.check_status(&[("host", &format!("{host}:{port}"))], 200);
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", ""] {
        let answer = server.send("POST", &[("host", host)], &message(1, "initialize", &hello(&json!({}))));
        assert!(matches!(answer.status, 400 | 403), "{host}: {answer:?}");
    }
}

#[test]
fn pages_in_a_browser_are_turned_away_unless_their_origin_is_allowed() {
    let server = Server::start(&["--allow-origin", "https://App.example"]);
    server.check_status(&[("origin", "https://app.example")], 200);
    for origin in ["https://evil.example", "https://app.example.evil", "http://app.example", "null", "http://localhost"] {
        server.check_status(&[("origin", origin)], 403);
    }
    let asked = server.send("OPTIONS", &[("origin", "https://app.example")], "");
    assert_eq!((asked.status, asked.headers["access-control-allow-origin"].as_str()), (204, "https://app.example"));
    assert_eq!(server.send("OPTIONS", &[("origin", "https://evil.example")], "").status, 403);
    Server::start(&[]).check_status(&[("origin", "https://app.example")], 403);
}

#[test]
fn without_the_token_nobody_comes_in() {
    let server = Server::start_with(&[], &[("SUREHAND_MCP_TOKEN", TOKEN)]);
    server.check_status(&[("authorization", &format!("Bearer {TOKEN}"))], 200);
    server.check_status(&[("authorization", "Bearer s3cret-s3creT")], 401);
    server.check_status(&[], 401);
    assert_eq!(server.send("GET", &[], "").status, 401);
    let answer = server.send("DELETE", &[("mcp-session-id", "x")], "");
    assert_eq!((answer.status, answer.headers["www-authenticate"].as_str()), (401, "Bearer"));
}

#[test]
fn a_token_is_made_and_printed_once_or_taken_from_a_variable() {
    let mut server = Server::start_with(&["--token-env", "MINE"], &[("MINE", TOKEN), ("SUREHAND_MCP_TOKEN", "another-one")]);
    server.check_status(&[("authorization", &format!("Bearer {TOKEN}"))], 200);
    server.signal("-TERM");
    let mut said = String::new();
    server.stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("Authorization: Bearer TOKEN") && !said.contains(TOKEN), "{said}");
    let output = |options: &[&str]| {
        let output =
            Command::new(PROGRAM).args(["mcp", "--http"]).args(options).env_remove("SUREHAND_MCP_TOKEN").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(output(&["127.0.0.1:0", "--token-env", "NO_SUCH_VARIABLE"]).contains("NO_SUCH_VARIABLE: there is no such variable"));
    assert!(output(&["0.0.0.0:0"]).contains("that needs a token"));
    // An address that is not this machine's: the token is printed, then the command fails.
    let said = output(&["192.0.2.1:0", "--token"]);
    let token = said.lines().find_map(|line| line.strip_prefix("token: ")).unwrap();
    assert!(token.len() == 48 && said.contains("cannot listen"), "{said}");
}

#[test]
fn other_paths_and_large_bodies_are_refused() {
    let server = Server::start_with(&[], &[("SUREHAND_LIMITS_FILE_BYTES", "1000")]);
    server.check_status(&[("path", "/")], 404);
    server.check_status(&[("path", "/mcp/")], 200);
    let large = message(1, "initialize", &json!({ "x": "x".repeat(2 << 20) }));
    assert_eq!(server.send("POST", &[], &large).status, 413);
}

#[test]
fn no_stream_begins_with_an_empty_event() {
    let server = Server::start(&[]);
    let hello = server.send("POST", &[], &message(1, "initialize", &hello(&json!({}))));
    let listed = server.send("POST", &[("mcp-session-id", &server.shake_hands())], &message(2, "tools/list", &json!({})));
    for answer in [hello, listed] {
        let first = answer.body.lines().find(|line| line.starts_with("data:")).unwrap();
        assert!(first.len() > 10 && !answer.body.contains("retry:"), "{}", answer.body);
    }
}

#[test]
fn sessions_at_once_know_each_what_it_read() {
    let server = Server::start(&[]);
    let (one, other) = (server.shake_hands(), server.shake_hands());
    check_refused(&server.call(&one, "read_file", &read()), false);
    check_refused(&server.call(&other, "edit_file", &edit("one", "x")), true);
    check_refused(&server.call(&one, "edit_file", &edit("one", "1")), false);
    check_refused(&server.call(&other, "read_file", &read()), false);
    check_refused(&server.call(&other, "edit_file", &edit("two", "2")), false);
    let stale = server.call(&one, "edit_file", &edit("1\n", "uno\n"));
    assert!(stale["content"][0]["text"].as_str().unwrap().contains("modified since last read"), "{stale}");
    assert_eq!(server.content(), "1\n2\n");
}

#[test]
fn many_clients_write_at_once_and_nothing_is_lost() {
    let server = Server::start(&[]);
    std::thread::scope(|scope| {
        for number in 0..6 {
            let server = &server;
            scope.spawn(move || {
                let session = server.shake_hands();
                for line in 0..5 {
                    // A refused client has seen the change, and repeats its call.
                    server.call(&session, "read_file", &read());
                    let add = edit("two\n", &format!("two\nby {number}: {line}\n"));
                    while server.call(&session, "edit_file", &add)["isError"] == true {}
                }
            });
        }
    });
    assert_eq!(server.content().lines().filter(|line| line.starts_with("by ")).count(), 30);
}

#[test]
fn a_session_that_its_client_ended_is_gone() {
    let server = Server::start(&[]);
    let session = server.shake_hands();
    server.call(&session, "read_file", &read());
    assert_eq!(server.send("DELETE", &[("mcp-session-id", &session)], "").status, 204);
    let call = message(2, "tools/call", &json!({ "name": "read_file", "arguments": read() }));
    assert_eq!(server.send("POST", &[("mcp-session-id", &session)], &call).status, 404);
    assert_eq!(server.send("POST", &[("mcp-session-id", "made-up")], &call).status, 404);
}

#[test]
fn without_a_handshake_the_call_the_header_or_the_process_names_the_session() {
    let server = Server::start(&[]);
    let codex = [("sessionId", "s1"), ("threadId", "s1")];
    check_refused(&server.call_anew(&[], &codex, "read_file", &read()), false);
    check_refused(&server.call_anew(&[], &[("sessionId", "s2")], "edit_file", &edit("one", "x")), true);
    check_refused(&server.call_anew(&[], &[], "edit_file", &edit("one", "x")), true);
    check_refused(&server.call_anew(&[], &codex, "edit_file", &edit("one", "1")), false);
    let named = [("surehand-session", "mine")];
    check_refused(&server.call_anew(&named, &[], "read_file", &read()), false);
    check_refused(&server.call_anew(&named, &[], "edit_file", &edit("1", "one")), false);
    // Each call has its own connection, but all come from this process.
    check_refused(&server.call_anew(&[], &[], "read_file", &read()), false);
    check_refused(&server.call_anew(&[], &[], "edit_file", &edit("one", "1")), false);
    // An id is valid only for the caller that got it.
    check_refused(
        &server.call_anew(&[("mcp-session-id", "made-up")], &[("sessionId", "s3")], "edit_file", &edit("1", "x")),
        true,
    );
}

#[test]
fn a_subscriber_hears_of_what_others_change() {
    let server = Server::start(&[]);
    let (one, other) = (server.shake_hands(), server.shake_hands());
    let mut stream = server.subscribe(&one);
    check_refused(&server.call(&other, "write_file", &json!({ "path": "new.txt", "content": "new\n" })), false);
    assert!(wait_for(&mut stream, "notifications/resources/updated").contains("surehand://journal"));
    let journal =
        server.send("POST", &[("mcp-session-id", &one)], &message(4, "resources/read", &json!({ "uri": "surehand://journal" })));
    let text = journal.result()["contents"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("write_file") && text.contains("    new.txt created\n"), "{text}");
}

#[test]
fn a_signal_ends_it_and_a_waiting_stream_does_not_hold_it_up() {
    for name in ["-TERM", "-INT"] {
        let mut server = Server::start(&[]);
        let session = server.shake_hands();
        let mut waiting = server.open("GET", &[("mcp-session-id", &session), ("accept", "text/event-stream")], "");
        let mut first = [0; 8];
        waiting.read_exact(&mut first).unwrap();
        check_refused(&server.call(&session, "read_file", &read()), false);
        check_refused(&server.call(&session, "edit_file", &edit("one", "1")), false);
        server.signal(name);
        assert_eq!(server.child.wait().unwrap().code(), Some(0), "{name}");
        let mut rest = Vec::new();
        waiting.read_to_end(&mut rest).unwrap();
        assert!(TcpStream::connect(&server.address).is_err());
        let left = ["journal", "staged"]
            .map(|part| fs::read_dir(server.dir.path().join(".git/surehand/checkouts/main").join(part)).unwrap().count());
        assert_eq!(left, [0, 0], "it has tidied up");
    }
}
