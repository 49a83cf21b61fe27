//! Agents in several worktrees and clones, with the real program: MCP servers, hooks, the helper that they start, and a
//! board in a file or on a real server.
#![expect(clippy::disallowed_methods, reason = "tests play the client and its tools")]

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use surehand_testkit::{
    postgres_server::PostgresServer,
    tool_client::{McpClient, ToolClient},
};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_surehand");
const NOBODY: u32 = 65_534;

/// A library that shifts the clock of a process.
const CLOCK: &str = "
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, id, now);
    if (!failed && id == CLOCK_REALTIME) now->tv_sec += OFFSET;
    return failed;
}";

/// A machine with one user: a home, a helper, and checkouts.
struct Machine {
    dir: TempDir,
    /// The program, run as the user of this machine.
    program: PathBuf,
    url: Option<String>,
    /// Additional environment variables of its processes.
    more: Vec<(String, String)>,
    /// A helper that the test started itself.
    helper: Option<Child>,
}

impl Machine {
    fn new(url: Option<String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let machine = Self { dir, program: PathBuf::from(PROGRAM), url, more: Vec::new(), helper: None };
        for place in ["home", "run"] {
            fs::create_dir(machine.at(place)).unwrap();
            fs::set_permissions(machine.at(place), fs::Permissions::from_mode(0o700)).unwrap();
        }
        machine
    }

