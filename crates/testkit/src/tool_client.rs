//! Clients that call tools through MCP or the command line. All of them must give the same results and the same text.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

/// The answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The text for the model.
    pub text: String,
    /// Whether the call was refused.
    pub is_error: bool,
    /// The result object, as `--json` prints it.
    pub result: Value,
}

/// Calls tools in one session.
pub trait ToolClient {
    /// The name in messages.
    fn name(&self) -> &'static str;

    /// Calls a tool and waits for its answer.
    fn call(&mut self, tool: &str, arguments: &Value) -> Answer;
}

/// `surehand mcp` over stdio, without an SDK.
pub struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
}

impl McpClient {
    /// Starts a server and initializes the session.
    pub fn start(program: &Path, root: &Path, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .args(["mcp", "--root"])
            .arg(root)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut client = Self { child, stdin, stdout, next_id: 0 };
        let info = json!({ "name": "testkit", "version": "0" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
        let answer = client.request("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "surehand", "{answer}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        client
    }

    /// Sends a line unchanged.
    pub fn send(&mut self, line: &str) {
        self.send_bytes(line.as_bytes());
    }

    /// Sends bytes as a line.
    pub fn send_bytes(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("open until dropped");
        stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush()).expect("the server reads");
    }

    /// The next message from the server.
    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).expect("the server writes UTF-8");
        assert!(read > 0, "the server hung up");
        serde_json::from_str(&line).expect("the server writes JSON")
    }

    /// Sends a request and waits for its answer.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }).to_string());
        // The server may notify in between.
        let answer = std::iter::repeat_with(|| self.receive()).find(|message| !message["id"].is_null());
        let answer = answer.expect("there is no end");
        assert_eq!(answer["id"], self.next_id, "{answer}");
        answer
    }

    /// The process of the server, to signal or to wait for.
    pub fn process(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl ToolClient for McpClient {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let asked = json!({ "surehand/result": true });
        let answer = self.request("tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": asked }));
        let result = &answer["result"];
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{answer}");
        assert_eq!(result.get("structuredContent"), None, "{answer}");
        Answer {
            text: result["content"][0]["text"].as_str().expect("text").to_owned(),
            is_error: result["isError"] == true,
            result: result["_meta"]["surehand/result"].clone(),
        }
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // The server exits when its input ends. A failed test does not wait for that.
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// `surehand call`, one process per call.
pub struct CliClient {
    program: PathBuf,
    root: PathBuf,
    environment: Vec<(String, String)>,
}

impl CliClient {
    /// A client for this root.
    pub fn new(program: &Path, root: &Path, environment: &[(&str, &str)]) -> Self {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { program: program.to_owned(), root: root.to_owned(), environment }
    }
}

impl ToolClient for CliClient {
    fn name(&self) -> &'static str {
        "cli"
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let output = Command::new(&self.program)
            .args(["call", tool, &arguments.to_string(), "--json", "--session", "scenario", "--root"])
            .arg(&self.root)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .output()
            .expect("the program runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing on standard error");
        let mut result: Value = serde_json::from_slice(&output.stdout).expect("JSON on standard output");
        let text = result["text"].take().as_str().expect("the text is in it").to_owned();
        let is_error = match output.status.code() {
            Some(0) => false,
            Some(1) => true,
            code => panic!("exit code {code:?}"),
        };
        Answer { text, is_error, result }
    }
}
