//! Agents in several worktrees and clones, with the real program: MCP servers, hooks, the helper that they start, and a
//! board in a file or on a real server.
#![expect(clippy::disallowed_methods, reason = "tests play the client and its tools")]

use std::{
    fs,
    io::Write,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use surehand_testkit::{
    postgres_server::PostgresServer,
    tool_client::{McpClient, ToolClient},
};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_surehand");
const NOBODY: u32 = 65_534;

/// A machine with one user: a home, a helper, and checkouts.
struct Machine {
    dir: TempDir,
    /// The program, run as the user of this machine.
    program: PathBuf,
    url: Option<String>,
}

impl Machine {
    fn new(url: Option<String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let machine = Self { dir, program: PathBuf::from(PROGRAM), url };
        for place in ["home", "run"] {
            fs::create_dir(machine.at(place)).unwrap();
            fs::set_permissions(machine.at(place), fs::Permissions::from_mode(0o700)).unwrap();
        }
        machine
    }

    /// Makes everything here belong to another user, who runs the program from now on.
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

    /// An edit by Claude Code in this checkout: the hook before it, which shows the unread lines and is asked again, the
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

/// The roots in which agents are alive, sorted.
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
    // Who changes what, and the forecast: by an MCP server, then by a hook.
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
        // Edits go on without it, and what they did is delivered by the next one.
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
    let told = until("the server has the news", || {
        let made = mine.call("edit_file", &edit("mine\n")).text;
        let back = mine.call("edit_file", &json!({ "path": "a.txt", "old_string": "mine\n", "new_string": "line 7\n" })).text;
        (made.contains("will conflict") || back.contains("will conflict")).then_some(made)
    });
    assert!(told.contains("changed line 7 of a.txt"), "{told}");
    // An outage: work goes on, and people are told.
    server.stop();
    assert!(!mine.call("edit_file", &json!({ "path": "a.txt", "old_string": "line 9\n", "new_string": "nine\n" })).is_error);
    until("people are told", || here.board("one")["trouble"].is_string().then_some(()));
    server.launch();
    until("it is over", || here.board("one")["trouble"].is_null().then_some(()));
    // The agent of the other machine is killed, and its task is taken over.
    theirs.process().kill().unwrap();
    until("its task is free", || claim_next(&mut mine).contains("Task 1 is yours").then_some(()));
}

/// The state that only its owner may read.
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
