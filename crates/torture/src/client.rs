//! A client of `surehand mcp` over stdio that can kill its server in the middle of a call. It checks every answer: no
//! call may hang, fail with an internal error, or be refused without a reason.

use std::{
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
    /// The result object.
    pub result: Value,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    /// The call succeeded.
    Done(Answer),
    /// The call was refused and changed nothing.
    Refused(Answer),
    /// The server died first, so the result is unknown.
    Unknown,
}

/// A running server.
pub(crate) struct Client<'a> {
    workspace: &'a TestWorkspace,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
    killed: bool,
    /// The duration of the last answered call.
    pub took: Duration,
}

impl<'a> Client<'a> {
    /// Starts a server and initializes the session.
    pub(crate) fn start(workspace: &'a TestWorkspace, command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("the server")?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        // On a thread, so that waiting for a line can time out. The thread ends with the server.
        thread::spawn(move || output.lines().map_while(|line| line.ok()).try_for_each(|line| sender.send(line)));
        let mut client = Self { workspace, child, input, lines, next_id: 0, killed: false, took: Duration::ZERO };
        let client_info = json!({ "name": "torture", "version": "0" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info });
        client.send("initialize", &hello);
        client.receive(PATIENCE);
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        Ok(client)
    }

    /// Calls a tool and waits for the answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Reply {
        let began = Instant::now();
        self.send("tools/call", &call_of(tool, arguments));
        let reply = self.judge(tool, arguments, PATIENCE);
        self.took = began.elapsed();
        reply
    }

    /// Calls a tool and kills the server when `wait` returns.
    pub(crate) fn call_and_kill(&mut self, tool: &str, arguments: &Value, wait: impl FnOnce()) -> Reply {
        self.send("tools/call", &call_of(tool, arguments));
        wait();
        self.kill();
        self.judge(tool, arguments, PATIENCE)
    }

    /// The process.
    pub(crate) fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.killed = true;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether the server has not been killed.
    pub(crate) fn is_alive(&self) -> bool {
        !self.killed
    }

    fn send(&mut self, method: &str, params: &Value) {
        self.next_id += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }));
    }

    fn write(&mut self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        if let Some(input) = &mut self.input {
            // A dead server shows when it does not answer.
            let _ = input.write_all(line.as_bytes()).and_then(|()| input.flush());
        }
    }

    /// The answer to the last request, unless the server dies first.
    fn receive(&mut self, patience: Duration) -> Option<Value> {
        let until = Instant::now() + patience;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => match serde_json::from_str::<Value>(&line) {
                    Ok(message) if message["id"] == self.next_id => return Some(message),
                    Ok(_) => {}
                    // The last line of a killed server may be cut off.
                    Err(_) if self.killed => {}
                    Err(error) => self.workspace.violation(format!("the server wrote no JSON: {error}: {line}")),
                },
                Err(RecvTimeoutError::Timeout) => {
                    self.workspace.violation(format!("no answer within {} s", patience.as_secs()));
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

    fn judge(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Reply {
        let Some(message) = self.receive(patience) else { return Reply::Unknown };
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

/// A call that asks for the result object beside the text.
fn call_of(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments, "_meta": { "surehand/result": true } })
}
