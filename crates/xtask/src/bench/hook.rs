//! The time that a hook adds to a call: from the start of its process to its end, for an allowed edit, with few and
//! with many files in the state. Beside it, an empty process, and empty processes of the usual runtimes for hooks.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use surehand_core::path::RelPath;
use surehand_engine::{Config, FileTracker, SessionId, Workspace};

use crate::bench::Bench;
use crate::files::{content, create, text, token};
use crate::machine;
use crate::measurement::Summary;

/// The number of files that the session has seen, for our two rows.
const VIEWS: [usize; 2] = [100, 100_000];
/// The conversation of the agent, which is our session.
const CONVERSATION: &str = "bench";
const SESSION: &str = "claude-bench";
/// The file that is edited.
const FILE: &str = "edited.rs";

pub(crate) struct Hook {
    /// The kinds of processes with their times, ours first.
    pub rows: Vec<(String, Summary)>,
}

/// A process that is started repeatedly.
struct Runner {
    label: String,
    program: PathBuf,
    arguments: Vec<&'static str>,
    input: Vec<u8>,
    times: Vec<Duration>,
}

/// Measures the processes in turn.
pub(super) fn measure(bench: &Bench) -> Result<Hook> {
    let mut runners = Vec::new();
    for views in VIEWS {
        let root = bench.workspace()?;
        let edit = remember(bench.fast.surehand.program(), &root, views)?;
        let label = format!("surehand hook claude, {views} files seen");
        let program = bench.fast.surehand.program().to_owned();
        runners.push(Runner { label, program, arguments: vec!["hook", "claude"], input: edit, times: Vec::new() });
    }
    runners.extend(nothings());
    machine::settle();
    for round in 0..bench.pace.pick(10, 60) {
        let count = runners.len();
        for place in 0..count {
            let runner = &mut runners[(round + place) % count];
            let (took, said) = runner.go()?;
            ensure!(!said.contains("deny"), "the hook refused: {said}");
            runner.times.push(took);
        }
    }
    Ok(Hook { rows: runners.into_iter().map(|runner| (runner.label, Summary::of(&runner.times))).collect() })
}

/// Processes that do nothing, as far as they are installed.
fn nothings() -> Vec<Runner> {
    // A version manager's launcher, common for Python, would be measured instead of the program.
    let python = said("python3", &["-c", "import sys; print(sys.executable)"]).unwrap_or_else(|| "python3".into());
    let node = said("node", &["-p", "process.execPath"]).unwrap_or_else(|| "node".into());
    let all = [
        ("true: a process that does nothing", "true".into(), vec![]),
        ("node -e 0: a hook in JavaScript, empty", node, vec!["-e", "0"]),
        ("python3 -c pass: a hook in Python, empty", python, vec!["-c", "pass"]),
    ];
    let runner = |(label, program, arguments): (&str, String, _)| Runner {
        label: label.into(),
        program: program.into(),
        arguments,
        input: b"{}".into(),
        times: Vec::new(),
    };
    all.into_iter().map(runner).filter(|runner| runner.go().is_ok()).collect()
}

/// The output of a program, if it is installed.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|said| !said.is_empty())
}

impl Runner {
    /// Runs it once. Returns the time from start to end, and the output.
    fn go(&self) -> Result<(Duration, String)> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command.spawn().with_context(|| self.program.display().to_string())?;
        // A process that reads nothing may already have exited.
        let _ = child.stdin.take().expect("stdin is piped").write_all(&self.input);
        let output = child.wait_with_output()?;
        let took = began.elapsed();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{}: {error}", self.label);
        Ok((took, String::from_utf8_lossy(&output.stdout).into_owned()))
    }
}

/// Creates a repository in which a session has seen this many files. Returns the agent's event before an edit of one of
/// them.
fn remember(server: &Path, root: &Path, views: usize) -> Result<Vec<u8>> {
    create(root, FILE, &content(0, 10 << 10))?;
    let made = Command::new("git").args(["init", "--quiet"]).current_dir(root).status().context("git")?;
    ensure!(made.success(), "git init: {made}");
    let shown = text(root, FILE)?;
    let lines = shown.lines().count();
    let file = json!({"filePath": root.join(FILE), "content": shown, "numLines": lines, "startLine": 1, "totalLines": lines});
    let mut read = event(root, "PostToolUse", "Read", json!({"file_path": root.join(FILE)}));
    read["tool_response"] = json!({"type": "text", "file": file});
    let input = read.to_string().into_bytes();
    let runner =
        Runner { label: "a read".into(), program: server.into(), arguments: vec!["hook", "claude"], input, times: Vec::new() };
    runner.go()?;
    see(root, views)?;
    let edit = json!({"file_path": root.join(FILE), "old_string": token(0), "new_string": token(1)});
    Ok(event(root, "PreToolUse", "Edit", edit).to_string().into_bytes())
}

/// The event that the agent sends to a hook.
fn event(root: &Path, name: &str, tool: &str, input: Value) -> Value {
    json!({"session_id": CONVERSATION, "cwd": root, "hook_event_name": name, "tool_name": tool, "tool_input": input})
}

/// Adds views of as many files as the session is to have seen, all like the first one.
fn see(root: &Path, views: usize) -> Result<()> {
    let workspace: Arc<Workspace> = Workspace::open(root, Config::default()).map_err(|error| anyhow!("{error}"))?;
    let mut tracker = FileTracker::shared(SessionId(SESSION.into()));
    let path = |name: &str| RelPath::new(name).map_err(|error| anyhow!("{name}: {error}"));
    let view = tracker.view(&workspace, &path(FILE)?).context("the hook has not recorded the read")?;
    for number in 1..views {
        tracker.set_view(&workspace, &path(&format!("src/module-{:03}/file-{number:06}.rs", number / 100))?, view.clone());
    }
    workspace.flush();
    Ok(())
}