    /// Gives all files to another user, who runs the program from now on.
    fn give_to_nobody(&mut self) {
        fs::copy(PROGRAM, self.at("surehand")).unwrap();
        let script = format!(
            "#!/bin/sh\nexec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {} \"$@\"\n",
            self.at("surehand").display()
        );
        fs::write(self.at("as-nobody"), script).unwrap();
        fs::set_permissions(self.at("as-nobody"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut open = vec![self.at(".")];
        while let Some(path) = open.pop() {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            if path.is_dir() && !path.is_symlink() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        self.program = self.at("as-nobody");
    }

    /// Lets claims expire after this many seconds.
    fn with_lease(mut self, seconds: u32) -> Self {
        self.more.push(("SUREHAND_BOARD_LEASE".to_owned(), seconds.to_string()));
        self
    }

    /// Shifts the clock of all processes on this machine. Starts the helper itself, because a helper started by the
    /// program would not get this environment.
    fn move_clock(&mut self, seconds: i64) {
        let (source, library) = (self.at("clock.c"), self.at("clock.so"));
        fs::write(&source, CLOCK.replace("OFFSET", &seconds.to_string())).unwrap();
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap();
        assert!(built.success());
        self.more.push(("LD_PRELOAD".to_owned(), library.display().to_string()));
        let mut helper = Command::new(&self.program);
        helper
            .arg("helper")
            .env_clear()
            .envs(self.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.helper = Some(helper.spawn().unwrap());
        until("the helper listens", || self.run(".", &["helper", "--status"], "", &[]).contains("runs as process").then_some(()));
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn git(&self, words: &str) {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        let done = Command::new("git").current_dir(self.dir.path()).args(identity).args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "git {words}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn environment(&self) -> Vec<(String, String)> {
        let path = |place: &str| self.at(place).display().to_string();
        let mut environment = vec![
            ("HOME".to_owned(), path("home")),
            ("XDG_RUNTIME_DIR".to_owned(), path("run")),
            ("XDG_STATE_HOME".to_owned(), path("home/state")),
            ("XDG_CONFIG_HOME".to_owned(), path("home/config")),
            ("SUREHAND_BOARD_ENABLED".to_owned(), "true".to_owned()),
            ("SUREHAND_BOARD_HUNKS".to_owned(), "true".to_owned()),
            ("USER".to_owned(), "alice".to_owned()),
        ];
        environment.extend(self.more.iter().cloned());
        environment.extend(self.url.clone().map(|url| ("SUREHAND_BOARD_URL".to_owned(), url)));
        environment
    }

    fn mcp(&self, place: &str) -> McpClient {
        let environment = self.environment();
        let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (&**name, &**value)).collect();
        let mut client = McpClient::start(&self.program, &self.at(place), &environment);
        client.call("read_file", &json!({ "path": "a.txt" }));
        client
    }

    fn run(&self, place: &str, arguments: &[&str], input: &str, more: &[(&str, &str)]) -> String {
        let mut child = Command::new(&self.program)
            .args(arguments)
            .current_dir(self.at(place))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .envs(self.environment())
            .envs(more.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn board(&self, place: &str) -> Value {
        serde_json::from_str(&self.run(place, &["board", "--json"], "", &[])).unwrap()
    }

    /// An edit by Claude Code in this checkout: the hook before it, which shows the unread lines and is sent again, the
    /// edit, and the hook after it. Returns what the model reads after the first answer.
    fn claude_edits(&self, place: &str, session: &str, (path, old, new): (&str, &str, &str), more: &[(&str, &str)]) -> String {
        let file = self.at(place).join(path);
        let hook = |event: &str| {
            let input = json!({ "hook_event_name": event, "session_id": session, "cwd": self.at(place), "tool_name": "Edit",
                "tool_input": { "file_path": file, "old_string": old, "new_string": new }, "tool_response": { "filePath": file } });
            self.run(place, &["hook", "claude"], &input.to_string(), more)
        };
        let first = hook("PreToolUse");
        let before = if first.contains("was not read") { hook("PreToolUse") } else { first };
        if before.contains("\"deny\"") {
            return before;
        }
        let content = fs::read_to_string(&file).unwrap();
        fs::write(&file, content.replacen(old, new, 1)).unwrap();
        before + &hook("PostToolUse")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let mut stop = Command::new(&self.program);
        let _ = stop.args(["helper", "--stop"]).env_clear().envs(self.environment()).output();
        if let Some(mut helper) = self.helper.take() {
            let _ = helper.kill();
            let _ = helper.wait();
        }
    }
}

#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(90), "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The roots with living agents, sorted.
fn places(board: &Value) -> Vec<String> {
    let alive = board["agents"].as_array().unwrap().iter().filter(|agent| agent["alive"] == true);
    let mut places: Vec<String> =
        alive.map(|agent| agent["root"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect();
    places.sort();
    places
}

fn text(changed: usize, to: &str) -> String {
    (1..=20).map(|number| if number == changed { format!("{to}\n") } else { format!("line {number}\n") }).collect()
}

/// A bare repository, and a clone `one` of it with two files of twenty lines.
fn make_origin(machine: &Machine) {
    machine.git("init -q --bare -b main origin.git");
    machine.git("init -q -b main one");
    for name in ["a.txt", "b.txt"] {
        fs::write(machine.at("one").join(name), text(0, "")).unwrap();
    }
    for words in ["add .", "commit -q -m first", "remote add origin ../origin.git", "push -q origin main"] {
        machine.git(&format!("-C one {words}"));
    }
}

fn claim_next(client: &mut McpClient) -> String {
    client.call("update_tasks", &json!({ "story": "s", "claim": "next" })).text
}

#[test]
fn agents_of_four_worktrees_and_a_clone_share_a_board_without_set_up() {
    let machine = Machine::new(None);
    make_origin(&machine);
    for place in ["w1", "w2", "w3"] {
        machine.git(&format!("-C one worktree add -q ../{place}"));
    }
    machine.git("clone -q origin.git two");
    // Presence.
    let (mut one, mut w1, mut two) = (machine.mcp("one"), machine.mcp("w1"), machine.mcp("two"));
    machine.claude_edits("w2", "c2", ("b.txt", "line 3\n", "three\n"), &[]);
    machine.claude_edits("w3", "c3", ("b.txt", "line 9\n", "nine\n"), &[]);
    let board = until("all five are alive", || {
        let board = machine.board("two");
        (places(&board) == ["one", "two", "w1", "w2", "w3"]).then_some(board)
    });
    let of_w2 = board["agents"].as_array().unwrap().iter().find(|agent| agent["session"] == "claude-c2").unwrap();
    assert_eq!((&of_w2["branch"], &of_w2["client"]), (&json!("w2"), &json!("claude")));
    // Tasks: two for three agents, and one agent is killed.
    for task in ["first task", "second task"] {
        machine.run("w3", &["board", "add", "--story", "s", task], "", &[]);
    }
    assert!(claim_next(&mut one).contains("Task 1 is yours"), "{}", machine.board("one")["stories"]);
    assert!(claim_next(&mut w1).contains("Task 2 is yours"));
    assert!(claim_next(&mut two).contains("No shared task of story s is free"));
    let late = two.call("update_tasks", &json!({ "story": "s", "complete": [1] }));
    assert!(late.is_error && late.text.contains("not claimed by you"), "{}", late.text);
    one.process().kill().unwrap();
    until("the task of the killed agent is free", || claim_next(&mut two).contains("Task 1 is yours").then_some(()));
    let done = two.call("update_tasks", &json!({ "story": "s", "complete": [1] }));
    assert!(!done.is_error && done.text.contains("1 closed"), "{}", done.text);
    // Changed lines and the forecast: by an MCP server, then by a hook.
    let edit = json!({ "path": "a.txt", "old_string": "line 7\n", "new_string": "seven of w1\n" });
    assert!(!w1.call("edit_file", &edit).is_error);
    until("the change is known in another worktree", || {
        let board = machine.board("w2");
        let is_it = |change: &&Value| change["path"] == "a.txt" && change["root"].as_str().unwrap().ends_with("/w1");
        let change = board["changes"].as_array().unwrap().iter().find(is_it)?.clone();
        assert_eq!(change["lines"], json!([{ "start": 7, "end": 7 }]));
        Some(())
    });
    let elsewhere = machine.claude_edits("w2", "c2", ("a.txt", "line 15\n", "fifteen\n"), &[]);
    assert!(!elsewhere.contains("conflict"), "{elsewhere}");
    let same = machine.claude_edits("w2", "c2", ("a.txt", "line 7\n", "seven of w2\n"), &[]);
    assert_eq!(same.matches("your edit of line 7 will conflict").count(), 1, "{same}");
    let answer = until("the server knows of the other change", || {
        let edit = json!({ "path": "a.txt", "old_string": "seven of w1\n", "new_string": "seven of w1\nor eight\n" });
        let back = json!({ "path": "a.txt", "old_string": "seven of w1\nor eight\n", "new_string": "seven of w1\n" });
        let made = w1.call("edit_file", &edit).text + &w1.call("edit_file", &back).text;
        made.contains("will conflict").then_some(made)
    });
    assert!(answer.contains("claude c2 on branch w2 changed line"), "{answer}");
    until("people see the forecast", || {
        let board = machine.board("w2");
        (!board["forecasts"].as_array().unwrap().is_empty()).then_some(())
    });
    // Claims.
    machine.run("two", &["board", "claim", "b.*"], "", &[]);
    let warned = machine.claude_edits("w3", "c3", ("b.txt", "line 12\n", "twelve\n"), &[]);
    assert!(warned.contains("has claimed b.*"), "{warned}");
    let strict = [("SUREHAND_POLICY_CLAIMS", "refuse")];
    let refused = machine.claude_edits("w3", "c3", ("b.txt", "line 14\n", "fourteen\n"), &strict);
    assert!(refused.contains("\"deny\"") && refused.contains("b.txt is claimed"), "{refused}");
    machine.run("w1", &["board", "release", "b.*"], "", &[]);
    let made = machine.claude_edits("w3", "c3", ("b.txt", "line 14\n", "fourteen\n"), &strict);
    assert!(!made.contains("deny"), "{made}");
}

#[test]
fn a_helper_that_is_killed_costs_nothing_but_a_moment() {
    let machine = Machine::new(None);
    make_origin(&machine);
    let mut one = machine.mcp("one");
    let helper = || -> Value { serde_json::from_str(&machine.run("one", &["helper", "--status", "--json"], "", &[])).unwrap() };
    for round in 0..2 {
        let process = until("a helper runs", || helper()["helper"]["process"].as_i64());
        until("the agent is alive", || (places(&machine.board("one")) == ["one"]).then_some(()));
        rustix::process::kill_process(rustix::process::Pid::from_raw(process as i32).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
        // Edits go on without the helper, and the next one delivers the reports.
        let edit = json!({ "path": format!("{round}.txt"), "content": "x\n" });
        assert!(!one.call("write_file", &edit).is_error);
    }
    until("everything is delivered", || {
        let board = machine.board("one");
        let summaries: Vec<&str> =
            board["headlines"].as_array().unwrap().iter().map(|posted| posted["summary"].as_str().unwrap()).collect();
        (summaries == ["created 0.txt", "created 1.txt"]).then_some(())
    });
}

#[test]
fn two_users_on_two_machines_share_a_board_over_tcp() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root can play a second user");
        return;
    }
    let mut server = PostgresServer::start(&[]);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", server.port());
    let here = Machine::new(Some(url.clone()));
    make_origin(&here);
    let mut there = Machine::new(Some(url));
    let origin = here.at("origin.git").display().to_string();
    here.git(&format!("-C one remote set-url origin {origin}"));
    there.git(&format!("clone -q {origin} clone"));
    there.give_to_nobody();
    let (mut mine, mut theirs) = (here.mcp("one"), there.mcp("clone"));
    until("each sees the other", || {
        let seen = [here.board("one"), there.board("clone")];
        seen.iter().all(|board| places(board) == ["clone", "one"]).then_some(())
    });
    here.run("one", &["board", "add", "--story", "s", "the only task"], "", &[]);
    assert!(claim_next(&mut theirs).contains("Task 1 is yours"));
    assert!(claim_next(&mut mine).contains("No shared task"));
    let edit = |to: &str| json!({ "path": "a.txt", "old_string": "line 7\n", "new_string": to });
    assert!(!theirs.call("edit_file", &edit("theirs\n")).is_error);
    until("the change is known on the other machine", || {
        let board = here.board("one");
        board["changes"].as_array().unwrap().iter().any(|change| change["here"] == false).then_some(())
    });
    let reply = until("the server has the news", || {
        let made = mine.call("edit_file", &edit("mine\n")).text;
        let back = mine.call("edit_file", &json!({ "path": "a.txt", "old_string": "mine\n", "new_string": "line 7\n" })).text;
        (made.contains("will conflict") || back.contains("will conflict")).then_some(made)
    });
    assert!(reply.contains("changed line 7 of a.txt"), "{reply}");
    // An outage: work goes on, and people are notified.
    server.stop();
    assert!(!mine.call("edit_file", &json!({ "path": "a.txt", "old_string": "line 9\n", "new_string": "nine\n" })).is_error);
    until("people are told", || here.board("one")["trouble"].is_string().then_some(()));
    server.launch();
    until("it is over", || here.board("one")["trouble"].is_null().then_some(()));
    // The agent of the other machine is killed, and its task is taken over.
    theirs.process().kill().unwrap();
    until("its task is free", || claim_next(&mut mine).contains("Task 1 is yours").then_some(()));
}

/// Only the owner can read the state.
#[test]
fn nobody_else_can_read_the_board_or_talk_to_the_helper() {
    let machine = Machine::new(None);
    make_origin(&machine);
    let _one = machine.mcp("one");
    until("the agent is alive", || (places(&machine.board("one")) == ["one"]).then_some(()));
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&machine.at("run/surehand")), 0o700);
    assert_eq!(mode(&machine.at("run/surehand/helper.sock")), 0o600);
    assert_eq!(mode(&machine.at("home/state/surehand/boards")), 0o700);
    assert_eq!(mode(&machine.at("one/.git/surehand")), 0o700);
    assert_eq!(mode(&machine.at("one/.git/surehand/board.json")), 0o600);
}

#[test]
fn a_run_takes_the_tasks_of_a_story_until_none_is_left() {
    let machine = Machine::new(None);
    make_origin(&machine);
    let mut script = String::new();
    for (number, name) in ["first", "second"].into_iter().enumerate() {
        machine.run("one", &["board", "add", "--story", "s", &format!("write {name}.txt")], "", &[]);
        let id = number + 1;
        for (tool, arguments) in [
            ("update_tasks", json!({ "add": [{ "description": name }] })),
            ("write_file", json!({ "path": format!("{name}.txt"), "content": format!("{name}\n") })),
            ("update_tasks", json!({ "set": [{ "id": id, "status": "completed" }] })),
            ("done", json!({ "summary": "written" })),
        ] {
            script.push_str(&format!("{}\n", json!({ "calls": [{ "tool": tool, "arguments": arguments }] })));
        }
    }
    fs::write(machine.at("script.jsonl"), script).unwrap();
    let script = machine.at("script.jsonl").display().to_string();
    machine.run("one", &["run", "s", "--fleet", "--yes", "--script", &script], "", &[]);
    for name in ["first", "second"] {
        assert_eq!(fs::read_to_string(machine.at("one").join(format!("{name}.txt"))).unwrap(), format!("{name}\n"));
    }
    let board = machine.board("one");
    let tasks: Vec<&Value> = board["stories"][0]["tasks"].as_array().unwrap().iter().map(|task| &task["status"]).collect();
    assert_eq!(tasks, ["completed", "completed"]);
}

fn signal(client: &mut McpClient, signal: Signal) {
    rustix::process::kill_process(Pid::from_child(client.process()), signal).unwrap();
}

fn update(client: &mut McpClient, arguments: Value) -> (bool, String) {
    let answer = client.call("update_tasks", &arguments);
    (answer.is_error, answer.text)
}

#[test]
fn a_frozen_agent_loses_its_claims_and_learns_it_once() {
    let machine = Machine::new(None).with_lease(2);
    make_origin(&machine);
    machine.git("-C one worktree add -q ../w1");
    let (mut one, mut w1) = (machine.mcp("one"), machine.mcp("w1"));
    machine.run("one", &["board", "add", "--story", "s", "the only task"], "", &[]);
    assert!(claim_next(&mut one).contains("Task 1 is yours"));
    let (is_error, said) = update(&mut one, json!({ "claim": "b.*" }));
    assert!(!is_error && said.contains("b.* is yours until you send {\"release\": \"b.*\"}"), "{said}");
    let (is_error, said) = update(&mut w1, json!({ "claim": "b.txt" }));
    assert!(is_error && said.contains("b.*"), "{said}");
    until("the claim is known there", || (machine.board("w1")["claims"][0]["pattern"] == "b.*").then_some(()));
    let warned = machine.claude_edits("w1", "c1", ("b.txt", "line 12\n", "twelve\n"), &[]);
    assert!(warned.contains("has claimed b.*"), "{warned}");

    signal(&mut one, Signal::STOP);
    until("the task of the frozen agent is free", || claim_next(&mut w1).contains("Task 1 is yours").then_some(()));
    until("its paths are free", || (!update(&mut w1, json!({ "claim": "b.txt" })).0).then_some(()));
    signal(&mut one, Signal::CONT);
    let (is_error, said) = update(&mut one, json!({ "story": "s", "complete": [1] }));
    assert!(is_error, "{said}");
    let mut all = said;
    until("the agent knows what it has lost", || {
        all.push_str(&one.call("read_file", &json!({ "path": "a.txt" })).text);
        (all.contains("shared task 1 is no longer yours") && all.contains("your claim on b.* has ended")).then_some(())
    });
    all.push_str(&one.call("read_file", &json!({ "path": "a.txt" })).text);
    assert_eq!((all.matches("no longer yours, ").count(), all.matches("your claim on b.* has ended").count()), (1, 1), "{all}");

    let done = update(&mut w1, json!({ "story": "s", "complete": [1], "release": "b.txt" }));
    assert!(!done.0 && done.1.contains("b.txt is no longer yours"), "{}", done.1);
    // Releasing them again does no harm, and is refused once the news has arrived.
    until("the claim is gone in the copy, too", || {
        let (is_error, said) = update(&mut w1, json!({ "release": "b.txt" }));
        (is_error && said.contains("not claimed by you")).then_some(())
    });
    all = w1.call("read_file", &json!({ "path": "a.txt" })).text;
    assert!(!all.contains("no longer yours"), "what it gave up itself is not lost: {all}");
}

#[test]
fn a_claimed_directory_is_claimed_with_all_that_is_in_it() {
    let machine = Machine::new(None);
    make_origin(&machine);
    fs::create_dir(machine.at("one/src")).unwrap();
    fs::write(machine.at("one/src/c.txt"), text(0, "")).unwrap();
    let claimed = machine.run("one", &["board", "claim", "src"], "", &[]);
    assert!(claimed.starts_with("Claimed src/** for"), "{claimed}");
    until("the claim is known here", || (machine.board("one")["claims"][0]["pattern"] == "src/**").then_some(()));
    let warned = machine.claude_edits("one", "c1", ("src/c.txt", "line 12\n", "twelve\n"), &[]);
    assert!(warned.contains("has claimed src/**"), "{warned}");
    assert!(machine.run("one", &["board", "release", "src/"], "", &[]).starts_with("Released src/**"));
}

/// Agents whose clocks are a day slow and a day fast, and one with the right time.
#[test]
fn the_clock_of_the_board_decides_and_not_that_of_an_agent() {
    let server = PostgresServer::start(&[]);
    for offset in [-86_400, 86_400] {
        let database = format!("board{}", offset > 0);
        server.query("postgres", &format!("CREATE DATABASE {database} ENCODING 'UTF8' TEMPLATE template0"));
        let url = format!("postgres://postgres@127.0.0.1:{}/{database}?sslmode=disable", server.port());
        let here = Machine::new(Some(url.clone())).with_lease(3);
        make_origin(&here);
        let mut there = Machine::new(Some(url)).with_lease(3);
        let origin = here.at("origin.git").display().to_string();
        here.git(&format!("-C one remote set-url origin {origin}"));
        there.git(&format!("clone -q {origin} clone"));
        there.move_clock(offset);
        let (mut mine, mut theirs) = (here.mcp("one"), there.mcp("clone"));
        until("each sees the other", || {
            let seen = [here.board("one"), there.board("clone")];
            seen.iter().all(|board| places(board) == ["clone", "one"]).then_some(())
        });
        for task in ["first", "second"] {
            here.run("one", &["board", "add", "--story", "s", task], "", &[]);
        }
        assert!(claim_next(&mut theirs).contains("Task 1 is yours"));
        assert!(claim_next(&mut mine).contains("Task 2 is yours"));
        // Its clock lets it neither steal a claim, nor keep one for which it sends no heartbeat.
        let (is_error, said) = update(&mut theirs, json!({ "story": "s", "claim": 2 }));
        assert!(is_error, "{said}");
        signal(&mut theirs, Signal::STOP);
        until("its claim runs out", || claim_next(&mut mine).contains("Task 1 is yours").then_some(()));
        signal(&mut theirs, Signal::CONT);
        let (is_error, said) = update(&mut theirs, json!({ "story": "s", "complete": [1] }));
        assert!(is_error, "{said}");
        // Its changes count as made just now.
        let edit = |to: &str| json!({ "path": "a.txt", "old_string": "line 7\n", "new_string": to });
        assert!(!theirs.call("edit_file", &edit("theirs\n")).is_error);
        assert!(!mine.call("edit_file", &edit("mine\n")).is_error);
        let forecast = until("the conflict is forecast", || here.board("one")["forecasts"].get(0).cloned());
        assert!(forecast["seconds_ago"].as_u64().is_some_and(|seconds| seconds < 3600), "{forecast}");
    }
}

/// A network that delivers nothing while `holds`, and everything late.
fn slow_network(server: u16, holds: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pass = move |mut from: TcpStream, mut to: TcpStream, holds: Arc<AtomicBool>| {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            thread::sleep(Duration::from_millis(20));
            while holds.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            if to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    };
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap(), holds.clone());
            let forth = holds.clone();
            thread::spawn(move || pass(client, server, forth));
            thread::spawn(move || pass(back.0, back.1, back.2));
        }
    });
    port
}

#[test]
fn over_a_slow_network_work_goes_on_and_is_delivered_late() {
    let server = PostgresServer::start(&[]);
    let holds = Arc::new(AtomicBool::new(false));
    let port = slow_network(server.port(), holds.clone());
    let machine = Machine::new(Some(format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable")));
    make_origin(&machine);
    let mut one = machine.mcp("one");
    until("the agent is alive", || (places(&machine.board("one")) == ["one"]).then_some(()));
    holds.store(true, Ordering::SeqCst);
    let edit = json!({ "path": "a.txt", "old_string": "line 7\n", "new_string": "seven\n" });
    assert!(!one.call("edit_file", &edit).is_error);
    let hook = machine.claude_edits("one", "c1", ("b.txt", "line 3\n", "three\n"), &[]);
    assert!(!hook.contains("deny"), "{hook}");
    // Only calls about the board wait for it, and then report why it failed.
    let (is_error, said) = update(&mut one, json!({ "story": "s", "claim": "next" }));
    assert!(is_error && said.contains("127.0.0.1"), "{said}");
    holds.store(false, Ordering::SeqCst);
    until("both changes are delivered", || {
        let board = machine.board("one");
        let paths: Vec<&str> =
            board["changes"].as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap()).collect();
        (paths == ["a.txt", "b.txt"] && places(&board) == ["one", "one"]).then_some(())
    });
}

#[test]
fn a_run_leaves_a_task_that_it_has_lost_and_takes_the_next() {
    let machine = Machine::new(None);
    make_origin(&machine);
    let mut script = String::new();
    let endless = format!("touch {}; while true; do sleep 0.05; done", machine.at("one/started").display());
    for (tool, arguments) in [
        ("update_tasks", json!({ "add": [{ "description": "first" }] })),
        ("run_command", json!({ "command": endless, "timeout": 600 })),
        ("update_tasks", json!({ "add": [{ "description": "second" }] })),
        ("write_file", json!({ "path": "second.txt", "content": "second\n" })),
        ("update_tasks", json!({ "set": [{ "id": 2, "status": "completed" }] })),
        ("done", json!({ "summary": "written" })),
    ] {
        script.push_str(&format!("{}\n", json!({ "calls": [{ "tool": tool, "arguments": arguments }] })));
    }
    fs::write(machine.at("script.jsonl"), script).unwrap();
    for task in ["first", "second"] {
        machine.run("one", &["board", "add", "--story", "s", task], "", &[]);
    }
    thread::scope(|scope| {
        let script = machine.at("script.jsonl").display().to_string();
        let machine = &machine;
        scope.spawn(move || machine.run("one", &["run", "s", "--fleet", "--yes", "--script", &script], "", &[]));
        until("the run works on the first task", || machine.at("one/started").exists().then_some(()));
        machine.run("one", &["board", "cancel", "1"], "", &[]);
    });
    assert_eq!(fs::read_to_string(machine.at("one/second.txt")).unwrap(), "second\n");
    let board = machine.board("one");
    let tasks: Vec<&Value> = board["stories"][0]["tasks"].as_array().unwrap().iter().map(|task| &task["status"]).collect();
    assert_eq!(tasks, ["cancelled", "completed"]);
}

/// The number of system calls of an edit, on the thread that makes it: the median of thirty. `None` where tracing is
/// not possible.
fn calls_of_an_edit(board: bool) -> Option<usize> {
    let mut machine = Machine::new(None);
    machine.more.push(("SUREHAND_BOARD_ENABLED".to_owned(), board.to_string()));
    make_origin(&machine);
    if board {
        // The helper is already running, so it is not traced.
        machine.run("one", &["board", "claim", "b.*"], "", &[]);
    }
    let (untraced, log) = (machine.program.clone(), machine.at("calls"));
    let script = format!("#!/bin/sh\nexec strace -f -s 300 -o {} {PROGRAM} \"$@\"\n", log.display());
    fs::write(machine.at("traced"), script).unwrap();
    fs::set_permissions(machine.at("traced"), fs::Permissions::from_mode(0o755)).unwrap();
    let can_trace = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !can_trace.is_ok_and(|traced| traced.status.success()) {
        return None;
    }
    machine.program = machine.at("traced");
    let mut one = machine.mcp("one");
    machine.program = untraced;
    let (mut turn, mut looks) = (0, 0);
    let mut edit = |one: &mut McpClient, path: &str| {
        let line = |turn: usize| if turn == 0 { "line 7\n".to_owned() } else { format!("edit {turn}\n") };
        let (old, new) = (line(turn), line(turn + 1));
        turn += 1;
        one.call("edit_file", &json!({ "path": path, "old_string": old, "new_string": new }))
    };
    if board {
        until("the server has the board", || {
            let made = one.call("write_file", &json!({ "path": "b.new", "content": format!("{}\n", looks) }));
            looks += 1;
            made.text.contains("has claimed").then_some(())
        });
    }
    (0..32).for_each(|_| assert!(!edit(&mut one, "a.txt").is_error));
    drop(one);
    let log = fs::read_to_string(log).unwrap();
    let is_edit = |line: &&str| line.contains("tools/call") && line.contains("edit_file") && line.contains("a.txt");
    let thread = log.lines().rfind(is_edit).unwrap().split(' ').next().unwrap();
    let of_thread = log.lines().filter(|line| line.split(' ').next() == Some(thread) && !line.contains(" resumed>"));
    let mut counts = Vec::new();
    for line in of_thread {
        match counts.last_mut() {
            _ if is_edit(&line) => counts.push(0),
            Some(count) => *count += 1,
            None => {}
        }
    }
    // The last one ends with the process.
    counts.pop();
    counts.sort_unstable();
    Some(counts[counts.len() / 2])
}

#[test]
fn an_edit_with_a_board_makes_no_more_system_calls_than_one_without() {
    let (Some(with), Some(without)) = (calls_of_an_edit(true), calls_of_an_edit(false)) else {
        eprintln!("not run: strace cannot trace here");
        return;
    };
    // One call may be for a lock that the thread with the copy of the board holds at that moment.
    assert!(with <= without + 1, "{with} calls with a board, {without} without");
}
