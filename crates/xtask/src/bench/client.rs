//! An MCP client over the pipes of a child process: one request at a time or several in flight, with every answer
//! checked. The clock stops when the line of the answer is complete; parsing and checking are not counted.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use crate::bench::server::Launch;
use crate::bench::tool_dialect::Call;

/// The protocol revision that the client asks for.
const PROTOCOL: &str = "2025-06-18";

/// How long a server may take to exit after its stdin was closed.
const GRACE: Duration = Duration::from_secs(5);

/// A running server and the connection to it. Dropping it closes the connection and waits for the server's exit.
pub(crate) struct Client {
    /// When the server was spawned.
    pub spawned: Instant,
    /// When the answer to `initialize` arrived.
    pub greeted: Instant,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    next_id: u64,
    name: String,
    log: PathBuf,
}

/// The result of a tool call with its times.
pub(crate) struct Answer {
    /// The text for the model.
    pub text: String,
    /// When the call was sent.
    pub began: Instant,
    /// When the answer arrived.
    pub ended: Instant,
}

impl Answer {
    /// The time from the request to the answer.
    pub(crate) fn took(&self) -> Duration {
        self.ended - self.began
    }
}

impl Client {
    /// Starts a server on a workspace and makes the handshake.
    pub(crate) fn start(launch: &Launch, root: &Path) -> Result<Self> {
        let command = launch.command(root)?;
        let spawned = Instant::now();
        let mut child = launch.spawn(command)?;
        let input = child.stdin.take().expect("stdin is piped");
        let output = child.stdout.take().expect("stdout is piped");
        let mut client = Self {
            spawned,
            greeted: spawned,
            child,
            input: Some(input),
            // As large as a pipe, so that one read empties it.
            output: BufReader::with_capacity(64 * 1024, output),
            line: Vec::new(),
            next_id: 1,
            name: launch.name.clone(),
            log: launch.log.clone(),
        };
        client.shake_hands().map_err(|error| client.explain(error))?;
        Ok(client)
    }

