//! A client of `surehand mcp` over stdio that can kill its server in the middle of a call. It checks every answer: no
//! call may hang, fail with an internal error, or be refused without a reason.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::{self, sleep},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::process::Pid;
use serde_json::{Value, json};

use crate::test_workspace::TestWorkspace;

/// A call that takes longer than this hangs: even a slow machine stays far below it.
const PATIENCE: Duration = Duration::from_secs(100);

/// The answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// The text for the model.
    pub text: String,
    pub result: Value,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Done(Answer),
    /// The call was refused and changed nothing.
    Refused(Answer),
    /// The server died first, so the result is unknown.
    Unknown,
}

pub(crate) struct Client<'a> {
    workspace: &'a TestWorkspace,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
    /// Answers that arrived before the one that was waited for.
    early: BTreeMap<u64, Value>,
    form: CallForm,
    killed: bool,
    /// The duration of the last answered call.
    pub took: Duration,
}

/// How calls are sent. Servers answer the two forms in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallForm {
    /// As most clients send them.
    Plain,
    /// With a request for the result object beside the text.
    WithObject,
}

impl<'a> Client<'a> {
    /// Starts a server and initializes the session.
    pub(crate) fn start(workspace: &'a TestWorkspace, command: &mut Command, form: CallForm) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("the server")?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        // On a thread, so that waiting for a line can time out. The thread ends with the server.
        thread::spawn(move || output.lines().map_while(|line| line.ok()).try_for_each(|line| sender.send(line)));
        let mut client = Self {
            workspace,
            child,
            input,
            lines,
            next_id: 0,
            early: BTreeMap::new(),
            form,
            killed: false,
            took: Duration::ZERO,
        };
        let client_info = json!({ "name": "torture", "version": "0" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info });
        let hello = client.request("initialize", &hello);
        client.write(&hello.line);
        client.receive(hello.id);
        client.write(&line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })));
        Ok(client)
    }

    /// Calls a tool and waits for the answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Reply {
        let began = Instant::now();
        let reply = self.call_and(tool, arguments, |_| {});
        self.took = began.elapsed();
        reply
    }

    /// Calls a tool and kills the server when `wait` returns.
    pub(crate) fn call_and_kill(&mut self, tool: &str, arguments: &Value, wait: impl FnOnce()) -> Reply {
        self.call_and(tool, arguments, |client| {
            wait();
            client.kill();
        })
    }

    /// Sends calls together, and kills the server when `wait` returns, if `wait` is given. Returns the answers in
    /// order.
    pub(crate) fn call_together(&mut self, calls: &[(&str, Value)], wait: Option<impl FnOnce()>) -> Vec<Reply> {
        let requests: Vec<Request> = calls.iter().map(|(tool, arguments)| self.request_call(tool, arguments)).collect();
        self.write(&requests.iter().map(|request| request.line.as_str()).collect::<String>());
        if let Some(wait) = wait {
            wait();
            self.kill();
        }
        // The server answers in any order. Answers that arrive too early are kept.
        let answer = |(request, (tool, arguments)): (&Request, &(&str, Value))| self.judge(request.id, tool, arguments);
        requests.iter().zip(calls).map(answer).collect()
    }

    pub(crate) fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn kill(&mut self) {
        self.killed = true;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether the server has not been killed.
    pub(crate) fn is_alive(&self) -> bool {
        !self.killed
    }

    fn call_and(&mut self, tool: &str, arguments: &Value, then: impl FnOnce(&mut Self)) -> Reply {
        let request = self.request_call(tool, arguments);
        self.write(&request.line);
        then(self);
        self.judge(request.id, tool, arguments)
    }

    fn request_call(&mut self, tool: &str, arguments: &Value) -> Request {
        let mut call = json!({ "name": tool, "arguments": arguments });
        if self.form == CallForm::WithObject {
            call["_meta"] = json!({ "surehand/result": true });
        }
        self.request("tools/call", &call)
    }

    fn request(&mut self, method: &str, params: &Value) -> Request {
        self.next_id += 1;
        let id = self.next_id;
        Request { id, line: line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })) }
    }

    fn write(&mut self, lines: &str) {
        if let Some(input) = &mut self.input {
            // A dead server shows when it does not answer.
            let _ = input.write_all(lines.as_bytes()).and_then(|()| input.flush());
        }
    }

    /// The answer to a request, unless the server dies first.
    fn receive(&mut self, id: u64) -> Option<Value> {
        if let Some(early) = self.early.remove(&id) {
            return Some(early);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => match serde_json::from_str::<Value>(&line) {
                    Ok(message) if message["id"] == id => return Some(message),
                    Ok(message) => {
                        self.early.extend(message["id"].as_u64().map(|id| (id, message)));
                    }
                    // The last line of a killed server may be cut off.
                    Err(_) if self.killed => {}
                    Err(error) => self.workspace.violation(format!("the server wrote no JSON: {error}: {line}")),
                },
                Err(RecvTimeoutError::Timeout) => {
                    self.workspace.violation(format!("no answer within {} s", PATIENCE.as_secs()));
                    self.kill();
                    return None;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if !self.killed {
                        let status = self.child.wait();
                        self.killed = true;
                        self.workspace.violation(format!("the server ended by itself: {status:?}"));
                    }
                    return None;
                }
            }
        }
    }

    fn judge(&mut self, id: u64, tool: &str, arguments: &Value) -> Reply {
        let Some(message) = self.receive(id) else { return Reply::Unknown };
        let result = &message["result"];
        let Some(text) = result["content"][0]["text"].as_str() else {
            self.workspace.violation(format!("{tool} {arguments} was not answered as a call: {message}"));
            return Reply::Unknown;
        };
        let answer = Answer { text: text.to_owned(), result: result["_meta"]["surehand/result"].clone() };
        if text.contains("failed inside") || text.contains("panicked") {
            self.workspace.violation(format!("{tool} {arguments} failed inside: {text}"));
        }
        if result["isError"] != true {
            return Reply::Done(answer);
        }
        if !text.starts_with("Error: ") {
            self.workspace.violation(format!("{tool} {arguments} was refused without saying so: {text}"));
        }
        Reply::Refused(answer)
    }

    /// Closes the server's input, as a client does at its end, and waits for the server to exit.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        if self.killed {
            return;
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => sleep(Duration::from_millis(1)),
                Ok(Some(status)) if status.success() => break,
                ended => {
                    self.workspace.violation(format!("the server did not end well: {ended:?}"));
                    break;
                }
            }
        }
        self.kill();
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        if !self.killed {
            self.kill();
        }
    }
}

/// A request that is not sent yet.
struct Request {
    id: u64,
    line: String,
}

fn line(message: &Value) -> String {
    format!("{message}\n")
}