    /// Calls a tool. Any error ends the benchmark.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer> {
        self.try_call(tool, &arguments).map_err(|error| self.explain(error).context(format!("{tool} {}", arguments["path"])))
    }

    /// Requests the list of tools. Returns when it arrived.
    pub(crate) fn list_tools(&mut self) -> Result<Instant> {
        let listed = self.request("tools/list", json!({})).map_err(|error| self.explain(error).context("tools/list"))?;
        let (result, _, ended) = listed;
        ensure!(result["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "no tools listed: {result}");
        Ok(ended)
    }

    /// Sends a call. Any error ends the benchmark.
    pub(crate) fn send_call(&mut self, call: &Call) -> Result<Answer> {
        let done = self.try_call(call.tool, &call.arguments);
        let named = || format!("{} {}", call.tool, call.arguments).chars().take(200).collect::<String>();
        done.map_err(|error| self.explain(error).context(named()))
    }

    /// Sends calls with at most `in_flight` of them unanswered, and accepts answers in any order. Returns the time from
    /// the first request to the last answer.
    pub(crate) fn pipeline(&mut self, calls: &[Call], in_flight: usize) -> Result<Duration> {
        self.try_pipeline(calls, in_flight).map_err(|error| self.explain(error).context("calls in flight"))
    }

    fn try_pipeline(&mut self, calls: &[Call], in_flight: usize) -> Result<Duration> {
        let first = self.next_id;
        let lines: Vec<_> = calls.iter().map(|call| self.request_line("tools/call", call.params())).collect();
        let mut unsent = lines.iter();
        let mut answers = Vec::with_capacity(calls.len());
        let began = Instant::now();
        let mut ended = began;
        unsent.by_ref().take(in_flight).try_for_each(|line| self.send(line))?;
        while answers.len() < calls.len() {
            ended = self.receive_line()?;
            if is_notification(&self.line) {
                continue;
            }
            // Parsing large answers here would measure this program.
            answers.push(std::mem::take(&mut self.line));
            unsent.next().map_or(Ok(()), |line| self.send(line))?;
        }
        check_answers(first, &answers)?;
        Ok(ended - began)
    }

    /// Resident memory of the server in KiB.
    pub(crate) fn resident_kib(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).with_context(|| path.clone())?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).with_context(|| format!("{path}: no VmRSS"))?;
        line.trim().trim_end_matches(" kB").parse().with_context(|| format!("{path}: VmRSS {line}"))
    }

    fn shake_hands(&mut self) -> Result<()> {
        let params = json!({
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "xtask bench", "version": env!("CARGO_PKG_VERSION")},
        });
        let (result, _, ended) = self.request("initialize", params).context("initialize")?;
        ensure!(result["capabilities"]["tools"].is_object(), "no tools offered: {result}");
        self.greeted = ended;
        self.send(&line_of(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})))
    }

    fn try_call(&mut self, tool: &str, arguments: &Value) -> Result<Answer> {
        let (mut result, began, ended) = self.request("tools/call", json!({"name": tool, "arguments": arguments}))?;
        let Value::String(text) = result["content"][0]["text"].take() else { bail!("no text in the result: {result}") };
        ensure!(result["isError"] != true, "refused: {text}");
        Ok(Answer { text, began, ended })
    }

    /// Sends a request and returns its result with the moments of sending and of the complete answer.
    fn request(&mut self, method: &str, params: Value) -> Result<(Value, Instant, Instant)> {
        let id = self.next_id;
        let request = self.request_line(method, params);
        let began = Instant::now();
        self.send(&request)?;
        loop {
            let (mut message, ended) = self.receive()?;
            // A notification is not the answer.
            if message.get("method").is_some() {
                continue;
            }
            ensure!(message["id"] == id, "answer to another request: {}", message["id"]);
            let Some(result) = message.get_mut("result") else { bail!("refused: {}", message["error"]) };
            return Ok((result.take(), began, ended));
        }
    }

    /// A request line with a new id.
    fn request_line(&mut self, method: &str, params: Value) -> Vec<u8> {
        let id = self.next_id;
        self.next_id += 1;
        line_of(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    fn send(&mut self, line: &[u8]) -> Result<()> {
        self.input.as_mut().expect("stdin is open until the client is dropped").write_all(line).context("the server's stdin")
    }

    /// The next message, and when its line was complete.
    fn receive(&mut self) -> Result<(Value, Instant)> {
        let ended = self.receive_line()?;
        Ok((serde_json::from_slice(&self.line).context("the server's answer")?, ended))
    }

    /// Reads the next message into `self.line`. Returns when it was complete.
    fn receive_line(&mut self) -> Result<Instant> {
        self.line.clear();
        let length = self.output.read_until(b'\n', &mut self.line).context("the server's stdout")?;
        let ended = Instant::now();
        ensure!(length > 0, "the server closed its stdout");
        Ok(ended)
    }

    /// Adds the server's name and its standard error.
    fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        match fs::read_to_string(&self.log) {
            Ok(log) if !log.trim().is_empty() => anyhow!("{}: {error:#}\nstderr: {}", self.name, log.trim()),
            _ => anyhow!("{}: {error:#}", self.name),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => sleep(Duration::from_micros(200)),
                _ => return,
            }
        }
        eprintln!("{}: still running {} s after its stdin was closed; killed", self.name, GRACE.as_secs());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A message as one line.
fn line_of(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Checks that each request has one good answer. The ids start with `first`.
fn check_answers(first: u64, answers: &[Vec<u8>]) -> Result<()> {
    let mut open: BTreeSet<_> = (first..first + answers.len() as u64).collect();
    for answer in answers {
        let answer: Value = serde_json::from_slice(answer).context("the server's answer")?;
        let is_asked = answer["id"].as_u64().is_some_and(|id| open.remove(&id));
        ensure!(is_asked, "an answer to nothing: {}", answer["id"]);
        let is_good = answer.get("result").is_some_and(|result| result["isError"] != true);
        ensure!(is_good, "refused: {answer}");
    }
    Ok(())
}

/// Whether a line is a message that answers nothing.
fn is_notification(line: &[u8]) -> bool {
    line.len() < SHORT && serde_json::from_slice::<Value>(line).is_ok_and(|message| message.get("method").is_some())
}

/// No notification is longer than this.
const SHORT: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answers: &[Value], expected: Result<(), &str>) {
        let lines: Vec<_> = answers.iter().map(line_of).collect();
        assert_eq!(check_answers(5, &lines).map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn answers_may_come_in_any_order_but_each_only_once() {
        let good = |id: u64| json!({"id": id, "result": {}});
        check(&[good(6), good(5)], Ok(()));
        check(&[good(5), good(5)], Err("an answer to nothing: 5"));
        check(&[good(5), good(9)], Err("an answer to nothing: 9"));
    }

    #[test]
    fn a_refusal_among_many_answers_is_found() {
        let refused = json!({"id": 5, "result": {"isError": true}});
        let expected = format!("refused: {refused}");
        check(&[refused], Err(&expected));
    }

    #[test]
    fn a_message_with_a_method_answers_nothing() {
        assert!(is_notification(br#"{"jsonrpc":"2.0","method":"notifications/message"}"#));
        assert!(!is_notification(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    }
}
